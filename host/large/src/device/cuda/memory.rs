//! Buffers in the GPU's memory, and the way in and out of them.

use cudarc::driver::{CudaSlice, DevicePtr, DeviceRepr, ValidAsZeroBits};

use super::kernels::{Arg, blocks};
use super::{Cuda, during};
use crate::device::{Device, Result};

/// Words in the GPU's memory.
#[derive(Debug)]
pub struct DeviceBuffer<T> {
    pub(super) slice: CudaSlice<T>,
    pub(super) pointer: u64,
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

impl Cuda {
    pub(super) fn memory<T: DeviceRepr + ValidAsZeroBits>(&self, words: usize) -> Result<DeviceBuffer<T>> {
        let slice = during("allocating memory", self.main().alloc_zeros::<T>(words.max(1)))?;
        let pointer = slice.device_ptr(self.main()).0;
        Ok(DeviceBuffer { slice, pointer })
    }

    pub(super) fn upload<T: DeviceRepr>(
        &self,
        to: &mut DeviceBuffer<T>,
        offset: usize,
        words: &[T],
    ) -> Result<()> {
        let mut part = to.slice.slice_mut(offset..offset + words.len());
        during("copying to the GPU", self.main().memcpy_htod(words, &mut part))
    }

    pub(super) fn download<T: DeviceRepr + Default + Clone>(
        &self,
        from: &DeviceBuffer<T>,
        offset: usize,
        words: usize,
    ) -> Result<Vec<T>> {
        let mut host = vec![T::default(); words];
        during(
            "copying from the GPU",
            self.main().memcpy_dtoh(&from.slice.slice(offset..offset + words), &mut host),
        )?;
        self.wait()?;
        Ok(host)
    }

    /// Copies words to bf16 where a copy is kept.
    pub(super) fn narrow(&self, reals: &Reals, offset: usize, words: usize) -> Result<()> {
        let Some(narrow) = &reals.narrow else { return Ok(()) };
        let args = [Arg::At(reals.exact.at(offset)), Arg::At(narrow.at(offset)), Arg::Long(words)];
        self.launch("to_narrow", [blocks(words, 256), 1], [256, 1], &args)
    }
}
