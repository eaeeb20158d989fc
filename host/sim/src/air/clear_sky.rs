//! Arrivals where nothing but the signal decides: links do not depend on each other, so all cores compute them.

use super::counters::{CopyOrigin, LinkCount};
use super::{Air, Arrival};
use crate::cores;

/// Receivers below which one core is done before a second one has begun.
const RECEIVERS_FOR_THREADS: usize = 256;

/// Arrivals at neighbouring receivers.
#[derive(Clone, Debug, Default)]
pub(super) struct ClearBlock {
    arrivals: Vec<Arrival>,
    /// Where the arrivals of each receiver end.
    ends: Vec<usize>,
    copies: u64,
    lost: u64,
}

impl Air {
    /// Finds out what arrives in `slot` where only the signal decides.
    pub(super) fn gather_clear(&mut self, slot: u32) {
        let Self { agents, source, transmissions, counters, delivery, clear_blocks, .. } = self;
        let agents = *agents;
        let count = if agents < RECEIVERS_FOR_THREADS { 1 } else { 4 * cores::count() };
        let size = agents.div_ceil(count).max(1);
        clear_blocks.resize_with(agents.div_ceil(size), ClearBlock::default);
        let gather = |first: usize, block: &mut ClearBlock, links: &mut [LinkCount]| {
            let ClearBlock { arrivals, ends, copies, lost } = block;
            arrivals.clear();
            ends.clear();
            (*copies, *lost) = (0, 0);
            for (offset, links) in links.chunks_mut(agents).enumerate() {
                source.each_link(first + offset, slot, |sender, is_received| {
                    for broadcast in transmissions.of(sender) {
                        *copies += 1;
                        links[sender].copies += 1;
                        if is_received {
                            let (sender, frame) = (sender as u32, transmissions.index_of(broadcast));
                            arrivals.push(Arrival { sender, frame, origin: CopyOrigin::Genuine });
                        } else {
                            *lost += 1;
                            links[sender].lost += 1;
                        }
                    }
                });
                ends.push(arrivals.len());
            }
        };
        let rows = counters.rows_mut(size).zip(&mut *clear_blocks).enumerate();
        let () = cores::map(rows, |(index, (links, block))| gather(index * size, block, links));
        for ClearBlock { arrivals, ends, copies, lost } in clear_blocks {
            delivery.append(arrivals, ends);
            counters.copies += *copies;
            counters.lost.margin += *lost;
        }
    }
}
