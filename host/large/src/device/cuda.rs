//! An NVIDIA GPU: cuBLAS for matrix products, our own kernels for everything else, one launch for all agents.
//!
//! Driver, cuBLAS and NVRTC are loaded when a device is asked for, so one binary serves machines with and without them.
//! A round is enqueued once as it is, recorded into a CUDA graph the second time, and replayed from then on. y and z run side
//! by side on two streams: z has fewer samples, and one launch for both would multiply rows of zeros.
#![allow(unsafe_code, reason = "calls into the CUDA driver and cuBLAS take raw pointers and sizes")]

mod gemm;
mod kernels;
mod memory;
mod mixing;
mod ops;
mod pass;
mod sums;

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::Arc;

use cudarc::cublas::CudaBlas;
use cudarc::driver::{CudaContext, CudaGraph, CudaSlice, CudaStream, DevicePtr, sys};

use self::kernels::{Arg, Kernels, blocks};
use self::memory::AllocationCounter;
pub use self::memory::{DeviceBuffer, Reals};
pub use self::mixing::CudaMixing;
use self::mixing::terms;
pub use self::pass::CudaPass;
use super::{
    BatchSchedule, BroadcastHistory, Device, DeviceDataset, Error, Gradient, MemoryUse, Packed, Reception,
    Result,
};
use crate::mixing::MixingMatrix;
use crate::program::ModelProgram;

/// What products and activations are computed in; state is f32 in all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Precision {
    F32,
    /// f32 words, products rounded to ten bits of mantissa.
    #[default]
    Tf32,
    /// bf16 activations and products, sums in f32.
    Bf16,
}

/// Bytes of scratch memory cuBLAS gets on each stream; its best Hopper kernels ask for this much.
const WORKSPACE: usize = 32 << 20;

/// The driver's memory pool grows by pieces of this many bytes.
const POOL_PIECE: u64 = 32 << 20;

/// One GPU.
pub struct Cuda {
    context: Arc<CudaContext>,
    /// y and everything common, then z.
    streams: [Arc<CudaStream>; 2],
    blas: [CudaBlas; 2],
    kernels: Kernels,
    precision: Precision,
    replays: HashMap<usize, Replay>,
    /// What this process has allocated for buffers.
    allocations: Arc<AllocationCounter>,
    /// Kept alive for cuBLAS.
    _workspaces: [CudaSlice<u8>; 2],
}

impl Debug for Cuda {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cuda")
            .field("ordinal", &self.context.ordinal())
            .field("precision", &self.precision)
            .finish_non_exhaustive()
    }
}

/// How far a piece of work is on its way to being replayed.
enum Replay {
    /// It ran once, so everything lazy about it is loaded.
    Ran,
    Recorded(CudaGraph),
}

/// Names what failed.
fn during<T, E: Debug>(doing: &'static str, result: std::result::Result<T, E>) -> Result<T> {
    result.map_err(|cause| Error::Cuda { doing, cause: format!("{cause:?}") })
}

impl Cuda {
    /// The first GPU.
    ///
    /// # Errors
    /// When there is no driver, no GPU or no CUDA library; the message says which.
    pub fn new(precision: Precision) -> Result<Self> {
        // SAFETY: these only look for shared libraries.
        let (driver, nvrtc, cublas) = unsafe {
            (
                sys::is_culib_present(),
                cudarc::nvrtc::sys::is_culib_present(),
                cudarc::cublas::sys::is_culib_present(),
            )
        };
        for (is_present, name) in [
            (driver, "the NVIDIA driver (libcuda)"),
            (nvrtc, "NVRTC (libnvrtc)"),
            (cublas, "cuBLAS (libcublas)"),
        ] {
            if !is_present {
                return Err(Error::NoCuda(format!("{name} is not installed or not on the library path")));
            }
        }
        let context = CudaContext::new(0)
            .map_err(|cause| Error::NoCuda(format!("the driver finds no usable GPU ({cause:?})")))?;
        // SAFETY: buffers are used on two streams whose order is fixed by explicit joins in `run`.
        unsafe { context.disable_event_tracking() };
        let stream = || during("making a stream", context.new_stream());
        let streams = [stream()?, stream()?];
        let blas = |stream: &Arc<CudaStream>| during("starting cuBLAS", CudaBlas::new(stream.clone()));
        let blas = [blas(&streams[0])?, blas(&streams[1])?];
        let workspace = |stream: &Arc<CudaStream>| {
            during("allocating the workspace of cuBLAS", stream.alloc_zeros::<u8>(WORKSPACE))
        };
        let workspaces = [workspace(&streams[0])?, workspace(&streams[1])?];
        for ((blas, workspace), stream) in blas.iter().zip(&workspaces).zip(&streams) {
            let pointer = workspace.device_ptr(stream).0;
            // SAFETY: the workspace lives as long as the handle.
            let status = unsafe {
                cudarc::cublas::sys::cublasSetWorkspace_v2(*blas.handle(), pointer as *mut _, WORKSPACE)
            };
            during("giving cuBLAS its workspace", status.result())?;
        }
        let kernels = Kernels::programs(&context, precision == Precision::Bf16)?;
        Ok(Cuda {
            context,
            streams,
            blas,
            kernels,
            precision,
            replays: HashMap::new(),
            allocations: Arc::default(),
            _workspaces: workspaces,
        })
    }

    fn main(&self) -> &Arc<CudaStream> {
        &self.streams[0]
    }

    fn activation_bytes(&self) -> usize {
        if self.precision == Precision::Bf16 { 2 } else { 4 }
    }

    /// Shared memory one block may have, when it asks for more than it gets anyway.
    fn shared_bytes(&self) -> Result<usize> {
        let most = sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN;
        during("asking for the size of shared memory", self.context.attribute(most))
            .map(|bytes| bytes as usize)
    }

    /// Words of activations a thread reads or writes at once, at most: 16 bytes.
    fn words_at_once(&self) -> usize {
        16 / self.activation_bytes()
    }

    /// Launches a kernel on the main stream, for all models at once.
    ///
    /// # Safety
    /// As for [`Kernels::launch`].
    unsafe fn launch(
        &self,
        name: &'static str,
        grid: [usize; 2],
        block: [usize; 2],
        args: &[Arg],
    ) -> Result<()> {
        // SAFETY: the caller promises what `Kernels::launch` asks for.
        unsafe { self.kernels.launch(self.main(), name, grid, block, 0, args) }
    }

    /// Launches a kernel of the ledger: a thread for every word of packed state.
    ///
    /// # Safety
    /// As for [`Kernels::launch`], where depth, agents and stride come after `args` and before `tail`.
    unsafe fn launch_by_agent(
        &self,
        name: &'static str,
        mut args: Vec<Arg>,
        packed: Packed,
        depth: usize,
        tail: &[Arg],
    ) -> Result<()> {
        args.extend([Arg::Int(depth), Arg::Int(packed.agents), Arg::Long(packed.stride)]);
        args.extend_from_slice(tail);
        let grid = [blocks(packed.stride, 256), packed.groups * packed.agents];
        // SAFETY: the caller promises what `Kernels::launch` asks for.
        unsafe { self.launch(name, grid, [256, 1], &args) }
    }

    /// Milliseconds of GPU time that `work` takes.
    ///
    /// # Errors
    /// When `work` or the GPU fails.
    pub fn time(&self, work: impl FnOnce() -> Result<()>) -> Result<f64> {
        let flags = Some(sys::CUevent_flags::CU_EVENT_DEFAULT);
        let before = during("timing", self.main().record_event(flags))?;
        work()?;
        let after = during("timing", self.main().record_event(flags))?;
        during("timing", after.synchronize())?;
        Ok(f64::from(during("timing", before.elapsed_ms(&after))?))
    }

    /// Copies one buffer to another of the same size: the bandwidth everything else is measured against.
    ///
    /// # Errors
    /// When the GPU fails.
    pub fn copy(&self, from: &Reals, to: &mut Reals) -> Result<()> {
        during("copying", self.main().memcpy_dtod(&from.exact.slice, &mut to.exact.slice))
    }
}

impl Device for Cuda {
    type Scalar = f32;
    type Reals = Reals;
    type Indices = DeviceBuffer<u32>;
    type Pass = CudaPass;
    type Mixing = CudaMixing;

    fn name(&self) -> String {
        let name = self.context.name().unwrap_or_else(|_| "GPU".to_owned());
        let precision = match self.precision {
            Precision::F32 => "f32",
            Precision::Tf32 => "tf32",
            Precision::Bf16 => "bf16",
        };
        format!("{name}, {precision}")
    }

    fn free_bytes(&self) -> Option<u64> {
        self.context.mem_get_info().ok().map(|(free, _)| free as u64)
    }

    fn memory_use(&self) -> Option<MemoryUse> {
        Some(MemoryUse::OnDevice(self.allocations.peak_bytes()))
    }

    fn piece_bytes(&self) -> u64 {
        POOL_PIECE
    }

    fn pass_bytes(&self, program: &ModelProgram, agents: usize) -> u64 {
        CudaPass::bytes(self, program, agents)
    }

    fn decision_bytes(&self) -> u64 {
        if self.precision == Precision::Bf16 { 6 } else { 4 }
    }

    fn reals(&self, words: usize) -> Result<Reals> {
        Ok(Reals { exact: self.memory(words)?, narrow: None })
    }

    fn decisions(&self, words: usize) -> Result<Reals> {
        let narrow = if self.precision == Precision::Bf16 { Some(self.memory(words)?) } else { None };
        Ok(Reals { exact: self.memory(words)?, narrow })
    }

    fn indices(&self, words: usize) -> Result<DeviceBuffer<u32>> {
        self.memory(words)
    }

    fn write(&self, to: &mut Reals, offset: usize, words: &[f32]) -> Result<()> {
        self.upload(&mut to.exact, offset, words)?;
        self.narrow(to, offset, words.len())
    }

    fn read(&self, from: &Reals, offset: usize, words: usize) -> Result<Vec<f32>> {
        self.download(&from.exact, offset, words)
    }

    fn write_indices(&self, to: &mut DeviceBuffer<u32>, words: &[u32]) -> Result<()> {
        self.upload(to, 0, words)
    }

    fn pass(&self, program: &ModelProgram, agents: usize) -> Result<CudaPass> {
        CudaPass::new(self, program, agents)
    }

    fn mixing(&self, agents: usize) -> Result<CudaMixing> {
        CudaMixing::new(self, agents)
    }

    fn write_mixing(&self, to: &mut CudaMixing, mixing: &MixingMatrix) -> Result<()> {
        to.write(self, mixing)
    }

    fn load(
        &self,
        pass: &mut CudaPass,
        data: &DeviceDataset<Self>,
        schedule: &BatchSchedule<Self>,
        skip: usize,
        logits: Option<(&Reals, usize)>,
    ) -> Result<()> {
        pass.load(self, data, schedule, skip, logits)
    }

    fn run(
        &self,
        passes: &mut [&mut CudaPass],
        parameters: &Reals,
        gradient: Option<&mut Reals>,
        packed: Packed,
        schedule: &BatchSchedule<Self>,
    ) -> Result<()> {
        let gradient = gradient.map(|gradient| gradient.exact.pointer);
        let [main, side] = &self.streams;
        if passes.len() > 1 {
            during("forking a stream", side.join(main))?;
        }
        for (group, pass) in passes.iter_mut().enumerate() {
            pass.run(self, group, parameters, gradient, packed, schedule)?;
        }
        if passes.len() > 1 {
            during("joining a stream", main.join(side))?;
        }
        Ok(())
    }

    fn pull(
        &self,
        v: &mut Reals,
        t: &Reals,
        packed: Packed,
        pull: &CudaMixing,
        steps: [f64; 2],
    ) -> Result<()> {
        let narrow = v.narrow.as_ref().map_or(0, |narrow| narrow.pointer);
        let head = [Arg::At(v.exact.pointer), Arg::At(t.exact.pointer), Arg::At(narrow)];
        let tail = [Arg::Float(steps[0]), Arg::Float(steps[1])];
        // SAFETY: decisions, trackers and weights are all of `packed`, and the kernel takes them in this order.
        unsafe { pull.launch(self, ["pull_dense", "pull_sparse"], &head, &tail, packed) }
    }

    fn track(
        &self,
        t: &mut Reals,
        gradient: Gradient<'_, Self>,
        packed: Packed,
        push: &CudaMixing,
    ) -> Result<()> {
        let mut head = vec![Arg::At(t.exact.pointer)];
        head.extend(terms(&gradient));
        // SAFETY: trackers, gradients and weights are all of `packed`, and the kernel takes them in this order.
        unsafe { push.launch(self, ["track_dense", "track_sparse"], &head, &[], packed) }
    }

    fn accumulate(
        &self,
        m: &mut Reals,
        t: &Reals,
        packed: Packed,
        reception: Option<&Reception<Self>>,
        momentum: f64,
    ) -> Result<()> {
        let awake = reception.map_or(0, |reception| reception.awake.pointer);
        let args = [
            Arg::At(m.exact.pointer),
            Arg::At(t.exact.pointer),
            Arg::At(awake),
            Arg::Int(packed.agents),
            Arg::Long(packed.stride),
            Arg::Float(momentum),
        ];
        let grid = [blocks(packed.stride, 256), packed.groups * packed.agents];
        // SAFETY: both vectors are of `packed`, and there is a word of `awake` for each agent.
        unsafe { self.launch("accumulate", grid, [256, 1], &args) }
    }

    fn record_broadcast(
        &self,
        history: &mut BroadcastHistory<Self>,
        v: &Reals,
        t: &Reals,
        packed: Packed,
        reception: &Reception<Self>,
        round: &DeviceBuffer<u32>,
    ) -> Result<()> {
        let vectors = [v, t, &history.v, &history.t].map(|reals| reals.exact.pointer);
        let mut args = vectors.map(Arg::At).to_vec();
        args.extend([reception.awake.pointer, round.pointer].map(Arg::At));
        // SAFETY: all vectors are of `packed`, the history of `depth` of them, and the kernel takes them in this order.
        unsafe { self.launch_by_agent("record_broadcast", args, packed, history.depth, &[]) }
    }

    fn pull_received(
        &self,
        v: &mut Reals,
        t: &Reals,
        packed: Packed,
        history: &BroadcastHistory<Self>,
        reception: &Reception<Self>,
        round: &DeviceBuffer<u32>,
        steps: [f64; 2],
    ) -> Result<()> {
        let narrow = v.narrow.as_ref().map_or(0, |narrow| narrow.pointer);
        let mut args =
            [v.exact.pointer, t.exact.pointer, narrow, history.v.exact.pointer].map(Arg::At).to_vec();
        args.extend([reception.ages.pointer, reception.awake.pointer, round.pointer].map(Arg::At));
        // SAFETY: all vectors are of `packed`, the history of `depth` of them, and the kernel takes them in this order.
        unsafe { self.launch_by_agent("pull_received", args, packed, history.depth, &steps.map(Arg::Float)) }
    }

    fn track_by_ledger(
        &self,
        t: &mut Reals,
        mass: &mut Reals,
        gradient: Gradient<'_, Self>,
        packed: Packed,
        history: &BroadcastHistory<Self>,
        reception: &Reception<Self>,
        round: &DeviceBuffer<u32>,
    ) -> Result<()> {
        let mut args = [t.exact.pointer, mass.exact.pointer].map(Arg::At).to_vec();
        args.extend(terms(&gradient));
        args.extend([history.t.exact.pointer, reception.ages.pointer, reception.awake.pointer].map(Arg::At));
        args.extend([reception.shares.exact.pointer, round.pointer].map(Arg::At));
        // SAFETY: all vectors are of `packed`, the history of `depth` of them, and the kernel takes them in this order.
        unsafe { self.launch_by_agent("track_by_ledger", args, packed, history.depth, &[]) }
    }

    fn step_logits(
        &self,
        logits: &mut Reals,
        schedule: &BatchSchedule<Self>,
        learned_from: usize,
        y: &CudaPass,
        z: &CudaPass,
        step: f64,
        momentum: Option<(&mut Reals, f64)>,
    ) -> Result<()> {
        let (m, momentum) = momentum.map_or((0, 0.0), |(m, momentum)| (m.exact.pointer, momentum));
        let args = [
            Arg::At(logits.exact.pointer),
            Arg::At(schedule.rows.pointer),
            Arg::At(schedule.weights.exact.pointer),
            Arg::Int(schedule.samples),
            Arg::Int(learned_from),
            Arg::At(y.losses.pointer),
            Arg::At(z.losses.pointer),
            Arg::Float(step),
            Arg::At(m),
            Arg::Float(momentum),
        ];
        let learned = schedule.samples - learned_from;
        // SAFETY: rows of the schedule are samples of the dataset, which has a logit for each, and an m where there is one.
        unsafe { self.launch("step_logits", [blocks(learned, 128), y.agents], [128, 1], &args) }
    }

    fn norm_gap(
        &self,
        v: &Reals,
        packed: Packed,
        gradient: &mut Reals,
        x_stride: usize,
        scale: f64,
    ) -> Result<()> {
        let args = [
            Arg::At(v.exact.pointer),
            Arg::Int(packed.agents),
            Arg::Long(packed.stride),
            Arg::At(gradient.exact.pointer),
            Arg::Int(x_stride),
            Arg::Float(scale),
        ];
        // SAFETY: `v` is of `packed` with two groups, and the gradient has `x_stride` words per agent.
        unsafe { self.launch("norm_gap", [packed.agents, 1], [1024, 1], &args) }
    }

    fn decay_from(
        &self,
        x: &mut Reals,
        x_stride: usize,
        packed: Packed,
        decay: &mut Reals,
        scale: f64,
    ) -> Result<()> {
        let args = [
            Arg::At(x.exact.pointer),
            Arg::Int(x_stride),
            Arg::Int(packed.agents),
            Arg::Int(packed.groups),
            Arg::At(decay.exact.pointer),
            Arg::Float(scale),
        ];
        // SAFETY: x has `x_stride` words per agent, and decay one per vector of `packed`.
        unsafe { self.launch("decay_from", [blocks(packed.agents, 128), 1], [128, 1], &args) }
    }

    fn losses(&self, pass: &CudaPass) -> Result<Vec<f32>> {
        self.download(&pass.losses, 0, pass.agents * pass.program.samples)
    }

    fn hits(&self, pass: &CudaPass) -> Result<Vec<f32>> {
        self.download(&pass.hits, 0, pass.agents * pass.program.samples)
    }

    fn replay(&mut self, key: usize, record: impl FnOnce(&Self) -> Result<()>) -> Result<()> {
        match self.replays.get(&key) {
            Some(Replay::Recorded(graph)) => during("replaying a round", graph.launch()),
            None => {
                record(self)?;
                self.replays.insert(key, Replay::Ran);
                Ok(())
            }
            Some(Replay::Ran) => {
                let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
                during("recording a round", self.main().begin_capture(mode))?;
                let recorded = record(self);
                let flags = sys::CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
                let graph = during("recording a round", self.main().end_capture(flags))?;
                recorded?;
                let graph = graph.ok_or(Error::Cuda {
                    doing: "recording a round",
                    cause: "nothing was recorded".into(),
                })?;
                during("replaying a round", graph.launch())?;
                self.replays.insert(key, Replay::Recorded(graph));
                Ok(())
            }
        }
    }

    fn wait(&self) -> Result<()> {
        during("computing", self.main().synchronize())
    }
}
