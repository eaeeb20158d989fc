//! Training a swarm of large agents from settings to a scored model.
//!
//! [`Prepared`] holds what a run needs before any device is asked; [`run`] builds the swarm, goes through its rounds, scores it
//! now and then, keeps checkpoints and stops when a loss is no number any more.

pub mod batches;
pub mod checkpoint;
pub mod events;
pub mod prepared;
pub mod report;
pub mod settings;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use fabswarm_shared::graph::{Graph, Schedule as _};
use fabswarm_shared::rng::{Purpose, Stream};

pub use prepared::Prepared;
pub use settings::{Method, Push, Settings};

use self::batches::Batches;
use crate::data::cleaning_score::CleaningScore;
use crate::large::device::{self, Device};
use crate::large::fab::{Exchange, Fab, Score};
use crate::large::mixing::Mixing;
use crate::large::plan::{DoesNotFit, Plan};
use crate::large::real::sigmoid;

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
    #[error("the settings are no good: {0}")]
    Settings(String),
    #[error("`{key}` is {value}: {remedy}")]
    Setting { key: &'static str, value: String, remedy: String },
    #[error("cannot write {path}: {cause}", path = path.display())]
    Write { path: PathBuf, cause: std::io::Error },
    #[error("{path}: {what}", path = path.display())]
    Checkpoint { path: PathBuf, what: String },
    #[error("the loss is not a number any more after round {round}; {kept}. Try smaller steps")]
    Diverged { round: u32, kept: String },
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

/// What is left of a finished run.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    pub standing: Standing,
    /// The mean model, packed.
    pub mean: Vec<f32>,
    /// Weight and truth of every training sample, where it has one.
    pub weights: Vec<(f32, bool)>,
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
    settings: &Settings,
    keeping: Keeping<'_>,
    observer: &mut dyn Observer,
    interrupted: &AtomicBool,
) -> Result<Outcome, Error> {
    let config = settings.config();
    let plan = Plan::new(&device, &prepared.model, &config, prepared.samples());
    observer.planned(&plan, &device.name(), prepared.parameters());
    plan.check(&device, &prepared.model, &config, prepared.samples())?;
    let free_before = device.free_bytes();
    let data = prepared.on_device(&device)?;
    let mut swarm = Fab::new(device, &prepared.model, config, data, &prepared.start)?;
    let mut batches = Batches::new(prepared.lists(settings.method), settings);
    let path = checkpoint::path(keeping.folder);
    if keeping.resumes {
        checkpoint::restore(&path, settings, &mut swarm)?;
    } else {
        swarm.begin(&batches.draw(0))?;
    }
    let trainer = Trainer { settings, prepared, started: Instant::now(), free_before };
    let (per_epoch, rounds) = (
        settings.rounds_per_epoch(prepared.training_samples()),
        settings.rounds(prepared.training_samples()),
    );
    let mut standing = None;
    while swarm.rounds() < rounds && !interrupted.load(Ordering::Relaxed) {
        let round = swarm.rounds() + 1;
        exchange(settings, &mut swarm, round, &batches.draw(round))?;
        observer.round(round, rounds);
        let is_due = |epochs: u32| epochs > 0 && round.is_multiple_of(epochs * per_epoch);
        if is_due(settings.evaluate_every) || round == rounds {
            let now = trainer.stand(&swarm, f64::from(round) / f64::from(per_epoch))?;
            if !now.test.loss.is_finite() {
                return Err(diverged(round, &path));
            }
            observer.standing(&now)?;
            standing = Some(now);
        }
        if is_due(settings.checkpoint_every) {
            checkpoint::save(&path, settings, &swarm)?;
        }
    }
    let was_interrupted = swarm.rounds() < rounds;
    checkpoint::save(&path, settings, &swarm)?;
    let standing = match standing.filter(|standing| standing.round == swarm.rounds()) {
        Some(standing) => standing,
        None => trainer.stand(&swarm, f64::from(swarm.rounds()) / f64::from(per_epoch))?,
    };
    let weights = trainer.weights(&swarm)?;
    Ok(Outcome { standing, mean: swarm.mean()?.0, weights, was_interrupted })
}

fn diverged(round: u32, path: &Path) -> Error {
    let kept = if path.is_file() {
        format!("the last checkpoint is {}", path.display())
    } else {
        "no checkpoint was due yet".to_owned()
    };
    Error::Diverged { round, kept }
}

/// One round over this round's graph, frames lost as the settings say.
fn exchange<D: Device<Scalar = f32>>(
    settings: &Settings,
    swarm: &mut Fab<D>,
    round: u32,
    draw: &crate::large::fab::Draw,
) -> Result<(), Error> {
    let heard = heard(settings, round);
    match settings.push {
        Push::Weights => {
            let (pull, push) = Mixing::uniform(&heard);
            swarm.round(&Exchange::Weights { pull: &pull, push: &push }, draw)?;
        }
        Push::Ledger => {
            let (pull, _) = Mixing::uniform(&heard);
            swarm.round(&Exchange::Heard { pull: &pull, heard: &heard }, draw)?;
        }
    }
    Ok(())
}

/// Whom each agent hears in a round.
fn heard(settings: &Settings, round: u32) -> Vec<Vec<usize>> {
    let graph = Graph { topology: settings.topology(), agents: settings.agents, seed: settings.seed };
    (0..settings.agents)
        .map(|agent| {
            let mut air = Stream::new(settings.seed, agent as u32, round, Purpose::Air);
            let mut senders = Vec::new();
            graph.heard_by(agent, round, |sender| {
                if air.uniform_f64() >= settings.loss {
                    senders.push(sender);
                }
            });
            senders
        })
        .collect()
}

/// What scoring needs to know.
struct Trainer<'a> {
    settings: &'a Settings,
    prepared: &'a Prepared,
    started: Instant,
    free_before: Option<u64>,
}

impl Trainer<'_> {
    fn stand<D: Device<Scalar = f32>>(&self, swarm: &Fab<D>, epoch: f64) -> Result<Standing, Error> {
        let (mean, consensus_error) = swarm.mean()?;
        let weights = self.weights(swarm)?;
        let cleaning = (!weights.is_empty()).then(|| {
            let (weights, truths): (Vec<f32>, Vec<bool>) = weights.into_iter().unzip();
            CleaningScore::of(&weights, &truths, FOUND_BELOW)
        });
        let strength = swarm
            .strengths()?
            .map(|all| all.iter().map(|&word| f64::from(word)).sum::<f64>() / all.len() as f64);
        let groups = if self.settings.method.is_bilevel() { 2 } else { 1 };
        // A frame carries decisions and trackers (or the ledger's sums), f32 each.
        let frame = 2 * groups * self.prepared.parameters() as u64 * 4;
        let rounds = u64::from(swarm.rounds());
        Ok(Standing {
            round: swarm.rounds(),
            epoch,
            test: swarm.evaluate(&mean, &self.prepared.test_rows(), TEST_BATCH)?,
            consensus_error,
            cleaning,
            strength,
            sent_bytes: rounds * self.settings.agents as u64 * frame,
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
        Ok(samples.map(|(&sample, &is_corrupted)| (sigmoid(logits[sample as usize]), is_corrupted)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Cache, SAMPLE};
    use crate::large::device::cpu::Cpu;

    #[derive(Default)]
    struct Silent(Vec<Standing>);

    impl Observer for Silent {
        fn planned(&mut self, _: &Plan, _: &str, _: usize) {}
        fn round(&mut self, _: u32, _: u32) {}
        fn standing(&mut self, standing: &Standing) -> Result<(), Error> {
            self.0.push(*standing);
            Ok(())
        }
    }

    fn settings(method: Method, epochs: u32) -> Settings {
        let (data, model) = (SAMPLE.to_owned(), "mlp".to_owned());
        Settings { data, model, width: 12, agents: 3, batch: 8, epochs, method, ..Settings::default() }
    }

    fn train(settings: &Settings, folder: &Path, resumes: bool) -> Result<(Outcome, Vec<Standing>), Error> {
        let prepared = Prepared::new(&Cache::at(folder), settings)?;
        let mut observer = Silent::default();
        let keeping = Keeping { folder, resumes };
        let never = AtomicBool::new(false);
        Ok((run(Cpu::<f32>::new(), &prepared, settings, keeping, &mut observer, &never)?, observer.0))
    }

    #[test]
    fn a_resumed_run_ends_in_the_same_bits() {
        for (method, push, loss) in [
            (Method::Cleaning, Push::Weights, 0.0),
            (Method::Cleaning, Push::Ledger, 0.3),
            (Method::Tuning, Push::Weights, 0.0),
            (Method::Merged, Push::Weights, 0.0),
        ] {
            let (whole, parts) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
            let of = |epochs| Settings { push, loss, step_x: 0.01, ..settings(method, epochs) };
            let (expected, _) = train(&of(4), whole.path(), false).unwrap();
            train(&of(1), parts.path(), false).unwrap();
            let (resumed, _) = train(&of(4), parts.path(), true).unwrap();
            assert_eq!(resumed.mean, expected.mean, "{method:?}");
            assert_eq!(resumed.weights, expected.weights, "{method:?}");
        }
    }

    #[test]
    fn training_learns_and_tells_wrong_labels_from_right_ones() {
        let folder = tempfile::tempdir().unwrap();
        let (outcome, standings) = train(&settings(Method::Cleaning, 30), folder.path(), false).unwrap();
        assert!(outcome.standing.test.accuracy > standings[0].test.accuracy, "{standings:?}");
        let auc = outcome.standing.cleaning.and_then(|cleaning| cleaning.auc).unwrap();
        assert!(auc > 0.6, "{auc}");
    }

    #[test]
    fn checkpoints_of_other_runs_and_damaged_ones_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let refused = |settings: &Settings| train(settings, folder.path(), true).unwrap_err().to_string();
        assert!(refused(&settings(Method::Cleaning, 1)).contains("no checkpoint to resume from"));
        train(&settings(Method::Cleaning, 1), folder.path(), false).unwrap();
        assert!(refused(&Settings { seed: 2, ..settings(Method::Cleaning, 1) }).contains("other settings"));
        let path = checkpoint::path(folder.path());
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
        assert!(refused(&settings(Method::Cleaning, 1)).contains("damaged checkpoint"));
    }

    #[test]
    fn a_loss_that_is_no_number_ends_the_run_and_keeps_the_checkpoint() {
        let folder = tempfile::tempdir().unwrap();
        let wild = Settings { step_y: 1e9, checkpoint_every: 1, ..settings(Method::Noisy, 9) };
        let error = train(&wild, folder.path(), false).unwrap_err();
        assert!(matches!(error, Error::Diverged { .. }), "{error}");
    }
}
