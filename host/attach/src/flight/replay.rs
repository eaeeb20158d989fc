//! A flight again, on shadows: the same agents in this process take the same frames, and must come to the same bits.

use super::super::MOST_WORDS;
use super::record::FlightEntry;
use fabswarm_shared::agent::{self, Agent, Origin, Received};
use fabswarm_shared::ledger::Exact;
use fabswarm_shared::wire::frame::Frame;
use fabswarm_sim::swarm::{AgentProblem, AgentSetup, HeapPeers};
use fabswarm_sim::task::Task;
use std::collections::VecDeque;
use std::sync::Arc;

type Shadow = Agent<AgentProblem, Exact, HeapPeers<Exact, MOST_WORDS>, MOST_WORDS>;

/// Where a flight cannot be followed, or differs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FlightFault {
    /// A board came to another state than its shadow.
    #[error(
        "the board of agent {agent} differs from its shadow after round {round}: digest {board:#010x} instead of {shadow:#010x}\n\
         help: suspect the board's memory, its arithmetic, or firmware from other sources"
    )]
    Digest {
        /// The agent.
        agent: u16,
        /// The first round that differs.
        round: u32,
        /// The board's digest.
        board: u32,
        /// The shadow's digest.
        shadow: u32,
    },
    /// A board took a frame that its shadow does not take.
    #[error(
        "the board of agent {agent} took the frame of agent {sender} in round {round}, and its shadow does not: {received}\n\
         help: suspect the board's memory, or firmware from other sources"
    )]
    NotTaken {
        /// The agent.
        agent: u16,
        /// Whose frame.
        sender: u16,
        /// In which round.
        round: u32,
        /// What the shadow did with it.
        received: String,
    },
    /// A board took a frame that nobody sent.
    #[error(
        "the board of agent {agent} took a frame of agent {sender} in round {round}, and that agent was not in that round\n\
         help: entries of the record are missing; a board that restarted cannot be followed"
    )]
    Unsent {
        /// The agent.
        agent: u16,
        /// Whose frame.
        sender: u16,
        /// In which round.
        round: u32,
    },
    /// A board has gone through a round of which nothing is known.
    #[error(
        "the board of agent {agent} ended round {round}, and its shadow is in round {shadow}\n\
         help: entries of the record are missing; a board that restarted cannot be followed"
    )]
    Gap {
        /// The agent.
        agent: u16,
        /// The board's round.
        round: u32,
        /// The shadow's.
        shadow: u32,
    },
    /// There is no such agent.
    #[error(
        "the record names agent {agent}, and the swarm has {agents} agents\nhelp: take scenario and record from the same run"
    )]
    Stranger {
        /// The agent.
        agent: u16,
        /// How many there are.
        agents: usize,
    },
}

/// Frames of an agent that others may still take.
const FRAMES_KEPT: usize = 8;

/// Shadows that follow a flight, in the order in which things happened.
///
/// Each board's entries are followed one by one: its shadow takes the frames that the entry names, as soon as the shadows of
/// their senders have come to that round, and ends the round.
#[derive(Debug)]
pub(super) struct FlightReplay {
    shadows: Vec<Shadow>,
    /// What each board reported and its shadow has not followed yet.
    entries: Vec<VecDeque<PendingEntry>>,
    /// Each agent's last data frames with their rounds.
    frames: Vec<VecDeque<(u32, Vec<u8>)>>,
    /// The rounds that each shadow has ended.
    ended: Vec<u32>,
    pub(super) checks: u64,
}

/// An entry, and what of it the shadow has not taken yet.
#[derive(Debug)]
struct PendingEntry {
    entry: FlightEntry,
    senders: Vec<u16>,
    early: Vec<u16>,
}

impl FlightReplay {
    /// The rounds that the shadow of `agent` has ended.
    pub(super) fn ended(&self, agent: usize) -> u32 {
        self.ended[agent]
    }

    pub(super) fn new(
        task: &Arc<Task<f32>>,
        setup: &AgentSetup,
        agents: usize,
    ) -> Result<Self, agent::Error> {
        let mut start = vec![0.0; task.shape().words()];
        task.start(&mut start);
        let shadow = |agent: usize| {
            let problem = AgentProblem::new(Arc::clone(task), agent);
            Shadow::new(setup.config_of(agent, 1), problem, &start, HeapPeers::default())
        };
        Ok(Self {
            shadows: (0..agents).map(shadow).collect::<Result<_, _>>()?,
            entries: (0..agents).map(|_| VecDeque::new()).collect(),
            frames: vec![VecDeque::new(); agents],
            ended: vec![0; agents],
            checks: 0,
        })
    }

    /// Adds what a board reported. Entries of a board come in their order.
    pub(super) fn push(&mut self, entry: FlightEntry, already: &[u16]) -> Result<(), FlightFault> {
        let agents = self.shadows.len();
        let is_stranger = |agent: &&u16| usize::from(**agent) >= agents;
        let stranger = entry.senders.iter().chain(&entry.early).chain([&entry.agent]).find(is_stranger);
        if let Some(&agent) = stranger {
            return Err(FlightFault::Stranger { agent, agents });
        }
        // Frames that came early count in their round without coming again.
        let senders = entry.senders.iter().copied().filter(|sender| !already.contains(sender)).collect();
        let early = entry.early.clone();
        self.entries[usize::from(entry.agent)].push_back(PendingEntry { entry, senders, early });
        Ok(())
    }

    /// Follows as far as the entries go.
    pub(super) fn follow(&mut self) -> Result<(), FlightFault> {
        loop {
            let mut has_progressed = false;
            for agent in 0..self.shadows.len() {
                while self.follow_entry(agent)? {
                    has_progressed = true;
                }
            }
            if !has_progressed {
                return Ok(());
            }
        }
    }

    /// Takes a shadow on in its present entry. Returns whether it is done with it.
    fn follow_entry(&mut self, agent: usize) -> Result<bool, FlightFault> {
        let Some(mut pending) = self.entries[agent].pop_front() else { return Ok(false) };
        // Writes its frame before the state that it is made from changes: others may have taken it, also where the board left the
        // round without ending it.
        self.frame(self.shadows[agent].round(), agent as u16);
        let round = pending.entry.round;
        pending.senders = self.take_sent(agent, round, &pending.senders, Received::Taken)?;
        if pending.senders.is_empty() {
            let next = round.saturating_add(1);
            pending.early = self.take_sent(agent, next, &pending.early, Received::Early)?;
        }
        if !pending.senders.is_empty() || !pending.early.is_empty() {
            self.entries[agent].push_front(pending);
            return Ok(false);
        }
        if let Some(board) = pending.entry.digest {
            self.end_round(round, agent, board)?;
        }
        Ok(true)
    }

    /// Takes the frames of `round` that have been sent, and returns whose have not.
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

    fn end_round(&mut self, round: u32, agent: usize, board: u32) -> Result<(), FlightFault> {
        // The entry may have brought it into this round.
        self.frame(round, agent as u16);
        let shadow = &mut self.shadows[agent];
        if shadow.round() != round {
            return Err(FlightFault::Gap { agent: agent as u16, round, shadow: shadow.round() });
        }
        shadow.end_round();
        let digest = shadow.digest();
        if digest != board {
            return Err(FlightFault::Digest { agent: agent as u16, round, board, shadow: digest });
        }
        self.checks += 1;
        self.ended[agent] = round.saturating_add(1);
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
        if received == expected {
            return Ok(());
        }
        Err(FlightFault::NotTaken { agent, sender, round, received: format!("{received:?}") })
    }

    /// The data frame of an agent's round, if it has been in that round.
    fn frame(&mut self, round: u32, sender: u16) -> Option<Vec<u8>> {
        let (shadow, frames) =
            (&mut self.shadows[usize::from(sender)], &mut self.frames[usize::from(sender)]);
        if shadow.round() == round && !frames.iter().any(|(of, _)| *of == round) {
            let mut bytes = vec![0; shadow.largest_frame()];
            while let Ok(Some(length)) = shadow.poll_frame(&mut bytes) {
                if let Ok(Frame::Data(..)) = Frame::decode(&bytes[..length]) {
                    frames.push_back((round, bytes[..length].to_vec()));
                }
            }
            while frames.len() > FRAMES_KEPT {
                frames.pop_front();
            }
        }
        frames.iter().find(|(of, _)| *of == round).map(|(_, frame)| frame.clone())
    }

    /// Rounds that all shadows have ended.
    pub(super) fn rounds(&self) -> u32 {
        self.ended.iter().copied().min().unwrap_or(0)
    }

    /// What waits for a frame that nobody has sent, if more does than the end of a record explains.
    pub(super) fn stuck(&self) -> Option<FlightFault> {
        let left: usize = self.entries.iter().map(VecDeque::len).sum();
        let first =
            self.entries.iter().filter_map(VecDeque::front).min_by_key(|pending| pending.entry.round)?;
        let PendingEntry { entry: FlightEntry { agent, round, .. }, senders, early } = first;
        let (sender, round) = match senders.first() {
            Some(&sender) => (sender, *round),
            None => (*early.first()?, round.saturating_add(1)),
        };
        (left > 2 * self.shadows.len()).then_some(FlightFault::Unsent { agent: *agent, sender, round })
    }

    /// Packed decisions of all agents.
    pub(super) fn decisions(&self) -> Vec<f32> {
        self.shadows.iter().flat_map(|shadow| shadow.decision()).copied().collect()
    }

    /// Packed gradients of all agents.
    pub(super) fn gradients(&self) -> Vec<f32> {
        self.shadows.iter().flat_map(|shadow| shadow.gradient()).copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabswarm_sim::scenario::Scenario;
    use fabswarm_sim::trial::{self, ExactAgents};

    fn swarm() -> FlightReplay {
        let mut scenario = Scenario::default();
        scenario.swarm.agents = 3;
        let ExactAgents { task, setup, .. } = trial::exact_agents(&scenario).unwrap();
        FlightReplay::new(&Arc::new(task), &setup, 3).unwrap()
    }

    /// A round of one board, which takes the frames of `senders`, and its entry.
    fn fly(boards: &mut FlightReplay, agent: u16, round: u32, senders: &[u16]) -> FlightEntry {
        for &sender in senders {
            let frame = boards.frame(round, sender).unwrap();
            boards.deliver(&frame, (round, sender), agent, Received::Taken).unwrap();
        }
        boards.frame(round, agent).unwrap();
        let board = &mut boards.shadows[usize::from(agent)];
        board.end_round();
        FlightEntry {
            round,
            agent,
            digest: Some(board.digest()),
            senders: senders.to_vec(),
            early: Vec::new(),
        }
    }

    /// Agent 0 sends its frame of round 1, hears nobody until agent 1 is two rounds ahead, and follows it. Agent 2 reports last.
    #[test]
    fn frames_of_a_round_that_was_left_can_be_taken() {
        let mut boards = swarm();
        let firsts = [0, 1, 2].map(|agent: u16| boards.frame(0, agent).unwrap());
        let mut entries = Vec::new();
        for agent in 0..3_u16 {
            let senders: Vec<u16> = (0..3).filter(|&sender| sender != agent).collect();
            for &sender in &senders {
                let frame = &firsts[usize::from(sender)];
                boards.deliver(frame, (0, sender), agent, Received::Taken).unwrap();
            }
            let board = &mut boards.shadows[usize::from(agent)];
            board.end_round();
            entries.push(FlightEntry {
                round: 0,
                agent,
                digest: Some(board.digest()),
                senders,
                early: Vec::new(),
            });
        }
        boards.frame(1, 0).unwrap();
        entries.push(fly(&mut boards, 1, 1, &[0]));
        entries.push(fly(&mut boards, 1, 2, &[]));
        entries.push(FlightEntry {
            round: 1,
            agent: 0,
            digest: None,
            senders: Vec::new(),
            early: Vec::new(),
        });
        entries.push(fly(&mut boards, 0, 3, &[1]));
        entries.push(fly(&mut boards, 2, 1, &[0, 1]));
        entries.push(fly(&mut boards, 2, 2, &[1]));
        entries.push(fly(&mut boards, 2, 3, &[0, 1]));

        let mut replay = swarm();
        for entry in entries {
            replay.push(entry, &[]).unwrap();
            replay.follow().unwrap();
        }
        assert!(replay.entries.iter().all(VecDeque::is_empty), "{:?}", replay.entries);
        assert_eq!(replay.checks, 9);
    }
}
