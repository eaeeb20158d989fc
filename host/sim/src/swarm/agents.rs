//! Agents that exchange frames: sans-IO agents whose frames are sealed and carried by the air.
//!
//! In lock-step every slot of the air is a round of all agents. In free-running mode each agent has its own clock, a
//! little fast or slow, and ends a round at each of its ticks; a slot is one tick of a perfect clock.

mod agent_problem;
mod fragments;
mod mass;
mod outages;
mod peers;
mod reception_pool;
mod remote;
mod setup;
mod sim_agent;
mod view;

use super::books::{Balance, Books, BrokenBooks, Imbalance, LedgerView};
use super::measure::{Meter, Metrics, States};
use super::{Answer, DivergenceError, ReadingLog, Swarm, SwarmError, SwarmView, ViewRequest};
use crate::air::Air;
use crate::cores;
use crate::sealing::FrameSeal;
use crate::task::{Score, Task};
pub use agent_problem::AgentProblem;
use fabswarm_shared::agent::{self, Agent, Epoch, MemberSet, Mode};
use fabswarm_shared::fab::Phases;
use fabswarm_shared::problem::Shape;
use fabswarm_shared::rng::{Purpose, Stream};
use fabswarm_shared::wire::seal::Key;
use fragments::FragmentPath;
pub use mass::UncollectedMass;
pub use peers::HeapPeers;
use reception_pool::ReceptionPool;
pub use remote::{BoardChange, BoardReports, BoardWarning, DigestCounts, Remote, ShadowRound};
pub use setup::AgentSwarmConfig;
use sim_agent::{FrameQueue, HeapAgent, SavedAgent, SimAgent, SlotWork};
use std::convert::Infallible;
use std::sync::Arc;

/// Agents below which one core has sealed all frames before a second one has begun.
const AGENTS_FOR_THREADS: usize = 128;

/// A swarm of agents over an air.
#[derive(Debug)]
pub struct AgentSwarm<const WORDS: usize> {
    setup: AgentSwarmConfig,
    task: Arc<Task<f32>>,
    shape: Shape,
    air: Air,
    slot: u32,
    agents: Vec<SimAgent<WORDS>>,
    meter: Meter,
    books: Books,
    /// The first fault of the books, once they broke.
    imbalance: Option<Imbalance>,
    /// The swarm's key, where frames are sealed.
    key: Option<Key>,
    receptions: Arc<ReceptionPool<WORDS>>,
    remote: Option<Box<dyn Remote>>,
    /// Fresh readings of a run that is executed again without its boards.
    readings: ReadingLog,
}

impl<const WORDS: usize> AgentSwarm<WORDS> {
    /// A swarm at rest at the task's starting point.
    ///
    /// # Errors
    /// Where an agent cannot be made.
    pub fn new(
        task: Task<f32>,
        air: Air,
        count: usize,
        setup: AgentSwarmConfig,
    ) -> Result<Self, agent::Error> {
        let task = Arc::new(task);
        let receptions = Arc::default();
        let mut agents = Vec::with_capacity(count);
        for id in 0..count {
            let mut stream = Stream::new(setup.seed, id as u32, 0, Purpose::Clock);
            let agent = Box::new(start(&task, &setup, &receptions, id, 1)?);
            agents.push(SimAgent {
                buffer: vec![0; agent.largest_frame() + 64],
                agent,
                seal: FrameSeal::new(id as u16, setup.key.as_ref()),
                boot: 1,
                has_sent: false,
                fragments: (setup.forged_fragments > 0)
                    .then(|| FragmentPath::new(id, setup.forged_fragments, setup.seed)),
                outbox: FrameQueue::default(),
                reading: None,
                report: None,
                refused: 0,
                saved: None,
                rate: 1.0 + setup.clock_spread * (2.0 * stream.uniform_f64() - 1.0),
                phase: stream.uniform_f64(),
            });
        }
        let mut meter = Meter::new(&task, setup.config.steps.x);
        let decisions = packed(&agents, Agent::decision);
        let gradients = packed(&agents, Agent::gradient);
        meter.start(&decisions, &gradients);
        let shape = task.shape();
        let mut books = Books::new(count, shape.exchanged().len(), setup.audiences.clone());
        for own in &agents {
            // A ledger that has just begun is balanced.
            let _ = books.balance(own.agent.id(), &ledger_of(&own.agent));
        }
        Ok(Self {
            shape,
            key: setup.key.as_ref().map(|key| Key::new(key.bytes())),
            receptions,
            setup,
            task,
            air,
            slot: 0,
            agents,
            meter,
            books,
            imbalance: None,
            remote: None,
            readings: ReadingLog::default(),
        })
    }

    /// The same swarm with some of its agents outside this process. Those inside become their shadows.
    #[must_use]
    pub fn with_remote(mut self, remote: Box<dyn Remote>) -> Self {
        self.remote = Some(remote);
        self
    }

    /// Agents, in the order of their numbers.
    pub fn agents(&self) -> impl Iterator<Item = &HeapAgent<WORDS>> {
        self.agents.iter().map(|own| &*own.agent)
    }

    /// Packed decisions of all agents.
    pub fn decisions(&self) -> Vec<f32> {
        packed(&self.agents, Agent::decision)
    }

    /// The channel, with the outcome of every frame.
    pub const fn air(&self) -> &Air {
        &self.air
    }

    /// Puts the frames of an agent on the air.
    fn transmit(&mut self, sender: usize) {
        let Self { agents, air, slot, remote, .. } = self;
        agents[sender].outbox.empty(|frame| {
            air.transmit(*slot, sender, frame);
            if let Some(remote) = remote {
                remote.shadow_sent(sender, frame);
            }
        });
    }

    /// Delivers the frames of this slot, and enters what each agent collected. Those of `ending` end their round and are balanced
    /// as soon as they have heard everything, while what that needs is still in the cache.
    fn deliver(&mut self, ending: &[usize]) -> Result<(), SwarmError> {
        let broken = self.broken();
        let Self { remote, key, air, agents, books, slot, .. } = self;
        let mut turns: Vec<_> = agents
            .iter_mut()
            .zip(books.open_accounts())
            .map(|(own, account)| SlotWork { own, account, is_ending: false, balance: Balance::default() })
            .collect();
        ending.iter().for_each(|&agent| turns[agent].is_ending = true);
        let witness = remote
            .as_mut()
            .map(|remote| |receiver, sender, bytes: &[u8]| remote.shadow_received(receiver, sender, bytes));
        air.deliver_to(*slot, &mut turns, witness, key.as_ref());
        // Others' accounts were held against what each agent had before.
        let balances: Vec<_> = turns.into_iter().map(|turn| turn.balance).collect();
        let outcome = books.enter_all(&balances).map_err(broken);
        let fragments = self.agents.iter_mut().filter_map(|own| own.fragments.as_mut());
        self.air.count_forged_fragments(fragments.map(FragmentPath::take_forged).sum());
        outcome
    }

    /// The error for books that broke in this slot.
    fn broken(&self) -> impl Fn(Imbalance) -> SwarmError + use<WORDS> {
        let round = u64::from(self.slot) + 1;
        move |what| BrokenBooks { round, what }.into()
    }

    /// Gives agents the fresh readings of their boards.
    fn take_readings(&mut self, agents: &[usize]) -> Result<(), SwarmError> {
        for &agent in agents {
            self.agents[agent].reading = match &mut self.remote {
                Some(remote) => remote.reading(agent)?,
                None => self.readings.take(self.slot, agent),
            };
        }
        Ok(())
    }

    /// Ends a round of one agent and balances its ledger.
    fn end_round_of(&mut self, agent: usize) -> Result<(), SwarmError> {
        let broken = self.broken();
        let own = &mut self.agents[agent];
        own.end_round();
        let (id, books) = (own.agent.id(), &mut self.books);
        books
            .open(id)
            .collect(id, own.agent.epoch(), own.agent.collections())
            .and_then(|()| books.balance(id, &ledger_of(&own.agent)))
            .map_err(broken)
    }

    /// Does what follows the end of an agent's round: it saves its state, and a fault ends the run.
    fn follow_up(&mut self, agent: usize) -> Result<(), SwarmError> {
        let own = &mut self.agents[agent];
        let Some(report) = own.report.take() else { return Ok(()) };
        own.has_sent = false;
        // As a board does: what comes after the end of its last round is lost with a crash.
        if self.air.outages().will_remember(agent, self.slot) {
            let boots = own.seal.boots(self.setup.config.founders.into());
            own.saved = Some(SavedAgent { state: saved(&own.agent), boots });
        }
        if let Some(fault) = report.fault {
            return Err(
                DivergenceError::from_fault(u64::from(self.slot) + 1, agent, &self.shape, fault).into()
            );
        }
        if let Some(remote) = self.remote.as_mut().filter(|remote| remote.is_remote(agent)) {
            let refused = std::mem::take(&mut own.refused);
            let round = ShadowRound {
                digest: own.agent.digest(),
                heard: report.heard,
                refused: own.fragments.is_none().then_some(refused),
                state: saved(&own.agent),
            };
            remote.shadow_ended_round(agent, round);
        }
        Ok(())
    }

    /// Does what follows the end of a round for all running agents.
    fn close_rounds(&mut self, running: &[usize]) -> Result<(), SwarmError> {
        let mut outcome = Ok(());
        for &agent in running {
            // As `Agent::end_on_beat` does, with a look at the books in between.
            if self.agents[agent].agent.is_behind() {
                outcome = outcome.and(self.end_round_of(agent));
            }
            outcome = outcome.and(self.follow_up(agent));
        }
        outcome
    }

    /// Takes all agents through one slot of the air.
    fn advance(&mut self) -> Result<(), SwarmError> {
        self.apply_outages()?;
        let running: Vec<usize> =
            (0..self.agents.len()).filter(|&agent| self.air.outages().is_running(agent, self.slot)).collect();
        let Self { agents, air, slot, .. } = self;
        let on_all_cores = agents.len() >= AGENTS_FOR_THREADS;
        cores::each(on_all_cores, agents, |agent, own| {
            if air.outages().is_running(agent, *slot) {
                own.compose();
            }
        });
        running.iter().for_each(|&agent| self.transmit(agent));
        let mut outcome = Ok(());
        match self.setup.config.mode {
            Mode::LockStep => {
                self.take_readings(&running)?;
                self.deliver(&running)?;
                outcome = self.close_rounds(&running);
            }
            Mode::FreeRunning => {
                let ticks: Vec<u32> = self.agents.iter_mut().map(SimAgent::ticks).collect();
                for &agent in &running {
                    for _ in 0..ticks[agent] {
                        self.take_readings(&[agent])?;
                        outcome = outcome.and(self.end_round_of(agent)).and(self.follow_up(agent));
                        self.agents[agent].compose();
                        self.transmit(agent);
                    }
                }
                self.deliver(&[])?;
            }
        }
        self.slot += 1;
        outcome?;
        self.remote.as_mut().map_or(Ok(()), |remote| remote.follow())
    }
}

/// The words that `state` returns of all agents, one after the other.
fn packed<const WORDS: usize>(
    agents: &[SimAgent<WORDS>],
    state: impl Fn(&HeapAgent<WORDS>) -> &[f32],
) -> Vec<f32> {
    let words = agents.first().map_or(0, |own| state(&own.agent).len());
    let mut packed = Vec::with_capacity(agents.len() * words);
    agents.iter().for_each(|own| packed.extend_from_slice(state(&own.agent)));
    packed
}

/// An agent's ledger, as an observer sees it.
fn ledger_of<const WORDS: usize>(agent: &HeapAgent<WORDS>) -> LedgerView<'_> {
    LedgerView {
        round: agent.round(),
        epoch: agent.epoch(),
        members: agent.members(),
        audience: agent.audience(),
        trackers: agent.trackers(),
        gradients: agent.tracked_gradients(),
        sigma: agent.sigma(),
    }
}

/// The agent's whole state, as it would be written to flash.
fn saved<const WORDS: usize>(agent: &HeapAgent<WORDS>) -> Vec<u32> {
    let mut saved = Vec::new();
    let Ok(()) = agent.save(|words| {
        saved.extend_from_slice(words);
        Ok::<_, Infallible>(())
    });
    saved
}

fn start<const WORDS: usize>(
    task: &Arc<Task<f32>>,
    setup: &AgentSwarmConfig,
    receptions: &Arc<ReceptionPool<WORDS>>,
    id: usize,
    boot: u32,
) -> Result<HeapAgent<WORDS>, agent::Error> {
    let peers = HeapPeers::with_pool(Arc::clone(receptions));
    Agent::new(setup.config_of(id, boot), AgentProblem::new(task.clone(), id), &task.start(), peers)
}

impl<const WORDS: usize> Swarm for AgentSwarm<WORDS> {
    fn step(&mut self) -> Result<(), SwarmError> {
        let outcome = self.advance();
        if let Err(SwarmError::Books(broken)) = &outcome {
            self.imbalance = Some(broken.what);
        }
        outcome
    }

    fn finish(&mut self) -> Result<(), SwarmError> {
        self.remote.as_mut().map_or(Ok(()), |remote| remote.catch_up())
    }

    fn replay_readings(&mut self, log: ReadingLog) {
        self.readings = log;
    }

    fn round(&self) -> u64 {
        u64::from(self.slot)
    }

    fn phases(&self) -> Phases {
        self.setup.config.phases
    }

    fn metrics(&self) -> Metrics {
        let gradients = packed(&self.agents, Agent::gradient);
        let states = States { task: &self.task, v: &self.decisions(), d: &gradients, defect: &self.defect() };
        self.meter.measure(self.round(), states)
    }

    fn answer(&self) -> Answer {
        Answer::new(self.shape, &self.decisions())
    }

    fn scores(&self) -> Vec<Score> {
        self.task.scores(&self.decisions())
    }

    fn uncollected_mass(&self) -> Option<UncollectedMass> {
        Some(self.uncollected_mass())
    }

    fn unheard_members(&self) -> Option<Vec<u16>> {
        let epoch = self.agents().map(Agent::epoch).max().filter(|&epoch| epoch != Epoch::NONE)?;
        let present = self.agents().filter(|agent| agent.epoch() == epoch);
        let unheard: Vec<(u16, MemberSet)> = present.map(|agent| (agent.id(), agent.unheard())).collect();
        let is_unheard = |id: &u16| {
            let is_expected = unheard.iter().any(|(_, unheard)| unheard.contains(*id));
            is_expected && unheard.iter().all(|(own, unheard)| own == id || unheard.contains(*id))
        };
        Some((0..self.agents.len() as u16).filter(is_unheard).collect())
    }

    fn air(&self) -> Option<&Air> {
        Some(&self.air)
    }

    fn view(&self, request: &ViewRequest) -> SwarmView {
        self.show(request)
    }

    fn boards(&mut self) -> Option<&mut dyn BoardReports> {
        Some(self.remote.as_deref_mut()?)
    }
}

#[cfg(test)]
mod tests;
