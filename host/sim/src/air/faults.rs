//! Faults of a copy of a frame between its sender's radio and its receiver.
//!
//! ```text
//!   loss (iid) ─▶ loss (bursts) ─▶ duplication ─┬─▶ damage ─▶ delay ─▶ …
//!                                               └─▶ damage ─▶ delay ─▶ …
//! ```
//!
//! A stage that is switched off draws no random number. Reordering acts later, on all that arrives at a receiver.

mod bursts;
mod intruder;
mod outages;

use bursts::Bursts;
use fabswarm_diagnostic::Diagnostic;
use fabswarm_shared::rng::Stream;
pub use intruder::Intruder;
pub use outages::Outages;

use super::counters::LossCause;
use crate::scenario::FaultsSection;

/// Longest run of damaged bytes.
const DAMAGED_BYTES_MAX: u32 = 4;

/// The faults of all links.
#[derive(Clone, Debug)]
pub(super) struct LinkFaults {
    settings: FaultsSection,
    bursts: Option<Bursts>,
}

/// How a copy comes through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CopyTransit {
    pub(super) delay: u32,
    pub(super) is_damaged: bool,
}

impl LinkFaults {
    pub(super) fn new(faults: &FaultsSection, agents: usize) -> Result<Self, Diagnostic> {
        let bursts = (faults.burst_loss > 0.0)
            .then(|| Bursts::new(faults.burst_loss, faults.burst_rounds, agents * agents))
            .transpose()?;
        Ok(Self { settings: faults.clone(), bursts })
    }

    /// Takes a copy through the chain. It comes through once or twice, or is lost.
    pub(super) fn pass(
        &mut self,
        link: usize,
        slot: u32,
        stream: &mut Stream,
    ) -> Result<(CopyTransit, Option<CopyTransit>), LossCause> {
        if happens(self.settings.iid_loss, stream) {
            return Err(LossCause::Iid);
        }
        if let Some(bursts) = &mut self.bursts
            && bursts.loses(link, slot, stream)
        {
            return Err(LossCause::Burst);
        }
        let second = happens(self.settings.duplication, stream).then(|| self.passage(stream));
        Ok((self.passage(stream), second))
    }

    fn passage(&self, stream: &mut Stream) -> CopyTransit {
        let is_damaged = happens(self.settings.bit_corruption, stream);
        let most = self.settings.delay_rounds;
        let delay = if most > 0 { stream.below(most + 1) } else { 0 };
        CopyTransit { delay, is_damaged }
    }

    /// Swaps some neighbours among `arrivals` and returns how many.
    pub(super) fn reorder<T>(&self, arrivals: &mut [T], stream: &mut Stream) -> u64 {
        let mut changes = 0;
        for place in 1..arrivals.len() {
            if happens(self.settings.reordering, stream) {
                arrivals.swap(place - 1, place);
                changes += 1;
            }
        }
        changes
    }
}

/// Damages some neighbouring bytes, at least one bit of each.
pub(super) fn damage(bytes: &mut [u8], stream: &mut Stream) {
    let run = 1 + stream.below(DAMAGED_BYTES_MAX) as usize;
    let start = stream.below(bytes.len() as u32) as usize;
    for byte in bytes.iter_mut().skip(start).take(run) {
        *byte ^= 1 + stream.below(255) as u8;
    }
}

fn happens(chance: f64, stream: &mut Stream) -> bool {
    chance > 0.0 && stream.uniform_f64() < chance
}
