//! Peers on the heap: as many as an agent ever hears.

use fabswarm_shared::agent::{Peer, Peers, Reception};
use fabswarm_shared::ledger::Arithmetic;

/// Marks a sender that was never heard.
const NOWHERE: u16 = u16::MAX;

/// Peers, made when they are heard first. A round looks at the few that were heard in it, however many there are.
#[derive(Debug)]
pub struct HeapPeers<A: Arithmetic, const WORDS: usize> {
    /// In the order in which they were heard first: none ever moves.
    peers: Vec<Box<Peer<A, WORDS>>>,
    /// The place of each sender.
    places: Vec<u16>,
    /// Senders and their places, in ascending order of senders.
    ranks: Vec<(u16, u16)>,
    /// What is listed, with sender and place, in ascending order of senders.
    listed: Vec<(u16, u16, Box<Reception<WORDS>>)>,
    /// Receptions to be used again.
    unused: Vec<Box<Reception<WORDS>>>,
}

impl<A: Arithmetic, const WORDS: usize> Default for HeapPeers<A, WORDS> {
    fn default() -> Self {
        Self {
            peers: Vec::new(),
            places: Vec::new(),
            ranks: Vec::new(),
            listed: Vec::new(),
            unused: Vec::new(),
        }
    }
}

impl<A: Arithmetic, const WORDS: usize> HeapPeers<A, WORDS> {
    /// What is kept of a sender, if it was ever heard.
    pub(super) fn of(&self, sender: usize) -> Option<&Peer<A, WORDS>> {
        let place = *self.places.get(sender).filter(|place| **place != NOWHERE)?;
        self.peers.get(usize::from(place)).map(|peer| &**peer)
    }
}

impl<A: Arithmetic, const WORDS: usize> Peers<A, WORDS> for HeapPeers<A, WORDS> {
    fn len(&self) -> usize {
        self.peers.len()
    }

    fn get(&self, place: usize) -> &Peer<A, WORDS> {
        &self.peers[place]
    }

    fn get_mut(&mut self, place: usize) -> &mut Peer<A, WORDS> {
        &mut self.peers[place]
    }

    fn ranked(&self, rank: usize) -> usize {
        self.ranks[rank].1.into()
    }

    fn find(&self, sender: u16) -> Result<usize, usize> {
        match self.places.get(usize::from(sender)) {
            Some(&place) if place != NOWHERE => Ok(place.into()),
            _ => Err(self.peers.len()),
        }
    }

    fn insert(&mut self, place: usize, sender: u16) -> bool {
        let number = usize::from(sender);
        self.places.resize(self.places.len().max(number + 1), NOWHERE);
        self.places[number] = place as u16;
        let rank = self.ranks.partition_point(|&(other, _)| other < sender);
        self.ranks.insert(rank, (sender, place as u16));
        self.peers.push(Box::new(Peer::new(sender)));
        true
    }

    fn clear(&mut self) {
        *self = Self::default();
    }

    fn list(&mut self, place: usize) -> (&mut Peer<A, WORDS>, &mut Reception<WORDS>) {
        let sender = self.peers[place].sender();
        let index = self.listed.partition_point(|(other, ..)| *other < sender);
        if self.listed.get(index).is_none_or(|(other, ..)| *other != sender) {
            let mut reception = self.unused.pop().unwrap_or_default();
            self.peers[place].renew_reception(&mut reception);
            self.listed.insert(index, (sender, place as u16, reception));
        }
        (&mut self.peers[place], &mut self.listed[index].2)
    }

    fn listed(&self) -> usize {
        self.listed.len()
    }

    fn listed_at(&self, index: usize) -> (&Peer<A, WORDS>, &Reception<WORDS>) {
        let (_, place, reception) = &self.listed[index];
        (&self.peers[usize::from(*place)], reception)
    }

    fn listed_at_mut(&mut self, index: usize) -> (&mut Peer<A, WORDS>, &mut Reception<WORDS>) {
        let (_, place, reception) = &mut self.listed[index];
        (&mut self.peers[usize::from(*place)], reception)
    }

    fn unlist_idle(&mut self) {
        let idle = self.listed.extract_if(.., |(.., reception)| reception.is_idle());
        self.unused.extend(idle.map(|(.., reception)| reception));
    }
}
