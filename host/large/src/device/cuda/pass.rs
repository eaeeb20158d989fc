//! A program in the GPU's memory: batch, losses and intermediate buffers of all agents.

use cudarc::driver::CudaEvent;

use super::kernels::Arg;
use super::{Cuda, DeviceBuffer, Reals, during};
use crate::device::{BatchSchedule, DeviceDataset, Result};
use crate::program::arena::Arena;
use crate::program::{BufferPrecision, Gemm, Input, MemorySpace, ModelProgram, Op, View};

/// A program made ready for all agents of one group.
#[derive(Debug)]
pub struct CudaPass {
    pub(super) program: ModelProgram,
    pub(super) agents: usize,
    pub(super) losses: DeviceBuffer<f32>,
    pub(super) hits: DeviceBuffer<f32>,
    /// When the losses of the last run are there, which is before its gradient is.
    pub(super) has_losses: Option<CudaEvent>,
    pub(super) labels: DeviceBuffer<u32>,
    pub(super) lengths: DeviceBuffer<u32>,
    pub(super) tokens: DeviceBuffer<u32>,
    pub(super) weights: DeviceBuffer<f32>,
    /// Sums of row splits before they are added up.
    pub(super) partial: DeviceBuffer<f32>,
    arena: Arena,
    /// In activation precision, by byte.
    activations: DeviceBuffer<u8>,
    features: DeviceBuffer<u8>,
    exact: DeviceBuffer<f32>,
    /// Addresses for products that are a grid of matrices, by position of the operation; forward first.
    pub(super) grids: Vec<Option<Grid>>,
}

/// Where a view lies: its address for the first agent, and the distance from one agent to the next.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spot {
    pub address: u64,
    pub model: usize,
    pub is_narrow: bool,
}

/// Addresses of all matrices of a grid, for every agent: A, then B, then C.
#[derive(Debug)]
pub(super) struct Grid {
    pub(super) addresses: DeviceBuffer<u64>,
    pub(super) count: usize,
}

impl Grid {
    /// How many addresses a grid of `op` has, where it needs one.
    fn addresses_of(op: &Op, agents: usize) -> usize {
        match op {
            Op::Gemm(gemm) if gemm.count() > 1 => 3 * agents * gemm.count(),
            _ => 0,
        }
    }

    /// Addresses of `gemm`, whose operands are all buffers of `pass`.
    fn new(device: &Cuda, pass: &CudaPass, gemm: &Gemm) -> Result<Self> {
        let count = pass.agents * gemm.count();
        let mut addresses = Vec::with_capacity(3 * count);
        for operand in [gemm.a, gemm.b, gemm.c] {
            let spot = pass.spot(device, operand.view);
            let bytes = if spot.is_narrow { 2 } else { 4 };
            for agent in 0..pass.agents {
                for outer in 0..gemm.outer {
                    for inner in 0..gemm.inner {
                        let word = agent * spot.model + outer * operand.outer + inner * operand.inner;
                        addresses.push(spot.address + (word * bytes) as u64);
                    }
                }
            }
        }
        let mut memory = device.memory(addresses.len())?;
        device.upload(&mut memory, 0, &addresses)?;
        Ok(Grid { addresses: memory, count })
    }
}

impl CudaPass {
    /// Allocates a pass, with `partial_words` words for sums of row splits.
    pub(super) fn new(
        device: &Cuda,
        program: &ModelProgram,
        agents: usize,
        partial_words: usize,
    ) -> Result<Self> {
        let arena = Arena::new(program);
        let samples = agents * program.samples;
        let bytes = device.activation_bytes();
        let (features, tokens) = match program.input {
            Input::Features { width } => (samples * width, 0),
            Input::Tokens { sequence } => (0, samples * sequence),
        };
        let mut pass = CudaPass {
            losses: device.memory(samples)?,
            hits: device.memory(samples)?,
            has_losses: None,
            labels: device.memory(samples)?,
            lengths: device.memory(samples)?,
            tokens: device.memory(tokens)?,
            weights: device.memory(samples)?,
            partial: device.memory(partial_words)?,
            activations: device.memory(arena.activation_words() * agents * bytes)?,
            features: device.memory(features * bytes)?,
            exact: device.memory(arena.exact_words() * agents)?,
            grids: Vec::new(),
            program: program.clone(),
            arena,
            agents,
        };
        for op in ops(program) {
            let grid = match op {
                Op::Gemm(gemm) if gemm.count() > 1 => Some(Grid::new(device, &pass, gemm)?),
                _ => None,
            };
            pass.grids.push(grid);
        }
        if let Input::Features { .. } = program.input {
            // Pixels attend to all others; the lengths of texts come with each batch.
            device.upload(&mut pass.lengths, 0, &vec![u32::MAX; samples])?;
        }
        Ok(pass)
    }

    /// Bytes that [`CudaPass::new`] takes.
    pub(super) fn bytes(device: &Cuda, program: &ModelProgram, agents: usize, partial_words: usize) -> u64 {
        let arena = Arena::new(program);
        let input = program.samples * program.input.width();
        let (features, tokens) = match program.input {
            Input::Features { .. } => (input, 0),
            Input::Tokens { .. } => (0, input),
        };
        let narrow = arena.activation_words() + features;
        // Losses, hits, labels, lengths and weights are words of every sample.
        let wide = arena.exact_words() + tokens + program.samples * 5;
        let addresses = ops(program).map(|op| Grid::addresses_of(op, agents)).sum::<usize>();
        let words = agents * wide + partial_words;
        (agents * narrow * device.activation_bytes() + words * 4 + addresses * 8) as u64
    }

    /// Where a buffer or the batch's features lie.
    ///
    /// # Panics
    /// When `view` is of parameters or gradient, which belong to no pass.
    pub(super) fn spot(&self, device: &Cuda, view: View) -> Spot {
        let bytes = device.activation_bytes();
        let is_narrow = bytes == 2;
        match view.place {
            MemorySpace::Features => Spot {
                address: self.features.at(view.offset * bytes),
                model: self.program.samples * self.program.input.width(),
                is_narrow,
            },
            MemorySpace::Buffer(id) => {
                let buffer = self.program.buffers[id.0];
                let first = self.arena.offset(id) * self.agents + view.offset;
                match buffer.precision {
                    BufferPrecision::Activation => {
                        Spot { address: self.activations.at(first * bytes), model: buffer.words, is_narrow }
                    }
                    BufferPrecision::Exact => {
                        Spot { address: self.exact.at(first), model: buffer.words, is_narrow: false }
                    }
                }
            }
            MemorySpace::Parameters | MemorySpace::Gradient => panic!("{view:?} belongs to no pass"),
        }
    }

    /// Fills the batch; see [`crate::device::Device::load`]. [`crate::device::Device::run`] waits for it.
    pub(super) fn load(
        &mut self,
        device: &Cuda,
        data: &DeviceDataset<Cuda>,
        schedule: &BatchSchedule<Cuda>,
        upper_sign: f64,
        logits: Option<&Reals>,
    ) -> Result<()> {
        let logits = logits.map_or(0, |logits| logits.exact.pointer);
        let taken = [schedule.rows.pointer, schedule.weights.exact.pointer, data.labels.pointer, logits];
        let mut args: Vec<Arg> = taken.into_iter().map(Arg::At).collect();
        args.extend(
            [schedule.samples, schedule.samples - self.program.samples, schedule.upper].map(Arg::Int),
        );
        args.push(Arg::Float(upper_sign));
        args.extend([self.labels.pointer, self.weights.pointer].map(Arg::At));
        let name = match (&data.features, &data.tokens, &data.lengths) {
            (Some(features), ..) => {
                args.extend([features.exact.pointer, self.features.pointer].map(Arg::At));
                "load_features"
            }
            (None, Some(tokens), Some(lengths)) => {
                args.extend(
                    [tokens.pointer, lengths.pointer, self.tokens.pointer, self.lengths.pointer].map(Arg::At),
                );
                "load_tokens"
            }
            _ => panic!("a dataset has features, or tokens and lengths"),
        };
        args.push(Arg::Int(data.width));
        during("forking a stream", device.samples.join(device.main()?))?;
        let grid = [self.program.samples, self.agents];
        // SAFETY: the batch was allocated for this program, and rows of the schedule are samples of the dataset.
        unsafe { device.kernels.launch(&device.samples, name, grid, [128, 1], 0, &args) }
    }
}

/// The operations of a program, forward first.
pub(super) fn ops(program: &ModelProgram) -> impl Iterator<Item = &Op> {
    program.forward.iter().chain(&program.backward)
}
