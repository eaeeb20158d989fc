//! What arrives in one slot, and who hears it.

use super::Arrival;
use super::counters::{Counters, FrameVerdict};
use super::transmissions::{FrameIndex, Transmissions};
use crate::cores;
use std::hint::black_box;

/// Arrivals below which one core is done before a second one has begun.
const ARRIVALS_FOR_THREADS: usize = 1024;

/// The arrivals of a slot, by receiver.
#[derive(Clone, Debug, Default)]
pub(super) struct Delivery {
    arrivals: Vec<Arrival>,
    /// Where the arrivals of each receiver end.
    ends: Vec<usize>,
    verdicts: Vec<FrameVerdict>,
}

/// A frame that reached a receiver.
#[derive(Clone, Copy, Debug)]
pub struct ReceivedFrame<'a, T> {
    /// Who sent it, as far as the air can tell.
    pub sender: usize,
    /// Its bytes.
    pub bytes: &'a [u8],
    /// What was made of them, once for all receivers.
    pub opened: &'a T,
}

/// Who hears frames of a slot, opened as `T`.
pub trait Listener<T>: Send {
    /// Looks at what it will need to hear `sender`, and returns any of it. Called for all senders of a slot before the first is
    /// heard: in a large swarm none of it is in the cache, and so all of it comes at once instead of piece by piece.
    fn expect(&self, sender: usize) -> usize;

    /// Hears a frame.
    fn hear(&mut self, frame: ReceivedFrame<'_, T>) -> FrameVerdict;

    /// Everything was heard.
    fn end_slot(&mut self);
}

/// A listener, what arrives at it, and what it does with it.
type Turn<'a, R> = (&'a mut R, &'a [Arrival], &'a mut [FrameVerdict]);

impl Delivery {
    /// Begins a new slot.
    pub(super) fn clear(&mut self) {
        self.arrivals.clear();
        self.ends.clear();
    }

    pub(super) fn push(&mut self, arrival: Arrival) {
        self.arrivals.push(arrival);
    }

    pub(super) fn extend(&mut self, arrivals: &[Arrival]) {
        self.arrivals.extend_from_slice(arrivals);
    }

    /// All that arrives at the next receiver was added.
    pub(super) fn end_receiver(&mut self) {
        self.ends.push(self.arrivals.len());
    }

    /// Receivers with their arrivals, in ascending order.
    pub(super) fn each(&self) -> impl Iterator<Item = (usize, &Arrival)> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let ranges = starts.zip(&self.ends).enumerate();
        ranges.flat_map(|(receiver, (start, &end))| {
            self.arrivals[start..end].iter().map(move |arrival| (receiver, arrival))
        })
    }

    /// Lets each listener hear what arrives at it, on all cores where that is worth it.
    pub(super) fn hear<R: Listener<T>, T: Send + Sync>(
        &mut self,
        transmissions: &Transmissions,
        listeners: &mut [R],
        open: impl Fn(&[u8]) -> T + Sync,
    ) {
        let Self { arrivals, ends, verdicts } = self;
        let uses_threads = arrivals.len() >= ARRIVALS_FOR_THREADS;
        verdicts.clear();
        verdicts.resize(arrivals.len(), FrameVerdict::Useless);
        let indices: Vec<FrameIndex> = FrameIndex::first(transmissions.kept()).collect();
        let open = |index: usize| open(transmissions.bytes(indices[index]));
        let opened: Vec<T> = if uses_threads {
            cores::collect(indices.len(), open)
        } else {
            (0..indices.len()).map(open).collect()
        };

        let mut turns: Vec<Turn<'_, R>> = Vec::with_capacity(listeners.len());
        let (mut arrivals, mut verdicts, mut start) = (&arrivals[..], &mut verdicts[..], 0);
        for (listener, &end) in listeners.iter_mut().zip(&*ends) {
            let (own, others) = arrivals.split_at(end - start);
            let (own_verdicts, other_verdicts) = verdicts.split_at_mut(end - start);
            turns.push((listener, own, own_verdicts));
            (arrivals, verdicts, start) = (others, other_verdicts, end);
        }
        let take_turn = |_: usize, (listener, arrivals, verdicts): &mut Turn<'_, R>| {
            black_box(arrivals.iter().map(|arrival| listener.expect(arrival.sender as usize)).sum::<usize>());
            for (arrival, verdict) in arrivals.iter().zip(&mut **verdicts) {
                let sender = arrival.sender as usize;
                let bytes = transmissions.bytes(arrival.frame);
                let opened = &opened[arrival.frame.get()];
                *verdict = listener.hear(ReceivedFrame { sender, bytes, opened });
            }
            listener.end_slot();
        };
        if uses_threads {
            cores::each(&mut turns, take_turn);
        } else {
            turns.iter_mut().for_each(|turn| take_turn(0, turn));
        }
    }

    /// Counts what became of all arrivals.
    pub(super) fn count(&self, counters: &mut Counters) {
        for (arrival, &verdict) in self.arrivals.iter().zip(&self.verdicts) {
            counters.hear(verdict, arrival.origin);
        }
    }
}
