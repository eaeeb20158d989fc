//! Mixing weights on the GPU, and the kernels made for their number of agents.

use super::kernels::{Arg, Kernels, blocks};
use super::{Cuda, DeviceBuffer};
use crate::device::{Block, Gradient, Packed, Result};
use crate::mixing::MixingMatrix;

/// Agents up to which mixing is a dense product.
const DENSE: usize = 64;

/// Agents up to which a thread holds a round's decisions, trackers and gradients of all of them in registers.
pub(super) const AT_ONCE: usize = 16;

/// Mixing weights: dense rows for few agents, compressed rows for many.
#[derive(Debug)]
pub struct CudaMixing {
    agents: usize,
    starts: DeviceBuffer<u32>,
    senders: DeviceBuffer<u32>,
    weights: DeviceBuffer<f32>,
    tile: SparseTile,
    kernels: Kernels,
}

impl CudaMixing {
    fn is_dense(&self) -> bool {
        self.agents <= DENSE
    }
}

/// What a block of the sparse kernels takes: so many columns of all agents, with so many threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SparseTile {
    columns: usize,
    threads: usize,
    bytes: usize,
}

impl SparseTile {
    /// The tile of `agents` where a block has at most `shared_bytes` of shared memory: at least 128 bytes of a row while they fit,
    /// since narrower reads cost more than a second block beside it gains; and all threads there are where no second block fits.
    fn new(agents: usize, shared_bytes: usize) -> Self {
        let mut columns = match agents {
            ..=96 => 128,
            97..=192 => 64,
            _ => 32,
        };
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
        let is_dense = agents <= DENSE;
        let tile = SparseTile::new(agents, device.shared_bytes()?);
        Ok(CudaMixing {
            agents,
            starts: device.memory(agents + 1)?,
            senders: device.memory(if is_dense { 0 } else { links })?,
            weights: device.memory(links)?,
            kernels: Kernels::mixing(&device.context, agents, own, is_dense, tile.columns, tile.threads)?,
            tile,
        })
    }

    pub(super) fn write(&mut self, device: &Cuda, mixing: &MixingMatrix) -> Result<()> {
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

impl CudaMixing {
    /// Launches a kernel that pulls by these weights and pushes by others, for at most [`AT_ONCE`] agents.
    ///
    /// # Safety
    /// As for [`Kernels::launch`], where the weights of both matrices and the stride come after `head` and before `tail`.
    pub(super) unsafe fn launch_at_once(
        &self,
        device: &Cuda,
        name: &'static str,
        push: &CudaMixing,
        head: &[Arg],
        tail: &[Arg],
        packed: Packed,
    ) -> Result<()> {
        const THREADS: usize = 128;
        let weights =
            [Arg::At(self.weights.pointer), Arg::At(push.weights.pointer), Arg::Long(packed.stride)];
        let args = [head, &weights, tail].concat();
        let grid = [blocks(packed.stride, THREADS * 4), packed.groups];
        // SAFETY: the caller promises what `Kernels::launch` asks for; both weights are dense for so many agents.
        unsafe { self.kernels.launch(device.main(), name, grid, [THREADS, 1], 0, &args) }
    }

    /// Launches the dense or the sparse form of a kernel.
    ///
    /// # Safety
    /// As for [`Kernels::launch`], where the weights of this matrix and the stride come after `head` and before `tail`.
    pub(super) unsafe fn launch(
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
            // SAFETY: the caller promises what `Kernels::launch` asks for; the weights are dense for so many agents.
            return unsafe { self.kernels.launch(device.main(), dense, grid, [256, 1], 0, &args) };
        }
        let SparseTile { columns, threads, bytes } = self.tile;
        let links = [self.starts.pointer, self.senders.pointer, self.weights.pointer];
        args.extend(links.map(Arg::At));
        args.push(Arg::Long(packed.stride));
        args.extend_from_slice(tail);
        let grid = [blocks(packed.stride, columns), packed.groups];
        // SAFETY: as above; senders are below the number of agents the kernel was compiled for.
        unsafe { self.kernels.launch(device.main(), sparse, grid, [threads, 1], bytes, &args) }
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
            [(64, 512), (32, 512), (32, 1024), (16, 1024)]
        );
        assert_eq!(
            [100, 300, 1000, 2000].map(|agents| of(agents, SMALLER)),
            [(64, 512), (32, 512), (16, 1024), (8, 1024)]
        );
        for agents in 65..3000 {
            assert!(SparseTile::new(agents, SMALLER).bytes <= SMALLER);
        }
    }
}
