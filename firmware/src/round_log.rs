//! Logs epochs, lost members, refused frames and silence.

use crate::{MEMBERS, sizes::MEMBER_BYTES};
use fabswarm_shared::agent::{Epoch, MemberSet, Refusal, Report};

/// Refusals of which each change of cause has a line; of more, only powers of two.
const LISTED_REFUSALS: u32 = 32;
/// Rounds without a frame before that has a line.
const SILENT_ROUNDS: u32 = 16;

/// The state that was logged last.
#[derive(Default)]
pub(crate) struct RoundLog {
    epoch: Epoch,
    members: [u8; MEMBER_BYTES],
    refusals: u32,
    last_refusal: Option<Refusal>,
    silent_rounds: u32,
}

impl RoundLog {
    /// Logs what changed with the end of a round; `epoch` and `members` are those after it.
    pub(crate) fn end_round(&mut self, report: &Report, epoch: Epoch, members: &MemberSet) {
        let round = report.round;
        debug!("round {}: epoch {}, heard {}", round, report.epoch.number, report.heard);
        if epoch != self.epoch {
            info!("round {}: epoch {} begins, with {} members", round, epoch.number, members.len());
            for agent in 0..MEMBERS as u16 {
                let was_member = self.members[usize::from(agent / 8)] >> (agent % 8) & 1 == 1;
                if was_member && epoch != Epoch::NONE && !members.contains(agent) {
                    info!("round {}: agent {} is no longer a member", round, agent);
                }
            }
            self.epoch = epoch;
            self.members = [0; MEMBER_BYTES];
            for (kept, byte) in self.members.iter_mut().zip(members.as_bytes()) {
                *kept = *byte;
            }
        }
        if report.heard > 0 {
            if self.silent_rounds >= SILENT_ROUNDS {
                info!(
                    "round {}: {} others heard, after {} rounds of silence",
                    round, report.heard, self.silent_rounds
                );
            }
            self.silent_rounds = 0;
            return;
        }
        self.silent_rounds = self.silent_rounds.saturating_add(1);
        if self.silent_rounds >= SILENT_ROUNDS && self.silent_rounds.is_power_of_two() {
            info!("round {}: nobody heard for {} rounds", round, self.silent_rounds);
        }
    }

    /// Logs why a frame was refused, unless that would flood the log.
    pub(crate) fn refuse(&mut self, round: u32, refusal: Refusal) {
        self.refusals = self.refusals.saturating_add(1);
        let is_listed = self.last_refusal != Some(refusal) && self.refusals <= LISTED_REFUSALS;
        if is_listed || self.refusals.is_power_of_two() {
            info!("round {}: refused {} frames so far, the last one: {}", round, self.refusals, refusal);
        }
        self.last_refusal = Some(refusal);
    }
}
