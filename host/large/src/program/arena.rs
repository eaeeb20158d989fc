//! Where each intermediate buffer lies: buffers whose lives do not overlap share memory.

use super::{BufferPrecision, ModelProgram};

/// Words every buffer starts at a multiple of.
const ALIGNMENT: usize = 64;

/// Offsets of all buffers of one agent, one space per precision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Arena {
    offsets: Vec<usize>,
    activation_words: usize,
    exact_words: usize,
}

impl Arena {
    /// Places every buffer of `program` at the lowest offset that is free for its whole life, longest-lived neighbours first
    /// come, first served. Greedy by order of first use: within a few per cent of the peak for layered models.
    pub(crate) fn new(program: &ModelProgram) -> Self {
        let lives = lives(program);
        let mut offsets = vec![0; program.buffers.len()];
        let mut ends = [0, 0];
        let mut order: Vec<usize> = (0..program.buffers.len()).filter(|&id| lives[id].is_some()).collect();
        order.sort_by_key(|&id| lives[id]);
        for (placed, &id) in order.iter().enumerate() {
            let buffer = program.buffers[id];
            let words = buffer.words.next_multiple_of(ALIGNMENT);
            let mut taken: Vec<(usize, usize)> = order[..placed]
                .iter()
                .filter(|&&other| {
                    program.buffers[other].precision == buffer.precision && overlap(lives[other], lives[id])
                })
                .map(|&other| {
                    (
                        offsets[other],
                        offsets[other] + program.buffers[other].words.next_multiple_of(ALIGNMENT),
                    )
                })
                .collect();
            taken.sort_unstable();
            let mut start = 0;
            for (from, to) in taken {
                if from >= start + words {
                    break;
                }
                start = start.max(to);
            }
            offsets[id] = start;
            let end = &mut ends[usize::from(buffer.precision == BufferPrecision::Exact)];
            *end = (*end).max(start + words);
        }
        Arena { offsets, activation_words: ends[0], exact_words: ends[1] }
    }

    /// Offset of buffer `id` in the space of its precision.
    pub(crate) fn offset(&self, id: super::Id) -> usize {
        self.offsets[id.0]
    }

    /// Words of one agent in activation precision.
    pub(crate) fn activation_words(&self) -> usize {
        self.activation_words
    }

    /// Words of one agent in full precision.
    pub(crate) fn exact_words(&self) -> usize {
        self.exact_words
    }
}

type Life = Option<(usize, usize)>;

/// First and last operation that touches each buffer.
fn lives(program: &ModelProgram) -> Vec<Life> {
    let mut lives: Vec<Life> = vec![None; program.buffers.len()];
    for (moment, op) in program.forward.iter().chain(&program.backward).enumerate() {
        for id in op.buffers() {
            let life = lives[id.0].get_or_insert((moment, moment));
            life.1 = moment;
        }
    }
    lives
}

fn overlap(a: Life, b: Life) -> bool {
    matches!((a, b), (Some(a), Some(b)) if a.0 <= b.1 && b.0 <= a.1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::{Input, Op, ProgramBuilder};

    #[test]
    fn buffers_share_memory_only_when_their_lives_are_apart() {
        let mut builder = ProgramBuilder::new(Input::Features { width: 1 }, 1, 2);
        let [a, b, c] = [100, 100, 50].map(|words| builder.buffer(words));
        builder.push(Op::Dropout { x: a, out: b, words: 100, rate: 0.0, layer: 0 });
        builder.push(Op::Dropout { x: b, out: c, words: 50, rate: 0.0, layer: 0 });
        let program = builder.finish(c);
        let arena = Arena::new(&program);
        // c begins when a is over; b lives with both.
        assert_eq!(arena.offsets, [0, 128, 0]);
        assert_eq!((arena.activation_words(), arena.exact_words()), (256, 0));
    }
}
