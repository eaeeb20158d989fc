//! Arrivals of one slot, and their receivers.

use super::Arrival;
use super::counters::{Counters, FrameVerdict};
use super::transmissions::Transmissions;
use crate::cores;
use crate::sealing::AuthenticFrame;
use fabswarm_shared::wire::seal::Key;
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
    /// The frames of the slot, opened; their buffers are used again.
    opened: Vec<AuthenticFrame>,
}

/// A frame that reached a receiver.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReceivedFrame<'a> {
    /// The sender, as far as the air can tell.
    pub(crate) sender: usize,
    pub(crate) bytes: &'a [u8],
    /// The frame as everybody with the swarm's key sees it, where there is one.
    pub(crate) opened: &'a AuthenticFrame,
}

/// A receiver of the frames of a slot.
pub(crate) trait Listener: Send {
    /// Looks at what it will need to hear `sender`, and returns any of it. Called for all senders and some listeners of a slot
    /// before the first is heard: in a large swarm none of it is in the cache, and so all of it comes at once.
    fn prefetch(&self, sender: usize) -> usize;

    /// Hears a frame.
    fn hear(&mut self, frame: ReceivedFrame<'_>) -> FrameVerdict;

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

    /// Adds what arrives at the next receivers, where the arrivals of each end at one of `ends`.
    pub(super) fn append(&mut self, arrivals: &[Arrival], ends: &[usize]) {
        let start = self.arrivals.len();
        self.arrivals.extend_from_slice(arrivals);
        self.ends.extend(ends.iter().map(|end| start + end));
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
    pub(super) fn hear<R: Listener>(
        &mut self,
        transmissions: &Transmissions,
        listeners: &mut [R],
        key: Option<&Key>,
    ) {
        let Self { arrivals, ends, verdicts, opened } = self;
        let uses_threads = arrivals.len() + listeners.len() >= ITEMS_FOR_THREADS;
        verdicts.clear();
        verdicts.resize(arrivals.len(), FrameVerdict::Useless);
        let kept = transmissions.kept();
        opened.resize_with(opened.len().max(kept), AuthenticFrame::default);
        if let Some(key) = key {
            let open = |index, opened: &mut AuthenticFrame| {
                opened.open(key, transmissions.bytes(index as u32));
            };
            cores::each(uses_threads, &mut opened[..kept], open);
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
                    let opened = &opened[arrival.frame as usize];
                    *verdict = listener.hear(ReceivedFrame { sender, bytes, opened });
                }
                listener.end_slot();
            }
        };
        let mut groups: Vec<_> = turns.chunks_mut(GROUP).collect();
        cores::each(uses_threads, &mut groups, take_turns);
    }

    /// Counts what became of all arrivals.
    pub(super) fn count(&self, counters: &mut Counters) {
        for (arrival, &verdict) in self.arrivals.iter().zip(&self.verdicts) {
            counters.hear(verdict, arrival.origin);
        }
    }
}
