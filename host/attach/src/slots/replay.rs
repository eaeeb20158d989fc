//! Replays a flight on shadows: the same agents in this process take the same frames and must reach the same digests.

use super::record::{FlightEntry, RoundFate};
use crate::firmware::MOST_WORDS;
use fabswarm_diagnostic::Diagnostic;
use fabswarm_shared::agent::{self, Agent, Origin, Received};
use fabswarm_shared::wire::frame::Frame;
use fabswarm_sim::swarm::{AgentProblem, AgentSwarmConfig, HeapPeers};
use fabswarm_sim::task::Task;
use std::collections::VecDeque;
use std::sync::Arc;

type Shadow = Agent<AgentProblem, HeapPeers<MOST_WORDS>, MOST_WORDS>;

/// Why a flight cannot be followed, or how it differs.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FlightFault {
    /// A board came to another state than its shadow.
    Digest(Diagnostic),
    /// The record does not say how a board came to its state.
    Record(Diagnostic),
}

impl From<FlightFault> for Diagnostic {
    fn from(fault: FlightFault) -> Self {
        match fault {
            FlightFault::Digest(what) | FlightFault::Record(what) => what,
        }
    }
}

const MISSING: &str = "entries of the record are missing; a board that restarted cannot be followed";

impl FlightFault {
    /// There is no such agent.
    pub(crate) fn stranger(agent: u16, agents: usize) -> Self {
        let what = format!("the record names agent {agent}, and the swarm has {agents} agents");
        Self::Record(Diagnostic::new(what, "take scenario and record from the same run"))
    }

    /// A board took a frame that nobody sent.
    fn unsent((agent, sender, round): (u16, u16, u32)) -> Self {
        Self::Record(Diagnostic::new(
            format!(
                "the board of agent {agent} took a frame of agent {sender} in round {round}, and that agent was not in that round"
            ),
            MISSING,
        ))
    }
}

/// By how many rounds the last reports of boards differ where a record ends: the host stops in the middle of a round.
const END_ROUNDS: u32 = 2;

/// Shadows that follow a flight in the order of its events.
///
/// Each board's entries are followed one by one: its shadow takes the frames that the entry names, as soon as the shadows of
/// their senders have come to that round, and ends the round. A board of which reports are missing cannot be followed from there
/// on, nor can one that has taken its frames since: their digests are counted, and compared with nothing.
#[derive(Debug)]
pub(crate) struct FlightReplay {
    pub(super) shadows: Vec<Shadow>,
    pub(super) tracks: Vec<Track>,
    pub(crate) checks: u64,
    /// Digests that were reported and cannot be compared.
    pub(crate) uncompared: u64,
    pub(crate) gaps: Vec<ReportGap>,
}

/// How far one board was followed.
#[derive(Debug, Default)]
pub(super) struct Track {
    /// Reports that its shadow has not followed yet, each with the senders whose frames the shadow has yet to take.
    entries: VecDeque<FlightEntry>,
    /// Its last data frames with their rounds.
    frames: VecDeque<(u32, Vec<u8>)>,
    /// The rounds that it has ended.
    pub(super) ended: u32,
    /// Its digests that were compared.
    pub(super) checks: u64,
    /// Whether its shadow no longer has its state.
    pub(super) is_lost: bool,
    /// Whether it has taken fresh readings.
    has_sensor: bool,
    /// The last entry that was pushed.
    pushed: Option<(u32, RoundFate)>,
    /// A round, and the senders whose frames of it came in the round before.
    early: (u32, Vec<u16>),
    /// The round that it last left without ending it, by its report.
    left: Option<u32>,
}

impl Track {
    /// The round that must be reported next, where the last report tells.
    const fn next_round(&self) -> Option<u32> {
        match self.pushed {
            None => Some(0),
            Some((round, RoundFate::Ended(_))) => Some(round.saturating_add(1)),
            Some((_, RoundFate::Left | RoundFate::Missed)) => None,
        }
    }

    /// The first round of which reports are missing in front of a report of `round`, or may be if the line has lost something.
    pub(super) fn missed_before(&self, round: u32, may_have_missed: bool) -> Option<u32> {
        match self.pushed {
            Some((from, RoundFate::Missed)) => Some(from),
            // It went on from any round that the swarm was in.
            Some((last, RoundFate::Left)) => Some(last.saturating_add(1)).filter(|_| may_have_missed),
            _ => self.next_round().filter(|&next| next != round),
        }
    }

    /// Notes that the board has restarted: what it was before is not reported.
    pub(super) fn restart(&mut self) {
        self.pushed = Some((self.reported(), RoundFate::Missed));
    }

    /// The rounds that the board has ended, by its last report.
    pub(super) fn reported(&self) -> u32 {
        match self.pushed {
            Some((round, RoundFate::Ended(_))) => round.saturating_add(1),
            Some((round, RoundFate::Left | RoundFate::Missed)) => round,
            None => 0,
        }
    }
}

/// Why a board cannot be followed any further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReportGap {
    /// Rounds from `from` on were not reported, up to `to`, which was if it is known. That is not above `from` for a board that has
    /// restarted.
    Rounds { agent: u16, from: u32, to: Option<u32> },
    /// It ended `round` in another epoch than its shadow: after a restart agents admit each other by frames that are not reported.
    Epoch { agent: u16, round: u32, epoch: u32 },
}

impl std::fmt::Display for ReportGap {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {
            Self::Rounds { agent, from, to: None } => {
                write!(out, "agent {agent} reported nothing from round {from} on")
            }
            Self::Rounds { agent, from, to: Some(to) } if to > from.saturating_add(1) => {
                write!(out, "agent {agent} did not report rounds {from} to {}", to - 1)
            }
            Self::Rounds { agent, from, to: Some(to) } if to > from => {
                write!(out, "agent {agent} did not report round {from}")
            }
            Self::Rounds { agent, from, to: Some(to) } => {
                write!(out, "agent {agent} began anew, in round {to} after round {}", from.saturating_sub(1))
            }
            Self::Epoch { agent, round, epoch } => {
                write!(
                    out,
                    "agent {agent} was in epoch {epoch} in round {round}, by frames that are not reported"
                )
            }
        }
    }
}

impl FlightReplay {
    pub(crate) fn new(
        task: &Arc<Task<f32>>,
        setup: &AgentSwarmConfig,
        agents: usize,
    ) -> Result<Self, Diagnostic> {
        let start = task.start();
        let shadow = |agent: usize| {
            let problem = AgentProblem::new(Arc::clone(task), agent);
            Shadow::new(setup.config_of(agent, 1), problem, &start, HeapPeers::default())
        };
        Ok(Self {
            shadows: (0..agents).map(shadow).collect::<Result<_, _>>().map_err(|error: agent::Error| {
                Diagnostic::new(format!("an agent cannot be made: {error}"), "lower the sizes of the problem")
            })?,
            tracks: (0..agents).map(|_| Track::default()).collect(),
            checks: 0,
            uncompared: 0,
            gaps: Vec::new(),
        })
    }

    /// Adds what a board reported. Entries of a board come in their order; where some are missing, so is the shadow from there on.
    pub(crate) fn push(&mut self, mut entry: FlightEntry) -> Result<(), FlightFault> {
        let agents = self.shadows.len();
        let is_stranger = |agent: &&u16| usize::from(**agent) >= agents;
        let stranger = entry.senders.iter().chain(&entry.early).chain([&entry.agent]).find(is_stranger);
        if let Some(&agent) = stranger {
            return Err(FlightFault::stranger(agent, agents));
        }
        let (agent, round) = (entry.agent, entry.round);
        let track = &mut self.tracks[usize::from(agent)];
        let from = track.missed_before(round, false);
        let (early_of, already) =
            std::mem::replace(&mut track.early, (round.saturating_add(1), entry.early.clone()));
        if entry.fate == RoundFate::Missed {
            let first = track.next_round().unwrap_or(round);
            if !matches!(track.pushed, Some((_, RoundFate::Missed))) {
                track.pushed = Some((first, RoundFate::Missed));
            }
            return Ok(());
        }
        if let Some(from) = from {
            self.gaps.push(ReportGap::Rounds { agent, from, to: Some(round) });
            track.entries.push_back(FlightEntry::missed(agent, from));
        }
        track.pushed = Some((round, entry.fate));
        // Frames that came early count in their round without coming again. An agent that leaves a round without ending it leaves
        // what waited for the next one behind.
        if early_of == round {
            entry.senders.retain(|sender| !already.contains(sender));
        }
        track.entries.push_back(entry);
        Ok(())
    }

    pub(crate) fn follow(&mut self) -> Result<(), FlightFault> {
        loop {
            let mut has_progressed = false;
            for agent in 0..self.shadows.len() {
                while self.follow_entry(agent)? {
                    has_progressed = true;
                }
            }
            if !has_progressed {
                break;
            }
        }
        self.forget_frames();
        Ok(())
    }

    /// Follows to the end of a record. A board that others wait for and that reports nothing more counts as lost.
    pub(crate) fn finish(&mut self) -> Result<(), FlightFault> {
        let last =
            self.tracks.iter().filter_map(|track| track.pushed).map(|(round, _)| round).max().unwrap_or(0);
        loop {
            self.follow()?;
            let is_silent = |sender: u16| self.tracks[usize::from(sender)].entries.is_empty();
            let Some((agent, sender, round)) = self.awaited().find(|(_, sender, _)| is_silent(*sender))
            else {
                break;
            };
            if self.shadows[usize::from(sender)].round() > round {
                return Err(FlightFault::unsent((agent, sender, round)));
            }
            let track = &self.tracks[usize::from(sender)];
            let from = track.next_round().unwrap_or(track.ended);
            if last > from.saturating_add(END_ROUNDS) {
                self.gaps.push(ReportGap::Rounds { agent: sender, from, to: None });
            }
            self.lose(sender.into());
        }
        self.awaited().next().map_or(Ok(()), |awaited| Err(FlightFault::unsent(awaited)))
    }

    /// Lets a shadow follow its present entry. Returns whether the entry is done.
    fn follow_entry(&mut self, agent: usize) -> Result<bool, FlightFault> {
        let Some(mut entry) = self.tracks[agent].entries.pop_front() else { return Ok(false) };
        let round = entry.round;
        if entry.fate == RoundFate::Missed {
            self.lose(agent);
            return Ok(true);
        }
        if let Some(epoch) = entry.epoch.filter(|&epoch| epoch != self.shadows[agent].epoch().number)
            && !self.tracks[agent].is_lost
        {
            self.gaps.push(ReportGap::Epoch { agent: agent as u16, round, epoch });
            self.lose(agent);
        }
        if self.tracks[agent].is_lost {
            if let RoundFate::Ended(_) = entry.fate {
                self.uncompared += 1;
                self.tracks[agent].ended = round.saturating_add(1);
            }
            return Ok(true);
        }
        // Writes its frame before the state that it is made from changes: others may have taken it, also where the board left the
        // round without ending it.
        self.frame(self.shadows[agent].round(), agent as u16);
        entry.senders = self.take_sent(agent, round, &entry.senders, Received::Taken)?;
        if entry.senders.is_empty() {
            let next = round.saturating_add(1);
            entry.early = self.take_sent(agent, next, &entry.early, Received::Early)?;
        }
        let mut waits_for = entry.senders.iter().chain(&entry.early).peekable();
        if waits_for.peek().is_some() {
            // The frame of a lost board is not known, so this board cannot be followed either.
            let is_lost = waits_for.any(|sender| self.tracks[usize::from(*sender)].is_lost);
            self.tracks[agent].is_lost = is_lost;
            self.tracks[agent].entries.push_front(entry);
            return Ok(is_lost);
        }
        match entry.fate {
            // If it ended the round after all, and only its telemetry is missing, so is its reading.
            RoundFate::Left if self.tracks[agent].has_sensor => {
                self.gaps.push(ReportGap::Rounds { agent: agent as u16, from: round, to: Some(round + 1) });
                self.lose(agent);
            }
            RoundFate::Ended(board) => self.end_round(round, agent, board, entry.reading)?,
            RoundFate::Left | RoundFate::Missed => self.tracks[agent].left = Some(round),
        }
        Ok(true)
    }

    /// Ends the round of a shadow if its board ended that round too but the digest was lost on the cable: the board then seems to have
    /// left the round, and is in the next one without a frame that took it there. Returns whether that is so.
    fn end_untold(&mut self, agent: usize, next: u32) -> bool {
        let round = self.shadows[agent].round();
        if round.saturating_add(1) != next || self.tracks[agent].left.take_if(|left| *left == round).is_none()
        {
            return false;
        }
        self.shadows[agent].end_round();
        self.tracks[agent].ended = next;
        self.frame(next, agent as u16);
        true
    }

    /// Gives up following a board. The frame of its present round was made before anything of it went unreported.
    fn lose(&mut self, agent: usize) {
        self.frame(self.shadows[agent].round(), agent as u16);
        self.tracks[agent].is_lost = true;
    }

    /// Takes the frames of `round` that have been sent, and returns the senders of the others.
    fn take_sent(
        &mut self,
        agent: usize,
        round: u32,
        senders: &[u16],
        expected: Received,
    ) -> Result<Vec<u16>, FlightFault> {
        let mut left = Vec::new();
        for &sender in senders {
            match self.frame(round, sender) {
                Some(frame) => self.deliver(&frame, (round, sender), agent as u16, expected)?,
                None => left.push(sender),
            }
        }
        Ok(left)
    }

    fn end_round(
        &mut self,
        round: u32,
        agent: usize,
        board: u32,
        reading: Option<u32>,
    ) -> Result<(), FlightFault> {
        self.end_untold(agent, round);
        // The entry may have brought it into this round.
        self.frame(round, agent as u16);
        let shadow = &mut self.shadows[agent];
        let at = shadow.round();
        if at != round {
            let what =
                format!("the board of agent {agent} ended round {round}, and its shadow is in round {at}");
            return Err(FlightFault::Record(Diagnostic::new(what, MISSING)));
        }
        if let Some(bits) = reading {
            self.tracks[agent].has_sensor = true;
            shadow.take_reading(f32::from_bits(bits));
        }
        shadow.end_round();
        let digest = shadow.digest();
        if digest != board {
            return Err(FlightFault::Digest(Diagnostic::new(
                format!(
                    "the board of agent {agent} differs from its shadow after round {round}: digest {board:#010x} instead of {digest:#010x}"
                ),
                "suspect the board's memory, its arithmetic, or firmware from other sources",
            )));
        }
        self.checks += 1;
        self.tracks[agent].checks += 1;
        self.tracks[agent].ended = round.saturating_add(1);
        Ok(())
    }

    fn deliver(
        &mut self,
        frame: &[u8],
        (round, sender): (u32, u16),
        agent: u16,
        expected: Received,
    ) -> Result<(), FlightFault> {
        let received = self.shadows[usize::from(agent)].receive(Origin::Clear, frame);
        // It waits for the round that the board was in already.
        let is_taken_next = (received, expected) == (Received::Early, Received::Taken);
        if received == expected || is_taken_next && self.end_untold(agent.into(), round) {
            return Ok(());
        }
        Err(FlightFault::Record(Diagnostic::new(
            format!(
                "the board of agent {agent} took the frame of agent {sender} in round {round}, and its shadow does not: {received:?}"
            ),
            "suspect the board's memory, or firmware from other sources",
        )))
    }

    /// The data frame of an agent's round, if it has been in that round.
    fn frame(&mut self, round: u32, sender: u16) -> Option<Vec<u8>> {
        let (shadow, track) = (&mut self.shadows[usize::from(sender)], &mut self.tracks[usize::from(sender)]);
        let frames = &mut track.frames;
        if !track.is_lost && shadow.round() == round && !frames.iter().any(|(of, _)| *of == round) {
            let mut bytes = vec![0; shadow.largest_frame()];
            while let Ok(Some(length)) = shadow.poll_frame(&mut bytes) {
                if let Ok(Frame::Data(..)) = Frame::decode(&bytes[..length]) {
                    frames.push_back((round, bytes[..length].to_vec()));
                }
            }
        }
        frames.iter().find(|(of, _)| *of == round).map(|(_, frame)| frame.clone())
    }

    /// Drops the frames that no shadow will take any more.
    fn forget_frames(&mut self) {
        let followed = self.shadows.iter().zip(&self.tracks).filter(|(_, track)| !track.is_lost);
        let Some(first) = followed.map(|(shadow, _)| shadow.round()).min() else { return };
        for track in &mut self.tracks {
            while track.frames.front().is_some_and(|(of, _)| *of < first) {
                track.frames.pop_front();
            }
        }
    }

    /// The rounds that were ended by the board that has ended most.
    pub(crate) fn rounds(&self) -> u32 {
        self.tracks.iter().map(|track| track.ended).max().unwrap_or(0)
    }

    /// Agents that wait, with the sender and the round of the frame they wait for, by round.
    fn awaited(&self) -> impl Iterator<Item = (u16, u16, u32)> {
        let waiting = |track: &Track| {
            let FlightEntry { agent, round, senders, early, .. } = track.entries.front()?;
            match senders.first() {
                Some(&sender) => Some((*agent, sender, *round)),
                None => Some((*agent, *early.first()?, round.saturating_add(1))),
            }
        };
        let mut awaited: Vec<_> = self.tracks.iter().filter_map(waiting).collect();
        awaited.sort_by_key(|(_, _, round)| *round);
        awaited.into_iter()
    }

    /// The first frame that was never sent, if more entries wait than the end of a record explains.
    pub(crate) fn stuck(&self) -> Option<FlightFault> {
        let left: usize = self.tracks.iter().map(|track| track.entries.len()).sum();
        let awaited = self.awaited().next()?;
        (left > 2 * self.shadows.len()).then(|| FlightFault::unsent(awaited))
    }
}

#[cfg(test)]
mod tests;
