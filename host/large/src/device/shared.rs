//! Memory that processes of one machine share: what a host has for another one on the same machine stays where it is, and the other
//! copies it from there, from GPU to GPU where both compute on one.
//!
//! Memory is shared in slabs of one size, which are used again. Each begins with a label that says whose it is, and a process
//! that opens a slab checks the label before it reads anything else.

use std::collections::HashMap;
use std::fmt::Debug;
use std::fs;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Device, Result, not_shared};

/// Words of a slab, its label included: 32 MiB, a multiple of what a GPU allocates at once.
pub const SLAB_WORDS: usize = (32 << 20) / size_of::<f32>();
/// Words of a label: one for each of its bytes, since any byte is a number.
const LABEL_WORDS: usize = 64;
/// The beginning of a label.
const LABEL_PREFIX: &str = "fabswarm slab ";
/// Words of a slab that parcels can have.
const ROOM: usize = SLAB_WORDS - LABEL_WORDS;

/// The number of slabs that a parcel of `words` words takes.
pub fn slabs_of(words: usize) -> usize {
    words.div_ceil(ROOM)
}

/// A device that can share memory with other processes of its kind on one machine.
pub trait SharedMemory: Device<Scalar = f32> {
    /// Memory of this process or of another one, of [`SLAB_WORDS`] words.
    type Slab: Debug;

    /// Slabs that a process may have at once, besides what it has memory for.
    const MOST_SLABS: usize;

    /// A slab that others can open, and where they find it.
    fn new_slab(&self) -> Result<(Self::Slab, SlabPlace)>;

    /// The slab of another process.
    fn open_slab(&self, place: &SlabPlace) -> Result<Self::Slab>;

    /// Writes words to a slab from word `at` on.
    fn write_slab(&self, to: &Self::Slab, at: usize, words: &[f32]) -> Result<()>;

    /// Reads words of a slab from word `at` on.
    fn read_slab(&self, from: &Self::Slab, at: usize, words: usize) -> Result<Vec<f32>>;

    /// Copies state of this device to a slab; it is there after [`Device::wait`].
    fn copy_to_slab(
        &self,
        from: &Self::Reals,
        offset: usize,
        words: usize,
        to: &Self::Slab,
        at: usize,
    ) -> Result<()>;

    /// Copies words of a slab to state of this device; it is read until [`Device::wait`].
    fn copy_from_slab(
        &self,
        from: &Self::Slab,
        at: usize,
        words: usize,
        to: &mut Self::Reals,
        offset: usize,
    ) -> Result<()>;
}

/// Where a slab is found on its machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SlabPlace {
    /// An open file of a process, which has no name.
    File {
        /// The process.
        process: u32,
        /// Its number of the file.
        number: i32,
    },
    /// CUDA's handle for other processes.
    Cuda(Vec<u8>),
}

/// The name by which another process opens a slab.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlabHandle {
    machine: String,
    label: String,
    place: SlabPlace,
}

/// Words that lie in slabs, as the process that made them hands them over.
#[derive(Clone, Debug)]
pub struct SharedParcel {
    /// Slabs in the order of the words.
    pub slabs: Vec<SlabHandle>,
    /// While these live, the slabs are not used again.
    _leases: Vec<Arc<()>>,
}

/// The slabs of a process.
#[derive(Debug)]
pub struct SlabPool<D: SharedMemory> {
    machine: String,
    owner: String,
    slabs: Vec<PooledSlab<D>>,
}

#[derive(Debug)]
struct PooledSlab<D: SharedMemory> {
    slab: D::Slab,
    handle: SlabHandle,
    /// Nobody else has it while the slab is free.
    lease: Arc<()>,
}

impl<D: SharedMemory> SlabPool<D> {
    /// A pool with one slab; `owner` tells its slabs from those of all other pools.
    ///
    /// # Errors
    /// When memory cannot be shared here.
    pub fn new(device: &D, owner: &str) -> Result<Self> {
        let mut pool = SlabPool { machine: machine()?, owner: owner.to_owned(), slabs: Vec::new() };
        pool.grow(device)?;
        Ok(pool)
    }

    /// One of its slabs, for others to see whether they can open it.
    pub fn sample(&self) -> SlabHandle {
        self.slabs[0].handle.clone()
    }

    /// Fills slabs that nobody uses with words that `write` puts there; nothing where there is no memory for more slabs.
    ///
    /// # Errors
    /// When `write` fails.
    pub fn fill(
        &mut self,
        device: &D,
        words: usize,
        write: impl FnOnce(&mut SlabWriter<'_, D>) -> Result<()>,
    ) -> Result<Option<SharedParcel>> {
        let is_free = |slab: &PooledSlab<D>| Arc::strong_count(&slab.lease) == 1;
        while self.slabs.iter().filter(|slab| is_free(slab)).count() < slabs_of(words) {
            if self.grow(device).is_err() {
                return Ok(None);
            }
        }
        let chosen: Vec<&PooledSlab<D>> =
            self.slabs.iter().filter(|slab| is_free(slab)).take(slabs_of(words)).collect();
        let leases = chosen.iter().map(|slab| Arc::clone(&slab.lease)).collect();
        let mut writer = SlabWriter { slabs: chosen.iter().map(|slab| &slab.slab).collect(), at: 0 };
        write(&mut writer)?;
        device.wait()?;
        Ok(Some(SharedParcel {
            slabs: chosen.iter().map(|slab| slab.handle.clone()).collect(),
            _leases: leases,
        }))
    }

    fn grow(&mut self, device: &D) -> Result<()> {
        if self.slabs.len() >= D::MOST_SLABS {
            return Err(not_shared(format!("{} slabs are the most there may be", D::MOST_SLABS)));
        }
        let (slab, place) = device.new_slab()?;
        let label = format!("{LABEL_PREFIX}{}/{}", self.owner, self.slabs.len());
        let handle = SlabHandle { machine: self.machine.clone(), label, place };
        device.write_slab(&slab, 0, &label_words(&handle.label)?)?;
        device.wait()?;
        self.slabs.push(PooledSlab { slab, handle, lease: Arc::default() });
        Ok(())
    }
}

/// Slabs of other processes; each is opened once.
#[derive(Debug)]
pub struct OpenedSlabs<D: SharedMemory> {
    opened: HashMap<String, D::Slab>,
}

impl<D: SharedMemory> Default for OpenedSlabs<D> {
    fn default() -> Self {
        OpenedSlabs { opened: HashMap::new() }
    }
}

impl<D: SharedMemory> OpenedSlabs<D> {
    /// Opens a slab, unless it is open.
    ///
    /// # Errors
    /// When it is of another machine, cannot be opened, or is not what it should be.
    pub fn open(&mut self, device: &D, handle: &SlabHandle) -> Result<()> {
        if self.opened.contains_key(&handle.label) {
            return Ok(());
        }
        if handle.machine != machine()? {
            return Err(not_shared("it is memory of another machine"));
        }
        let expected = label_words(&handle.label)?;
        let slab = device.open_slab(&handle.place)?;
        if device.read_slab(&slab, 0, LABEL_WORDS)? != expected {
            return Err(not_shared(format!("there is no memory with the label `{}`", handle.label)));
        }
        self.opened.insert(handle.label.clone(), slab);
        Ok(())
    }

    /// The words in these slabs, which are opened where they are not.
    ///
    /// # Errors
    /// As [`OpenedSlabs::open`].
    pub fn read<'s>(
        &'s mut self,
        device: &D,
        handles: &[SlabHandle],
        words: usize,
    ) -> Result<SlabReader<'s, D>> {
        if handles.iter().try_for_each(|handle| self.open(device, handle)).is_err() {
            // A process can have only so many open at once.
            self.opened.clear();
            handles.iter().try_for_each(|handle| self.open(device, handle))?;
        }
        if handles.len() != slabs_of(words) {
            return Err(not_shared(format!("{words} words do not lie in {} slabs", handles.len())));
        }
        Ok(SlabReader {
            slabs: handles.iter().map(|handle| &self.opened[&handle.label]).collect(),
            at: 0,
            words,
        })
    }
}

/// Puts words into slabs, one behind the other.
#[derive(Debug)]
pub struct SlabWriter<'s, D: SharedMemory> {
    slabs: Vec<&'s D::Slab>,
    at: usize,
}

impl<D: SharedMemory> SlabWriter<'_, D> {
    /// Copies words of the device's state.
    pub fn copy(&mut self, device: &D, from: &D::Reals, offset: usize, words: usize) -> Result<()> {
        for (slab, at, done, words) in pieces(self.at, words) {
            device.copy_to_slab(from, offset + done, words, self.slabs[slab], at)?;
        }
        self.at += words;
        Ok(())
    }
}

/// Takes words from slabs, one behind the other.
#[derive(Debug)]
pub struct SlabReader<'s, D: SharedMemory> {
    slabs: Vec<&'s D::Slab>,
    at: usize,
    words: usize,
}

impl<D: SharedMemory> SlabReader<'_, D> {
    /// Words that were not taken yet.
    pub fn left(&self) -> usize {
        self.words - self.at
    }

    /// Copies the next words to the device's state.
    ///
    /// # Panics
    /// When so many are not left.
    pub fn copy(&mut self, device: &D, to: &mut D::Reals, offset: usize, words: usize) -> Result<()> {
        assert!(words <= self.left(), "{words} words of {}", self.left());
        for (slab, at, done, words) in pieces(self.at, words) {
            device.copy_from_slab(self.slabs[slab], at, words, to, offset + done)?;
        }
        self.at += words;
        Ok(())
    }
}

/// Where words from `at` on lie: the slab, the place in it, how many come before, and how many are there.
fn pieces(at: usize, words: usize) -> impl Iterator<Item = (usize, usize, usize, usize)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let (slab, within) = ((at + done) / ROOM, (at + done) % ROOM);
        let count = (words - done).min(ROOM - within);
        done += count;
        (count > 0).then_some((slab, LABEL_WORDS + within, done - count, count))
    })
}

fn label_words(label: &str) -> Result<Vec<f32>> {
    if label.len() > LABEL_WORDS || !label.starts_with(LABEL_PREFIX) {
        return Err(not_shared(format!("`{label}` is no label")));
    }
    let mut words: Vec<f32> = label.bytes().map(f32::from).collect();
    words.resize(LABEL_WORDS, 0.0);
    Ok(words)
}

/// Tells this machine from others, and processes that do not see each other from those that do.
fn machine() -> Result<String> {
    let unknown =
        |error: std::io::Error| not_shared(format!("this machine cannot be told from others: {error}"));
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").map_err(unknown)?;
    let processes = fs::read_link("/proc/self/ns/pid").map_err(unknown)?;
    Ok(format!("{} {}", boot.trim(), processes.display()))
}

#[cfg(test)]
mod tests;
