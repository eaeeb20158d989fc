//! A batched swarm of softmax regressions against agents made of `fabswarm_shared`'s functions.

use fabswarm_shared::fab::{self, Order, Steps};
use fabswarm_shared::linear::axpy;
use fabswarm_shared::problem::{AnyProblem, NoiseKey, Penalty, PenaltyForm, Problem};

use super::samples::{AGENTS, ConformanceData, MODEL, TRAINING, VALIDATION, heard_in};
use super::{Check, distance};
use crate::device::{Device, Result};
use crate::fab::{Exchange, Fab, FabConfig, UpperLevel};
use crate::mixing::MixingMatrix;

const ROUNDS: u32 = 60;
const LAMBDA: f64 = 4.0;
const STEPS: Steps<f64> = Steps { x: 0.05, y: 0.015, z: 0.015, momentum: 0.0 };

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
            let config = FabConfig {
                penalty: LAMBDA,
                steps: [STEPS.x, STEPS.y, STEPS.z],
                momentum,
                order,
                form,
                ..FabConfig::new(AGENTS, task, VALIDATION, TRAINING)
            };
            let what = format!("{name}{way} follows the shared agent");
            checks.push(Check { what, error: compare(device()?, config)?, tolerance });
        }
    }
    Ok(checks)
}

/// Largest relative distance of x, y and z of all agents after [`ROUNDS`] rounds.
fn compare<D: Device>(device: D, config: FabConfig) -> Result<f64> {
    let data = ConformanceData::<f64>::new();
    let reference = reference(&data, &config);
    let on_device = data.on_device(&device)?;
    let mut swarm = Fab::new(device, &MODEL, config, on_device, &data.start_on::<D>())?;
    let draw = data.draw();
    swarm.begin(&draw)?;
    for round in 1..=ROUNDS {
        swarm.round(&Exchange::uniform(&heard_in(round)), &draw)?;
    }
    let mut worst: f64 = 0.0;
    for (agent, expected) in reference.iter().enumerate() {
        let mut expected = expected.iter().copied();
        for found in data.decisions(&swarm, agent)? {
            let part: Vec<f64> = expected.by_ref().take(found.len()).collect();
            worst = worst.max(distance(found, part));
        }
    }
    Ok(worst)
}

/// Final packed decisions of every agent, by the shared functions; a local x as it is after its next step, which the batched
/// engine has taken already.
fn reference(data: &ConformanceData<f64>, config: &FabConfig) -> Vec<Vec<f64>> {
    let &FabConfig { task, momentum, order, form, .. } = config;
    let problems: Vec<AnyProblem<'_, f64>> = (0..AGENTS).map(|agent| data.problem(agent, task)).collect();
    let shape = problems[0].shape();
    let words = shape.words();
    let start: Vec<f64> = match task {
        UpperLevel::Tuning { start } => [&[start][..], &data.start, &data.start].concat(),
        _ => [&vec![0.0; shape.x][..], &data.start, &data.start].concat(),
    };
    let mut scratch = vec![0.0; problems[0].scratch_words()];
    let penalty = Penalty { lambda: LAMBDA, normalise: false, form };
    let mut gradient = |agent: usize, round: u32, v: &[f64]| {
        let mut d = vec![0.0; words];
        let moment = NoiseKey { agent: agent as u32, round };
        problems[agent].penalty_gradient(&penalty, moment, v, &mut d, &mut scratch);
        d
    };
    let mut v: Vec<Vec<f64>> = vec![start; AGENTS];
    let mut d: Vec<Vec<f64>> = (0..AGENTS).map(|agent| gradient(agent, 0, &v[agent])).collect();
    let mut t = d.clone();
    let mut m = vec![vec![0.0; words]; AGENTS];
    let mut steps = vec![0.0; words];
    STEPS.pack(&shape, &mut steps);
    for round in 1..=ROUNDS {
        let (pull, push) = MixingMatrix::uniform(&heard_in(round));
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
