//! Which samples each agent takes in which round: its list in a new order every time it is through.
//!
//! A round's samples follow from seed, agent and round alone, so a resumed run takes what the interrupted one would have taken.

use fabswarm_shared::rng::{Purpose, Stream};

use crate::fab::RoundBatch;
use fabswarm_data::partition::shuffle;

/// Every agent's samples.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Lists {
    /// Samples of the upper level; none for a single level.
    pub(super) validation: Vec<Vec<u32>>,
    /// Samples of the lower level.
    pub(super) training: Vec<Vec<u32>>,
}

/// Draws batches from lists.
#[derive(Debug)]
pub(super) struct Batches {
    training: Vec<Deck>,
    validation: Vec<Deck>,
}

impl Batches {
    /// Draws at most `batch` samples per round from each list, in orders drawn from `seed`.
    pub(super) fn new(lists: Lists, batch: usize, seed: u64) -> Self {
        let decks = |lists: Vec<Vec<u32>>, first: u32| {
            let streams = (first..).step_by(2);
            lists
                .into_iter()
                .zip(streams)
                .map(|(samples, stream)| Deck { samples, batch, seed, stream, shuffled: None })
                .collect()
        };
        Batches { training: decks(lists.training, 0), validation: decks(lists.validation, 1) }
    }

    /// The samples of `round`.
    pub(super) fn draw(&mut self, round: u32) -> RoundBatch {
        RoundBatch {
            validation: self.validation.iter_mut().map(|deck| deck.draw(round)).collect(),
            training: self.training.iter_mut().map(|deck| deck.draw(round)).collect(),
        }
    }
}

/// One agent's list.
#[derive(Debug)]
struct Deck {
    samples: Vec<u32>,
    batch: usize,
    seed: u64,
    stream: u32,
    /// The order of one pass through the list, and which pass it is.
    shuffled: Option<(u32, Vec<u32>)>,
}

impl Deck {
    fn draw(&mut self, round: u32) -> Vec<u32> {
        // A list shorter than a batch is taken whole; a remainder shorter than a batch waits for the next order.
        let per_pass = (self.samples.len() / self.batch).max(1);
        let (pass, place) = (round / per_pass as u32, round as usize % per_pass);
        if self.shuffled.as_ref().is_none_or(|(shuffled, _)| *shuffled != pass) {
            let mut order = self.samples.clone();
            let mut stream = Stream::new(self.seed, self.stream, pass, Purpose::Batch);
            shuffle(&mut order, &mut stream);
            self.shuffled = Some((pass, order));
        }
        let order = self.shuffled.as_ref().map_or(&[][..], |(_, order)| order);
        order.iter().skip(place * self.batch).take(self.batch).copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batches(samples: u32, batch: usize) -> Batches {
        let lists = Lists { training: vec![(0..samples).collect()], validation: Vec::new() };
        Batches::new(lists, batch, 1)
    }

    #[test]
    fn a_pass_takes_no_sample_twice() {
        let mut batches = batches(20, 6);
        let mut taken: Vec<u32> = (0..3).flat_map(|round| batches.draw(round).training.concat()).collect();
        taken.sort_unstable();
        taken.dedup();
        assert_eq!(taken.len(), 18);
    }

    #[test]
    fn a_round_can_be_asked_for_in_any_order() {
        let forward: Vec<RoundBatch> = (0..9).map(|round| batches(20, 6).draw(round)).collect();
        let mut backward = batches(20, 6);
        for round in (0..9).rev() {
            assert_eq!(backward.draw(round), forward[round as usize]);
        }
        assert_ne!(forward[0], forward[3], "a new pass has a new order");
    }

    #[test]
    fn a_short_list_is_taken_whole() {
        let mut draw = batches(4, 6).draw(5).training.concat();
        draw.sort_unstable();
        assert_eq!(draw, [0, 1, 2, 3]);
    }
}
