//! A run that fits its device, and how it starts.

use std::time::Instant;

use super::batches::Batches;
use super::block::BlockTrainer;
use super::checkpoint::Checkpoint;
use super::constants::{RunLength, config};
use super::links::TrainingNetwork;
use super::trainer::Trainer;
use super::{Error, TrainingSetup};
use crate::device::{Block, Device};
use crate::fab::{Fab, FabConfig, RemoteHosts};
use crate::plan::MemoryPlan;
use fabswarm_sim::scenario::{ResolvedScenario, Scenario, SwarmSection};

/// A run that fits its device, before any memory is allocated.
#[derive(Debug)]
pub struct TrainingPlan<'a, D> {
    device: D,
    prepared: &'a TrainingSetup,
    resolved: &'a ResolvedScenario,
    links: TrainingNetwork,
    config: FabConfig,
    length: RunLength,
    plan: MemoryPlan,
}

impl<'a, D: Device<Scalar = f32>> TrainingPlan<'a, D> {
    /// Plans the run of a scenario on `device`.
    ///
    /// # Errors
    /// When its keys do not go together, its network falls apart, or it does not fit.
    pub fn new(
        device: D,
        prepared: &'a TrainingSetup,
        resolved: &'a ResolvedScenario,
    ) -> Result<Self, Error> {
        let own = Block::whole(resolved.scenario.swarm.agents);
        Self::of_block(device, prepared, resolved, own)
    }

    /// Plans the part of a host that computes the agents of `own`.
    ///
    /// # Errors
    /// When its keys do not go together, its network falls apart, or the part does not fit.
    pub fn of_block(
        device: D,
        prepared: &'a TrainingSetup,
        resolved: &'a ResolvedScenario,
        own: Block,
    ) -> Result<Self, Error> {
        let (agents, training) = (resolved.scenario.swarm.agents, &resolved.scenario.training);
        let length = RunLength::new(training, agents, prepared.training_samples());
        let scenario = Scenario {
            swarm: SwarmSection { rounds: length.rounds.into(), ..resolved.scenario.swarm.clone() },
            ..resolved.scenario.clone()
        };
        let (links, ledger) = TrainingNetwork::new(&scenario)?;
        let config = FabConfig { own, ..config(&scenario, ledger) };
        let plan = MemoryPlan::new(&device, &prepared.model, &config, prepared.samples());
        plan.check(&device, &prepared.model, &config, prepared.samples())?;
        Ok(TrainingPlan { device, prepared, resolved, links, config, length, plan })
    }

    /// The device that computes the agents.
    pub fn device(&self) -> &D {
        &self.device
    }

    /// The memory of the run.
    pub fn plan(&self) -> &MemoryPlan {
        &self.plan
    }

    /// Allocates the memory and starts from the beginning, or from a checkpoint.
    ///
    /// # Errors
    /// When the device fails, or the checkpoint cannot be used.
    pub fn start(self, checkpoint: Option<&mut Checkpoint>) -> Result<Trainer<'a, D>, Error> {
        self.start_on(None, checkpoint)
    }

    /// Starts a trainer that observes agents computed by `hosts`.
    ///
    /// # Errors
    /// When the device or a host fails, or the checkpoint cannot be used.
    pub fn watch(
        self,
        hosts: Box<dyn RemoteHosts<f32>>,
        checkpoint: Option<&mut Checkpoint>,
    ) -> Result<Trainer<'a, D>, Error> {
        self.start_on(Some(hosts), checkpoint)
    }

    /// Allocates the agents of `host`, whose block was planned, and computes their first gradients. The observer may replace
    /// them by the state of a checkpoint.
    ///
    /// # Errors
    /// When the device fails.
    pub fn start_block(self, host: usize, blocks: Vec<Block>) -> Result<BlockTrainer<'a, D>, Error> {
        let (prepared, rounds) = (self.prepared, self.length.rounds);
        let (links, mut swarm, mut batches) = self.allocate()?;
        swarm.begin(&batches.draw(0))?;
        let (linked, heard) = (0, None);
        Ok(BlockTrainer { prepared, links, linked, heard, swarm, batches, host, blocks, rounds })
    }

    /// The agents in the device's memory, before their first gradient, with their links and batches.
    fn allocate(self) -> Result<(TrainingNetwork, Fab<D>, Batches), Error> {
        let TrainingPlan { device, prepared, resolved, links, config, .. } = self;
        let training = &resolved.scenario.training;
        let data = prepared.on_device(&device)?;
        let swarm = Fab::new(device, &prepared.model, config, data, &prepared.start)?;
        let batches = Batches::new(prepared.lists(training.method), training.batch, resolved.scenario.seed);
        Ok((links, swarm, batches))
    }

    fn start_on(
        self,
        hosts: Option<Box<dyn RemoteHosts<f32>>>,
        checkpoint: Option<&mut Checkpoint>,
    ) -> Result<Trainer<'a, D>, Error> {
        let TrainingPlan { prepared, resolved, length, .. } = self;
        let planned_bytes = self.plan.total();
        if let Some(checkpoint) = &checkpoint {
            checkpoint.check_data(prepared.digest())?;
            if checkpoint.round > length.rounds {
                let done = checkpoint.round.div_ceil(length.epoch);
                let remedy = format!("the run has done {done} epochs already; give at least as many");
                let epochs = resolved.scenario.training.epochs;
                return Err(Error::setting("training.epochs", epochs, remedy));
            }
        }
        let (mut links, mut swarm, mut batches) = self.allocate()?;
        let is_watched = hosts.is_some();
        if let Some(hosts) = hosts {
            swarm.watch(hosts, prepared.sample_owners());
        }
        let (mut seconds_before, mut checkpointed) = (0.0, None);
        if let Some(checkpoint) = checkpoint {
            (seconds_before, checkpointed) = (checkpoint.seconds, Some(checkpoint.round));
            if let Some(hosts) = swarm.hosts() {
                hosts.set_rounds(checkpoint.round)?;
            }
            checkpoint.restore(&mut swarm)?;
            (1..=swarm.rounds()).for_each(|round| drop(links.round(round)));
        } else if !is_watched {
            swarm.begin(&batches.draw(0))?;
        }
        let round = swarm.rounds();
        Ok(Trainer {
            prepared,
            resolved,
            links,
            length,
            planned_bytes,
            checkpointed,
            swarm,
            batches,
            seconds_before,
            started: Instant::now(),
            stepping: (Instant::now(), round),
            round_seconds: None,
        })
    }
}
