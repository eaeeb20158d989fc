//! Peers on the heap: as many as an agent ever hears.

use super::reception_pool::ReceptionPool;
use fabswarm_shared::agent::{Peer, Peers, Reception};
use std::sync::Arc;

/// Marks a sender that was never heard.
const NOWHERE: u16 = u16::MAX;

/// Peers, made when they are heard first. A round looks at the few that were heard in it, however many there are.
#[derive(Debug)]
pub struct HeapPeers<const WORDS: usize> {
    /// In the order in which they were heard first, in blocks that are filled one after the other: none ever moves.
    blocks: Vec<Vec<Peer<WORDS>>>,
    len: usize,
    /// The place of each sender.
    places: Vec<u16>,
    /// Receptions with sender and place, in ascending order of senders.
    active: Vec<(u16, u16, Box<Reception<WORDS>>)>,
    /// Where receptions come from.
    pool: Arc<ReceptionPool<WORDS>>,
}

impl<const WORDS: usize> Default for HeapPeers<WORDS> {
    fn default() -> Self {
        Self::with_pool(Arc::default())
    }
}

impl<const WORDS: usize> HeapPeers<WORDS> {
    /// Peers of a block: a few kilobytes where they are small.
    const BLOCK: usize = if size_of::<Peer<WORDS>>() <= 512 { 16 } else { 1 };

    /// No peers, whose receptions will come from `pool`.
    pub(super) const fn with_pool(pool: Arc<ReceptionPool<WORDS>>) -> Self {
        Self { blocks: Vec::new(), len: 0, places: Vec::new(), active: Vec::new(), pool }
    }

    /// The record of a sender, if it was ever heard.
    pub(super) fn of(&self, sender: usize) -> Option<&Peer<WORDS>> {
        let place = *self.places.get(sender).filter(|place| **place != NOWHERE)?;
        Some(self.get(place.into()))
    }
}

impl<const WORDS: usize> Peers<WORDS> for HeapPeers<WORDS> {
    fn count(&self) -> usize {
        self.len
    }

    fn get(&self, place: usize) -> &Peer<WORDS> {
        &self.blocks[place / Self::BLOCK][place % Self::BLOCK]
    }

    fn get_mut(&mut self, place: usize) -> &mut Peer<WORDS> {
        &mut self.blocks[place / Self::BLOCK][place % Self::BLOCK]
    }

    fn in_order(&self) -> impl Iterator<Item = &Peer<WORDS>> {
        let places = self.places.iter().filter(|place| **place != NOWHERE);
        places.map(|&place| self.get(place.into()))
    }

    fn find(&self, sender: u16) -> Result<usize, usize> {
        match self.places.get(usize::from(sender)) {
            Some(&place) if place != NOWHERE => Ok(place.into()),
            _ => Err(self.len),
        }
    }

    fn insert(&mut self, place: usize, sender: u16) -> bool {
        let number = usize::from(sender);
        self.places.resize(self.places.len().max(number + 1), NOWHERE);
        self.places[number] = place as u16;
        if place.is_multiple_of(Self::BLOCK) {
            self.blocks.push(Vec::with_capacity(Self::BLOCK));
        }
        self.blocks[place / Self::BLOCK].push(Peer::new(sender));
        self.len += 1;
        true
    }

    fn clear(&mut self) {
        *self = Self::with_pool(Arc::clone(&self.pool));
    }

    fn activate(&mut self, place: usize) -> (&mut Peer<WORDS>, &mut Reception<WORDS>) {
        let peer = &mut self.blocks[place / Self::BLOCK][place % Self::BLOCK];
        let sender = peer.sender();
        let index = self.active.partition_point(|(other, ..)| *other < sender);
        if self.active.get(index).is_none_or(|(other, ..)| *other != sender) {
            let mut reception = self.pool.take();
            peer.renew_reception(&mut reception);
            self.active.insert(index, (sender, place as u16, reception));
        }
        (peer, &mut self.active[index].2)
    }

    fn active(&self) -> impl Iterator<Item = (&Peer<WORDS>, &Reception<WORDS>)> + Clone {
        self.active.iter().map(|(_, place, reception)| (self.get(usize::from(*place)), &**reception))
    }

    fn for_each_active(&mut self, mut visit: impl FnMut(&mut Peer<WORDS>, &mut Reception<WORDS>)) {
        for (_, place, reception) in &mut self.active {
            let place = usize::from(*place);
            visit(&mut self.blocks[place / Self::BLOCK][place % Self::BLOCK], reception);
        }
    }

    fn deactivate_idle(&mut self) {
        let idle = self.active.extract_if(.., |(.., reception)| reception.is_idle());
        self.pool.give_back(idle.map(|(.., reception)| reception));
    }
}
