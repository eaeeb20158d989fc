//! Costs of a round, a gradient and a mixing step, on synthetic data. `benches/peers/torch_fab.py` does the same work in
//! PyTorch and puts the two side by side.

use std::time::Instant;

use fabswarm_shared::scalar::Scalar as _;

use crate::device::cuda::{Cuda, Reals};
use crate::device::{BatchSchedule, Device, Gradient, MemoryUse, Packed, Result, RoundMix};
use crate::fab::{Exchange, Fab, FabConfig, RoundBatch, UpperLevel};
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

/// Each agent hears the one before and the one after.
fn ring(agents: usize) -> Vec<Vec<usize>> {
    synthetic::heard(agents, |agent| [agent + 1, agent + agents - 1])
}

/// Milliseconds that `one` takes, on average of so many times after a warm-up, until the device is done.
fn timed<T>(
    subject: &mut T,
    times: usize,
    mut one: impl FnMut(&mut T) -> Result<()>,
    wait: impl Fn(&T) -> Result<()>,
) -> Result<f64> {
    (0..WARM_UP).try_for_each(|_| one(subject))?;
    wait(subject)?;
    let before = Instant::now();
    (0..times).try_for_each(|_| one(subject))?;
    wait(subject)?;
    Ok(before.elapsed().as_secs_f64() * 1e3 / times as f64)
}

/// Whole FAB rounds of hyper-cleaning with the paper's constants: each has new samples and weights where it `chooses` them, or those
/// of the first.
pub fn round<D: Device>(
    device: D,
    model: &Model,
    agents: usize,
    batch: usize,
    rounds: usize,
    chooses: bool,
) -> Result<Measurement> {
    let task = UpperLevel::Cleaning { regularisation: 0.002 };
    let config = FabConfig { steps: [10.0, 0.03, 0.03], ..FabConfig::new(agents, task, batch, batch) };
    let free = device.free_bytes();
    let samples = agents * 2 * batch;
    let plan = MemoryPlan::new(&device, model, &config, samples);
    let data = synthetic::dataset(&device, model, samples)?;
    let start: Vec<D::Scalar> = model.program(1).layout.start(1);
    let program = model.program(batch);
    let mut swarm = Fab::new(device, model, config, data, &start)?;
    let samples_from = |first: usize| (first as u32..(first + batch) as u32).collect::<Vec<u32>>();
    let draw = RoundBatch {
        validation: (0..agents).map(|agent| samples_from(2 * agent * batch)).collect(),
        training: (0..agents).map(|agent| samples_from((2 * agent + 1) * batch)).collect(),
    };
    let exchange = Exchange::uniform(&ring(agents));
    swarm.begin(&draw)?;
    let one = |swarm: &mut Fab<D>| if chooses { swarm.round(&exchange, &draw) } else { swarm.repeat() };
    swarm.round(&exchange, &draw)?;
    let milliseconds = timed(&mut swarm, rounds, one, |swarm| swarm.device().wait())?;
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
    let schedule = BatchSchedule {
        samples,
        upper: 0,
        rows: device.indices_of(&(0..(agents * samples) as u32).collect::<Vec<_>>())?,
        weights: device.reals_of(&vec![D::Scalar::from_f64(1.0 / samples as f64); agents * samples])?,
        dropout_key: device.indices(3)?,
    };
    let one = |device: &mut D| {
        device.replay(0, |device| {
            for pass in &mut passes {
                device.load(pass, &data, &schedule, 1.0, None)?;
            }
            let mut passes: Vec<&mut D::Pass> = passes.iter_mut().collect();
            device.run(&mut passes, &parameters, Some(&mut gradient), packed, &schedule)
        })
    };
    let milliseconds = timed(&mut device, repeats, one, D::wait)?;
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

/// Bytes per second of a device copy, and of each way to mix `words` words per agent, by name: each word read and each word written
/// counts once.
pub fn bandwidths(device: &Cuda, agents: usize, words: usize) -> Result<(f64, [(&'static str, f64); 4])> {
    const REPEATS: usize = 20;
    let packed = Packed::whole(1, agents, words.next_multiple_of(64));
    let (pull, push) = MixingMatrix::uniform(&ring(agents));
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
    let copy = rate(2, &mut || device.copy(&last, &mut fresh))?;
    let pull = rate(3, &mut || device.pull(&mut v, packed, &pull_weights, Some((&t, [1e-3; 2]))))?;
    let push = rate(4, &mut || {
        let gradient = Gradient { fresh: &mut fresh, last: &last, regulariser: None };
        device.track(&mut t, gradient, packed, &push_weights)
    })?;
    let regularised = rate(6, &mut || {
        let gradient = Gradient { fresh: &mut fresh, last: &last, regulariser: Some((&v, &strengths)) };
        device.track(&mut t, gradient, packed, &push_weights)
    })?;
    let round = rate(5, &mut || {
        let (v, t, d, strengths) = (&mut v, &mut t, &last, &strengths);
        let (is_open, momentum, steps, adapts_first) = (true, None, [1e-3; 2], false);
        let state = RoundMix { v, t, d, strengths, is_open, momentum, steps, adapts_first };
        device.mix_round(state, packed, &pull_weights, &push_weights)
    })?;
    let ways = [("pull", pull), ("push", push), ("push with regulariser", regularised), ("round", round)];
    Ok((copy, ways))
}
