//! Buffers in the GPU's memory, and the way in and out of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cudarc::driver::{CudaSlice, DevicePtr, DeviceRepr, ValidAsZeroBits};

use super::kernels::{Arg, blocks};
use super::{Cuda, during};
use crate::device::{Device, Result};

/// Words in the GPU's memory.
#[derive(Debug)]
pub struct DeviceBuffer<T> {
    pub(super) slice: CudaSlice<T>,
    pub(super) pointer: u64,
    /// Counts the buffer until it is dropped.
    _allocation: Allocation,
}

/// Bytes this process has allocated on a GPU, now and at most: a driver only knows what all processes together have left free.
#[derive(Debug, Default)]
pub(super) struct AllocationCounter {
    now: AtomicU64,
    peak: AtomicU64,
}

impl AllocationCounter {
    /// The most bytes that were allocated at once.
    pub(super) fn peak_bytes(&self) -> u64 {
        self.peak.load(Ordering::Relaxed)
    }

    fn add(self: &Arc<Self>, bytes: u64) -> Allocation {
        let now = self.now.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.peak.fetch_max(now, Ordering::Relaxed);
        Allocation { bytes, counter: Arc::clone(self) }
    }
}

/// Bytes that are counted while this lives.
#[derive(Debug)]
struct Allocation {
    bytes: u64,
    counter: Arc<AllocationCounter>,
}

impl Drop for Allocation {
    fn drop(&mut self) {
        self.counter.now.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl<T> DeviceBuffer<T> {
    pub(super) fn at(&self, word: usize) -> u64 {
        self.pointer + (word * size_of::<T>()) as u64
    }
}

/// State, with a copy in bf16 where products read it so.
#[derive(Debug)]
pub struct Reals {
    pub(super) exact: DeviceBuffer<f32>,
    pub(super) narrow: Option<DeviceBuffer<u16>>,
}

impl Reals {
    /// The address of a word of the copy in bf16, or zero where there is none.
    pub(super) fn narrow_at(&self, word: usize) -> u64 {
        self.narrow.as_ref().map_or(0, |narrow| narrow.at(word))
    }
}

impl Cuda {
    pub(super) fn memory<T: DeviceRepr + ValidAsZeroBits>(&self, words: usize) -> Result<DeviceBuffer<T>> {
        let slice = during("allocating memory", self.main()?.alloc_zeros::<T>(words.max(1)))?;
        let pointer = slice.device_ptr(self.main()?).0;
        let allocation = self.allocations.add((words.max(1) * size_of::<T>()) as u64);
        Ok(DeviceBuffer { slice, pointer, _allocation: allocation })
    }

    pub(super) fn upload<T: DeviceRepr>(
        &self,
        to: &mut DeviceBuffer<T>,
        offset: usize,
        words: &[T],
    ) -> Result<()> {
        let mut part = to.slice.slice_mut(offset..offset + words.len());
        during("copying to the GPU", self.main()?.memcpy_htod(words, &mut part))
    }

    /// Appends words of `from` to `to`, by the driver's own pinned buffers: by way of ours an H200 was no faster, 8 to 10 GiB/s
    /// instead of 9 to 15, and hosts exchange a tenth of that.
    pub(super) fn download<T: DeviceRepr + Default + Clone>(
        &self,
        from: &DeviceBuffer<T>,
        offset: usize,
        words: usize,
        to: &mut Vec<T>,
    ) -> Result<()> {
        let begun = to.len();
        to.resize(begun + words, T::default());
        let part = from.slice.slice(offset..offset + words);
        during("copying from the GPU", self.main()?.memcpy_dtoh(&part, &mut to[begun..]))?;
        self.wait()
    }

    /// Copies words to bf16 where a copy is kept.
    pub(super) fn narrow(&self, reals: &Reals, offset: usize, words: usize) -> Result<()> {
        let Some(narrow) = &reals.narrow else { return Ok(()) };
        let args = [Arg::At(reals.exact.at(offset)), Arg::At(narrow.at(offset)), Arg::Long(words)];
        // SAFETY: both buffers have `words` words from `offset` on, as the upload before has checked.
        unsafe { self.launch("to_narrow", [blocks(words, 256), 1], [256, 1], &args) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_own_allocations_count_and_the_peak_stays() {
        let counter = Arc::new(AllocationCounter::default());
        let first = counter.add(100);
        drop(counter.add(50));
        assert_eq!((counter.now.load(Ordering::Relaxed), counter.peak_bytes()), (100, 150));
        drop(first);
        drop(counter.add(120));
        assert_eq!((counter.now.load(Ordering::Relaxed), counter.peak_bytes()), (0, 150));
    }
}
