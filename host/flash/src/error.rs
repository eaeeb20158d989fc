//! Why a board was not flashed.

use super::ImageError;

/// Why a board was not flashed. Every message ends with a `help:` line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FlashError {
    /// The image cannot be used.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// There is no way to the board.
    #[error(
        "cannot be opened: {reason}\nhelp: end the program that uses it; `fabswarm doctor` checks your access rights"
    )]
    Open {
        /// Why.
        reason: String,
    },
    /// The chip does not answer.
    #[error(
        "no {chip} answers: {reason}\nhelp: check the power of the board and the cable between probe and chip, and --board"
    )]
    NoAnswer {
        /// The chip that was expected.
        chip: String,
        /// Why.
        reason: String,
    },
    /// The boot ROM does not answer.
    #[error(
        "no boot ROM of an {chip} answers: {reason}\n\
         help: check the cable and --board; hold BOOT, press RESET, let both go, and flash it again"
    )]
    NoBootRom {
        /// The chip that was expected.
        chip: String,
        /// Why.
        reason: String,
    },
    /// Fuses of the chip keep what is flashed here from running.
    #[error(
        "fuses of the chip are burnt for secure boot, flash encryption or secure downloads\n\
         help: use another board: fuses cannot be mended, and the chip would not start this image"
    )]
    Secured,
    /// The chip is of another kind.
    #[error("the chip says that it is an {found}, and not an {chip}\nhelp: choose its board with --board")]
    OtherKind {
        /// The chip that was expected.
        chip: String,
        /// The chip that was found.
        found: String,
    },
    /// The chip is protected from being read.
    #[error(
        "the chip is locked: only erasing all of it opens it, and with it go the boots that it has used\n\
         help: run `probe-rs erase --chip {chip} --allow-erase-all`, then draw a new key with `fabswarm swarm new`, as no number \
         may be used twice under one key"
    )]
    Locked {
        /// The chip.
        chip: String,
    },
    /// The chip is another part.
    #[error(
        "the chip says that it is part {found:#x}, and {chip} is part {expected:#x}\nhelp: choose its board with --board"
    )]
    OtherPart {
        /// The chip that was expected.
        chip: String,
        /// Its part.
        expected: u32,
        /// The part that was found.
        found: u32,
    },
    /// The page is bound to another chip.
    #[error(
        "the page is bound to chip {bound:016x}, and this is chip {chip:016x}: it would refuse the page\n\
         help: flash the board with that chip, or write this chip into the swarm file"
    )]
    OtherChip {
        /// The chip of the page.
        bound: u64,
        /// The chip that was found.
        chip: u64,
    },
    /// No page can be made for the chip.
    #[error("{0}")]
    NoPage(String),
    /// The page is larger than its place.
    #[error(
        "the page takes {bytes} bytes, and the board has {room} for it\nhelp: give the agent fewer samples"
    )]
    PageTooLarge {
        /// What it takes.
        bytes: usize,
        /// What there is.
        room: u64,
    },
    /// The way to the board was lost.
    #[error(
        "was unplugged while it was to {purpose}\nhelp: plug it in and flash it again: what it has now is only part of an image"
    )]
    Unplugged {
        /// What was being done.
        purpose: &'static str,
    },
    /// The chip failed.
    #[error("could not {purpose}: {reason}\nhelp: flash it again; if that fails too, replace the board")]
    Failed {
        /// What was being done.
        purpose: &'static str,
        /// Why it failed.
        reason: String,
    },
    /// Other bytes come back than were written.
    #[error(
        "has {found:#04x} at {at:#x}, where {expected:#04x} was written\n\
         help: flash it again; if it differs at the same place, its flash is worn out: replace the board"
    )]
    Differs {
        /// The address.
        at: u64,
        /// What was written.
        expected: u8,
        /// What was read.
        found: u8,
    },
    /// The chip runs something else.
    #[error(
        "runs another image than the one that its log would be decoded with\nhelp: flash it again with `fabswarm boards flash`"
    )]
    OtherImage,
    /// There is no log.
    #[error("has no log at {at:#x}\nhelp: check that the board has started; reset it, and look again")]
    NoLog {
        /// Where it should be.
        at: u64,
    },
}
