//! A run from its start to its outcome.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use fabswarm_shared::scalar::Scalar as _;

use super::batches::Batches;
use super::checkpoint;
use super::cleaning_score::CleaningScore;
use super::constants::RunLength;
use super::links::TrainingNetwork;
use super::{
    Error, Evaluation, SampleWeight, TrainingObserver, TrainingOutcome, TrainingSetup, WeightHistogram,
};
use crate::device::{Device, MemoryUse};
use crate::fab::Fab;
use fabswarm_sim::air::{Air, FrameCounts};
use fabswarm_sim::record::{AirReport, RunFolder, StoppedBecause};
use fabswarm_sim::scenario::ResolvedScenario;
use fabswarm_sim::swarm::{SwarmView, ViewRequest};

/// Test samples that go through a model at once.
const TEST_BATCH: usize = 500;
/// A sample whose weight is below this counts as found.
const FOUND_BELOW: f32 = 0.5;

/// A swarm at its start or at a checkpoint, ready to go on.
#[derive(Debug)]
pub struct Trainer<'a, D: Device> {
    pub(super) prepared: &'a TrainingSetup,
    pub(super) resolved: &'a ResolvedScenario,
    pub(super) links: TrainingNetwork,
    pub(super) length: RunLength,
    pub(super) swarm: Fab<D>,
    pub(super) batches: Batches,
    pub(super) planned_bytes: u64,
    /// The round of the checkpoint in the folder.
    pub(super) checkpointed: Option<u32>,
    /// Time that earlier parts of a resumed run took.
    pub(super) seconds_before: f64,
    pub(super) started: Instant,
    /// Time and round of the last evaluation or checkpoint, from which rounds are timed.
    pub(super) stepping: (Instant, u32),
    pub(super) round_seconds: Option<f64>,
}

/// A round that has just been done.
#[derive(Clone, Copy, Debug)]
pub struct TrainingRound<'a> {
    /// Its number.
    pub round: u32,
    /// Rounds of the whole run.
    pub rounds: u32,
    links: &'a TrainingNetwork,
}

impl TrainingRound<'_> {
    /// Agents and links, as an observer sees them.
    pub fn view(&self, request: &ViewRequest) -> SwarmView {
        self.links.view(self.round, request)
    }
}

impl<D: Device<Scalar = f32>> Trainer<'_, D> {
    /// Rounds done.
    pub fn round(&self) -> u32 {
        self.swarm.rounds()
    }

    /// Rounds of the whole run.
    pub fn rounds(&self) -> u32 {
        self.length.rounds
    }

    /// The round from which the run can be resumed, if there was a checkpoint.
    pub fn checkpointed(&self) -> Option<u32> {
        self.checkpointed
    }

    /// Keeps the present state in `folder`, so that there is one to go back to.
    ///
    /// # Errors
    /// When the device or a host fails, or it cannot be written.
    pub fn keep(&mut self, folder: &RunFolder) -> Result<(), Error> {
        // An earlier checkpoint may be of other hosts.
        self.checkpointed = None;
        self.checkpoint(Some(folder)).map(|_| ())
    }

    /// Trains as [`Trainer::advance`] does, and measures the swarm then.
    ///
    /// # Errors
    /// When the device fails, or something cannot be written.
    pub fn run(
        &mut self,
        folder: Option<&RunFolder>,
        observer: &mut dyn TrainingObserver,
        interrupted: &AtomicBool,
    ) -> Result<TrainingOutcome, Error> {
        let (stopped_because, evaluation) = self.advance(folder, observer, interrupted)?;
        Ok(TrainingOutcome {
            stopped_because,
            evaluation,
            mean: self.swarm.mean()?.0,
            weights: self.weights()?,
            tracking_defect: self.swarm.tracking_defect()?,
            air: self.links.air().map(AirReport::on),
            planned_bytes: self.planned_bytes,
            memory: self.memory_use(),
        })
    }

    /// Trains to the last round, until `interrupted`, or until the swarm diverges, with checkpoints in `folder` if there is one.
    /// Returns why it ended, and the last evaluation.
    ///
    /// # Errors
    /// When the device fails, or something cannot be written.
    pub fn advance(
        &mut self,
        folder: Option<&RunFolder>,
        observer: &mut dyn TrainingObserver,
        interrupted: &AtomicBool,
    ) -> Result<(StoppedBecause, Evaluation), Error> {
        self.started = Instant::now();
        self.stepping = (self.started, self.round());
        let (training, epoch) = (&self.resolved.scenario.training, self.length.epoch);
        let mut evaluation = None;
        let mut stopped_because = loop {
            let round = self.round();
            let is_due = |epochs: u32| epochs > 0 && round.is_multiple_of(epochs * epoch);
            // A resumed run begins with the row of its checkpoint: it may have been lost with those after it.
            if is_due(training.evaluate_every) || round == self.rounds() {
                self.time_rounds()?;
                let now = self.evaluate()?;
                observer.evaluated(&now)?;
                self.stepping = (Instant::now(), round);
                evaluation = Some(now);
                let chance = self.prepared.chance_baseline();
                if !now.test.loss.is_finite() || now.twin.is_some_and(|twin| chance.is_diverged(&twin)) {
                    break StoppedBecause::Diverged;
                }
            }
            if is_due(training.checkpoint_every) && round > 0 {
                self.time_rounds()?;
                if !self.checkpoint(folder)? {
                    break StoppedBecause::Diverged;
                }
                self.stepping = (Instant::now(), round);
            }
            if round >= self.rounds() {
                break StoppedBecause::MaxRounds;
            }
            if interrupted.load(Ordering::Relaxed) {
                self.halt()?;
                break StoppedBecause::Interrupted;
            }
            if let Some(hosts) = self.swarm.hosts() {
                hosts.permit(self.next_stop())?;
            }
            self.step()?;
            let end = TrainingRound { round: self.round(), rounds: self.rounds(), links: &self.links };
            observer.round(end);
        };
        if stopped_because != StoppedBecause::Diverged && !self.checkpoint(folder)? {
            stopped_because = StoppedBecause::Diverged;
        }
        let evaluation = match evaluation.filter(|evaluation| evaluation.round == self.round()) {
            Some(evaluation) => evaluation,
            None => self.evaluate()?,
        };
        if stopped_because == StoppedBecause::MaxRounds
            && self.prepared.chance_baseline().is_diverged(&evaluation.test)
        {
            stopped_because = StoppedBecause::Diverged;
        }
        Ok((stopped_because, evaluation))
    }

    /// The memory that the run took on its device, where that is known.
    pub fn memory_use(&self) -> Option<MemoryUse> {
        self.swarm.device().memory_use()
    }

    /// Times the rounds until now, once the device has done them.
    fn time_rounds(&mut self) -> Result<(), Error> {
        let (since, before) = self.stepping;
        let rounds = self.round() - before;
        if rounds > 0 {
            self.swarm.device().wait()?;
            self.round_seconds = Some(since.elapsed().as_secs_f64() / f64::from(rounds));
        }
        Ok(())
    }

    /// The next round in which the state of all agents is looked at.
    fn next_stop(&self) -> u32 {
        let training = &self.resolved.scenario.training;
        let dues = [training.evaluate_every, training.checkpoint_every].map(|epochs| match epochs {
            0 => self.rounds(),
            epochs => (self.round() + 1).next_multiple_of(epochs * self.length.epoch),
        });
        dues.into_iter().fold(self.rounds(), u32::min)
    }

    /// Stops the hosts that compute the agents, and catches up with them.
    fn halt(&mut self) -> Result<(), Error> {
        let Some(hosts) = self.swarm.hosts() else { return Ok(()) };
        let stopped = hosts.halt()?;
        while self.round() < stopped {
            self.step()?;
        }
        Ok(())
    }

    fn step(&mut self) -> Result<(), Error> {
        let round = self.round() + 1;
        let heard = self.links.round(round);
        if let Some(hosts) = self.swarm.hosts() {
            hosts.wait_for(round)?;
            self.swarm.set_rounds(round);
            return Ok(());
        }
        for &agent in heard.forgetting() {
            self.swarm.forget(agent, &self.prepared.start, &self.prepared.shards()[agent].train)?;
        }
        let draw = self.batches.draw(round).only(|agent| heard.is_awake(agent));
        Ok(self.swarm.round(&heard, &draw)?)
    }

    /// Keeps the present state where all decisions are finite, and returns whether they are.
    fn checkpoint(&mut self, folder: Option<&RunFolder>) -> Result<bool, Error> {
        let Some(folder) = folder.filter(|_| self.checkpointed != Some(self.round())) else {
            return Ok(true);
        };
        let is_kept =
            checkpoint::save(folder, self.resolved, self.prepared.digest(), &self.swarm, self.seconds())?;
        if is_kept {
            self.checkpointed = Some(self.round());
        }
        Ok(is_kept)
    }

    fn seconds(&self) -> f64 {
        self.seconds_before + self.started.elapsed().as_secs_f64()
    }

    fn evaluate(&self) -> Result<Evaluation, Error> {
        let swarm = &self.swarm;
        let (mean, consensus_error) = swarm.mean()?;
        let weights = self.weights()?;
        let weights = Some(&weights[..]).filter(|weights| !weights.is_empty());
        let strength = swarm
            .strengths()?
            .map(|all| all.iter().map(|&word| f64::from(word)).sum::<f64>() / all.len() as f64);
        let frames = match self.links.air().map(Air::counters) {
            Some(counters) => counters.into(),
            None => {
                let agents = self.resolved.scenario.swarm.agents as u64;
                FrameCounts { sent: u64::from(swarm.rounds()) * agents, ..Default::default() }
            }
        };
        let score = |model: &[f32]| swarm.evaluate(model, &self.prepared.test_rows(), TEST_BATCH);
        Ok(Evaluation {
            round: swarm.rounds(),
            epoch: f64::from(swarm.rounds()) / f64::from(self.length.epoch),
            test: score(&mean)?,
            twin: swarm.mean_twin()?.map(|twin| score(&twin)).transpose()?,
            consensus_error,
            cleaning: weights.map(|weights| CleaningScore::of(weights, FOUND_BELOW)),
            strength,
            sent_bytes: frames.sent * swarm.frame_words(self.prepared.parameters()) as u64 * 4,
            frames,
            seconds: self.seconds(),
            round_seconds: self.round_seconds,
            memory: swarm.device().memory_use(),
            weights: weights.map(WeightHistogram::of),
        })
    }

    /// The weight of every training sample; nothing where samples have no ψ.
    fn weights(&self) -> Result<Vec<SampleWeight>, Error> {
        let Some(logits) = self.swarm.logits()? else { return Ok(Vec::new()) };
        let logits = &logits;
        let weights = (0..).zip(self.prepared.shards()).flat_map(|(agent, shard)| {
            let weight = move |(&sample, &given_label): (&u32, &u8)| SampleWeight {
                sample,
                agent,
                given_label,
                true_label: self.prepared.true_label(sample),
                weight: logits[sample as usize].sigmoid(),
            };
            shard.train.iter().zip(&shard.labels).map(weight)
        });
        Ok(weights.collect())
    }
}
