//! Methods with push-sum weights against their authors' equations, in terms of mass and weights.

use super::samples::{AGENTS, ConformanceData, MODEL, TRAINING, heard_in};
use super::{Check, distance, narrow, wide};
use crate::device::{Device, Result};
use crate::fab::{
    Exchange, Fab, FabConfig, PushSumRule, PushSumWeights, RoundBatch, StatePart, UpperLevel, VectorPart,
};
use crate::mixing::MixingMatrix;

const ROUNDS: u32 = 40;
const STEP: f64 = 0.05;

/// Runs every rule over a time-varying directed graph.
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

type Rows = Vec<Vec<f64>>;

/// The largest relative distance of all estimates in any round.
fn compare<D: Device>(device: &impl Fn() -> Result<D>, rule: PushSumRule) -> Result<f64> {
    let data = ConformanceData::<f64>::new();
    let start = data.start_on::<D>();
    let task = UpperLevel::SingleLevel { regularisation: 0.05 };
    let swarm = |push_sum| {
        let config =
            FabConfig { steps: [0.0, STEP, 0.0], push_sum, ..FabConfig::new(AGENTS, task, 0, TRAINING) };
        let device = device()?;
        let data = data.on_device(&device)?;
        Fab::new(device, &MODEL, config, data, &start)
    };
    let mut probe = swarm(None)?;
    let mut gradient = |at: &Rows, round: u32| gradient_at(&mut probe, at, &draw(&data, round));
    let mut swarm = swarm(Some(rule))?;
    swarm.begin(&draw(&data, 0))?;
    let mut weights = PushSumWeights::new(rule, AGENTS);
    let mut reference = MassAndWeights::new(rule, read(&swarm, VectorPart::Decisions)?, &mut gradient)?;
    let mut worst = 0.0_f64;
    for round in 1..=ROUNDS {
        let (_, push) = MixingMatrix::uniform(&heard_in(round));
        reference.step(&push, round, &mut gradient)?;
        swarm.round(&Exchange::Weights(weights.step(push)), &draw(&data, round))?;
        for (found, expected) in read(&swarm, VectorPart::Decisions)?.into_iter().zip(&reference.z) {
            worst = worst.max(distance(found, expected.iter().copied()));
        }
    }
    Ok(worst)
}

/// Batches that differ from round to round, as gradients of the last estimate are taken on those of this one.
fn draw(data: &ConformanceData<f64>, round: u32) -> RoundBatch {
    let mut draw = data.draw();
    for samples in &mut draw.training {
        samples.rotate_left(round as usize % TRAINING);
        samples.truncate(TRAINING / 2);
    }
    draw
}

/// A part of the state of all agents.
fn read<D: Device>(swarm: &Fab<D>, part: VectorPart) -> Result<Rows> {
    let stride = MODEL.program(1).layout.stride();
    let row = |agent: usize| Ok(wide(swarm.read_part(StatePart::Lower(part), agent * stride, stride)?));
    (0..AGENTS).map(row).collect()
}

/// The gradient at any estimate, by a swarm that takes no step.
fn gradient_at<D: Device>(probe: &mut Fab<D>, at: &Rows, draw: &RoundBatch) -> Result<Rows> {
    for (agent, words) in at.iter().enumerate() {
        let words = narrow::<D>(words.iter().copied());
        probe.write_part(StatePart::Lower(VectorPart::Decisions), agent * words.len(), &words)?;
    }
    probe.begin(draw)?;
    read(probe, VectorPart::Gradients)
}

/// All agents as their authors describe them: mass u, weights w, estimates z = u/w, gradients and their trackers.
struct MassAndWeights {
    rule: PushSumRule,
    mass: Rows,
    w: Rows,
    z: Rows,
    d: Rows,
    t: Rows,
}

impl MassAndWeights {
    fn new(
        rule: PushSumRule,
        z: Rows,
        gradient: &mut impl FnMut(&Rows, u32) -> Result<Rows>,
    ) -> Result<Self> {
        let d = gradient(&z, 0)?;
        Ok(MassAndWeights { rule, mass: z.clone(), w: vec![vec![1.0]; AGENTS], z, t: d.clone(), d })
    }

    fn step(
        &mut self,
        push: &MixingMatrix,
        round: u32,
        gradient: &mut impl FnMut(&Rows, u32) -> Result<Rows>,
    ) -> Result<()> {
        let MassAndWeights { rule, mass, w, z, d, t } = self;
        *mass = match rule {
            PushSumRule::SubgradientPush => times(push, mass),
            PushSumRule::PushSgd => times(push, &plus(mass, -STEP, d)),
            PushSumRule::PushDiging | PushSumRule::PushAsgd { .. } => times(push, &plus(mass, -STEP, t)),
            PushSumRule::PushSaga => plus(&times(push, mass), -STEP, t),
        };
        *w = times(push, w);
        let ratio = |(mass, w): (&Vec<f64>, &Vec<f64>)| mass.iter().map(|mass| mass / w[0]).collect();
        let before = std::mem::replace(z, mass.iter().zip(&*w).map(ratio).collect());
        let mut fresh = gradient(z, round)?;
        if let PushSumRule::PushAsgd { momentum } = rule {
            let kept = plus(d, -1.0, &gradient(&before, round)?);
            fresh = plus(&fresh, 1.0 - *momentum, &kept);
        }
        *t = plus(&plus(&times(push, t), 1.0, &fresh), -1.0, d);
        if *rule == PushSumRule::SubgradientPush {
            *mass = plus(mass, -STEP / f64::from(round).sqrt(), &fresh);
        }
        *d = fresh;
        Ok(())
    }
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
