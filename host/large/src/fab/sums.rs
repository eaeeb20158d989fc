//! Sums at the sender: what the agents of one block send to an agent of another is added up before it travels.
//!
//! | | decisions | trackers |
//! |---|---|---|
//! | push weights | Σ_j a_ij v_j for every agent i that hears any, where fewer agents hear than send | Σ_j b_ij t_j, likewise |
//! | ledger | Σ_j v_j, likewise, with frames for senders | always the sum of what waits for i, instead of a vector per link |
//!
//! A sum is rounded in another order than its parts one by one, so sums are a property of the network's blocks, not of the hosts:
//! one process adds up block by block as well, and gets the same bits.

use std::collections::BTreeSet;

use crate::device::{Block, SumPlace};
use crate::mixing::MixingMatrix;

/// Who receives what from whom in a round.
#[derive(Clone, Copy, Debug)]
pub(super) enum RoundRows<'a> {
    /// As in [`Exchange::Ledger`](super::Exchange::Ledger), for so many agents.
    Ages(&'a [u32], usize),
    /// Weights: everything is of this round.
    Weights(&'a MixingMatrix),
}

/// What the agents of `to` receive from those of `from` in a round, both blocks of the network.
#[derive(Clone, Copy, Debug)]
pub(super) struct BlockLinks<'a> {
    pub(super) rows: RoundRows<'a>,
    pub(super) from: Block,
    pub(super) to: Block,
}

impl BlockLinks<'_> {
    /// Senders that `receiver` receives from, each with the age of what it receives.
    pub(super) fn heard_by(self, receiver: usize) -> Vec<(usize, usize)> {
        match self.rows {
            RoundRows::Ages(ages, agents) => {
                let heard =
                    self.from.range().map(|sender| (sender, ages[receiver * agents + sender] as usize));
                heard.filter(|&(_, age)| age > 0).map(|(sender, age)| (sender, age - 1)).collect()
            }
            RoundRows::Weights(rows) => {
                let senders = rows.row(receiver).map(|(sender, _)| sender);
                senders.filter(|&sender| self.from.has(sender)).map(|sender| (sender, 0)).collect()
            }
        }
    }

    /// Who receives anything.
    pub(super) fn receivers(self) -> Vec<usize> {
        self.to.range().filter(|&receiver| !self.heard_by(receiver).is_empty()).collect()
    }

    /// Frames that are received, by sender and age.
    pub(super) fn frames(self) -> BTreeSet<(usize, usize)> {
        self.to.range().flat_map(|receiver| self.heard_by(receiver)).collect()
    }

    /// Whether there are fewer sums than frames.
    pub(super) fn has_fewer_sums(self) -> bool {
        self.receivers().len() < self.frames().len()
    }

    /// The frame whose place on the receiver's host the sum for `receiver` takes. Where sums are fewer than frames, no two
    /// receivers have the same.
    pub(super) fn place_for(self, receiver: usize) -> Option<(usize, usize)> {
        if !self.has_fewer_sums() {
            return self.heard_by(receiver).first().copied();
        }
        let rank = self.receivers().into_iter().position(|other| other == receiver)?;
        self.frames().into_iter().nth(rank)
    }
}

/// Whether all of a block is computed on the host of `own`.
fn is_in(own: Block, block: Block) -> bool {
    block.range().all(|agent| own.has(agent))
}

/// The rows of a host that computes the agents of `own`, all or one of the `blocks`: sums of other blocks are added up by
/// themselves, or stand in a sender's place already.
pub(crate) fn weights_with_sums(rows: &MixingMatrix, blocks: &[Block], own: Block) -> MixingMatrix {
    let (mut near, mut sums) = (Vec::new(), Vec::new());
    for receiver in 0..rows.agents() {
        let (mut row, mut row_sums) = (Vec::new(), Vec::new());
        let to = blocks.iter().copied().find(|block| block.has(receiver) && is_in(own, *block));
        for &from in blocks {
            let links = BlockLinks { rows: RoundRows::Weights(rows), from, to: to.unwrap_or(from) };
            let of_block = rows.row(receiver).filter(|&(sender, _)| from.has(sender));
            match links.place_for(receiver).filter(|_| from != links.to && links.has_fewer_sums()) {
                None => row.extend(of_block),
                Some(_) if is_in(own, from) => row_sums.push(of_block.collect()),
                Some((sender, _)) => row_sums.push(vec![(sender, 1.0)]),
            }
        }
        near.push(row);
        sums.push(row_sums);
    }
    MixingMatrix::from_rows(&near).with_sums(sums)
}

/// A round's receptions, as a device adds them up.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SumLayout {
    /// Ages of frames and sums by the places that they take.
    pub(super) ages: Vec<u32>,
    /// The [`SumPlace`] of every link, for decisions and for what waits.
    pub(super) decisions: Vec<u32>,
    pub(super) masses: Vec<u32>,
    /// From how many senders each agent received decisions.
    pub(super) heard: Vec<u32>,
}

impl SumLayout {
    /// The layout of a host that computes the agents of `own`: all, or one of the `blocks`.
    pub(super) fn new(ages: &[u32], agents: usize, blocks: &[Block], own: Block) -> Self {
        let mut layout = Self {
            ages: ages.to_vec(),
            decisions: vec![SumPlace::Alone as u32; agents * agents],
            masses: vec![SumPlace::Alone as u32; agents * agents],
            heard: ages.chunks(agents).map(|row| row.iter().filter(|&&age| age > 0).count() as u32).collect(),
        };
        let rows = RoundRows::Ages(ages, agents);
        for &to in blocks.iter().filter(|&&block| is_in(own, block)) {
            for &from in blocks.iter().filter(|&&from| from != to) {
                layout.add(agents, BlockLinks { rows, from, to }, is_in(own, from));
            }
        }
        layout
    }

    fn add(&mut self, agents: usize, links: BlockLinks<'_>, is_sender_here: bool) {
        let sums_decisions = links.has_fewer_sums();
        for receiver in links.receivers() {
            let row = receiver * agents;
            if !is_sender_here {
                if let Some((sender, age)) = links.place_for(receiver).filter(|_| sums_decisions) {
                    self.ages[row..][links.from.range()].fill(0);
                    self.ages[row + sender] = age as u32 + 1;
                }
                continue;
            }
            let mut senders = links.heard_by(receiver).into_iter().map(|(sender, _)| sender).peekable();
            while let Some(sender) = senders.next() {
                let place = if senders.peek().is_some() { SumPlace::Within } else { SumPlace::Last };
                self.masses[row + sender] = place as u32;
                if sums_decisions {
                    self.decisions[row + sender] = place as u32;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCKS: [Block; 2] = [Block { first: 0, agents: 2 }, Block { first: 2, agents: 2 }];
    /// Agent 0 hears 1, and 2 and 3 of the other block, the latter a round late; agent 3 hears 0.
    const AGES: [u32; 16] = [0, 1, 1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0];
    const ALONE: u32 = SumPlace::Alone as u32;
    const WITHIN: u32 = SumPlace::Within as u32;
    const LAST: u32 = SumPlace::Last as u32;

    #[test]
    fn the_fewer_of_frames_and_receivers_travel() {
        let [here, there] = BLOCKS;
        let links = |from, to| BlockLinks { rows: RoundRows::Ages(&AGES, 4), from, to };
        let inward = links(there, here);
        assert_eq!(inward.receivers(), [0]);
        assert_eq!(inward.frames().into_iter().collect::<Vec<_>>(), [(2, 0), (3, 1)]);
        assert!(inward.has_fewer_sums());
        assert_eq!(inward.place_for(0), Some((2, 0)));
        // One frame for one receiver is sent as it is.
        assert!(!links(here, there).has_fewer_sums());
        assert_eq!(links(here, there).place_for(3), Some((0, 0)));
    }

    #[test]
    fn one_process_adds_up_block_by_block() {
        let layout = SumLayout::new(&AGES, 4, &BLOCKS, Block::whole(4));
        assert_eq!(layout.ages, AGES);
        assert_eq!(layout.decisions[..4], [ALONE, ALONE, WITHIN, LAST]);
        assert_eq!(layout.masses[..4], [ALONE, ALONE, WITHIN, LAST]);
        assert_eq!((layout.decisions[12], layout.masses[12]), (ALONE, LAST));
        assert_eq!(layout.heard, [3, 0, 0, 1]);
    }

    #[test]
    fn a_host_finds_the_sum_in_the_place_of_a_frame() {
        let layout = SumLayout::new(&AGES, 4, &BLOCKS, BLOCKS[0]);
        assert_eq!(layout.ages[..4], [0, 1, 1, 0]);
        assert_eq!(layout.ages[4..], AGES[4..], "what others receive is as it was");
        assert!(layout.decisions.iter().chain(&layout.masses).all(|&place| place == ALONE));
        assert_eq!(layout.heard[0], 3, "a sum counts as its parts");
    }

    #[test]
    fn weights_are_added_up_block_by_block_or_stand_in_a_senders_place() {
        // As above, with weights of their own.
        let heard = [
            vec![(0, 0.1), (1, 0.2), (2, 0.3), (3, 0.4)],
            vec![(1, 1.0)],
            vec![(2, 1.0)],
            vec![(0, 0.5), (3, 0.5)],
        ];
        let rows = MixingMatrix::from_rows(&heard);
        let of = |own| {
            let laid_out = weights_with_sums(&rows, &BLOCKS, own);
            (
                laid_out.row(0).collect::<Vec<_>>(),
                laid_out.sums(0).to_vec(),
                laid_out.row(3).collect::<Vec<_>>(),
            )
        };
        let (near, far) = (heard[0][..2].to_vec(), heard[0][2..].to_vec());
        assert_eq!(of(Block::whole(4)), (near.clone(), vec![far], heard[3].clone()));
        assert_eq!(of(BLOCKS[0]), (near, vec![vec![(2, 1.0)]], heard[3].clone()));
    }
}
