//! Why bytes were not written or not taken.

/// Why bytes were refused, one variant per cause, so that a caller can count them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Error {
    /// The output buffer is too small; nothing useful was written.
    #[error("the output buffer is too small for the frame")]
    BufferTooSmall,
    /// The bytes are not a frame: unknown kind, cut short, or bytes left over.
    #[error("the bytes are no frame of this format")]
    Malformed,
    /// The frame is longer than this end of the link was built for.
    #[error("the frame is longer than the link allows")]
    FrameTooLong,
    /// The packet size is below [`MIN_MTU`](super::fragment::MIN_MTU).
    #[error("the packet size is below 31 bytes")]
    MtuTooSmall,
    /// The checksum of a frame from a byte stream is wrong.
    #[error("the checksum of the frame is wrong")]
    Checksum,
    /// The payload holds another number of scalars than this swarm exchanges.
    #[error("the payload holds another number of scalars than this swarm exchanges")]
    WordCount,
    /// A decision word is NaN or infinite.
    #[error("a decision is not finite")]
    NotFinite,
    /// The sealed frame names another key: it comes from another swarm.
    #[error("the frame is encrypted with another key")]
    ForeignKey,
    /// The tag does not fit: the frame was damaged or forged.
    #[error("the frame was damaged or forged")]
    Tampered,
    /// The frame is genuine and was already opened, or is older than the replay window.
    #[error("the frame was already received")]
    Replayed,
    /// The frame is genuine and from before its sender's last restart.
    #[error("the frame is from before its sender's last restart")]
    OldBoot,
    /// The frame is genuine, and its boot is further ahead than restarts that went unheard can explain.
    #[error("the frame's boot is far ahead of its sender's last known one")]
    BootJump,
    /// The sender is not among the members this agent keeps state for.
    #[error("the sender is no member")]
    UnknownSender,
    /// Every counter of this boot is used: start the sealer again.
    #[error("all counters of this boot are used, start the sealer again")]
    CountersSpent,
    /// The storage that keeps the boot epoch failed, so nothing can be sealed safely.
    #[error("the storage of the boot epoch failed")]
    Storage,
}
