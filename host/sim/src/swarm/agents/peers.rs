//! Peers on the heap: as many as an agent ever hears.

use fabswarm_shared::agent::{Peer, Peers};
use fabswarm_shared::ledger::Arithmetic;

/// Peers, made when they are heard first.
#[derive(Debug)]
pub struct HeapPeers<A: Arithmetic, const WORDS: usize>(Vec<Peer<A, WORDS>>);

impl<A: Arithmetic, const WORDS: usize> Default for HeapPeers<A, WORDS> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<A: Arithmetic, const WORDS: usize> Peers<A, WORDS> for HeapPeers<A, WORDS> {
    fn as_slice(&self) -> &[Peer<A, WORDS>] {
        &self.0
    }

    fn as_mut_slice(&mut self) -> &mut [Peer<A, WORDS>] {
        &mut self.0
    }

    fn insert(&mut self, index: usize, sender: u16) -> bool {
        self.0.insert(index, Peer::new(sender));
        true
    }

    fn clear(&mut self) {
        self.0.clear();
    }
}
