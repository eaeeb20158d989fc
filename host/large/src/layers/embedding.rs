//! Token, position and (for BERT) type embeddings, summed.

use super::{Backward, Layer};
use crate::parameters::Start;
use crate::program::{Op, ProgramBuilder, View};

/// Spread of embeddings that no checkpoint fills: uniform with BERT's standard deviation of .02.
const BOUND: f64 = 0.02 * 1.732_050_807_568_877_2;

/// Sizes of the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tables {
    pub vocabulary: usize,
    pub positions: usize,
    /// Token types; a classifier uses the first only. MPNet has none.
    pub types: usize,
    /// Position of a sequence's first token: 0 for BERT, 2 for MPNet.
    pub first_position: usize,
}

#[derive(Debug)]
pub(crate) struct Embedding {
    tables: Tables,
    sequence: usize,
    width: usize,
}

impl Embedding {
    pub(crate) fn new(tables: Tables, sequence: usize, width: usize) -> Self {
        Embedding { tables, sequence, width }
    }
}

impl Layer for Embedding {
    /// The input is the batch's tokens, whatever `_x` is.
    fn lay(&self, builder: &mut ProgramBuilder, _x: View) -> (View, Backward) {
        let &Embedding { tables, sequence, width } = self;
        let mut table = |name: &str, rows: usize| {
            builder.parameter(&format!("{name}_embeddings.weight"), &[rows, width], Start::Uniform(BOUND))
        };
        let (words, positions) = (table("word", tables.vocabulary), table("position", tables.positions));
        let types = (tables.types > 0).then(|| table("token_type", tables.types));
        let out = builder.buffer(builder.samples() * sequence * width);
        let first_position = tables.first_position;
        builder.push(Op::Embed { words, positions, types, out, sequence, width, first_position });
        let backward = move |builder: &mut ProgramBuilder, d: View, _wants_input: bool| {
            let mut clear = |offset, rows| builder.push(Op::ClearGradient { offset, words: rows * width });
            clear(words, tables.vocabulary);
            clear(positions, tables.positions);
            types.into_iter().for_each(|types| clear(types, tables.types));
            builder.push(Op::EmbedBackward { d, words, positions, types, sequence, width, first_position });
            None
        };
        (out, Box::new(backward))
    }
}
