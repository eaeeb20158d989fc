//! Slabs in a GPU's memory, which other processes open by a handle of CUDA; copies then go from GPU to GPU.

use std::sync::Arc;

use cudarc::driver::{CudaContext, result, sys};

use super::{Cuda, Reals, during};
use crate::device::shared::{SLAB_WORDS, SharedMemory, SlabPlace};
use crate::device::{Device as _, Result, not_shared};

const SLAB_BYTES: usize = SLAB_WORDS * size_of::<f32>();

const NO_HANDLE: sys::CUipcMemHandle = sys::CUipcMemHandle { reserved: [0; 64] };

/// Memory of a GPU that several processes have.
#[derive(Debug)]
pub struct CudaSlab {
    context: Arc<CudaContext>,
    pointer: u64,
    owner: SlabOwner,
}

#[derive(Debug, PartialEq, Eq)]
enum SlabOwner {
    ThisProcess,
    Another,
}

impl CudaSlab {
    /// The address of a word.
    ///
    /// # Panics
    /// When these words are not in a slab.
    fn at(&self, at: usize, words: usize) -> u64 {
        assert!(at + words <= SLAB_WORDS, "{words} words from {at} on are too many for a slab");
        self.pointer + (at * size_of::<f32>()) as u64
    }
}

impl Drop for CudaSlab {
    fn drop(&mut self) {
        if self.context.bind_to_thread().is_err() {
            return;
        }
        // SAFETY: the pointer is what the driver returned for this slab, and nobody has it after this. Copies of it were waited for.
        // Memory that is not freed here stays to the end of the process.
        let _ = match self.owner {
            SlabOwner::ThisProcess => unsafe { result::free_sync(self.pointer) },
            SlabOwner::Another => unsafe { sys::cuIpcCloseMemHandle(self.pointer).result() },
        };
    }
}

impl SharedMemory for Cuda {
    type Slab = CudaSlab;

    const MOST_SLABS: usize = usize::MAX;

    fn new_slab(&self) -> Result<(CudaSlab, SlabPlace)> {
        during("making the GPU ready", self.context.bind_to_thread())?;
        // Memory of the driver's pools cannot be shared.
        // SAFETY: nothing reads it before it is written.
        let pointer = during("allocating memory to share", unsafe { result::malloc_sync(SLAB_BYTES) })?;
        let slab = CudaSlab { context: Arc::clone(&self.context), pointer, owner: SlabOwner::ThisProcess };
        let mut handle = NO_HANDLE;
        // SAFETY: the pointer is the beginning of an allocation.
        let made = unsafe { sys::cuIpcGetMemHandle(&raw mut handle, pointer).result() };
        during("sharing memory", made)?;
        Ok((slab, SlabPlace::Cuda(handle.reserved.iter().map(|&byte| byte as u8).collect())))
    }

    fn open_slab(&self, place: &SlabPlace) -> Result<CudaSlab> {
        let SlabPlace::Cuda(bytes) = place else {
            return Err(not_shared("it is not memory of a GPU"));
        };
        let mut handle = NO_HANDLE;
        if bytes.len() != handle.reserved.len() {
            return Err(not_shared("it is not a handle of CUDA"));
        }
        handle.reserved.iter_mut().zip(bytes).for_each(|(to, &byte)| *to = byte as _);
        during("making the GPU ready", self.context.bind_to_thread())?;
        let mut pointer = 0;
        let flags = sys::CUipcMem_flags_enum::CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS as u32;
        // SAFETY: the driver refuses handles that it has not made.
        let opened = unsafe { sys::cuIpcOpenMemHandle_v2(&raw mut pointer, handle, flags).result() };
        during("opening memory of another process", opened)?;
        let slab = CudaSlab { context: Arc::clone(&self.context), pointer, owner: SlabOwner::Another };
        let (mut begin, mut bytes) = (0, 0);
        // SAFETY: the driver knows the allocation that the pointer is in.
        let found = unsafe { sys::cuMemGetAddressRange_v2(&raw mut begin, &raw mut bytes, pointer).result() };
        during("looking at memory of another process", found)?;
        if begin != pointer || bytes < SLAB_BYTES {
            return Err(not_shared("it is not a slab"));
        }
        Ok(slab)
    }

    fn write_slab(&self, to: &CudaSlab, at: usize, words: &[f32]) -> Result<()> {
        let place = to.at(at, words.len());
        // SAFETY: the slab has room for the words, which are read before the wait ends.
        let sent = unsafe { result::memcpy_htod_async(place, words, self.main()?.cu_stream()) };
        during("copying to the GPU", sent)?;
        self.wait()
    }

    fn read_slab(&self, from: &CudaSlab, at: usize, words: usize) -> Result<Vec<f32>> {
        let mut found = vec![0.0; words];
        // SAFETY: the slab has these words, and they are there when the wait ends.
        let read =
            unsafe { result::memcpy_dtoh_async(&mut found, from.at(at, words), self.main()?.cu_stream()) };
        during("copying from the GPU", read)?;
        self.wait()?;
        Ok(found)
    }

    fn copy_to_slab(
        &self,
        from: &Reals,
        offset: usize,
        words: usize,
        to: &CudaSlab,
        at: usize,
    ) -> Result<()> {
        assert!(offset + words <= from.exact.slice.len(), "words that a buffer has");
        // SAFETY: both have so many words from there on.
        let copied = unsafe {
            result::memcpy_dtod_async(
                to.at(at, words),
                from.exact.at(offset),
                words * size_of::<f32>(),
                self.main()?.cu_stream(),
            )
        };
        during("copying to shared memory", copied)
    }

    fn copy_from_slab(
        &self,
        from: &CudaSlab,
        at: usize,
        words: usize,
        to: &mut Reals,
        offset: usize,
    ) -> Result<()> {
        assert!(offset + words <= to.exact.slice.len(), "words that a buffer has");
        // SAFETY: both have so many words from there on.
        let copied = unsafe {
            result::memcpy_dtod_async(
                to.exact.at(offset),
                from.at(at, words),
                words * size_of::<f32>(),
                self.main()?.cu_stream(),
            )
        };
        during("copying from shared memory", copied)?;
        self.narrow(to, offset, words)
    }
}
