//! Arrivals of one slot, and their receivers.

use super::Arrival;
use super::counters::{Counters, FrameVerdict};
use super::transmissions::{FrameIndex, Transmissions};
use crate::cores;
use std::hint::black_box;

/// Arrivals and listeners below which one core is done before a second one has begun.
const ITEMS_FOR_THREADS: usize = 1024;

/// Listeners of whom all is looked at that they will need before the first of them hears anything.
const GROUP: usize = 8;

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
    /// The sender, as far as the air can tell.
    pub sender: usize,
    /// Its bytes.
    pub bytes: &'a [u8],
    /// The opened bytes, made once for all receivers.
    pub opened: &'a T,
}

/// A receiver of the frames of a slot, opened as `T`.
pub trait Listener<T>: Send {
    /// Looks at what it will need to hear `sender`, and returns any of it. Called for all senders and some listeners of a slot
    /// before the first is heard: in a large swarm none of it is in the cache, and so all of it comes at once instead of piece by
    /// piece.
    fn prefetch(&self, sender: usize) -> usize;

    /// Hears a frame.
    fn hear(&mut self, frame: ReceivedFrame<'_, T>) -> FrameVerdict;

    /// Everything was heard.
    fn end_slot(&mut self);
}

/// A listener, what arrives at it, and what it does with it.
type ListenerWork<'a, R> = (&'a mut R, &'a [Arrival], &'a mut [FrameVerdict]);

impl Delivery {
    /// Begins a new slot.
    pub(super) fn clear(&mut self) {
        self.arrivals.clear();
        self.ends.clear();
    }

    pub(super) fn extend(&mut self, arrivals: &[Arrival]) {
        self.arrivals.extend_from_slice(arrivals);
    }

    /// Adds what arrives at the next receivers, where the arrivals of each end at one of `ends`.
    pub(super) fn append(&mut self, arrivals: &[Arrival], ends: &[usize]) {
        let start = self.arrivals.len();
        self.arrivals.extend_from_slice(arrivals);
        self.ends.extend(ends.iter().map(|end| start + end));
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
    pub(super) fn hear<R: Listener<T>, T: Default + Send + Sync>(
        &mut self,
        transmissions: &Transmissions,
        listeners: &mut [R],
        opened: &mut Vec<T>,
        open: impl Fn(&[u8], &mut T) + Sync,
    ) {
        let Self { arrivals, ends, verdicts } = self;
        let uses_threads = arrivals.len() + listeners.len() >= ITEMS_FOR_THREADS;
        verdicts.clear();
        verdicts.resize(arrivals.len(), FrameVerdict::Useless);
        let kept = transmissions.kept();
        opened.resize_with(opened.len().max(kept), T::default);
        let opened = &mut opened[..kept];
        let open = |index: usize, opened: &mut T| open(transmissions.bytes(FrameIndex::at(index)), opened);
        if uses_threads {
            cores::each(opened, open);
        } else {
            opened.iter_mut().enumerate().for_each(|(index, opened)| open(index, opened));
        }

        let mut turns: Vec<ListenerWork<'_, R>> = Vec::with_capacity(listeners.len());
        let (mut arrivals, mut verdicts, mut start) = (&arrivals[..], &mut verdicts[..], 0);
        for (listener, &end) in listeners.iter_mut().zip(&*ends) {
            let (own, others) = arrivals.split_at(end - start);
            let (own_verdicts, other_verdicts) = verdicts.split_at_mut(end - start);
            turns.push((listener, own, own_verdicts));
            (arrivals, verdicts, start) = (others, other_verdicts, end);
        }
        let take_turns = |_: usize, group: &mut &mut [ListenerWork<'_, R>]| {
            let needed = group.iter().flat_map(|(listener, arrivals, _)| {
                arrivals.iter().map(|arrival| listener.prefetch(arrival.sender as usize))
            });
            black_box(needed.sum::<usize>());
            for (listener, arrivals, verdicts) in group.iter_mut() {
                for (arrival, verdict) in arrivals.iter().zip(&mut **verdicts) {
                    let sender = arrival.sender as usize;
                    let bytes = transmissions.bytes(arrival.frame);
                    let opened = &opened[arrival.frame.get()];
                    *verdict = listener.hear(ReceivedFrame { sender, bytes, opened });
                }
                listener.end_slot();
            }
        };
        let mut groups: Vec<_> = turns.chunks_mut(GROUP).collect();
        if uses_threads {
            cores::each(&mut groups, take_turns);
        } else {
            groups.iter_mut().for_each(|group| take_turns(0, group));
        }
    }

    /// Counts what became of all arrivals.
    pub(super) fn count(&self, counters: &mut Counters) {
        for (arrival, &verdict) in self.arrivals.iter().zip(&self.verdicts) {
            counters.hear(verdict, arrival.origin);
        }
    }
}
