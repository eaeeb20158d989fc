//! Slabs as files without a name, in memory: they are gone with the last process that has them open, however it ends.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::FileExt as _;

use super::Cpu;
use super::CpuReals;
use crate::device::shared::{SLAB_WORDS, SharedMemory, SlabPlace};
use crate::device::{Result, not_shared};

const SLAB_BYTES: u64 = (SLAB_WORDS * size_of::<f32>()) as u64;

/// Where a word of a slab is.
///
/// # Panics
/// When these words are not in a slab.
fn byte_at(at: usize, words: usize) -> u64 {
    assert!(at + words <= SLAB_WORDS, "{words} words from {at} on are too many for a slab");
    (at * size_of::<f32>()) as u64
}

#[cfg(target_os = "linux")]
fn nameless_file() -> io::Result<File> {
    let file = rustix::fs::memfd_create("fabswarm", rustix::fs::MemfdFlags::CLOEXEC)?;
    Ok(file.into())
}

#[cfg(not(target_os = "linux"))]
fn nameless_file() -> io::Result<File> {
    Err(io::ErrorKind::Unsupported.into())
}

impl SharedMemory for Cpu<f32> {
    type Slab = File;

    /// A process may have 1,024 files open, where nobody has allowed it more, and opens those of other hosts as well.
    const MOST_SLABS: usize = 256;

    fn new_slab(&self) -> Result<(File, SlabPlace)> {
        let file = nameless_file().map_err(not_shared)?;
        file.set_len(SLAB_BYTES).map_err(not_shared)?;
        let place = SlabPlace::File { process: std::process::id(), number: file.as_raw_fd() };
        Ok((file, place))
    }

    fn open_slab(&self, place: &SlabPlace) -> Result<File> {
        let SlabPlace::File { process, number } = place else {
            return Err(not_shared("it is memory of a GPU"));
        };
        let path = format!("/proc/{process}/fd/{number}");
        // To open some kinds of files is to wait for somebody.
        let found = fs::metadata(&path).map_err(not_shared)?;
        if !found.is_file() || found.len() != SLAB_BYTES {
            return Err(not_shared(format!("{path} is not a slab")));
        }
        File::open(&path).map_err(not_shared)
    }

    fn write_slab(&self, to: &File, at: usize, words: &[f32]) -> Result<()> {
        to.write_all_at(bytemuck::cast_slice(words), byte_at(at, words.len())).map_err(not_shared)
    }

    fn read_slab(&self, from: &File, at: usize, words: usize) -> Result<Vec<f32>> {
        let mut found = vec![0.0_f32; words];
        from.read_exact_at(bytemuck::cast_slice_mut(&mut found), byte_at(at, words)).map_err(not_shared)?;
        Ok(found)
    }

    fn copy_to_slab(
        &self,
        from: &CpuReals<f32>,
        offset: usize,
        words: usize,
        to: &File,
        at: usize,
    ) -> Result<()> {
        self.write_slab(to, at, &from[offset..offset + words])
    }

    fn copy_from_slab(
        &self,
        from: &File,
        at: usize,
        words: usize,
        to: &mut CpuReals<f32>,
        offset: usize,
    ) -> Result<()> {
        let place = bytemuck::cast_slice_mut(&mut to[offset..offset + words]);
        from.read_exact_at(place, byte_at(at, words)).map_err(not_shared)
    }
}
