//! Mixing weights on the GPU, and the kernels made for their number of agents.

use super::kernels::{Arg, Kernels, blocks};
use super::{Cuda, DeviceBuffer};
use crate::device::{Block, Gradient, Packed, Result, SumPlace};
use crate::mixing::MixingMatrix;

/// Agents up to which mixing is a dense product.
const DENSE: usize = 64;

/// Mixing weights: dense rows for few agents, compressed rows for many.
#[derive(Debug)]
pub struct CudaMixing {
    agents: usize,
    starts: DeviceBuffer<u32>,
    senders: DeviceBuffer<u32>,
    weights: DeviceBuffer<f32>,
    /// The [`SumPlace`] of every weight; nothing where nothing is added up first.
    places: Option<DeviceBuffer<u32>>,
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
    pub(super) fn new(device: &Cuda, agents: usize, own: Block, has_sums: bool) -> Result<Self> {
        let links = agents * agents;
        let is_dense = agents <= DENSE;
        let tile = SparseTile::new(agents, device.shared_bytes()?);
        Ok(CudaMixing {
            agents,
            starts: device.memory(agents + 1)?,
            senders: device.memory(if is_dense { 0 } else { links })?,
            weights: device.memory(links)?,
            places: if has_sums { Some(device.memory(links)?) } else { None },
            kernels: Kernels::mixing(
                &device.context,
                agents,
                own,
                has_sums,
                is_dense,
                tile.columns,
                tile.threads,
            )?,
            tile,
        })
    }

    pub(super) fn write(&mut self, device: &Cuda, mixing: &MixingMatrix) -> Result<()> {
        let links: Vec<Vec<WeightedLink>> =
            (0..self.agents).map(|receiver| weighted_links(mixing, receiver)).collect();
        let (weights, places) = if self.is_dense() {
            let mut dense = (vec![0.0; self.agents * self.agents], vec![0; self.agents * self.agents]);
            for (receiver, row) in links.iter().enumerate() {
                for link in row {
                    let at = receiver * self.agents + link.sender;
                    (dense.0[at], dense.1[at]) = (link.weight, link.place as u32);
                }
            }
            dense
        } else {
            let ends = links.iter().scan(0, |end, row| {
                *end += row.len() as u32;
                Some(*end)
            });
            let starts: Vec<u32> = std::iter::once(0).chain(ends).collect();
            let senders: Vec<u32> = links.iter().flatten().map(|link| link.sender as u32).collect();
            device.upload(&mut self.starts, 0, &starts)?;
            device.upload(&mut self.senders, 0, &senders)?;
            links.iter().flatten().map(|link| (link.weight, link.place as u32)).unzip()
        };
        if let Some(to) = &mut self.places {
            device.upload(to, 0, &places)?;
        }
        device.upload(&mut self.weights, 0, &weights)
    }
}

/// What a receiver adds of one sender.
#[derive(Clone, Copy, Debug, PartialEq)]
struct WeightedLink {
    sender: usize,
    weight: f32,
    place: SumPlace,
}

/// The links of a receiver, in the order in which they are added: sums after all others.
fn weighted_links(mixing: &MixingMatrix, receiver: usize) -> Vec<WeightedLink> {
    let link = |(sender, weight): (usize, f64), place| WeightedLink { sender, weight: weight as f32, place };
    let mut links: Vec<WeightedLink> =
        mixing.row(receiver).map(|entry| link(entry, SumPlace::Alone)).collect();
    for sum in mixing.sums(receiver) {
        links.extend(sum.iter().map(|&entry| link(entry, SumPlace::Within)));
        if let Some(last) = links.last_mut().filter(|_| !sum.is_empty()) {
            last.place = SumPlace::Last;
        }
    }
    links
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
        let places = self.places.as_ref().map_or(0, |places| places.pointer);
        if self.is_dense() {
            args.extend([self.weights.pointer, places].map(Arg::At));
            args.push(Arg::Long(packed.stride));
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
        let links = [self.starts.pointer, self.senders.pointer, self.weights.pointer, places];
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
    fn sums_come_last_and_end_with_their_last_link() {
        let near = MixingMatrix::from_rows(&[vec![(0, 0.5), (3, 0.5)], vec![(1, 1.0)]]);
        let mixing = near.with_sums(vec![vec![vec![(1, 0.25), (2, 0.75)], vec![(4, 1.0)]], vec![]]);
        let links = |receiver| -> Vec<(usize, SumPlace)> {
            weighted_links(&mixing, receiver).iter().map(|link| (link.sender, link.place)).collect()
        };
        use SumPlace::{Alone, Last, Within};
        assert_eq!(links(0), [(0, Alone), (3, Alone), (1, Within), (2, Last), (4, Last)]);
        assert_eq!(links(1), [(1, Alone)]);
    }

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
