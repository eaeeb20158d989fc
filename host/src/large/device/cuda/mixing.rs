//! Mixing weights on the GPU, and the kernels made for their number of agents.

use super::kernels::{Arg, Kernels, blocks};
use super::{Cuda, Memory};
use crate::large::device::{Gradient, Packed, Result};
use crate::large::mixing::Mixing as Weights;

/// Agents up to which mixing is a dense product.
const DENSE: usize = 64;

/// Shared memory of a multiprocessor.
const SHARED_BYTES: usize = 227 << 10;

/// Mixing weights: dense rows for few agents, compressed rows for many.
#[derive(Debug)]
pub struct Mixing {
    agents: usize,
    starts: Memory<u32>,
    senders: Memory<u32>,
    weights: Memory<f32>,
    kernels: Kernels,
}

impl Mixing {
    fn is_dense(&self) -> bool {
        self.agents <= DENSE
    }

    /// Columns of all agents a block of the sparse kernels takes: at least 128 bytes of a row, narrower reads cost more than
    /// a second block beside it gains, until even one block's do not fit shared memory.
    fn columns(agents: usize) -> usize {
        match agents {
            ..=96 => 128,
            97..=192 => 64,
            193..=1792 => 32,
            1793..=3584 => 16,
            _ => 8,
        }
    }

    /// Threads of a sparse block: all a multiprocessor can give one block where no second fits beside it.
    fn threads(agents: usize) -> usize {
        if 2 * Self::tile_bytes(agents) > SHARED_BYTES { 1024 } else { 512 }
    }

    fn tile_bytes(agents: usize) -> usize {
        agents * Self::columns(agents) * 4
    }
}

impl Mixing {
    pub(super) fn new(device: &Cuda, agents: usize) -> Result<Self> {
        let links = agents * agents;
        let is_dense = agents <= DENSE;
        Ok(Mixing {
            agents,
            starts: device.memory(agents + 1)?,
            senders: device.memory(if is_dense { 0 } else { links })?,
            weights: device.memory(links)?,
            kernels: Kernels::mixing(
                &device.context,
                agents,
                is_dense,
                Self::columns(agents),
                Self::threads(agents),
            )?,
        })
    }

    pub(super) fn write(&mut self, device: &Cuda, mixing: &Weights) -> Result<()> {
        if self.is_dense() {
            let mut dense = vec![0.0; self.agents * self.agents];
            for receiver in 0..self.agents {
                let row = &mut dense[receiver * self.agents..][..self.agents];
                mixing.row(receiver).for_each(|(sender, weight)| row[sender] = weight as f32);
            }
            return device.upload(&mut self.weights, 0, &dense);
        }
        device.upload(&mut self.starts, 0, mixing.starts())?;
        device.upload(&mut self.senders, 0, mixing.senders())?;
        let weights: Vec<f32> = mixing.weights().iter().map(|&weight| weight as f32).collect();
        device.upload(&mut self.weights, 0, &weights)
    }
}

/// Arguments for what a tracker follows.
pub(super) fn terms(gradient: &Gradient<'_, Cuda>) -> [Arg; 4] {
    let (v, strengths) =
        gradient.regulariser.map_or((0, 0), |(v, strengths)| (v.exact.pointer, strengths.exact.pointer));
    [
        Arg::At(gradient.fresh.exact.pointer),
        Arg::At(gradient.last.exact.pointer),
        Arg::At(v),
        Arg::At(strengths),
    ]
}

impl Mixing {
    /// Launches the dense or the sparse form of a kernel.
    pub(super) fn launch(
        &self,
        device: &Cuda,
        [dense, sparse]: [&'static str; 2],
        head: &[Arg],
        tail: &[Arg],
        packed: Packed,
    ) -> Result<()> {
        let mut args = head.to_vec();
        if self.is_dense() {
            args.extend([Arg::At(self.weights.pointer), Arg::Long(packed.stride)]);
            args.extend_from_slice(tail);
            let lane = match self.agents {
                ..=16 => 4,
                17..=32 => 2,
                _ => 1,
            };
            let grid = [blocks(packed.stride, 256 * lane), packed.groups];
            return self.kernels.launch(device.main(), dense, grid, [256, 1], 0, &args);
        }
        let columns = Self::columns(self.agents);
        let links = [self.starts.pointer, self.senders.pointer, self.weights.pointer];
        args.extend(links.map(Arg::At));
        args.push(Arg::Long(packed.stride));
        args.extend_from_slice(tail);
        let grid = [blocks(packed.stride, columns), packed.groups];
        let (block, tile) = ([Self::threads(self.agents), 1], Self::tile_bytes(self.agents));
        self.kernels.launch(device.main(), sparse, grid, block, tile, &args)
    }
}
