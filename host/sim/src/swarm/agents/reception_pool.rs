//! Receptions that no agent uses at the moment.

use crate::cores;
use fabswarm_shared::agent::Reception;
use std::sync::Mutex;

/// Receptions to be used again, by core. An agent needs one for each sender while its round lasts, and agents end their rounds one
/// after the other: a core fills the same few, which stay in its cache, for all its agents.
#[derive(Debug)]
pub(super) struct ReceptionPool<const WORDS: usize> {
    unused: Vec<OwnLine<Mutex<Vec<Box<Reception<WORDS>>>>>>,
}

/// Keeps what two cores write apart.
#[derive(Debug, Default)]
#[repr(align(64))]
struct OwnLine<T>(T);

impl<const WORDS: usize> Default for ReceptionPool<WORDS> {
    fn default() -> Self {
        Self { unused: (0..cores::count()).map(|_| OwnLine::default()).collect() }
    }
}

impl<const WORDS: usize> ReceptionPool<WORDS> {
    fn with_own<R>(&self, act: impl FnOnce(&mut Vec<Box<Reception<WORDS>>>) -> R) -> R {
        let OwnLine(unused) = &self.unused[cores::current() % self.unused.len()];
        act(&mut unused.lock().unwrap_or_else(|poisoned| poisoned.into_inner()))
    }

    /// A reception with whatever it held before.
    pub(super) fn take(&self) -> Box<Reception<WORDS>> {
        self.with_own(Vec::pop).unwrap_or_default()
    }

    /// Takes receptions back.
    pub(super) fn give_back(&self, receptions: impl Iterator<Item = Box<Reception<WORDS>>>) {
        self.with_own(|unused| unused.extend(receptions));
    }
}
