//! A few samples per agent, as the shared problems and as a device read them.

use std::ops::Range;

use fabswarm_shared::graph::{Graph, Topology};
use fabswarm_shared::problem::{AnyProblem, Classes, HyperCleaning, HyperTuning, Samples};
use fabswarm_shared::scalar::Scalar;

use super::{narrow, wide};
use crate::device::{Device, DeviceDataset, Result};
use crate::fab::{Fab, RoundBatch, UpperLevel};
use crate::models::Model;
use crate::synthetic;
use crate::training::links;

pub(super) const AGENTS: usize = 5;
const INPUTS: usize = 4;
const CLASSES: usize = 3;
pub(super) const TRAINING: usize = 8;
pub(super) const VALIDATION: usize = 6;

/// Random samples. A constant feature is the shared model's bias.
pub(super) struct ConformanceData<S> {
    /// `[agents, training then validation, inputs + 1]`.
    features: Vec<S>,
    labels: Vec<u8>,
    /// The start of the lower level.
    pub(super) start: Vec<S>,
    start_batched: Vec<f64>,
}

impl<S: Scalar> ConformanceData<S> {
    pub(super) fn new() -> Self {
        let samples = AGENTS * (TRAINING + VALIDATION);
        let mut features = synthetic::words(11, samples * (INPUTS + 1));
        features.iter_mut().skip(INPUTS).step_by(INPUTS + 1).for_each(|bias| *bias = 1.0);
        let start_batched = synthetic::words(12, (INPUTS + 1) * CLASSES);
        ConformanceData {
            features: features.into_iter().map(S::from_f64).collect(),
            labels: (0..samples).map(|i| (i * i % CLASSES) as u8).collect(),
            start: to_shared(&start_batched).into_iter().map(S::from_f64).collect(),
            start_batched,
        }
    }

    fn training_rows(&self, agent: usize) -> Range<u32> {
        let first = (agent * (TRAINING + VALIDATION)) as u32;
        first..first + TRAINING as u32
    }

    fn samples(&self, rows: Range<u32>) -> Samples<'_, S> {
        let rows = rows.start as usize..rows.end as usize;
        Samples {
            features: &self.features[rows.start * (INPUTS + 1)..rows.end * (INPUTS + 1)],
            labels: &self.labels[rows],
        }
    }

    pub(super) fn problem(&self, agent: usize, task: UpperLevel) -> AnyProblem<'_, S> {
        let rows = self.training_rows(agent);
        let (train, validation) =
            (self.samples(rows.clone()), self.samples(rows.end..rows.end + VALIDATION as u32));
        let classes = Classes(CLASSES);
        match task {
            UpperLevel::Cleaning { regularisation } => {
                let regularisation = S::from_f64(regularisation);
                AnyProblem::HyperCleaning(HyperCleaning { train, validation, classes, regularisation })
            }
            UpperLevel::Tuning { .. } | UpperLevel::SingleLevel { .. } => {
                AnyProblem::HyperTuning(HyperTuning { train, validation, classes })
            }
        }
    }

    /// Everything in every round.
    pub(super) fn draw(&self) -> RoundBatch {
        let agents = || (0..AGENTS).map(|agent| self.training_rows(agent));
        RoundBatch {
            training: agents().map(Iterator::collect).collect(),
            validation: agents().map(|rows| (rows.end..rows.end + VALIDATION as u32).collect()).collect(),
        }
    }

    /// The start of the lower level, as the batched engine packs it.
    pub(super) fn start_on<D: Device>(&self) -> Vec<D::Scalar> {
        let layout = MODEL.program(1).layout;
        let mut packed = narrow::<D>(vec![0.0; layout.stride()]);
        let mut words = narrow::<D>(self.start_batched.iter().copied()).into_iter();
        for tensor in layout.tensors() {
            packed[tensor.offset..][..tensor.words()]
                .fill_with(|| words.next().expect("a start for each word"));
        }
        packed
    }

    /// x, y and z of an agent, as the shared problem has them.
    pub(super) fn decisions<D: Device>(&self, swarm: &Fab<D>, agent: usize) -> Result<[Vec<f64>; 3]> {
        let (logits, strengths) = (swarm.logits()?.map(wide), swarm.strengths()?.map(wide));
        let x = match (logits, strengths) {
            (Some(logits), _) => self.training_rows(agent).map(|row| logits[row as usize]).collect(),
            (_, Some(strengths)) => vec![strengths[agent]],
            _ => Vec::new(),
        };
        let layout = MODEL.program(1).layout;
        let shared = |packed: Vec<D::Scalar>| {
            let words = layout.tensors().iter().flat_map(|tensor| &packed[tensor.offset..][..tensor.words()]);
            to_shared(&words.map(|word| word.to_f64()).collect::<Vec<f64>>())
        };
        Ok([x, shared(swarm.y(agent)?), shared(swarm.z(agent)?)])
    }

    pub(super) fn on_device<D: Device>(&self, device: &D) -> Result<DeviceDataset<D>> {
        let samples = self.labels.len();
        let plain = self.features.chunks(INPUTS + 1).flat_map(|row| &row[..INPUTS]);
        let plain = narrow::<D>(plain.map(|word| word.to_f64()));
        let numbers: Vec<u32> = self.labels.iter().map(|&label| u32::from(label)).collect();
        Ok(DeviceDataset {
            width: INPUTS,
            samples,
            features: Some(device.reals_of(&plain)?),
            tokens: None,
            lengths: None,
            labels: device.indices_of(&numbers)?,
        })
    }
}

/// The model that is compared with the shared one.
pub(super) const MODEL: Model = Model::softmax(INPUTS, CLASSES);

/// Whom each agent hears in a round of a time-varying directed graph.
pub(super) fn heard_in(round: u32) -> Vec<Vec<usize>> {
    let topology = Topology::Paper { edge_probability: 0.3, phase_rounds: 4 };
    links::heard_in(&Graph { topology, agents: AGENTS, seed: 3 }, round)
}

/// From weights `[inputs, classes]` and biases to the shared model's `[classes, inputs + 1]`.
fn to_shared(batched: &[f64]) -> Vec<f64> {
    (0..CLASSES).flat_map(|class| (0..=INPUTS).map(move |input| batched[input * CLASSES + class])).collect()
}
