//! Costs of a round, a gradient and a mixing step, on synthetic data. `benches/peers/torch_fab.py` does the same work in
//! PyTorch and puts the two side by side.

use std::time::Instant;

use fabswarm_shared::scalar::Scalar as _;

use crate::device::cuda::{Cuda, Reals};
use crate::device::{BatchSchedule, Device, Gradient, MemoryUse, Packed, Result, RoundMix};
use crate::fab::{Exchange, Fab, FabConfig, RoundBatch, UpperLevel, WeightExchange};
use crate::mixing::MixingMatrix;
use crate::models::Model;
use crate::plan::MemoryPlan;
use crate::synthetic;

/// Rounds before timing starts: lazy loading, recording, caches.
const WARM_UP: usize = 6;

/// One measured number.
#[derive(Clone, Debug, PartialEq)]
pub struct Measurement {
    /// The job that was timed.
    pub job: &'static str,
    /// Agents that it was timed with.
    pub agents: usize,
    /// Milliseconds of a repetition.
    pub milliseconds: f64,
    /// Matrix products only.
    pub tera_flops_per_second: f64,
    /// Memory taken, and what was planned.
    pub bytes: Option<(u64, u64)>,
}

impl std::fmt::Display for Measurement {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "job={} agents={} ms={:.4} tflops={:.3}",
            self.job, self.agents, self.milliseconds, self.tera_flops_per_second
        )?;
        if let Some((taken, planned)) = self.bytes {
            write!(f, " taken_mib={} planned_mib={}", taken >> 20, planned >> 20)?;
        }
        Ok(())
    }
}

/// The configuration of a benchmark round: hyper-cleaning with the paper's constants.
fn config(agents: usize, batch: usize) -> FabConfig {
    let task = UpperLevel::Cleaning { regularisation: 0.002 };
    FabConfig { steps: [10.0, 0.03, 0.03], ..FabConfig::new(agents, task, batch, batch) }
}

/// Each agent hears the one before and the one after.
fn ring(agents: usize) -> (MixingMatrix, MixingMatrix) {
    let heard: Vec<Vec<usize>> = (0..agents)
        .map(|agent| {
            let mut senders = vec![(agent + 1) % agents, (agent + agents - 1) % agents];
            senders.sort_unstable();
            senders.dedup();
            senders.retain(|&sender| sender != agent);
            senders
        })
        .collect();
    MixingMatrix::uniform(&heard)
}

/// Whole FAB rounds; `chooses` them new samples and weights each, or repeats the same.
pub fn round<D: Device>(
    device: D,
    model: &Model,
    agents: usize,
    batch: usize,
    rounds: usize,
    chooses: bool,
) -> Result<Measurement> {
    let config = config(agents, batch);
    let free = device.free_bytes();
    let samples = agents * 2 * batch;
    let plan = MemoryPlan::new(&device, model, &config, samples);
    let data = synthetic::dataset(&device, model, samples)?;
    let start: Vec<D::Scalar> = model.program(1).layout.start(1);
    let program = model.program(batch);
    let mut swarm = Fab::new(device, model, config, data, &start)?;
    let draw = RoundBatch {
        validation: (0..agents)
            .map(|agent| (0..batch).map(|i| (agent * 2 * batch + i) as u32).collect())
            .collect(),
        training: (0..agents)
            .map(|agent| (0..batch).map(|i| (agent * 2 * batch + batch + i) as u32).collect())
            .collect(),
    };
    let (pull, push) = ring(agents);
    let exchange = Exchange::Weights(WeightExchange { pull, push, factors: None });
    swarm.begin(&draw)?;
    let one = |swarm: &mut Fab<D>| if chooses { swarm.round(&exchange, &draw) } else { swarm.repeat() };
    swarm.round(&exchange, &draw)?;
    for _ in 0..WARM_UP {
        one(&mut swarm)?;
    }
    swarm.device().wait()?;
    let before = Instant::now();
    for _ in 0..rounds {
        one(&mut swarm)?;
    }
    swarm.device().wait()?;
    let milliseconds = before.elapsed().as_secs_f64() * 1e3 / rounds as f64;
    let taken = match swarm.device().memory_use() {
        Some(MemoryUse::OnDevice(bytes)) => Some(bytes),
        _ => free.zip(swarm.device().free_bytes()).map(|(before, after)| before.saturating_sub(after)),
    };
    Ok(Measurement {
        job: if chooses { "round" } else { "repeated-round" },
        agents,
        milliseconds,
        // y sees both batches, z one.
        tera_flops_per_second: 3.0 * agents as f64 * program.matrix_flops() / milliseconds / 1e9,
        bytes: taken.map(|taken| (taken, plan.total())),
    })
}

/// One forward and backward pass of all agents, for each of their `groups` of models: so many samples per model.
pub fn gradient<D: Device>(
    mut device: D,
    job: &'static str,
    model: &Model,
    agents: usize,
    groups: &[usize],
    repeats: usize,
) -> Result<Measurement> {
    let samples = groups.iter().copied().max().unwrap_or(1);
    let layout = model.program(1).layout;
    let packed = Packed::whole(groups.len(), agents, layout.stride());
    let data = synthetic::dataset(&device, model, agents * samples)?;
    let start: Vec<D::Scalar> = layout.start(1);
    let mut parameters = device.decisions(packed.words())?;
    for vector in 0..packed.groups * agents {
        device.write(&mut parameters, vector * packed.stride, &start)?;
    }
    let mut gradient = device.reals(packed.words())?;
    let programs: Vec<_> = groups.iter().map(|&samples| model.program(samples)).collect();
    let mut passes =
        programs.iter().map(|program| device.pass(program, agents)).collect::<Result<Vec<D::Pass>>>()?;
    let mut schedule = BatchSchedule {
        samples,
        upper: 0,
        rows: device.indices(agents * samples)?,
        weights: device.reals(agents * samples)?,
        dropout_key: device.indices(3)?,
    };
    device.write_indices(&mut schedule.rows, &(0..(agents * samples) as u32).collect::<Vec<_>>())?;
    let weights = vec![D::Scalar::from_f64(1.0 / samples as f64); agents * samples];
    device.write(&mut schedule.weights, 0, &weights)?;
    let mut one = |device: &mut D| {
        device.replay(0, |device| {
            for pass in &mut passes {
                device.load(pass, &data, &schedule, 1.0, None)?;
            }
            let mut passes: Vec<&mut D::Pass> = passes.iter_mut().collect();
            device.run(&mut passes, &parameters, Some(&mut gradient), packed, &schedule)
        })
    };
    for _ in 0..WARM_UP {
        one(&mut device)?;
    }
    device.wait()?;
    let before = Instant::now();
    for _ in 0..repeats {
        one(&mut device)?;
    }
    device.wait()?;
    let milliseconds = before.elapsed().as_secs_f64() * 1e3 / repeats as f64;
    let flops: f64 = programs.iter().map(|program| program.matrix_flops()).sum();
    let tera_flops_per_second = agents as f64 * flops / milliseconds / 1e9;
    Ok(Measurement { job, agents, milliseconds, tera_flops_per_second, bytes: None })
}

/// Gradients of y on both batches and of z on one: on two streams, as a round takes them, and as twice as many models in one
/// launch, where z multiplies as many empty rows as y has validation samples.
pub fn levels<D: Device>(
    device: impl Fn() -> Result<D>,
    model: &Model,
    agents: usize,
    batch: usize,
    repeats: usize,
) -> Result<[Measurement; 2]> {
    Ok([
        gradient(device()?, "two-streams", model, agents, &[2 * batch, batch], repeats)?,
        gradient(device()?, "one-launch", model, 2 * agents, &[2 * batch], repeats)?,
    ])
}

/// Bytes per second of ways to pass over memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bandwidths {
    /// A device copy.
    pub copy: f64,
    /// A pull.
    pub pull: f64,
    /// A push without a regulariser.
    pub push: f64,
    /// A push with a regulariser.
    pub push_with_regulariser: f64,
    /// Pull and push in one pass.
    pub round: f64,
}

/// Mixes `words` words per agent, counting each word read and each word written once.
pub fn bandwidths(device: &Cuda, agents: usize, words: usize) -> Result<Bandwidths> {
    const REPEATS: usize = 20;
    let packed = Packed::whole(1, agents, words.next_multiple_of(64));
    let (pull, push) = ring(agents);
    let (mut pull_weights, mut push_weights) =
        (device.mixing(agents, packed.own)?, device.mixing(agents, packed.own)?);
    device.write_mixing(&mut pull_weights, &pull)?;
    device.write_mixing(&mut push_weights, &push)?;
    let noise: Vec<f32> = synthetic::words(1, 1 << 16).into_iter().map(|word| word as f32).collect();
    let filled = || -> Result<Reals> {
        let mut reals = device.reals(packed.words())?;
        for offset in (0..packed.words()).step_by(noise.len()) {
            device.write(&mut reals, offset, &noise[..noise.len().min(packed.words() - offset)])?;
        }
        Ok(reals)
    };
    let (mut v, mut t, mut fresh, last, strengths) =
        (filled()?, filled()?, filled()?, filled()?, device.reals(agents)?);
    let rate = |streams: usize, work: &mut dyn FnMut() -> Result<()>| -> Result<f64> {
        work()?;
        let milliseconds = device.time(|| (0..REPEATS).try_for_each(|_| work()))? / REPEATS as f64;
        Ok((streams * packed.words() * 4) as f64 / milliseconds * 1e3)
    };
    Ok(Bandwidths {
        copy: rate(2, &mut || device.copy(&last, &mut fresh))?,
        pull: rate(3, &mut || device.pull(&mut v, packed, &pull_weights, Some((&t, [1e-3; 2]))))?,
        push: rate(4, &mut || {
            device.track(
                &mut t,
                Gradient { fresh: &mut fresh, last: &last, regulariser: None },
                packed,
                &push_weights,
            )
        })?,
        push_with_regulariser: rate(6, &mut || {
            let gradient = Gradient { fresh: &mut fresh, last: &last, regulariser: Some((&v, &strengths)) };
            device.track(&mut t, gradient, packed, &push_weights)
        })?,
        round: rate(5, &mut || {
            let (v, t, d, strengths) = (&mut v, &mut t, &last, &strengths);
            let (is_open, momentum, steps, adapts_first) = (true, None, [1e-3; 2], false);
            let state = RoundMix { v, t, d, strengths, is_open, momentum, steps, adapts_first };
            device.mix_round(state, packed, &pull_weights, &push_weights)
        })?,
    })
}
