//! Methods with push-sum weights against their authors' equations, in terms of mass and weights.

use fabswarm_shared::graph::{Graph, Schedule as _, Topology};
use fabswarm_shared::scalar::Scalar as _;

use super::samples::{AGENTS, CLASSES, ConformanceData, INPUTS, TRAINING};
use super::{Check, distance};
use crate::device::{Device, Result};
use crate::fab::{Exchange, Fab, FabConfig, PushSumRule, PushSumWeights, UpperLevel};
use crate::mixing::MixingMatrix;
use crate::models::Model;

const ROUNDS: u32 = 40;
const STEP: f64 = 0.05;

/// Runs every rule over a time-varying directed graph.
///
/// # Errors
/// When the device fails.
pub fn follows_push_sum<D: Device>(device: impl Fn() -> Result<D>, tolerance: f64) -> Result<Vec<Check>> {
    let rules = [
        ("subgradient-push", PushSumRule::SubgradientPush),
        ("Push-SGD", PushSumRule::PushSgd),
        ("Push-DIGing", PushSumRule::PushDiging),
        ("Push-SAGA", PushSumRule::PushSaga),
        ("Push-ASGD", PushSumRule::PushAsgd { momentum: 0.3 }),
    ];
    let checks = rules.into_iter().map(|(name, rule)| {
        Ok(Check {
            what: format!("{name} follows mass and weights"),
            error: compare(&device, rule)?,
            tolerance,
        })
    });
    checks.collect()
}

/// All agents' numbers.
type Rows = Vec<Vec<f64>>;

/// The largest relative distance of all estimates in any round.
fn compare<D: Device>(device: &impl Fn() -> Result<D>, rule: PushSumRule) -> Result<f64> {
    let graph = Graph {
        topology: Topology::Paper { edge_probability: 0.3, phase_rounds: 4 },
        agents: AGENTS,
        seed: 3,
    };
    let data = ConformanceData::<f64>::new();
    let model = Model::SoftmaxRegression { inputs: INPUTS, classes: CLASSES };
    let layout = model.program(1).layout;
    let start = data.start_on::<D>(&layout);
    let config = FabConfig {
        agents: AGENTS,
        task: UpperLevel::SingleLevel { regularisation: 0.05 },
        penalty: 1.0,
        normalise: false,
        steps: [0.0, STEP, 0.0],
        momentum: 0.0,
        validation_batch: 0,
        training_batch: TRAINING,
        seed: 0,
        ledger: None,
        push_sum: Some(rule),
    };
    // Batches that differ from round to round, as gradients of the last estimate are taken on those of this one.
    let draw = |round: u32| {
        let mut draw = data.draw();
        for samples in &mut draw.training {
            samples.rotate_left(round as usize % TRAINING);
            samples.truncate(TRAINING / 2);
        }
        draw
    };
    let stride = layout.stride();
    let rows = |swarm: &Fab<D>, name: &str| -> Result<Rows> {
        let wide = |agent: usize| -> Result<Vec<f64>> {
            let words = swarm.read_part(name, agent * stride, stride)?;
            Ok(words.into_iter().map(|word| word.to_f64()).collect())
        };
        (0..AGENTS).map(wide).collect()
    };
    let swarm = |push_sum| {
        let device = device()?;
        let data = data.on_device(&device)?;
        Fab::new(device, &model, FabConfig { push_sum, ..config.clone() }, data, &start)
    };
    // Takes no step, and tells the gradient at any estimate.
    let mut probe = swarm(None)?;
    let mut gradient = |at: &Rows, round: u32| -> Result<Rows> {
        for (agent, words) in at.iter().enumerate() {
            let words: Vec<D::Scalar> = words.iter().map(|&word| D::Scalar::from_f64(word)).collect();
            probe.write_part("v", agent * stride, &words)?;
        }
        probe.begin(&draw(round))?;
        rows(&probe, "d")
    };
    let mut swarm = swarm(config.push_sum)?;
    swarm.begin(&draw(0))?;
    let mut weights = PushSumWeights::new(rule, AGENTS);
    let mut z = rows(&swarm, "v")?;
    let (mut mass, mut w, mut d) = (z.clone(), vec![vec![1.0]; AGENTS], gradient(&z, 0)?);
    let (mut t, mut worst) = (d.clone(), 0.0_f64);
    for round in 1..=ROUNDS {
        let heard: Vec<Vec<usize>> = (0..AGENTS)
            .map(|agent| {
                let mut senders = Vec::new();
                graph.heard_by(agent, round, |sender| senders.push(sender));
                senders
            })
            .collect();
        let (_, push) = MixingMatrix::uniform(&heard);
        mass = match rule {
            PushSumRule::SubgradientPush => times(&push, &mass),
            PushSumRule::PushSgd => times(&push, &plus(&mass, -STEP, &d)),
            PushSumRule::PushDiging | PushSumRule::PushAsgd { .. } => times(&push, &plus(&mass, -STEP, &t)),
            PushSumRule::PushSaga => plus(&times(&push, &mass), -STEP, &t),
        };
        w = times(&push, &w);
        let before = z;
        z = mass.iter().zip(&w).map(|(mass, w)| mass.iter().map(|mass| mass / w[0]).collect()).collect();
        let mut fresh = gradient(&z, round)?;
        if let PushSumRule::PushAsgd { momentum } = rule {
            let kept = plus(&d, -1.0, &gradient(&before, round)?);
            fresh = plus(&fresh, 1.0 - momentum, &kept);
        }
        t = plus(&plus(&times(&push, &t), 1.0, &fresh), -1.0, &d);
        if rule == PushSumRule::SubgradientPush {
            mass = plus(&mass, -STEP / f64::from(round).sqrt(), &fresh);
        }
        d = fresh;
        swarm.round(&Exchange::PushSum(&weights.step(push)), &draw(round))?;
        for (found, expected) in rows(&swarm, "v")?.into_iter().zip(&z) {
            worst = worst.max(distance(found, expected.iter().copied()));
        }
    }
    Ok(worst)
}

/// `B v`.
fn times(push: &MixingMatrix, v: &Rows) -> Rows {
    let row = |receiver| {
        let nothing = vec![0.0; v[0].len()];
        push.row(receiver).fold(nothing, |sum, (sender, weight)| add(&sum, weight, &v[sender]))
    };
    (0..v.len()).map(row).collect()
}

/// `v + c d`.
fn plus(v: &Rows, c: f64, d: &Rows) -> Rows {
    v.iter().zip(d).map(|(v, d)| add(v, c, d)).collect()
}

fn add(v: &[f64], c: f64, d: &[f64]) -> Vec<f64> {
    v.iter().zip(d).map(|(v, d)| v + c * d).collect()
}
