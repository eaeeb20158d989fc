//! Random streams that deal out data.

use fabswarm_shared::rng::{Purpose, Stream};

/// The use of a random stream of this crate. All share one purpose of the swarm's generator and differ in its round,
/// which has no other meaning while data is dealt out.
#[derive(Clone, Copy)]
pub(super) enum DataStream {
    ClassOrder,
    Split,
    Corruption,
    Shares { attempt: u32 },
}

impl DataStream {
    pub(super) fn stream(self, seed: u64, index: u32) -> Stream {
        let round = match self {
            Self::ClassOrder => 0,
            Self::Split => 1,
            Self::Corruption => 2,
            Self::Shares { attempt } => 3 + attempt,
        };
        Stream::new(seed, index, round, Purpose::Data)
    }
}
