//! A batched swarm of softmax regressions against agents made of `fabswarm_shared`'s functions.

use fabswarm_shared::fab::{self, Order, Steps};
use fabswarm_shared::linear::axpy;
use fabswarm_shared::problem::{AnyProblem, NoiseKey, Penalty, PenaltyForm, Problem};

use super::samples::{
    AGENTS, CLASSES, ConformanceData, INPUTS, MODEL, TRAINING, VALIDATION, heard_in, to_shared,
};
use super::{Check, distance, wide};
use crate::device::{Device, Result};
use crate::fab::{Exchange, Fab, FabConfig, UpperLevel};
use crate::mixing::MixingMatrix;

const ROUNDS: u32 = 60;
const LAMBDA: f64 = 4.0;
const STEPS: Steps<f64> = Steps { x: 0.05, y: 0.015, z: 0.015, momentum: 0.0 };

/// One way to run a swarm.
#[derive(Clone, Copy)]
struct Variant {
    task: UpperLevel,
    momentum: f64,
    order: Order,
    form: PenaltyForm,
}

/// Runs hyper-cleaning and hyper-parameter tuning both ways over a time-varying directed graph.
pub fn follows_shared<D: Device>(device: impl Fn() -> Result<D>, tolerance: f64) -> Result<Vec<Check>> {
    let tasks = [
        ("hyper-cleaning", UpperLevel::Cleaning { regularisation: 0.05 }),
        ("hyper-parameter tuning", UpperLevel::Tuning { start: 0.1 }),
    ];
    let (combine, adapt) = (Order::CombineFirst, Order::AdaptFirst);
    let (one_sided, symmetric) = (PenaltyForm::OneSided, PenaltyForm::Symmetric);
    let ways = [
        ("", 0.0, combine, one_sided),
        (" with momentum", 0.6, combine, one_sided),
        (" that adapts first", 0.0, adapt, one_sided),
        (" with a symmetric penalty", 0.0, combine, symmetric),
        (" with all of these", 0.6, adapt, symmetric),
    ];
    let mut checks = Vec::new();
    for (name, task) in tasks {
        for (way, momentum, order, form) in ways {
            checks.push(Check {
                what: format!("{name}{way} follows the shared agent"),
                error: compare(device()?, Variant { task, momentum, order, form })?,
                tolerance,
            });
        }
    }
    Ok(checks)
}

/// Largest relative distance of x, y and z of all agents after [`ROUNDS`] rounds.
fn compare<D: Device>(device: D, variant: Variant) -> Result<f64> {
    let Variant { task, momentum, order, form } = variant;
    let data = ConformanceData::<f64>::new();
    let exchange = |round: u32| MixingMatrix::uniform(&heard_in(round));
    let reference = reference(&data, variant, &exchange);

    let layout = MODEL.program(1).layout;
    let start = data.start_on::<D>(&layout);
    let config = FabConfig {
        penalty: LAMBDA,
        steps: [STEPS.x, STEPS.y, STEPS.z],
        momentum,
        order,
        form,
        ..FabConfig::new(AGENTS, task, VALIDATION, TRAINING)
    };
    let on_device = data.on_device(&device)?;
    let mut swarm = Fab::new(device, &MODEL, config, on_device, &start)?;
    let draw = data.draw();
    swarm.begin(&draw)?;
    for round in 1..=ROUNDS {
        swarm.round(&Exchange::uniform(&heard_in(round)), &draw)?;
    }
    let mut worst: f64 = 0.0;
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
fn reference(
    data: &ConformanceData<f64>,
    variant: Variant,
    exchange: &impl Fn(u32) -> (MixingMatrix, MixingMatrix),
) -> Vec<Vec<f64>> {
    let Variant { task, momentum, order, form } = variant;
    let problems: Vec<AnyProblem<'_, f64>> = (0..AGENTS).map(|agent| data.problem(agent, task)).collect();
    let shape = problems[0].shape();
    let words = shape.words();
    let start: Vec<f64> = match task {
        UpperLevel::Tuning { start } => [&[start][..], &data.start, &data.start].concat(),
        _ => [&vec![0.0; shape.x][..], &data.start, &data.start].concat(),
    };
    let mut scratch = vec![0.0; problems[0].scratch_words()];
    let penalty = Penalty { lambda: LAMBDA, normalise: false, form: PenaltyForm::OneSided };
    let mut gradient = |agent: usize, round: u32, v: &[f64]| {
        let (problem, moment) = (&problems[agent], NoiseKey { agent: agent as u32, round });
        let mut d = vec![0.0; words];
        problem.penalty_gradient(&penalty, moment, v, &mut d, &mut scratch);
        if form == PenaltyForm::Symmetric {
            // z minimises g − f/λ, and x follows half of the whole difference.
            let (x, _, z) = shape.split(v);
            let (mut fx, mut fz) = (vec![0.0; shape.x], vec![0.0; shape.y]);
            problem.upper_gradient(x, z, &mut fx, &mut fz, &mut scratch);
            let (dx, _, dz) = shape.split_mut(&mut d);
            dx.iter_mut().zip(&fx).for_each(|(d, f)| *d = 0.5 * (*d + f));
            axpy(-1.0, &fz, dz);
        }
        d
    };
    let mut v: Vec<Vec<f64>> = vec![start; AGENTS];
    let mut d: Vec<Vec<f64>> = (0..AGENTS).map(|agent| gradient(agent, 0, &v[agent])).collect();
    let mut t = d.clone();
    let mut m = vec![vec![0.0; words]; AGENTS];
    let mut steps = vec![0.0; words];
    STEPS.pack(&shape, &mut steps);
    for round in 1..=ROUNDS {
        let (pull, push) = exchange(round);
        let mix = |mixing: &MixingMatrix, all: &[Vec<f64>], agent: usize| {
            let mut next = vec![0.0; words];
            mixing.row(agent).for_each(|(sender, weight)| axpy(weight, &all[sender], &mut next));
            if shape.x_is_local {
                next[..shape.x].copy_from_slice(&all[agent][..shape.x]);
            }
            next
        };
        let mut descend = |agent: usize, v: &mut [f64]| match momentum {
            0.0 => fab::descend(&steps, &t[agent], v),
            _ => fab::descend_with_momentum(momentum, &steps, &t[agent], &mut m[agent], v),
        };
        if order == Order::AdaptFirst {
            v.iter_mut().enumerate().for_each(|(agent, v)| descend(agent, v));
        }
        let mut next: Vec<Vec<f64>> = (0..AGENTS).map(|agent| mix(&pull, &v, agent)).collect();
        if order == Order::CombineFirst {
            next.iter_mut().enumerate().for_each(|(agent, v)| descend(agent, v));
        }
        let mut pushed: Vec<Vec<f64>> = (0..AGENTS).map(|agent| mix(&push, &t, agent)).collect();
        for agent in 0..AGENTS {
            problems[agent].project(&mut next[agent][..shape.x]);
            let newest = gradient(agent, round, &next[agent]);
            fab::track(&newest, &mut d[agent], &mut pushed[agent]);
        }
        (v, t) = (next, pushed);
    }
    if shape.x_is_local {
        for ((v, t), m) in v.iter_mut().zip(&t).zip(&m) {
            for ((x, &t), &m) in v.iter_mut().zip(t).zip(m).take(shape.x) {
                *x = fab::descended(*x, STEPS.x, fab::accumulated(momentum, m, t));
            }
        }
    }
    v
}
