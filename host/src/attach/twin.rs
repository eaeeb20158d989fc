//! An agent inside this process: one of the swarm, or the shadow of one that runs on a board.
//!
//! It does what a board's firmware does with the same shared agent, so that a board's digest must be its own.

use crate::task::Task;
use fabswarm_shared::agent::{self, Agent, Config, Peer, Peers, Received, Report};
use fabswarm_shared::ledger::Exact;
use fabswarm_shared::problem::{Mismatch, Moment, Penalty, Problem, Shape};
use fabswarm_shared::provisioning::{BOARD_MEMBERS_LARGE, BOARD_WORDS};
use fabswarm_shared::wire::seal::{Key, Opener, Sealer, Storage, StorageFault};
use std::sync::Arc;

/// One agent's share of a task that all agents of the process hold together.
#[derive(Clone, Debug)]
struct Share {
    task: Arc<Task<f32>>,
    agent: usize,
}

impl Problem<f32> for Share {
    fn shape(&self) -> Shape {
        self.task.shape()
    }
    fn check(&self) -> Result<(), Mismatch> {
        self.task.problem(self.agent).check()
    }
    fn scratch_words(&self) -> usize {
        self.task.problem(self.agent).scratch_words()
    }
    fn upper_value(&self, x: &[f32], y: &[f32], scratch: &mut [f32]) -> f32 {
        self.task.problem(self.agent).upper_value(x, y, scratch)
    }
    fn lower_value(&self, x: &[f32], y: &[f32], scratch: &mut [f32]) -> f32 {
        self.task.problem(self.agent).lower_value(x, y, scratch)
    }
    fn upper_gradient(&self, x: &[f32], y: &[f32], dx: &mut [f32], dy: &mut [f32], scratch: &mut [f32]) {
        self.task.problem(self.agent).upper_gradient(x, y, dx, dy, scratch);
    }
    fn lower_gradient(
        &self,
        at: Moment,
        x: &[f32],
        y: &[f32],
        dx: &mut [f32],
        dy: &mut [f32],
        scratch: &mut [f32],
    ) {
        self.task.problem(self.agent).lower_gradient(at, x, y, dx, dy, scratch);
    }
    fn project(&self, x: &mut [f32]) {
        self.task.problem(self.agent).project(x);
    }
    fn penalty_gradient(&self, penalty: &Penalty<f32>, at: Moment, v: &[f32], d: &mut [f32], scratch: &mut [f32]) {
        self.task.problem(self.agent).penalty_gradient(penalty, at, v, d, scratch);
    }
}

/// Peers as they come.
#[derive(Clone, Debug, Default)]
struct Room(Vec<Peer<Exact, BOARD_WORDS>>);

impl Peers<Exact, BOARD_WORDS> for Room {
    fn as_slice(&self) -> &[Peer<Exact, BOARD_WORDS>] {
        &self.0
    }

    fn as_mut_slice(&mut self) -> &mut [Peer<Exact, BOARD_WORDS>] {
        &mut self.0
    }

    fn insert(&mut self, index: usize, sender: u16) -> bool {
        self.0.insert(index, Peer::new(sender));
        true
    }
}

/// How often an agent started; it outlives the agent.
#[derive(Debug, Default)]
struct Boots(Option<u32>);

impl Storage for Boots {
    fn load(&mut self) -> Result<Option<u32>, StorageFault> {
        Ok(self.0)
    }

    fn store(&mut self, boot: u32) -> Result<(), StorageFault> {
        self.0 = Some(boot);
        Ok(())
    }
}

/// An agent, its seal, and what it would store.
#[derive(Debug)]
pub(super) struct Twin {
    agent: Agent<Share, Exact, Room, BOARD_WORDS>,
    share: Share,
    config: Config,
    start: Vec<f32>,
    key: Key,
    sealer: Sealer,
    opener: Box<Opener<BOARD_MEMBERS_LARGE>>,
    boots: Boots,
}

impl Twin {
    pub(super) fn new(
        task: &Arc<Task<f32>>,
        config: Config,
        start: &[f32],
        key: &Key,
    ) -> Result<Self, agent::Error> {
        let share = Share { task: Arc::clone(task), agent: config.id.into() };
        let agent = Agent::new(config, share.clone(), start, Room::default())?;
        let mut boots = Boots::default();
        let sealer = Sealer::start(config.id, &mut boots).map_err(|_| agent::Error::Memory)?;
        let (start, key, opener) = (start.to_vec(), key.clone(), Box::default());
        Ok(Self { agent, share, config, start, key, sealer, opener, boots })
    }

    /// Starts again as a board does after a power cut, with the state after its last round or without.
    pub(super) fn restart(&mut self, memory_is_lost: bool) -> Result<(), agent::Error> {
        let mut state = vec![0; 64 * 1024];
        let length = self.agent.save(&mut state)?;
        self.sealer = Sealer::start(self.config.id, &mut self.boots).map_err(|_| agent::Error::Memory)?;
        self.opener = Box::default();
        let config = Config { boot: self.sealer.boot() + 1, ..self.config };
        self.agent = Agent::new(config, self.share.clone(), &self.start, Room::default())?;
        if memory_is_lost { Ok(()) } else { self.agent.restore(&state[..length]) }
    }

    /// All it has to say in this round, sealed.
    pub(super) fn frames(&mut self) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        let (mut frame, mut sealed) = ([0; 1024], [0; 1200]);
        while let Ok(Some(length)) = self.agent.poll_frame(&mut frame) {
            if let Ok(length) = self.sealer.seal(&self.key, &frame[..length], &mut sealed) {
                frames.push(sealed[..length].to_vec());
            }
        }
        frames
    }

    /// Hears a sealed frame; `false` where it was refused.
    pub(super) fn receive(&mut self, sealed: &[u8]) -> bool {
        let mut frame = [0; 1024];
        match self.opener.open(&self.key, sealed, &mut frame) {
            Ok(opened) => !matches!(self.agent.receive(opened.frame), Received::Refused(_)),
            Err(_) => false,
        }
    }

    pub(super) fn end_round(&mut self) -> Report {
        self.agent.end_round()
    }

    pub(super) fn agent(&self) -> &Agent<Share, Exact, Room, BOARD_WORDS> {
        &self.agent
    }
}
