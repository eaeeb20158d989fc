//! Where the words of a parcel are put, and where they are taken from: memory of this process, or slabs that hosts of one machine share.

use crate::device::shared::{SharedMemory, SlabReader, SlabWriter};
use crate::device::{Device, Result};

/// Takes the words of a parcel, one behind the other.
pub(crate) trait ParcelSink<D: Device> {
    /// Takes words of the device's state.
    fn copy(&mut self, device: &D, from: &D::Reals, offset: usize, words: usize) -> Result<()>;
}

impl<D: Device> ParcelSink<D> for Vec<D::Scalar> {
    fn copy(&mut self, device: &D, from: &D::Reals, offset: usize, words: usize) -> Result<()> {
        device.append(from, offset, words, self)
    }
}

impl<D: SharedMemory> ParcelSink<D> for SlabWriter<'_, D> {
    fn copy(&mut self, device: &D, from: &D::Reals, offset: usize, words: usize) -> Result<()> {
        SlabWriter::copy(self, device, from, offset, words)
    }
}

/// Has the words of a parcel, one behind the other.
pub(crate) trait ParcelSource<D: Device> {
    /// Words that were not taken yet.
    fn left(&self) -> usize;

    /// Copies the next words to the device's state.
    fn copy(&mut self, device: &D, to: &mut D::Reals, offset: usize, words: usize) -> Result<()>;
}

impl<D: Device> ParcelSource<D> for &[D::Scalar] {
    fn left(&self) -> usize {
        self.len()
    }

    fn copy(&mut self, device: &D, to: &mut D::Reals, offset: usize, words: usize) -> Result<()> {
        let (next, rest) = self.split_at(words);
        *self = rest;
        device.write(to, offset, next)
    }
}

impl<D: SharedMemory> ParcelSource<D> for SlabReader<'_, D> {
    fn left(&self) -> usize {
        SlabReader::left(self)
    }

    fn copy(&mut self, device: &D, to: &mut D::Reals, offset: usize, words: usize) -> Result<()> {
        SlabReader::copy(self, device, to, offset, words)
    }
}
