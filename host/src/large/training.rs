//! Training a swarm of large agents from scenario to a scored model.
//!
//! [`Prepared`] holds what a run needs before any device is asked; [`run`] builds the swarm, goes through its rounds, scores it
//! now and then, keeps checkpoints and stops when a loss is no number any more.

pub mod batches;
pub mod checkpoint;
mod constants;
pub mod events;
pub(in crate::large) mod links;
pub mod prepared;
pub mod report;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use fabswarm_shared::scalar::Scalar as _;
pub use prepared::Prepared;

use self::batches::Batches;
use self::constants::{Length, config};
use self::links::Links;
use crate::air;
use crate::data::cleaning_score::CleaningScore;
use crate::large::device::{self, Device};
use crate::large::fab::{Fab, Score};
use crate::large::plan::{DoesNotFit, Plan};
use crate::scenario::{Resolved, Scenario, Swarm};

/// Test samples that go through a model at once.
const TEST_BATCH: usize = 500;
/// A sample whose weight is below this counts as found.
const FOUND_BELOW: f32 = 0.5;

/// Why a run did not get to its end.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Device(#[from] device::Error),
    #[error(transparent)]
    DoesNotFit(#[from] DoesNotFit),
    #[error(transparent)]
    Data(#[from] crate::data::Error),
    #[error(transparent)]
    Pretrained(#[from] crate::large::models::pretrained::Error),
    #[error(transparent)]
    Air(#[from] air::Error),
    #[error("{what}\nhelp: {remedy}")]
    Unfit { what: &'static str, remedy: &'static str },
    #[error("{key} = {value} does not fit\nhelp: {remedy}")]
    Setting { key: &'static str, value: String, remedy: String },
    #[error("cannot write {path}: {cause}", path = path.display())]
    Write { path: PathBuf, cause: std::io::Error },
    #[error("{path}: {what}", path = path.display())]
    Checkpoint { path: PathBuf, what: String },
    #[error("the loss is not a number any more after round {round}; {kept}. Try smaller steps")]
    Diverged { round: u32, kept: String },
}

impl Error {
    /// A swarm whose numbers are none any more, with what is left of it at `path`.
    fn diverged(round: u32, path: &Path) -> Self {
        let kept = if path.is_file() {
            format!("the last checkpoint is {}", path.display())
        } else {
            "no checkpoint was due yet".to_owned()
        };
        Error::Diverged { round, kept }
    }
}

/// How a swarm stands after some rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Standing {
    pub round: u32,
    pub epoch: f64,
    /// Of the mean model on the test samples.
    pub test: Score,
    /// Root mean square distance of agents to their mean, relative to its norm.
    pub consensus_error: f64,
    /// How well samples with wrong labels are told from others, where each has a weight.
    pub cleaning: Option<CleaningScore>,
    /// Mean of the learned regularisation strengths.
    pub strength: Option<f64>,
    /// Bytes all agents sent so far, each frame counted once.
    pub sent_bytes: u64,
    pub frames: FrameCounts,
    pub seconds: f64,
    /// Memory in use on the device or, on a CPU, by this process.
    pub memory_bytes: Option<u64>,
}

/// Who watches a run.
pub trait Observer {
    /// Before the first round: what will be taken of memory.
    fn planned(&mut self, plan: &Plan, device: &str, parameters: usize);
    /// After every round.
    fn round(&mut self, round: u32, rounds: u32);
    /// After every evaluation.
    fn standing(&mut self, standing: &Standing) -> Result<(), Error>;
}

/// What became of frames so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameCounts {
    pub sent: u64,
    /// Copies that were lost on their way.
    pub lost: u64,
    /// Copies that were heard and refused.
    pub refused: u64,
}

/// What is left of a finished run.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    pub standing: Standing,
    /// The mean model, packed.
    pub mean: Vec<f32>,
    /// Weight and truth of every training sample, where it has one.
    pub weights: Vec<(f32, bool)>,
    /// `Σt + Σ(what waits) − Σd`, relative to gradients: how much tracking mass was lost or made.
    pub tracking_defect: f64,
    pub was_interrupted: bool,
}

/// Where checkpoints go, and whether the run goes on from one.
#[derive(Clone, Copy, Debug)]
pub struct Keeping<'a> {
    pub folder: &'a Path,
    pub resumes: bool,
}

/// Trains.
///
/// # Errors
/// When the run does not fit, the device fails, a checkpoint is no good, or the loss is no number any more.
pub fn run<D: Device<Scalar = f32>>(
    device: D,
    prepared: &Prepared,
    resolved: &Resolved,
    keeping: Keeping<'_>,
    observer: &mut dyn Observer,
    interrupted: &AtomicBool,
) -> Result<Outcome, Error> {
    let (agents, training) = (resolved.scenario.swarm.agents, &resolved.scenario.training);
    let Length { epoch, rounds } = Length::new(training, agents, prepared.training_samples());
    let scenario = Scenario {
        swarm: Swarm { rounds: rounds.into(), ..resolved.scenario.swarm.clone() },
        ..resolved.scenario.clone()
    };
    let (mut links, ledger) = Links::new(&scenario)?;
    let config = config(&scenario, ledger);
    let plan = Plan::new(&device, &prepared.model, &config, prepared.samples());
    observer.planned(&plan, &device.name(), prepared.parameters());
    plan.check(&device, &prepared.model, &config, prepared.samples())?;
    let free_before = device.free_bytes();
    let data = prepared.on_device(&device)?;
    let mut swarm = Fab::new(device, &prepared.model, config, data, &prepared.start)?;
    let mut batches = Batches::new(prepared.lists(training.method), training.batch, scenario.seed);
    let path = checkpoint::path(keeping.folder);
    if keeping.resumes {
        checkpoint::restore(&path, resolved, &mut swarm)?;
        (1..=swarm.rounds()).for_each(|round| drop(links.round(round)));
    } else {
        swarm.begin(&batches.draw(0))?;
    }
    let trainer = Trainer { agents, prepared, started: Instant::now(), free_before };
    let mut standing = None;
    while swarm.rounds() < rounds && !interrupted.load(Ordering::Relaxed) {
        let round = swarm.rounds() + 1;
        let heard = links.round(round);
        for &agent in heard.forgetting() {
            swarm.forget(agent, &prepared.start, &prepared.shards()[agent].train)?;
        }
        let draw = batches.draw(round).only(|agent| heard.is_awake(agent));
        swarm.round(&heard.exchange(), &draw)?;
        observer.round(round, rounds);
        let is_due = |epochs: u32| epochs > 0 && round.is_multiple_of(epochs * epoch);
        if is_due(training.evaluate_every) || round == rounds {
            let now = trainer.stand(&swarm, &links, epoch)?;
            if !now.test.loss.is_finite() {
                return Err(Error::diverged(round, &path));
            }
            observer.standing(&now)?;
            standing = Some(now);
        }
        if is_due(training.checkpoint_every) {
            checkpoint::save(&path, resolved, &swarm)?;
        }
    }
    let was_interrupted = swarm.rounds() < rounds;
    checkpoint::save(&path, resolved, &swarm)?;
    let standing = match standing.filter(|standing| standing.round == swarm.rounds()) {
        Some(standing) => standing,
        None => trainer.stand(&swarm, &links, epoch)?,
    };
    let (weights, tracking_defect) = (trainer.weights(&swarm)?, swarm.tracking_defect()?);
    Ok(Outcome { standing, mean: swarm.mean()?.0, weights, tracking_defect, was_interrupted })
}

/// What scoring needs to know.
struct Trainer<'a> {
    agents: usize,
    prepared: &'a Prepared,
    started: Instant,
    free_before: Option<u64>,
}

impl Trainer<'_> {
    fn stand<D: Device<Scalar = f32>>(
        &self,
        swarm: &Fab<D>,
        links: &Links,
        rounds_per_epoch: u32,
    ) -> Result<Standing, Error> {
        let (mean, consensus_error) = swarm.mean()?;
        let weights = self.weights(swarm)?;
        let cleaning = (!weights.is_empty()).then(|| {
            let (weights, truths): (Vec<f32>, Vec<bool>) = weights.into_iter().unzip();
            CleaningScore::of(&weights, &truths, FOUND_BELOW)
        });
        let strength = swarm
            .strengths()?
            .map(|all| all.iter().map(|&word| f64::from(word)).sum::<f64>() / all.len() as f64);
        let frames = match links.counters() {
            Some(counters) => FrameCounts {
                sent: counters.frames,
                lost: counters.lost.total(),
                refused: counters.refused(),
            },
            None => {
                FrameCounts { sent: u64::from(swarm.rounds()) * self.agents as u64, ..Default::default() }
            }
        };
        Ok(Standing {
            round: swarm.rounds(),
            epoch: f64::from(swarm.rounds()) / f64::from(rounds_per_epoch),
            test: swarm.evaluate(&mean, &self.prepared.test_rows(), TEST_BATCH)?,
            consensus_error,
            cleaning,
            strength,
            // A frame carries decisions and trackers (or the ledger's sums), f32 each.
            sent_bytes: frames.sent * 2 * swarm.exchanged_words(self.prepared.parameters()) as u64 * 4,
            frames,
            seconds: self.started.elapsed().as_secs_f64(),
            memory_bytes: self
                .free_before
                .zip(swarm.device().free_bytes())
                .map(|(before, now)| before.saturating_sub(now)),
        })
    }

    /// σ(ψ) of every training sample with whether its label is wrong; nothing where samples have no ψ.
    fn weights<D: Device<Scalar = f32>>(&self, swarm: &Fab<D>) -> Result<Vec<(f32, bool)>, Error> {
        let Some(logits) = swarm.logits()? else { return Ok(Vec::new()) };
        let shards = self.prepared.shards().iter();
        let samples = shards.flat_map(|shard| shard.train.iter().zip(&shard.corrupted));
        Ok(samples
            .map(|(&sample, &is_corrupted)| (logits[sample as usize].sigmoid(), is_corrupted))
            .collect())
    }
}

#[cfg(test)]
mod tests;
