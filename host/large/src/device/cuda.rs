//! An NVIDIA GPU: cuBLAS for matrix products, our own kernels for everything else, one launch for all agents.
//!
//! Driver, cuBLAS and NVRTC are loaded when a device is asked for, so one binary serves machines with and without them.
//! A round is enqueued once as it is, recorded into a CUDA graph the second time, and replayed from then on. y and z run side
//! by side on two streams: z has fewer samples, and one launch for both would multiply rows of zeros.
#![allow(unsafe_code, reason = "calls into the CUDA driver and cuBLAS take raw pointers and sizes")]

mod attention;
mod device;
mod gemm;
mod head;
mod kernels;
mod launch;
mod memory;
mod mixing;
mod ops;
mod pass;
mod shared;
mod sums;

use std::cell::Cell;
use std::collections::HashMap;
use std::fmt::{self, Debug};
use std::sync::Arc;

use cudarc::cublas::CudaBlas;
use cudarc::driver::{CudaContext, CudaGraph, CudaSlice, CudaStream, DevicePtr, sys};

use self::kernels::{Arg, Kernels, blocks};
use self::memory::AllocationCounter;
pub use self::memory::{DeviceBuffer, Reals};
pub use self::mixing::CudaMixing;
pub use self::pass::CudaPass;
pub use self::shared::CudaSlab;
use super::{Packed, Result, cuda_failed, no_cuda};

/// The format in which products and activations are computed; state is f32 in all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Precision {
    /// f32 words and products.
    F32,
    /// f32 words, products rounded to ten bits of mantissa.
    #[default]
    Tf32,
    /// bf16 activations and products, sums in f32.
    Bf16,
}

impl Precision {
    /// All of them, by name.
    pub const NAMES: [(&'static str, Self); 3] =
        [("f32", Self::F32), ("tf32", Self::Tf32), ("bf16", Self::Bf16)];

    /// The one of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::NAMES.into_iter().find(|(own, _)| *own == name).map(|(_, precision)| precision)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize].0
    }
}

/// Bytes of scratch memory cuBLAS gets on each stream; its best Hopper kernels ask for this much.
const WORKSPACE: usize = 32 << 20;

/// The driver's memory pool grows by pieces of this many bytes.
const POOL_PIECE: u64 = 32 << 20;

/// One GPU.
pub struct Cuda {
    context: Arc<CudaContext>,
    /// y and everything common, then z; for each of them one more for what goes on beside its products.
    streams: [Arc<CudaStream>; 4],
    /// Takes samples into batches while decisions are mixed.
    samples: Arc<CudaStream>,
    /// Whether z's stream has work for which the main stream does not wait yet.
    is_forked: Cell<bool>,
    blas: [CudaBlas; 2],
    kernels: Kernels,
    precision: Precision,
    replays: HashMap<usize, CapturedWork>,
    /// Bytes that this process has allocated for buffers.
    allocations: Arc<AllocationCounter>,
    /// Kept alive for cuBLAS.
    _workspaces: [CudaSlice<u8>; 2],
}

impl Debug for Cuda {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cuda")
            .field("ordinal", &self.context.ordinal())
            .field("precision", &self.precision)
            .finish_non_exhaustive()
    }
}

/// How far a piece of work is on its way to being replayed.
enum CapturedWork {
    /// It ran once, so everything lazy about it is loaded.
    Ran,
    Recorded(CudaGraph),
}

/// Arguments that say which vectors of packed state are computed here, and how long they are.
fn own_agents(packed: Packed) -> [Arg; 4] {
    let Packed { agents, stride, own, .. } = packed;
    [Arg::Int(agents), Arg::Int(own.first), Arg::Int(own.agents), Arg::Long(stride)]
}

/// Names what failed.
fn during<T, E: Debug>(doing: &'static str, result: std::result::Result<T, E>) -> Result<T> {
    result.map_err(|cause| cuda_failed(doing, format!("{cause:?}")))
}

/// A GPU of this machine, before anything is computed on it.
#[derive(Clone, Debug)]
pub struct Gpu(Arc<CudaContext>);

impl Gpu {
    /// The GPU of that number, from 0 on.
    ///
    /// # Errors
    /// When there is no driver, no such GPU or no CUDA library; the message says which.
    pub fn open(number: usize) -> Result<Self> {
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
                return Err(no_cuda(format!("{name} is not installed or not on the library path")));
            }
        }
        let count = CudaContext::device_count().map_or(0, |count| usize::try_from(count).unwrap_or(0));
        if number >= count.max(1) {
            return Err(no_cuda(format!("there is no GPU {number}, but {count} from number 0 on")));
        }
        let context = CudaContext::new(number)
            .map_err(|cause| no_cuda(format!("the driver finds no usable GPU ({cause:?})")))?;
        Ok(Gpu(context))
    }

    /// How many there are on this machine.
    pub fn count() -> usize {
        match Gpu::open(0) {
            Ok(_) => CudaContext::device_count().map_or(0, |count| usize::try_from(count).unwrap_or(0)),
            Err(_) => 0,
        }
    }

    /// The name that its driver gives it.
    pub fn name(&self) -> String {
        self.0.name().unwrap_or_else(|_| "GPU".to_owned())
    }

    /// Bytes of its memory that nobody uses, where that is known.
    pub fn free_bytes(&self) -> Option<u64> {
        self.0.mem_get_info().ok().map(|(free, _)| free as u64)
    }
}

impl Cuda {
    /// The first GPU.
    ///
    /// # Errors
    /// As [`Gpu::open`], and when the GPU fails.
    pub fn new(precision: Precision) -> Result<Self> {
        Cuda::on(&Gpu::open(0)?, precision)
    }

    /// To compute on a GPU.
    pub fn on(Gpu(context): &Gpu, precision: Precision) -> Result<Self> {
        let context = Arc::clone(context);
        // SAFETY: buffers are used on several streams whose order is fixed by explicit joins in `run`.
        unsafe { context.disable_event_tracking() };
        let stream = || during("making a stream", context.new_stream());
        let streams = [stream()?, stream()?, stream()?, stream()?];
        let samples = stream()?;
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
            samples,
            is_forked: Cell::new(false),
            blas,
            kernels,
            precision,
            replays: HashMap::new(),
            allocations: Arc::default(),
            _workspaces: workspaces,
        })
    }

    /// The stream for all that both groups have in common, which waits for z's.
    fn main(&self) -> Result<&Arc<CudaStream>> {
        let [main, side, ..] = &self.streams;
        if self.is_forked.take() {
            during("joining a stream", main.join(side))?;
        }
        Ok(main)
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
        unsafe { self.kernels.launch(self.main()?, name, grid, block, 0, args) }
    }

    /// Launches a kernel with a thread for every word of packed state that is computed here.
    ///
    /// # Safety
    /// As for [`Kernels::launch`], where depth, agents and stride come after `args` and before `tail`.
    unsafe fn launch_by_own(
        &self,
        name: &'static str,
        mut args: Vec<Arg>,
        packed: Packed,
        tail: &[Arg],
    ) -> Result<()> {
        args.extend(own_agents(packed));
        args.extend_from_slice(tail);
        let grid = [blocks(packed.stride, 256), packed.groups * packed.own.agents];
        // SAFETY: the caller promises what `Kernels::launch` asks for.
        unsafe { self.launch(name, grid, [256, 1], &args) }
    }

    /// Milliseconds of GPU time that `work` takes.
    ///
    /// # Errors
    /// When `work` or the GPU fails.
    pub fn time(&self, work: impl FnOnce() -> Result<()>) -> Result<f64> {
        let flags = Some(sys::CUevent_flags::CU_EVENT_DEFAULT);
        let before = during("timing", self.main()?.record_event(flags))?;
        work()?;
        let after = during("timing", self.main()?.record_event(flags))?;
        during("timing", after.synchronize())?;
        Ok(f64::from(during("timing", before.elapsed_ms(&after))?))
    }

    /// Copies one buffer to another of the same size: the bandwidth everything else is measured against.
    pub fn copy(&self, from: &Reals, to: &mut Reals) -> Result<()> {
        during("copying", self.main()?.memcpy_dtod(&from.exact.slice, &mut to.exact.slice))
    }
}
