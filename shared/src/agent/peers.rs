//! An agent's record of the others that it hears.
//!
//! A [`Peer`] lasts for as long as the agent runs, and there may be a thousand of them. A [`Reception`] holds what came of a sender
//! in this round or waits for the next one; only those that are *active* are looked at in a round.

use crate::ledger;
use crate::wire::payload::Decoder;

/// One sender.
#[derive(Clone, Debug)]
pub struct Peer<const WORDS: usize> {
    pub(super) sender: u16,
    /// The sender's round of what was last taken in this epoch.
    pub(super) taken_round: Option<u32>,
    /// This agent's round when it last took a frame of the sender.
    pub(super) taken_at: u32,
    /// Whether mass of the sender is for this agent.
    pub(super) is_collecting: bool,
    /// ρ, what was taken of the sender's running sum.
    pub(super) rho: [i32; WORDS],
}

impl<const WORDS: usize> Peer<WORDS> {
    /// A sender that was never heard.
    pub fn new(sender: u16) -> Self {
        Self { sender, taken_round: None, taken_at: 0, is_collecting: true, rho: [0; WORDS] }
    }

    /// Its number in the swarm.
    pub const fn sender(&self) -> u16 {
        self.sender
    }

    /// Makes of `reception` one for this sender, without a memory: payloads that build on earlier ones cannot be read.
    pub fn renew_reception(&self, reception: &mut Reception<WORDS>) {
        reception.begin_round();
        reception.early_round = None;
        reception.decoder.forget();
        if self.taken_round.is_none() {
            reception.decoder.start_epoch();
        }
    }

    /// For how many rounds of the receiver the sender has lived since the last frame, as its frame of `round` shows. It shows that its
    /// sender made some rounds, and not when: somebody may have held it back. So it stands for a few rounds of the receiver for
    /// each of the sender's, and frames of a dead sender that trickle in do not keep it alive.
    pub(super) fn lived_until(&self, round: u32) -> u32 {
        self.taken_round.map_or(u32::MAX, |taken| round.saturating_sub(taken).saturating_mul(4))
    }

    /// Forgets everything that belongs to an epoch.
    pub(super) fn reset(&mut self) {
        self.taken_round = None;
        self.rho = [0; WORDS];
    }
}

/// The frames of a sender that count in this round or wait for the next one.
#[derive(Clone, Debug)]
pub struct Reception<const WORDS: usize> {
    /// Whether a frame of the sender came in this round.
    pub(super) is_heard: bool,
    /// Whether mass was collected since this round began.
    pub(super) is_collected: bool,
    /// The sender's decision, and whether it came in this round.
    pub(super) v: [f32; WORDS],
    pub(super) is_fresh: bool,
    /// The sum that goes with the newest decoded payload, and whether the payload had v.
    pub(super) wire: [i32; WORDS],
    pub(super) has_v: bool,
    /// A frame of the next round that waits.
    pub(super) early_round: Option<u32>,
    pub(super) early_v: [f32; WORDS],
    pub(super) decoder: Decoder<WORDS>,
}

/// Nothing was received in this epoch.
impl<const WORDS: usize> Default for Reception<WORDS> {
    fn default() -> Self {
        Self {
            is_heard: false,
            is_collected: false,
            v: [0.0; WORDS],
            is_fresh: false,
            wire: [0; WORDS],
            has_v: false,
            early_round: None,
            early_v: [0.0; WORDS],
            decoder: Decoder::new(),
        }
    }
}

impl<const WORDS: usize> Reception<WORDS> {
    /// Forgets everything that belongs to an epoch.
    pub(super) fn reset(&mut self) {
        self.begin_round();
        self.early_round = None;
        self.decoder.start_epoch();
    }

    /// Forgets what belongs to a round.
    pub(super) fn begin_round(&mut self) {
        (self.is_heard, self.is_fresh, self.is_collected) = (false, false, false);
    }

    /// Takes the decoded payload of the sender's `round`: its decision counts in this round, and its mass goes to `tracker`.
    #[inline]
    pub(super) fn take(&mut self, peer: &mut Peer<WORDS>, round: u32, words: usize, tracker: &mut [i32]) {
        (self.is_heard, self.is_fresh) = (true, self.has_v);
        self.take_mass(peer, round, words, tracker);
    }

    fn take_mass(&mut self, peer: &mut Peer<WORDS>, round: u32, words: usize, tracker: &mut [i32]) {
        if peer.is_collecting {
            ledger::take(&self.wire[..words], &mut peer.rho, tracker);
            self.is_collected = true;
        } else {
            // Later payloads build on this sum all the same.
            peer.rho[..words].copy_from_slice(&self.wire[..words]);
        }
        peer.taken_round = Some(round);
    }

    /// Skips rounds. A frame that waits is too old for its decision to count, but its mass is due all the same: later payloads
    /// build on it.
    pub(super) fn skip(&mut self, peer: &mut Peer<WORDS>, words: usize, tracker: &mut [i32]) {
        (self.is_heard, self.is_fresh) = (false, false);
        if let Some(round) = self.early_round.take() {
            self.take_mass(peer, round, words, tracker);
        }
    }

    /// Lets the frame that waits for `round` count.
    pub(super) fn take_early(
        &mut self,
        peer: &mut Peer<WORDS>,
        round: u32,
        words: usize,
        tracker: &mut [i32],
    ) {
        if self.early_round.take_if(|early| *early == round).is_some() {
            core::mem::swap(&mut self.v, &mut self.early_v);
            self.take(peer, round, words, tracker);
        }
    }

    /// Whether it equals a new `Reception`. This holds only where payloads do not build on each other.
    pub const fn is_idle(&self) -> bool {
        !self.is_heard && !self.is_collected && self.early_round.is_none()
    }
}

/// The peers of an agent. Each has a place, which it keeps until another one is inserted.
pub trait Peers<const WORDS: usize> {
    /// How many there are.
    fn count(&self) -> usize;

    /// The peer at a place.
    fn get(&self, place: usize) -> &Peer<WORDS>;

    /// The peer at a place, for writing.
    fn get_mut(&mut self, place: usize) -> &mut Peer<WORDS>;

    /// All of them, in ascending order of their numbers.
    fn in_order(&self) -> impl Iterator<Item = &Peer<WORDS>>;

    /// Where `sender` is, or where it would be inserted.
    ///
    /// # Errors
    /// The place for [`Peers::insert`].
    fn find(&self, sender: u16) -> Result<usize, usize>;

    /// Inserts a new peer at a place that [`Peers::find`] returned; `false` where there is no room.
    fn insert(&mut self, place: usize, sender: u16) -> bool;

    /// Removes all of them.
    fn clear(&mut self);

    /// The peer at a place with its reception, which is active from here on.
    fn activate(&mut self, place: usize) -> (&mut Peer<WORDS>, &mut Reception<WORDS>);

    /// The active receptions with their peers, in ascending order of senders.
    fn active(&self) -> impl Iterator<Item = (&Peer<WORDS>, &Reception<WORDS>)> + Clone;

    /// Passes them to `visit`, for writing.
    fn for_each_active(&mut self, visit: impl FnMut(&mut Peer<WORDS>, &mut Reception<WORDS>));

    /// May deactivate receptions that are [idle](Reception::is_idle), where payloads do not build on each other.
    fn deactivate_idle(&mut self) {}
}

/// A peer and its reception side by side, as on a microcontroller.
#[derive(Clone, Debug)]
pub struct PeerSlot<const WORDS: usize> {
    peer: Peer<WORDS>,
    reception: Reception<WORDS>,
}

/// Room for a fixed number of peers in ascending order; all of them are active.
impl<const WORDS: usize, const MEMBERS: usize> Peers<WORDS> for heapless::Vec<PeerSlot<WORDS>, MEMBERS> {
    fn count(&self) -> usize {
        self.len()
    }

    fn get(&self, place: usize) -> &Peer<WORDS> {
        &self[place].peer
    }

    fn get_mut(&mut self, place: usize) -> &mut Peer<WORDS> {
        &mut self[place].peer
    }

    fn in_order(&self) -> impl Iterator<Item = &Peer<WORDS>> {
        self.iter().map(|slot| &slot.peer)
    }

    fn find(&self, sender: u16) -> Result<usize, usize> {
        self.as_slice().binary_search_by_key(&sender, |slot| slot.peer.sender)
    }

    fn insert(&mut self, place: usize, sender: u16) -> bool {
        if self.push(PeerSlot { peer: Peer::new(sender), reception: Reception::default() }).is_err() {
            return false;
        }
        // Moving all at once would take code that nothing else on a microcontroller needs.
        for other in (place + 1..self.len()).rev() {
            self.swap(other - 1, other);
        }
        true
    }

    fn clear(&mut self) {
        self.clear();
    }

    fn activate(&mut self, place: usize) -> (&mut Peer<WORDS>, &mut Reception<WORDS>) {
        let PeerSlot { peer, reception } = &mut self[place];
        (peer, reception)
    }

    fn active(&self) -> impl Iterator<Item = (&Peer<WORDS>, &Reception<WORDS>)> + Clone {
        self.iter().map(|PeerSlot { peer, reception }| (peer, reception))
    }

    fn for_each_active(&mut self, mut visit: impl FnMut(&mut Peer<WORDS>, &mut Reception<WORDS>)) {
        self.iter_mut().for_each(|PeerSlot { peer, reception }| visit(peer, reception));
    }
}

/// Peers outside the agent, which is then small enough to be moved on a microcontroller's stack.
impl<L: Peers<WORDS>, const WORDS: usize> Peers<WORDS> for &mut L {
    fn count(&self) -> usize {
        (**self).count()
    }

    fn get(&self, place: usize) -> &Peer<WORDS> {
        (**self).get(place)
    }

    fn get_mut(&mut self, place: usize) -> &mut Peer<WORDS> {
        (**self).get_mut(place)
    }

    fn in_order(&self) -> impl Iterator<Item = &Peer<WORDS>> {
        (**self).in_order()
    }

    fn find(&self, sender: u16) -> Result<usize, usize> {
        (**self).find(sender)
    }

    fn insert(&mut self, place: usize, sender: u16) -> bool {
        (**self).insert(place, sender)
    }

    fn clear(&mut self) {
        (**self).clear();
    }

    fn activate(&mut self, place: usize) -> (&mut Peer<WORDS>, &mut Reception<WORDS>) {
        (**self).activate(place)
    }

    fn active(&self) -> impl Iterator<Item = (&Peer<WORDS>, &Reception<WORDS>)> + Clone {
        (**self).active()
    }

    fn for_each_active(&mut self, visit: impl FnMut(&mut Peer<WORDS>, &mut Reception<WORDS>)) {
        (**self).for_each_active(visit);
    }

    fn deactivate_idle(&mut self) {
        (**self).deactivate_idle();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Room = heapless::Vec<PeerSlot<2>, 3>;

    #[test]
    fn peers_stay_in_order_and_within_their_room() {
        let mut peers = Room::new();
        for sender in [5, 2, 9] {
            let Err(place) = peers.find(sender) else { panic!("{sender} is there before it came") };
            assert!(Peers::insert(&mut peers, place, sender));
        }
        assert!(!Peers::insert(&mut peers, 0, 1), "there is room for three");
        assert!(peers.in_order().map(Peer::sender).eq([2, 5, 9]));
        assert_eq!((peers.count(), peers.find(9)), (3, Ok(2)));
    }

    #[test]
    fn only_what_says_nothing_is_idle() {
        let idle = Reception::<2>::default();
        assert!(idle.is_idle());
        assert!(!Reception { is_heard: true, ..idle.clone() }.is_idle());
        assert!(!Reception { is_collected: true, ..idle.clone() }.is_idle());
        assert!(!Reception { early_round: Some(3), ..idle }.is_idle());
    }

    #[test]
    fn a_reception_for_another_sender_has_no_memory() {
        let mut reception = Reception::<2>::default();
        (reception.is_heard, reception.is_fresh, reception.is_collected) = (true, true, true);
        reception.early_round = Some(7);
        Peer::<2>::new(1).renew_reception(&mut reception);
        assert!(!reception.is_heard && !reception.is_fresh && !reception.is_collected);
        assert_eq!(reception.early_round, None);
    }
}
