//! One channel: packets that overlap in time, and who can read them.

use super::places::RadioPath;
use fabswarm_shared::rng::{Purpose, Stream};

/// Weaker signals are not received, and disturb nobody.
const SENSITIVITY_DBM: f64 = -95.0;
/// A packet is read in spite of another one if it is stronger by this much.
const CAPTURE_DB: f64 = 3.0;

/// Counts of the channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ChannelCounts {
    /// Packets received: one per packet and receiver.
    pub(crate) received: u64,
    /// Receptions in reach that overlapped with another packet of the swarm in reach of the receiver, whether or not one was read.
    pub(crate) collisions: u64,
    /// Receptions in reach while the receiver was sending.
    pub(crate) deaf: u64,
    /// Slots left out because the law allows no more airtime.
    pub(crate) over_duty: u64,
    /// Slots left out because they had begun before the agent knew of them.
    pub(crate) late: u64,
    /// Frames that were too long for their slot.
    pub(crate) too_long: u64,
}

/// A packet on the air.
#[derive(Clone, Debug)]
pub(crate) struct PacketOnAir {
    pub(crate) sender: usize,
    /// From when on its sender does not listen.
    pub(crate) deaf_us: f64,
    pub(crate) start_us: f64,
    pub(crate) end_us: f64,
    /// The path to each agent.
    pub(crate) paths: Vec<RadioPath>,
}

/// The packets of the recent past.
#[derive(Clone, Debug)]
pub(crate) struct Channel {
    seed: u64,
    packets: Vec<PacketOnAir>,
    loss: f64,
    draws: u32,
    pub(crate) counts: ChannelCounts,
}

impl Channel {
    pub(crate) fn new(seed: u64, loss: f64) -> Self {
        Self { seed, packets: Vec::new(), loss, draws: 0, counts: ChannelCounts::default() }
    }

    /// A packet begins. Those that ended before `forget_before_us` are forgotten.
    pub(crate) fn send(&mut self, packet: PacketOnAir, forget_before_us: f64) {
        self.packets.retain(|old| old.end_us >= forget_before_us);
        self.packets.push(packet);
    }

    /// Whether `receiver` has read `packet`, now that it is over.
    pub(crate) fn is_received(&mut self, packet: &PacketOnAir, receiver: usize) -> bool {
        let path = packet.paths[receiver];
        if path.signal_dbm < SENSITIVITY_DBM {
            return false;
        }
        let (from, to) = (packet.start_us + path.delay_us, packet.end_us + path.delay_us);
        let mut strongest = f64::NEG_INFINITY;
        for other in &self.packets {
            if other.sender == packet.sender && other.start_us == packet.start_us {
                continue;
            }
            let delay = other.paths[receiver].delay_us;
            if other.sender == receiver {
                if other.deaf_us < to && other.end_us > from {
                    self.counts.deaf += 1;
                    return false;
                }
            } else if other.start_us + delay < to && other.end_us + delay > from {
                strongest = strongest.max(other.paths[receiver].signal_dbm);
            }
        }
        let has_collided = strongest >= SENSITIVITY_DBM;
        self.counts.collisions += u64::from(has_collided);
        if has_collided && path.signal_dbm < strongest + CAPTURE_DB {
            return false;
        }
        self.draws = self.draws.wrapping_add(1);
        let mut stream = Stream::new(self.seed, receiver as u32, self.draws, Purpose::Air);
        let is_received = stream.uniform_f64() >= self.loss;
        self.counts.received += u64::from(is_received);
        is_received
    }
}
