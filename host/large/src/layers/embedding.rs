//! Token, position and (for BERT) type embeddings, summed.

use super::Layer;
use crate::parameters::Start;
use crate::program::{Op, ProgramBuilder, View};

/// Spread of embeddings that no checkpoint fills: uniform with BERT's standard deviation of .02.
const BOUND: f64 = 0.02 * 1.732_050_807_568_877_2;

/// Sizes of the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tables {
    pub vocabulary: usize,
    pub positions: usize,
    /// Token types; a classifier uses the first only. MPNet has none.
    pub types: usize,
    /// Position of a sequence's first token: 0 for BERT, 2 for MPNet.
    pub first_position: usize,
}

#[derive(Debug)]
pub struct Embedding {
    tables: Tables,
    sequence: usize,
    width: usize,
    words: usize,
    positions: usize,
    types: Option<usize>,
}

impl Embedding {
    pub fn new(tables: Tables, sequence: usize, width: usize) -> Self {
        Embedding { tables, sequence, width, words: 0, positions: 0, types: None }
    }
}

impl Layer for Embedding {
    /// The input is the batch's tokens, whatever `_x` is.
    fn forward(&mut self, builder: &mut ProgramBuilder, _x: View) -> View {
        let (tables, width) = (self.tables, self.width);
        self.words =
            builder.parameter("word_embeddings.weight", &[tables.vocabulary, width], Start::Uniform(BOUND));
        self.positions = builder.parameter(
            "position_embeddings.weight",
            &[tables.positions, width],
            Start::Uniform(BOUND),
        );
        self.types = (tables.types > 0).then(|| {
            builder.parameter("token_type_embeddings.weight", &[tables.types, width], Start::Uniform(BOUND))
        });
        let out = builder.buffer(builder.samples() * self.sequence * width);
        let &mut Embedding { words, positions, types, sequence, .. } = self;
        builder.push(Op::Embed {
            words,
            positions,
            types,
            out,
            sequence,
            width,
            first_position: tables.first_position,
        });
        out
    }

    fn backward(&self, builder: &mut ProgramBuilder, d: View, _wants_input: bool) -> Option<View> {
        let &Embedding { words, positions, types, sequence, width, tables } = self;
        builder.push(Op::ClearGradient { offset: words, words: tables.vocabulary * width });
        builder.push(Op::ClearGradient { offset: positions, words: tables.positions * width });
        if let Some(types) = types {
            builder.push(Op::ClearGradient { offset: types, words: tables.types * width });
        }
        builder.push(Op::EmbedBackward {
            d,
            words,
            positions,
            types,
            sequence,
            width,
            first_position: tables.first_position,
        });
        None
    }
}
