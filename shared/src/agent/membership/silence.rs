//! For how long members have been silent.
//!
//! An agent that does not hear a member cannot tell whether it is dead: others may hear it. So agents tell each other for how many
//! rounds nobody is known to have heard each member, and keep the smallest number. It grows in every round of every agent, and by
//! one on every hop, so that what was said about a dead member does not keep it alive, and a false report can only delay its end.

use super::{Config, MemberSet, Membership, Received, Refusal};
use crate::wire::frame::SilenceHeader;

/// Members in one frame.
const REPORTED: usize = 64;
/// Bytes of a report on them.
pub(super) const REPORT_BYTES: usize = 2 * REPORTED;

/// Reports of an agent within the rounds after which a silent member is given up, and as many more as twice its members: a report may
/// take as many hops as there are members, and be lost on some.
const REPORTS: u32 = 64;

/// Rounds since each agent was last heard, by anybody.
#[derive(Clone, Debug)]
pub(in super::super) struct Silence {
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
    pub(in super::super) fn shorten(&mut self, id: u16, rounds: u32) {
        if let Some(known) = self.rounds.get_mut(usize::from(id)) {
            *known = (*known).min(rounds.min(u16::MAX.into()) as u16);
        }
    }

    /// Notes that agent `id` has lived for `rounds` of those in which it was silent.
    pub(in super::super) fn discount(&mut self, id: u16, rounds: u32) {
        self.shorten(id, self.of(id).saturating_sub(rounds));
    }

    /// Writes the numbers from agent `first` on as they travel, and returns how many bytes they take.
    pub(super) fn report(&self, first: u16, members: &MemberSet, out: &mut [u8; REPORT_BYTES]) -> usize {
        let end = 8 * members.as_bytes().len();
        let rounds = self.rounds[..end].get(usize::from(first)..).unwrap_or_default();
        let mut length = 0;
        for (place, rounds) in out.as_chunks_mut().0.iter_mut().zip(rounds) {
            *place = rounds.to_le_bytes();
            length += 2;
        }
        length
    }
}

impl Membership {
    /// The first agent of the report that is due in this round, if one is. Agents report in different rounds.
    pub(super) fn report_due(&self, config: &Config) -> Option<u16> {
        let reports = REPORTS + 2 * self.members.len();
        let every = (config.give_up_after?.get() / reports).max(1);
        let turn = self.rounds.own.wrapping_add(config.id.into());
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
}
