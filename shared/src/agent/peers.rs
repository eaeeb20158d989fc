//! What an agent keeps of those it hears.

use crate::ledger::Arithmetic;
use crate::wire::payload::Decoder;

/// One sender.
#[derive(Clone, Debug)]
pub struct Peer<A: Arithmetic, const WORDS: usize> {
    pub(super) sender: u16,
    /// The sender's round of what was last taken in this epoch.
    pub(super) taken_round: Option<u32>,
    /// This agent's round when it last heard the sender, in whatever epoch.
    pub(super) heard_at: Option<u32>,
    /// This agent's round when it last took a frame of the sender.
    pub(super) taken_at: u32,
    /// Whether mass of the sender is for this agent.
    pub(super) is_collecting: bool,
    /// Whether mass was collected since this round began.
    pub(super) is_collected: bool,
    /// ρ, what was taken of the sender's running sum.
    pub(super) rho: [A::Word; WORDS],
    /// Whether a frame of the sender came in this round.
    pub(super) is_heard: bool,
    /// The sender's decision, and whether it came in this round.
    pub(super) v: [f32; WORDS],
    pub(super) is_fresh: bool,
    /// The sum that goes with the newest decoded payload, and whether the payload told v.
    pub(super) wire: [i32; WORDS],
    pub(super) is_v_told: bool,
    /// A frame of the next round that waits.
    pub(super) early_round: Option<u32>,
    pub(super) early_v: [f32; WORDS],
    pub(super) decoder: Decoder<WORDS>,
}

impl<A: Arithmetic, const WORDS: usize> Peer<A, WORDS> {
    /// A sender that was never heard.
    #[must_use]
    pub fn new(sender: u16) -> Self {
        Self {
            sender,
            taken_round: None,
            heard_at: None,
            taken_at: 0,
            is_collecting: true,
            is_collected: false,
            rho: [A::Word::default(); WORDS],
            is_heard: false,
            v: [0.0; WORDS],
            is_fresh: false,
            wire: [0; WORDS],
            is_v_told: false,
            early_round: None,
            early_v: [0.0; WORDS],
            decoder: Decoder::at_epoch_start(),
        }
    }

    /// Forgets everything that belongs to an epoch.
    pub(super) fn reset(&mut self) {
        self.taken_round = None;
        self.rho = [A::Word::default(); WORDS];
        (self.is_heard, self.is_fresh, self.is_collected) = (false, false, false);
        self.early_round = None;
        self.decoder = Decoder::at_epoch_start();
    }

    /// Takes the decoded payload of the sender's `round`: its decision counts in this round, and the mass it tells of
    /// goes to `tracker`.
    #[inline]
    pub(super) fn take(&mut self, round: u32, words: usize, tracker: &mut [A::Word]) {
        (self.is_heard, self.is_fresh) = (true, self.is_v_told);
        self.take_mass(round, words, tracker);
    }

    fn take_mass(&mut self, round: u32, words: usize, tracker: &mut [A::Word]) {
        if self.is_collecting {
            A::take(&self.wire[..words], &mut self.rho, tracker);
            self.is_collected = true;
        } else {
            // Later payloads build on this sum all the same.
            for (rho, &wire) in self.rho.iter_mut().zip(&self.wire[..words]) {
                *rho = A::from_wire(wire);
            }
        }
        self.taken_round = Some(round);
    }

    /// Skips rounds. A frame that waits is too old for its decision to count, but its mass is due all the same: later
    /// payloads build on it.
    pub(super) fn skip(&mut self, words: usize, tracker: &mut [A::Word]) {
        (self.is_heard, self.is_fresh) = (false, false);
        if let Some(round) = self.early_round.take() {
            self.take_mass(round, words, tracker);
        }
    }

    /// Lets the frame that waits for `round` count.
    pub(super) fn take_early(&mut self, round: u32, words: usize, tracker: &mut [A::Word]) {
        if self.early_round.take_if(|early| *early == round).is_some() {
            core::mem::swap(&mut self.v, &mut self.early_v);
            self.take(round, words, tracker);
        }
    }
}

/// A list of peers in ascending order of their numbers.
pub trait Peers<A: Arithmetic, const WORDS: usize> {
    /// All of them.
    fn as_slice(&self) -> &[Peer<A, WORDS>];

    /// All of them, for writing.
    fn as_mut_slice(&mut self) -> &mut [Peer<A, WORDS>];

    /// Inserts a new peer at `index`; `false` where there is no room.
    fn insert(&mut self, index: usize, sender: u16) -> bool;

    /// Removes all of them.
    fn clear(&mut self);

    /// Where `sender` is, or where it belongs.
    ///
    /// # Errors
    /// The place where it belongs.
    fn find(&self, sender: u16) -> Result<usize, usize> {
        self.as_slice().binary_search_by_key(&sender, |peer| peer.sender)
    }
}

/// Room for a fixed number of peers, as on a microcontroller.
impl<A: Arithmetic, const WORDS: usize, const MEMBERS: usize> Peers<A, WORDS>
    for heapless::Vec<Peer<A, WORDS>, MEMBERS>
{
    fn as_slice(&self) -> &[Peer<A, WORDS>] {
        self
    }

    fn as_mut_slice(&mut self) -> &mut [Peer<A, WORDS>] {
        self
    }

    fn insert(&mut self, index: usize, sender: u16) -> bool {
        if self.push(Peer::new(sender)).is_err() {
            return false;
        }
        // Moving all at once would take code that nothing else on a microcontroller needs.
        for place in (index + 1..self.len()).rev() {
            self.swap(place - 1, place);
        }
        true
    }

    fn clear(&mut self) {
        self.clear();
    }
}

/// Room that somebody else keeps: then an agent is small enough to be moved on a microcontroller's stack.
impl<A: Arithmetic, L: Peers<A, WORDS>, const WORDS: usize> Peers<A, WORDS> for &mut L {
    fn as_slice(&self) -> &[Peer<A, WORDS>] {
        (**self).as_slice()
    }

    fn as_mut_slice(&mut self) -> &mut [Peer<A, WORDS>] {
        (**self).as_mut_slice()
    }

    fn insert(&mut self, index: usize, sender: u16) -> bool {
        (**self).insert(index, sender)
    }

    fn clear(&mut self) {
        (**self).clear();
    }
}
