//! For how long members have been silent.
//!
//! An agent that does not hear a member cannot tell whether it is dead: others may hear it. So agents tell each other for how many
//! rounds nobody is known to have heard each member, and keep the smallest number. It grows in every round of every agent, and by
//! one on every hop, so that what was said about a dead member does not keep it alive, and a false report can only delay its end.

use super::peers::Peers;
use super::{Agent, MemberSet, Received, Refusal};
use crate::problem::Problem;
use crate::wire::frame::SilenceHeader;

/// Members in one frame.
const REPORTED: usize = 64;

/// Reports of an agent within the rounds after which a silent member is given up, and as many more as twice its members: a report may
/// take as many hops as there are members, and be lost on some.
const REPORTS: u32 = 64;

/// Rounds since each agent was last heard, by anybody.
#[derive(Clone, Debug)]
pub(super) struct Silence {
    rounds: [u16; MemberSet::CAPACITY],
}

impl Silence {
    pub(super) const NONE: Self = Self { rounds: [0; MemberSet::CAPACITY] };

    /// Adds a round of silence for each of `members`.
    pub(super) fn end_round(&mut self, members: &MemberSet) {
        for (id, rounds) in (0..).zip(&mut self.rounds) {
            *rounds = if members.contains(id) { rounds.saturating_add(1) } else { 0 };
        }
    }

    /// For how many rounds agent `id` has been silent.
    pub(super) fn of(&self, id: u16) -> u32 {
        self.rounds.get(usize::from(id)).copied().unwrap_or(0).into()
    }

    /// Notes that agent `id` has not been silent for more than `rounds`.
    pub(super) fn shorten(&mut self, id: u16, rounds: u32) {
        if let Some(known) = self.rounds.get_mut(usize::from(id)) {
            *known = (*known).min(rounds.min(u16::MAX.into()) as u16);
        }
    }

    /// The numbers from agent `first` on as they travel, and how many bytes they take.
    pub(super) fn report(&self, first: u16, members: &MemberSet) -> ([u8; 2 * REPORTED], usize) {
        let mut bytes = [0; 2 * REPORTED];
        let end = 8 * members.as_bytes().len();
        let rounds = self.rounds[..end].get(usize::from(first)..).unwrap_or_default();
        let mut length = 0;
        for (place, rounds) in bytes.as_chunks_mut().0.iter_mut().zip(rounds) {
            *place = rounds.to_le_bytes();
            length += 2;
        }
        (bytes, length)
    }
}

impl<P, L, const WORDS: usize> Agent<P, L, WORDS>
where
    P: Problem<f32>,
    L: Peers<WORDS>,
{
    /// The first agent of the report that is due in this round, if one is. Agents report in different rounds.
    pub(super) fn report_due(&self) -> Option<u16> {
        let reports = REPORTS + 2 * self.members.len();
        let every = (self.config.give_up_after?.get() / reports).max(1);
        let turn = self.round.wrapping_add(self.config.id.into());
        let frames = (8 * self.members.as_bytes().len()).div_ceil(REPORTED) as u32;
        turn.is_multiple_of(every).then_some((turn / every % frames) as u16 * REPORTED as u16)
    }

    /// Takes what a member knows about the silence of others.
    pub(super) fn receive_silence(&mut self, header: SilenceHeader, report: &[u8]) -> Received {
        if header.epoch != self.epoch || self.is_waiting() {
            return Received::OtherEpoch;
        }
        if !self.members.contains(header.sender) {
            return Received::Refused(Refusal::NotMember);
        }
        for (id, rounds) in (header.first..=u16::MAX).zip(report.as_chunks().0) {
            self.silence.shorten(id, u32::from(u16::from_le_bytes(*rounds)) + 1);
        }
        Received::Unchanged
    }

    /// Gives up members that nobody has heard for too long.
    pub(super) fn give_up_on_the_silent(&mut self) {
        let Some(patience) = self.config.give_up_after else { return };
        let mut members = self.members;
        for id in (0..MemberSet::CAPACITY as u16).filter(|&id| self.silence.of(id) > patience.get()) {
            members.remove(id);
        }
        if members != self.members
            && let Some(next) = self.epoch.next(self.config.id)
        {
            self.enter(next, members);
        }
        members.remove(self.config.id);
        self.silence.end_round(&members);
    }
}
