//! Links: how a board sends and receives packets.

use embassy_time::{Duration, Instant, Timer};
use fabswarm_shared::{packet::RadioState, provisioning::Pace};

mod airtime;
#[cfg(test)]
pub(crate) mod fake;
mod fragmented;
mod listening;
mod queue;
mod send_backoff;
mod serial;
mod split;
mod timing;

pub use airtime::AirtimeLimit;
pub use fragmented::{FragmentedLink, packets_of};
pub use listening::{RadioQueue, keep_listening};
pub(crate) use queue::{PacketQueue, PacketReceiver, PacketSender, serve};
pub use serial::SerialLink;
pub use split::SplitLink;
pub use timing::{SendDelay, StampClock};

/// The medium that carries the frames of a board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AirKind {
    /// A host, which gets them by cable.
    Host,
    /// A channel on which everyone has a time: a packet that cannot be sent at once must not be sent later.
    Slots {
        /// By how much it may be late.
        late: Duration,
    },
}

impl From<Pace> for AirKind {
    fn from(pace: Pace) -> Self {
        match pace {
            Pace::Slots { superframe, .. } => {
                Self::Slots { late: Duration::from_micros((superframe.guard_us / 2).into()) }
            }
            Pace::Air | Pace::Retired => Self::Host,
        }
    }
}

/// Exchanges whole packets with everyone in range. Packets may be lost, repeated or reordered, but never truncated or
/// merged.
#[allow(async_fn_in_trait, reason = "one executor on one core: the futures need not be Send")]
pub trait Link {
    /// Tells the link which agent sends from here on, in which boot, and by which air. Only links that number their packets or share
    /// a channel need to know.
    fn start(&mut self, _sender: u16, _boot: u32, _air: AirKind) {}

    /// Sends one packet. Returns when it was sent or dropped.
    async fn send(&mut self, packet: &[u8]);

    /// Sends one packet at `at`, or now if that has passed.
    async fn send_at(&mut self, packet: &[u8], at: Instant) {
        // Most packets have no time: the clock is read only for those that do.
        if at > Instant::MIN {
            Timer::at(at).await;
        }
        self.send(packet).await;
    }

    /// Sends one packet at `at`, or now if that has passed, unless the channel is busy. Returns whether it was sent. A link that cannot tell
    /// sends it. The rest of the time is short, and an executor would be late.
    async fn try_send_at(&mut self, packet: &[u8], at: Instant) -> bool {
        while Instant::now() < at {}
        self.send(packet).await;
        true
    }

    /// Waits for a packet, and returns its length and when its first bit reached the board, or the present if it came all at once.
    ///
    /// Must be cancel-safe: dropping the future loses no packet that a later call could still return.
    async fn receive(&mut self, packet: &mut [u8]) -> (usize, Instant);

    /// Sets the radio up again, which may have lost its settings: nobody was heard for long.
    async fn restart(&mut self) {}

    /// Returns what the radio tells, if packets go by radio.
    fn radio_state(&self) -> Option<RadioState> {
        None
    }
}

/// Copies as much of a packet as there is room for, and returns its length.
fn copy(bytes: &[u8], packet: &mut [u8]) -> usize {
    let length = bytes.len().min(packet.len());
    packet[..length].copy_from_slice(&bytes[..length]);
    length
}

/// Checks the length that a radio reports for a packet of at most `longest` bytes. Returns `None` if no packet has it.
///
/// An 802.15.4 radio stores the length byte as it came, checksum included, so that drivers report a wrapped number for a packet
/// shorter than its checksum and one beyond the buffer for a packet longer than the standard allows.
#[must_use]
pub fn received_length(reported: u8, longest: usize) -> Option<usize> {
    let length = usize::from(reported);
    (1..=longest).contains(&length).then_some(length)
}

#[cfg(test)]
mod tests {
    use super::received_length;

    #[test]
    fn a_length_that_no_packet_has_is_refused() {
        const CHECKSUM: u8 = 2;
        let length = |header: u8| received_length(header.wrapping_sub(CHECKSUM), 125);
        for header in (0..=CHECKSUM).chain(128..=u8::MAX) {
            assert_eq!(length(header), None, "{header}");
        }
        assert_eq!((length(3), length(127)), (Some(1), Some(125)));
    }
}
