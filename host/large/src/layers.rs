//! Layers: each lays its forward operations down, and leaves with the builder what lays its hand-derived backward operations.

#[cfg(test)]
mod checking;
pub(crate) mod linear;
pub(crate) mod transformer;

pub(crate) use linear::{conv2d, cross_entropy, linear};
pub(crate) use transformer::{TransformerShape, transformer};

use crate::parameters::Start;
use crate::program::op::{EmbeddingTables, NormShape};
use crate::program::{Op, ProgramBuilder, Squares, View};

/// Spread of embeddings that no checkpoint fills: uniform with BERT's standard deviation of .02.
const EMBEDDING_BOUND: f64 = 0.02 * 1.732_050_807_568_877_2;

/// Sizes of the tables of embeddings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tables {
    pub vocabulary: usize,
    pub positions: usize,
    /// Token types; a classifier uses the first only. MPNet has none.
    pub types: usize,
    /// Position of a sequence's first token: 0 for BERT, 2 for MPNet.
    pub first_position: usize,
}

/// Token, position and (for BERT) type embeddings of the batch's tokens, summed.
pub(crate) fn embedding(builder: &mut ProgramBuilder, sizes: Tables, sequence: usize, width: usize) -> View {
    let mut table = |name: &str, rows: usize| {
        let name = format!("{name}_embeddings.weight");
        builder.parameter(&name, &[rows, width], Start::Uniform(EMBEDDING_BOUND))
    };
    let (words, positions) = (table("word", sizes.vocabulary), table("position", sizes.positions));
    let types = (sizes.types > 0).then(|| table("token_type", sizes.types));
    let first_position = sizes.first_position;
    let tables = EmbeddingTables { words, positions, types, sequence, width, first_position };
    let out = builder.buffer(builder.samples() * sequence * width);
    builder.push(Op::Embed { out, tables });
    builder.back_by(move |builder, d, _| {
        let mut clear = |offset, rows| builder.push(Op::ClearGradient { offset, words: rows * width });
        clear(words, sizes.vocabulary);
        clear(positions, sizes.positions);
        types.into_iter().for_each(|types| clear(types, sizes.types));
        builder.push(Op::EmbedBackward { d, tables });
        None
    });
    out
}

/// Layer norm: every row by itself, with a learned gain and shift by column.
pub(crate) fn norm(
    builder: &mut ProgramBuilder,
    x: View,
    name: &str,
    [rows, columns]: [usize; 2],
    epsilon: f64,
) -> View {
    let (out, way_back) = norm_after(builder, x, None, None, name, [rows, columns], epsilon);
    builder.back_by(way_back);
    out
}

/// The norm of `x + residual + bias`, in one operation, and what lays its backward operations.
fn norm_after(
    builder: &mut ProgramBuilder,
    x: View,
    residual: Option<View>,
    bias: Option<usize>,
    name: &str,
    [rows, columns]: [usize; 2],
    epsilon: f64,
) -> (View, impl FnOnce(&mut ProgramBuilder, View, bool) -> Option<View> + use<>) {
    let (gain, shift) = builder.within(name, |builder| {
        let gain = builder.parameter("weight", &[columns], Start::Constant(1.0));
        (gain, builder.parameter("bias", &[columns], Start::Constant(0.0)))
    });
    let shape = NormShape { bias, gain, shift, rows, columns, epsilon };
    let words = rows * columns;
    let (out, normal, inverse) = (builder.buffer(words), builder.buffer(words), builder.exact_buffer(rows));
    let saved = [normal, inverse];
    builder.push(Op::Norm { x, residual, out, saved, shape });
    let way_back = move |builder: &mut ProgramBuilder, d: View, wants_input: bool| {
        builder.push(Op::NormGradient { d, normal, shape });
        wants_input.then(|| {
            let dx = builder.buffer(words);
            builder.push(Op::NormBackward { d, saved, dx, shape });
            dx
        })
    };
    (out, way_back)
}

/// Dropout whose mask is a function of seed, agent, round and layer: nothing is stored, and a resumed run repeats it.
pub(crate) fn dropout(builder: &mut ProgramBuilder, x: View, words: usize, rate: f64) -> View {
    let layer = builder.dropout_layer();
    // Not in place: the layer before may need its output for its own derivative.
    let out = builder.buffer(words);
    builder.push(Op::Dropout { x, out, words, rate, layer });
    builder.back_by(move |builder, d, wants_input| {
        builder.push(Op::Dropout { x: d, out: d, words, rate, layer });
        wants_input.then_some(d)
    });
    out
}

/// The maximum of disjoint squares, which must cover the images: a remainder would be ignored.
pub(crate) fn pool(builder: &mut ProgramBuilder, x: View, squares: Squares) -> View {
    let Squares { height, width, size, .. } = squares;
    assert!(height % size == 0 && width % size == 0, "{height} x {width} is not made of squares of {size}");
    let out = builder.buffer(squares.pooled_words());
    builder.push(Op::Pool { x, out, squares });
    builder.back_by(move |builder, d, wants_input| {
        wants_input.then(|| {
            let dx = builder.buffer(squares.words());
            builder.push(Op::PoolBackward { x, d, dx, squares });
            dx
        })
    });
    out
}

/// Keeps the first token of every sequence: what a classifier reads off a BERT.
pub(crate) fn first_token(builder: &mut ProgramBuilder, x: View, sequence: usize, columns: usize) -> View {
    let out = builder.buffer(builder.samples() * columns);
    builder.push(Op::FirstRows { x, out, sequence, columns });
    builder.back_by(move |builder, d, wants_input| {
        wants_input.then(|| {
            let dx = builder.buffer(builder.samples() * sequence * columns);
            builder.push(Op::FirstRowsBackward { d, dx, sequence, columns });
            dx
        })
    });
    out
}
