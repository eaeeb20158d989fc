//! A swarm whose agents sit in this process, on boards, or both, under one air.
//!
//! Every agent on a board has a shadow in this process that hears exactly what the board hears. After each round the
//! board's digest must be the shadow's: where it is not, the radio did its work and the board did not.

use super::{Air, Boards, Error, Kind, Seat, twin::Twin};
use crate::swarm::{DigestCounts, Diverged, FrameCounts, Halt, Metrics, Ruler, States, Swarm};
use crate::task::{Score, Task};
use fabswarm_shared::agent::Config;
use fabswarm_shared::graph::Graph;
use fabswarm_shared::ledger::{Arithmetic, Exact};
use fabswarm_shared::problem::Problem;
use fabswarm_shared::provisioning::{BOARD_MEMBERS_LARGE, BOARD_WORDS, Pace, Page};
use fabswarm_shared::wire::seal::{KEY_BYTES, Key};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// What a crew is made of.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Where each agent runs.
    pub seats: Vec<Seat>,
    /// What all agents are told; each gets its own number.
    pub config: Config,
    /// The swarm's key.
    pub key: [u8; KEY_BYTES],
    /// Who should hear whom.
    pub schedule: Graph,
    /// Rounds that boards run at most.
    pub rounds: u32,
    /// Whether boards store their state every round.
    pub saves_state: bool,
}

/// Agents under one air, wherever they run.
#[derive(Debug)]
pub struct Crew<A> {
    task: Arc<Task<f32>>,
    seats: Vec<Seat>,
    twins: Vec<Twin>,
    is_down: Vec<bool>,
    boards: Boards,
    air: A,
    round: u32,
    ruler: Ruler,
    frames: FrameCounts,
    digests: DigestCounts,
    said: Vec<Vec<Vec<u8>>>,
}

impl<A: Air> Crew<A> {
    /// Seats the agents of `task`, starts their boards, and begins the first round.
    ///
    /// # Errors
    /// Where the task does not fit a board, or a board does not start.
    pub fn assemble(task: Task<f32>, plan: &Plan, air: A) -> Result<Self, Error> {
        let task = Arc::new(task);
        let (agents, words) = (plan.seats.len(), task.shape().words());
        if words.max(task.problem(0).scratch_words()) > BOARD_WORDS || agents > BOARD_MEMBERS_LARGE {
            return Err(Error::TooLarge { words, agents });
        }
        let mut start = vec![0.0; words];
        task.start(&mut start);
        let key = Key::new(&plan.key);
        let config = |agent: usize| Config { id: agent as u16, founders: agents as u16, boot: 1, ..plan.config };
        let twins = (0..agents).map(|agent| Twin::new(&task, config(agent), &start, &key));
        let twins: Vec<Twin> = twins.collect::<Result<_, _>>().map_err(Error::Agent)?;

        let page = |agent: usize, kind: Kind| Page {
            board: kind.board(),
            key: plan.key,
            agent: config(agent),
            schedule: plan.schedule,
            pace: Pace::Air,
            rounds: plan.rounds,
            saves_state: plan.saves_state,
            start: &start,
            problem: task.problem(agent),
        };
        let on_boards = plan.seats.iter().enumerate().filter_map(|(agent, seat)| match seat {
            Seat::InProcess => None,
            Seat::Board(kind) => Some((*kind, page(agent, *kind))),
        });
        let boards = Boards::start(&on_boards.collect::<Vec<_>>())?;

        let mut ruler = Ruler::new(&task);
        let gradients: Vec<f32> = twins.iter().flat_map(|twin| twin.agent().gradient()).copied().collect();
        ruler.start(&gradients);
        Ok(Self {
            seats: plan.seats.clone(),
            is_down: vec![false; agents],
            twins,
            boards,
            air,
            round: 0,
            ruler,
            frames: FrameCounts::default(),
            digests: DigestCounts::default(),
            said: vec![Vec::new(); agents],
            task,
        })
    }

    /// Kills an agent between two rounds, as a flat battery would.
    pub fn kill(&mut self, agent: usize) {
        self.is_down[agent] = true;
        self.boards.kill(agent as u16);
    }

    /// Starts a killed agent again, with the state it had stored or without.
    ///
    /// # Errors
    /// Where its board does not start.
    pub fn restart(&mut self, agent: usize, memory_is_lost: bool) -> Result<(), Error> {
        self.is_down[agent] = false;
        self.twins[agent].restart(memory_is_lost).map_err(Error::Agent)?;
        self.boards.restart(agent as u16, self.round, memory_is_lost)
    }

    /// The most stack that any board used, in bytes, where boards can tell.
    #[must_use]
    pub fn deepest_stack_bytes(&self) -> Option<u32> {
        let heard = (0..self.seats.len()).filter_map(|agent| self.boards.heard(agent as u16));
        heard.filter_map(|heard| heard.telemetry.deepest_stack_bytes).max()
    }

    fn is_on_board(&self, agent: usize) -> bool {
        self.seats[agent] != Seat::InProcess
    }

    /// Collects what everybody says in this round.
    fn listen(&mut self) -> Result<(), Error> {
        self.boards.begin_round()?;
        for agent in 0..self.twins.len() {
            // A shadow speaks as well, so that its state goes the same way; nobody hears it.
            let own = if self.is_down[agent] { Vec::new() } else { self.twins[agent].frames() };
            self.said[agent] =
                if self.is_on_board(agent) { self.boards.frames(agent as u16).to_vec() } else { own };
            self.frames.sent += self.said[agent].len() as u64;
        }
        Ok(())
    }

    fn carry(&mut self) {
        let (twins, boards, frames, is_down) =
            (&mut self.twins, &mut self.boards, &mut self.frames, &self.is_down);
        self.air.carry(self.round, &self.said, &mut |receiver, frame| {
            if !is_down[receiver] {
                frames.refused += u64::from(!twins[receiver].receive(frame));
                boards.deliver(receiver as u16, frame);
            }
        });
    }

    /// Ends the round everywhere and compares what came out.
    fn end_round(&mut self) -> Result<(), Halt> {
        self.boards.end_round().map_err(Error::into_halt)?;
        for agent in 0..self.twins.len() {
            if self.is_down[agent] {
                continue;
            }
            let report = self.twins[agent].end_round();
            if let Some(fault) = report.fault {
                let round = u64::from(self.round) + 1;
                return Err(Diverged::at_word(round, agent, &self.task.shape(), fault.word).into());
            }
            if let Some(heard) = self.boards.heard(agent as u16) {
                self.digests.checks += 1;
                if heard.telemetry.digest != report.digest {
                    self.digests.mismatches += 1;
                    let shadow = self.twins[agent].agent().decision()[..heard.x.len()].to_vec();
                    return Err(Error::Mismatch {
                        agent: agent as u16,
                        round: self.round,
                        board: heard.telemetry.digest,
                        shadow: report.digest,
                        board_x: heard.x.clone(),
                        shadow_x: shadow,
                    }
                    .into_halt());
                }
            }
        }
        Ok(())
    }

    /// `Σt + Σ(σ − ρ) − Σd`, word by word, as integers.
    fn defect(&self) -> Vec<f64> {
        let words = self.task.shape().exchanged().len();
        let mut defect = vec![0i32; words];
        let mut add = |state: &[i32], factor: i32| {
            for (defect, &word) in defect.iter_mut().zip(state) {
                *defect = defect.wrapping_add(word.wrapping_mul(factor));
            }
        };
        for twin in &self.twins {
            let agent = twin.agent();
            add(agent.trackers(), 1);
            add(agent.tracked(), -1);
            add(agent.sigma(), agent.audience() as i32);
            agent.taken().for_each(|(_, rho)| add(rho, -1));
        }
        defect.into_iter().map(|word| f64::from(Exact::value(word))).collect()
    }
}

impl<A: Air> Swarm for Crew<A> {
    fn step(&mut self) -> Result<(), Halt> {
        self.listen().map_err(Error::into_halt)?;
        self.carry();
        self.end_round()?;
        self.round += 1;
        Ok(())
    }

    fn metrics(&self) -> Metrics {
        let v: Vec<f32> = self.twins.iter().flat_map(|twin| twin.agent().decision()).copied().collect();
        let d: Vec<f32> = self.twins.iter().flat_map(|twin| twin.agent().gradient()).copied().collect();
        self.ruler.measure(self.round(), States { v: &v, d: &d, defect: &self.defect() })
    }

    fn round(&self) -> u64 {
        self.round.into()
    }

    fn counts(&self) -> FrameCounts {
        self.frames
    }

    fn digests(&self) -> DigestCounts {
        self.digests
    }

    fn scores(&self) -> Vec<Score> {
        let v: Vec<f32> = self.twins.iter().flat_map(|twin| twin.agent().decision()).copied().collect();
        self.task.scores(&v)
    }

    fn take_warnings(&mut self) -> Vec<String> {
        self.boards.take_warnings()
    }

    fn keep_logs(&mut self, folder: &Path) -> io::Result<()> {
        self.boards.keep_logs(folder)
    }
}
