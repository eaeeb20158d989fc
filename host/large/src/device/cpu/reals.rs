//! Words of state where a processor reads them fastest.

use std::ops::{Deref, DerefMut};

use crate::real::Real;

/// Bytes of a line of the cache: a vector that begins at one is read at once.
const LINE: usize = 64;
/// Bytes of a huge page.
const HUGE_PAGE: usize = 2 << 20;

/// Words that begin with a line of the cache. Many lie in huge pages, so that a pass over all agents finds its pages.
#[derive(Debug)]
pub struct CpuReals<S> {
    memory: Vec<S>,
    first: usize,
    words: usize,
}

impl<S: Real> CpuReals<S> {
    /// Words of zero.
    pub(super) fn new(words: usize) -> Self {
        let bytes = words * size_of::<S>();
        let piece = if bytes < HUGE_PAGE { LINE } else { HUGE_PAGE };
        // Memory that nothing is written to takes none of the machine's.
        let memory = vec![S::ZERO; (bytes.next_multiple_of(piece) + piece) / size_of::<S>()];
        let first = memory.as_ptr().align_offset(piece);
        if piece == HUGE_PAGE {
            take_huge_pages(&memory[first..][..bytes.next_multiple_of(piece) / size_of::<S>()]);
        }
        CpuReals { memory, first, words }
    }
}

#[cfg(test)]
impl<S: Real> From<Vec<S>> for CpuReals<S> {
    fn from(words: Vec<S>) -> Self {
        let mut reals = CpuReals::new(words.len());
        reals.copy_from_slice(&words);
        reals
    }
}

impl<S> Deref for CpuReals<S> {
    type Target = [S];

    fn deref(&self) -> &[S] {
        &self.memory[self.first..][..self.words]
    }
}

impl<S> DerefMut for CpuReals<S> {
    fn deref_mut(&mut self) -> &mut [S] {
        &mut self.memory[self.first..][..self.words]
    }
}

/// Asks for huge pages for memory that nothing was written to yet. A system that has none does without.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "the call takes a pointer")]
fn take_huge_pages<S>(memory: &[S]) {
    use rustix::mm::{Advice, madvise};
    let start = memory.as_ptr().cast_mut().cast();
    // SAFETY: this advice changes in which pages the memory lies, and nothing of what is in it.
    let _ = unsafe { madvise(start, size_of_val(memory), Advice::LinuxHugepage) };
}

#[cfg(not(target_os = "linux"))]
fn take_huge_pages<S>(_: &[S]) {}
