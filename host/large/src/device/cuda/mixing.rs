//! Mixing weights on the GPU, and the kernels made for their number of agents.

use std::sync::Arc;

use cudarc::driver::CudaStream;

use super::kernels::{Arg, Kernels, blocks};
use super::{Cuda, DeviceBuffer};
use crate::device::{Block, Gradient, Packed, Result};
use crate::mixing::MixingMatrix;

/// Agents up to which a thread holds the words of all of them in registers, and mixing is a dense product.
const DENSE: usize = 16;
/// Threads of a block of the dense kernels, and columns that each takes.
const DENSE_THREADS: usize = 128;
const LANE: usize = 4;

/// Mixing weights: dense rows for few agents, compressed rows for many.
#[derive(Debug)]
pub struct CudaMixing {
    agents: usize,
    starts: DeviceBuffer<u32>,
    senders: DeviceBuffer<u32>,
    weights: DeviceBuffer<f32>,
    /// Where there are many.
    tile: Option<SparseTile>,
    kernels: Kernels,
}

/// The share of a block of the sparse kernels: columns of all agents, and threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SparseTile {
    columns: usize,
    threads: usize,
    bytes: usize,
}

impl SparseTile {
    /// The tile of `agents` where a block has at most `shared_bytes` of shared memory: the widest of which two fit, of 128 columns at
    /// most. With less than 128 bytes of a row, narrower reads cost more than a second block gains, and one block has all threads.
    fn new(agents: usize, shared_bytes: usize) -> Self {
        let mut columns = 128;
        while columns > 32 && 2 * agents * columns * 4 > shared_bytes {
            columns /= 2;
        }
        // Eight columns are two lanes of a thread; with fewer a swarm is too large for this kernel, and its launch says so.
        while columns > 8 && agents * columns * 4 > shared_bytes {
            columns /= 2;
        }
        let bytes = agents * columns * 4;
        SparseTile { columns, threads: if 2 * bytes > shared_bytes { 1024 } else { 512 }, bytes }
    }
}

impl CudaMixing {
    pub(super) fn new(device: &Cuda, agents: usize, own: Block) -> Result<Self> {
        let links = agents * agents;
        let tile = if agents > DENSE { Some(SparseTile::new(agents, device.shared_bytes()?)) } else { None };
        let (columns, threads) = tile.map_or((0, DENSE_THREADS), |tile| (tile.columns, tile.threads));
        Ok(CudaMixing {
            agents,
            starts: device.memory(agents + 1)?,
            senders: device.memory(if tile.is_none() { 0 } else { links })?,
            weights: device.memory(links)?,
            kernels: Kernels::mixing(&device.context, agents, own, columns, threads)?,
            tile,
        })
    }

    pub(super) fn write(&mut self, device: &Cuda, mixing: &MixingMatrix) -> Result<()> {
        if self.tile.is_none() {
            let mut dense = vec![0.0; self.agents * self.agents];
            for receiver in 0..self.agents {
                let row = &mut dense[receiver * self.agents..][..self.agents];
                mixing.row(receiver).for_each(|(sender, weight)| row[sender] = weight as f32);
            }
            return device.upload(&mut self.weights, 0, &dense);
        }
        let (mut starts, mut senders, mut weights) = (vec![0], Vec::new(), Vec::new());
        for row in &mixing.rows {
            senders.extend(row.iter().map(|&(sender, _)| sender as u32));
            weights.extend(row.iter().map(|&(_, weight)| weight as f32));
            starts.push(senders.len() as u32);
        }
        device.upload(&mut self.starts, 0, &starts)?;
        device.upload(&mut self.senders, 0, &senders)?;
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

impl CudaMixing {
    fn args(&self) -> Vec<Arg> {
        let links = [self.starts.pointer, self.senders.pointer, self.weights.pointer].map(Arg::At);
        links[if self.tile.is_none() { 2 } else { 0 }..].to_vec()
    }

    /// Launches a kernel that mixes by these weights, and by those of `push` where there are such.
    ///
    /// # Safety
    /// As for [`Kernels::launch`], where the weights and the stride come after `head` and before `tail`.
    pub(super) unsafe fn launch(
        &self,
        stream: &Arc<CudaStream>,
        name: &'static str,
        push: Option<&CudaMixing>,
        head: &[Arg],
        tail: &[Arg],
        packed: Packed,
    ) -> Result<()> {
        let tiles = if push.is_some() { 2 } else { 1 };
        let push = push.map_or_else(Vec::new, CudaMixing::args);
        let args = [head, &self.args(), &push, &[Arg::Long(packed.stride)], tail].concat();
        let (columns, threads, bytes) = match self.tile {
            // Two tiles of half the columns take as much memory as one.
            Some(SparseTile { columns, threads, bytes }) => (columns / tiles, threads, bytes),
            None => (DENSE_THREADS * LANE, DENSE_THREADS, 0),
        };
        let grid = [blocks(packed.stride, columns), packed.groups];
        // SAFETY: the caller promises what `Kernels::launch` asks for; senders are below the number of agents the kernel was
        // compiled for, and both weights are of that number.
        unsafe { self.kernels.launch(stream, name, grid, [threads, 1], bytes, &args) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tile_fits_the_gpu_at_hand() {
        const H200: usize = 227 << 10;
        const SMALLER: usize = 99 << 10;
        let of = |agents, shared| {
            let SparseTile { columns, threads, .. } = SparseTile::new(agents, shared);
            (columns, threads)
        };
        assert_eq!(
            [100, 300, 1000, 2000].map(|agents| of(agents, H200)),
            [(128, 512), (64, 512), (32, 1024), (16, 1024)]
        );
        assert_eq!(
            [100, 300, 1000, 2000].map(|agents| of(agents, SMALLER)),
            [(64, 512), (32, 512), (16, 1024), (8, 1024)]
        );
        for agents in DENSE + 1..3000 {
            assert!(SparseTile::new(agents, SMALLER).bytes <= SMALLER);
        }
    }
}
