//! A batched swarm of softmax regressions against agents made of `fabswarm_shared`'s functions.

use fabswarm_shared::fab::{self, Steps};
use fabswarm_shared::graph::{Graph, Schedule as _, Topology};
use fabswarm_shared::problem::{
    AnyProblem, Classes, HyperCleaning, HyperTuning, Moment, Penalty, Problem, Samples,
};

use super::{Check, distance};
use crate::large::device::{Dataset, Device, Result};
use crate::large::fab::{Config, Draw, Exchange, Fab, Task};
use crate::large::mixing::Mixing;
use crate::large::models::Model;
use crate::large::real::Real;
use crate::large::synthetic;

const AGENTS: usize = 5;
const INPUTS: usize = 4;
const CLASSES: usize = 3;
const TRAINING: usize = 8;
const VALIDATION: usize = 6;
const ROUNDS: u32 = 60;
const PENALTY: Penalty<f64> = Penalty { lambda: 2.0, normalise: false };
const STEPS: Steps<f64> = Steps { x: 0.05, y: 0.03, z: 0.03 };

/// Runs hyper-cleaning and hyper-parameter tuning both ways over a time-varying directed graph.
///
/// # Errors
/// When the device fails.
pub fn follows_shared<D: Device>(device: impl Fn() -> Result<D>, tolerance: f64) -> Result<Vec<Check>> {
    let tasks = [
        ("hyper-cleaning", Task::Cleaning { regularisation: 0.05 }),
        ("hyper-parameter tuning", Task::Tuning { start: 0.1 }),
    ];
    tasks
        .into_iter()
        .map(|(name, task)| {
            Ok(Check {
                what: format!("{name} follows the shared agent"),
                error: compare(device()?, task)?,
                tolerance,
            })
        })
        .collect()
}

/// Largest relative distance of x, y and z of all agents after [`ROUNDS`] rounds.
fn compare<D: Device>(device: D, task: Task) -> Result<f64> {
    let data = Data::new();
    let graph = Graph {
        topology: Topology::Paper { edge_probability: 0.3, phase_rounds: 4 },
        agents: AGENTS,
        seed: 3,
    };
    let exchange = |round: u32| -> (Mixing, Mixing) {
        let heard: Vec<Vec<usize>> = (0..AGENTS)
            .map(|agent| {
                let mut senders = Vec::new();
                graph.heard_by(agent, round, |sender| senders.push(sender));
                senders
            })
            .collect();
        Mixing::uniform(&heard)
    };
    let reference = reference(&data, task, &exchange);

    let model = Model::SoftmaxRegression { inputs: INPUTS, classes: CLASSES };
    let layout = model.program(1).layout;
    let start =
        layout.spread(&data.start_batched.iter().map(|&word| D::Scalar::from_f64(word)).collect::<Vec<_>>());
    let config = Config {
        agents: AGENTS,
        task,
        penalty: PENALTY.lambda,
        normalise: PENALTY.normalise,
        steps: [STEPS.x, STEPS.y, STEPS.z],
        validation_batch: VALIDATION,
        training_batch: TRAINING,
        seed: 0,
        ledger: None,
    };
    let on_device = data.on_device(&device)?;
    let mut swarm = Fab::new(device, &model, config, on_device, &start)?;
    let draw = data.draw();
    swarm.begin(&draw)?;
    for round in 1..=ROUNDS {
        let (pull, push) = exchange(round);
        swarm.round(&Exchange::Weights { pull: &pull, push: &push }, &draw)?;
    }
    let mut worst: f64 = 0.0;
    let wide = |words: Vec<D::Scalar>| words.into_iter().map(|word| word.to_f64()).collect::<Vec<_>>();
    let (logits, strengths) = (swarm.logits()?.map(wide), swarm.strengths()?.map(wide));
    for (agent, expected) in reference.iter().enumerate() {
        let words = INPUTS * CLASSES + CLASSES;
        let (x, y, z) = (
            &expected[..expected.len() - 2 * words],
            &expected[expected.len() - 2 * words..][..words],
            &expected[expected.len() - words..],
        );
        let batched = |packed: Vec<D::Scalar>| to_shared(&wide(layout.compact(&packed)));
        worst = worst.max(distance(batched(swarm.y(agent)?), y.iter().copied()));
        worst = worst.max(distance(batched(swarm.z(agent)?), z.iter().copied()));
        let found = match (&logits, &strengths) {
            (Some(logits), _) => data.training_rows(agent).map(|row| logits[row as usize]).collect(),
            (_, Some(strengths)) => vec![strengths[agent]],
            _ => Vec::new(),
        };
        worst = worst.max(distance(found, x.iter().copied()));
    }
    Ok(worst)
}

/// Final packed decisions of every agent, by the shared functions; a local x as it is after its next step, which the batched
/// engine has taken already.
fn reference(data: &Data, task: Task, exchange: &impl Fn(u32) -> (Mixing, Mixing)) -> Vec<Vec<f64>> {
    let problems: Vec<AnyProblem<'_, f64>> = (0..AGENTS).map(|agent| data.problem(agent, task)).collect();
    let shape = problems[0].shape();
    let words = shape.words();
    let start: Vec<f64> = match task {
        Task::Tuning { start } => [&[start][..], &data.start_shared, &data.start_shared].concat(),
        _ => [&vec![0.0; shape.x][..], &data.start_shared, &data.start_shared].concat(),
    };
    let mut scratch = vec![0.0; problems[0].scratch_words()];
    let mut gradient = |agent: usize, round: u32, v: &[f64]| {
        let mut d = vec![0.0; words];
        problems[agent].penalty_gradient(
            &PENALTY,
            Moment { agent: agent as u32, round },
            v,
            &mut d,
            &mut scratch,
        );
        d
    };
    let mut v: Vec<Vec<f64>> = vec![start; AGENTS];
    let mut d: Vec<Vec<f64>> = (0..AGENTS).map(|agent| gradient(agent, 0, &v[agent])).collect();
    let mut t = d.clone();
    let mut steps = vec![0.0; words];
    STEPS.pack(&shape, &mut steps);
    for round in 1..=ROUNDS {
        let (pull, push) = exchange(round);
        let mix = |mixing: &Mixing, all: &[Vec<f64>], agent: usize| {
            let own =
                mixing.row(agent).find(|&(sender, _)| sender == agent).map_or(0.0, |(_, weight)| weight);
            let others = mixing
                .row(agent)
                .filter(|&(sender, _)| sender != agent)
                .map(|(sender, weight)| (weight, &all[sender][..]));
            let mut next = vec![0.0; words];
            fab::mix::<1, _>(own, &all[agent], others, &mut next);
            if shape.x_is_local {
                next[..shape.x].copy_from_slice(&all[agent][..shape.x]);
            }
            next
        };
        let mut next: Vec<Vec<f64>> = (0..AGENTS).map(|agent| mix(&pull, &v, agent)).collect();
        let mut pushed: Vec<Vec<f64>> = (0..AGENTS).map(|agent| mix(&push, &t, agent)).collect();
        for agent in 0..AGENTS {
            fab::descend(&steps, &t[agent], &mut next[agent]);
            problems[agent].project(&mut next[agent][..shape.x]);
            let newest = gradient(agent, round, &next[agent]);
            fab::track(&newest, &mut d[agent], &mut pushed[agent]);
        }
        (v, t) = (next, pushed);
    }
    if shape.x_is_local {
        for (v, t) in v.iter_mut().zip(&t) {
            v.iter_mut().zip(t).take(shape.x).for_each(|(x, t)| *x -= STEPS.x * t);
        }
    }
    v
}

/// A few random samples an agent. A constant feature is the shared model's bias.
struct Data {
    /// `[agents, training then validation, inputs + 1]`.
    features: Vec<f64>,
    labels: Vec<u8>,
    start_shared: Vec<f64>,
    start_batched: Vec<f64>,
}

impl Data {
    fn new() -> Self {
        let samples = AGENTS * (TRAINING + VALIDATION);
        let mut features = synthetic::words(11, samples * (INPUTS + 1));
        features.iter_mut().skip(INPUTS).step_by(INPUTS + 1).for_each(|bias| *bias = 1.0);
        let start_batched = synthetic::words(12, (INPUTS + 1) * CLASSES);
        Data {
            features,
            labels: (0..samples).map(|i| (i * i % CLASSES) as u8).collect(),
            start_shared: to_shared(&start_batched),
            start_batched,
        }
    }

    fn training_rows(&self, agent: usize) -> std::ops::Range<u32> {
        let first = (agent * (TRAINING + VALIDATION)) as u32;
        first..first + TRAINING as u32
    }

    fn samples(&self, rows: std::ops::Range<u32>) -> Samples<'_, f64> {
        let rows = rows.start as usize..rows.end as usize;
        Samples {
            features: &self.features[rows.start * (INPUTS + 1)..rows.end * (INPUTS + 1)],
            labels: &self.labels[rows],
        }
    }

    fn problem(&self, agent: usize, task: Task) -> AnyProblem<'_, f64> {
        let rows = self.training_rows(agent);
        let (train, validation) =
            (self.samples(rows.clone()), self.samples(rows.end..rows.end + VALIDATION as u32));
        let classes = Classes(CLASSES);
        match task {
            Task::Cleaning { regularisation } => {
                AnyProblem::HyperCleaning(HyperCleaning { train, validation, classes, regularisation })
            }
            Task::Tuning { .. } | Task::SingleLevel { .. } => {
                AnyProblem::HyperTuning(HyperTuning { train, validation, classes })
            }
        }
    }

    fn draw(&self) -> Draw {
        let agents = || (0..AGENTS).map(|agent| self.training_rows(agent));
        Draw {
            training: agents().map(Iterator::collect).collect(),
            validation: agents().map(|rows| (rows.end..rows.end + VALIDATION as u32).collect()).collect(),
        }
    }

    fn on_device<D: Device>(&self, device: &D) -> Result<Dataset<D>> {
        let samples = self.labels.len();
        let plain: Vec<D::Scalar> = self
            .features
            .chunks(INPUTS + 1)
            .flat_map(|row| &row[..INPUTS])
            .map(|&word| D::Scalar::from_f64(word))
            .collect();
        let mut features = device.reals(plain.len())?;
        device.write(&mut features, 0, &plain)?;
        let mut labels = device.indices(samples)?;
        device.write_indices(
            &mut labels,
            &self.labels.iter().map(|&label| u32::from(label)).collect::<Vec<_>>(),
        )?;
        Ok(Dataset { width: INPUTS, samples, features: Some(features), tokens: None, lengths: None, labels })
    }
}

/// From weights `[inputs, classes]` and biases to the shared model's `[classes, inputs + 1]`.
fn to_shared(batched: &[f64]) -> Vec<f64> {
    (0..CLASSES).flat_map(|class| (0..=INPUTS).map(move |input| batched[input * CLASSES + class])).collect()
}
