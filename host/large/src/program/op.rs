//! The operations that a device implements.

use super::{MemorySpace, View};

/// `C = alpha · op(A) · op(B) + beta · C`, row-major, repeated over a grid of `outer` × `inner` matrices.
///
/// Attention multiplies one matrix per sample (`outer`) and head (`inner`) straight out of the packed projections; everything
/// else has a grid of one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Gemm {
    pub m: usize,
    pub n: usize,
    pub k: usize,
    pub a: Operand,
    pub b: Operand,
    pub c: Operand,
    pub alpha: f64,
    pub beta: f64,
    pub outer: usize,
    pub inner: usize,
}

impl Gemm {
    /// Products of one agent.
    pub(crate) fn count(&self) -> usize {
        self.outer * self.inner
    }
}

/// A matrix operand: where it starts, the distance between its rows as stored, and whether it is read transposed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Operand {
    pub view: View,
    pub row: usize,
    pub is_transposed: bool,
    /// Distance from one sample's matrix to the next.
    pub outer: usize,
    /// Distance from one head's matrix to the next.
    pub inner: usize,
}

impl Operand {
    pub(crate) fn new(view: View, row: usize) -> Self {
        Operand { view, row, is_transposed: false, outer: 0, inner: 0 }
    }

    pub(crate) fn transposed(self) -> Self {
        Operand { is_transposed: true, ..self }
    }

    pub(crate) fn strides(self, outer: usize, inner: usize) -> Self {
        Operand { outer, inner, ..self }
    }
}

/// An element-wise function that follows a bias.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Function {
    /// x
    Identity,
    /// max(x, 0)
    Relu,
    /// tanh x
    Tanh,
    /// x · Φ(x), with the exact error function as BERT has it.
    Gelu,
}

/// A convolution with an odd square kernel over images stored height, width, channel, which keeps their size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Geometry {
    pub images: usize,
    pub height: usize,
    pub width: usize,
    pub channels: usize,
    pub kernel: usize,
}

impl Geometry {
    /// Pixels around the image that count as zero.
    pub(crate) fn padding(&self) -> usize {
        self.kernel / 2
    }

    /// Rows of the matrix of patches.
    pub(crate) fn rows(&self) -> usize {
        self.images * self.height * self.width
    }

    /// Columns of the matrix of patches.
    pub(crate) fn patch(&self) -> usize {
        self.kernel * self.kernel * self.channels
    }
}

/// Disjoint squares of images stored height, width, channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Squares {
    pub images: usize,
    pub height: usize,
    pub width: usize,
    pub channels: usize,
    /// The side of a square, in pixels.
    pub size: usize,
}

impl Squares {
    /// Words of the images.
    pub(crate) fn words(&self) -> usize {
        self.images * self.height * self.width * self.channels
    }

    /// Words where each square is one.
    pub(crate) fn pooled_words(&self) -> usize {
        self.images * (self.height / self.size) * (self.width / self.size) * self.channels
    }
}

/// A bias by column, where there is one, and the function that follows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Activation {
    pub bias: Option<usize>,
    pub rows: usize,
    pub columns: usize,
    pub function: Function,
}

/// A norm by row, with a gain and a shift by column; where there is a bias by column, it is added before.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct NormShape {
    pub bias: Option<usize>,
    pub gain: usize,
    pub shift: usize,
    pub rows: usize,
    pub columns: usize,
    pub epsilon: f64,
}

/// The tables of embeddings, of rows of `width` words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EmbeddingTables {
    pub words: usize,
    pub positions: usize,
    /// Where there are token types, of which the first is used.
    pub types: Option<usize>,
    pub sequence: usize,
    pub width: usize,
    pub first_position: usize,
}

/// Rows of attention scores, with a bias by distance and head where there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AttentionRows {
    pub heads: usize,
    pub sequence: usize,
    pub distance_bias: Option<DistanceBias>,
}

/// One step of a program. Offsets of parameters are words in the packed vector; their gradients lie at the same offset of
/// the packed gradient.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Op {
    /// Products of matrices.
    Gemm(Gemm),
    /// `out = function(x + bias)`; in place when `out` is `x`.
    Activate { x: View, out: View, activation: Activation },
    /// `d *= function'`, from the function's output (ReLU, tanh) or what was its input before the bias (GELU).
    ActivateBackward { saved: View, d: View, activation: Activation },
    /// Gradient of a bias: sums of `d` by column.
    BiasGradient { d: View, bias: usize, rows: usize, columns: usize },
    /// Sets words of the gradient to zero, for what is added to afterwards.
    ClearGradient { offset: usize, words: usize },
    /// Matrix of patches of every image.
    Patches { x: View, patches: View, geometry: Geometry },
    /// The transposed of [`Op::Patches`]: adds every patch back to its image.
    PatchesBackward { patches: View, dx: View, geometry: Geometry },
    /// The maximum of each square.
    Pool { x: View, out: View, squares: Squares },
    /// The first largest element of a square takes the whole gradient.
    PoolBackward { x: View, d: View, dx: View, squares: Squares },
    /// Normalises each row of `x + residual + bias`, then scales by column. `saved` are the normalised words and 1/σ.
    Norm { x: View, residual: Option<View>, out: View, saved: [View; 2], shape: NormShape },
    /// Gradient of a norm's input.
    NormBackward { d: View, saved: [View; 2], dx: View, shape: NormShape },
    /// Gradients of gain and shift.
    NormGradient { d: View, normal: View, shape: NormShape },
    /// Sum of a token's, a position's and (when there are token types) the first type's row.
    Embed { out: View, tables: EmbeddingTables },
    /// Adds gradients of rows to their tables (cleared before).
    EmbedBackward { d: View, tables: EmbeddingTables },
    /// Softmax over the real tokens of each row.
    AttentionSoftmax { scores: View, rows: AttentionRows },
    /// `d ← p (d − Σ p d)`; adds to the gradient of the distance bias (cleared before).
    AttentionSoftmaxBackward { p: View, d: View, rows: AttentionRows },
    /// First of every `sequence` rows.
    FirstRows { x: View, out: View, sequence: usize, columns: usize },
    /// The transposed of [`Op::FirstRows`]: the other rows get zero.
    FirstRowsBackward { d: View, dx: View, sequence: usize, columns: usize },
    /// Drops words with probability `rate` and scales the rest; the same mask on the way back.
    Dropout { x: View, out: View, words: usize, rate: f64, layer: u32 },
    /// Loss and hit of each sample into the batch; `logits` become the weighted gradient.
    CrossEntropy { logits: View, bias: usize, classes: usize },
}

/// A learned bias of attention scores by bucketed token distance, shared by all layers (MPNet): `[buckets, heads]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DistanceBias {
    pub table: usize,
    pub buckets: usize,
    pub furthest: usize,
}

impl DistanceBias {
    /// Bucket of the distance from token `query` to token `key`: half for each direction, exact near by, then logarithmic.
    pub(crate) fn bucket(&self, query: usize, key: usize) -> usize {
        let half = self.buckets / 2;
        let exact = half / 2;
        let (side, distance) = if key > query { (half, key - query) } else { (0, query - key) };
        if distance < exact {
            return side + distance;
        }
        let ratio = (distance as f32 / exact as f32).ln() / (self.furthest as f32 / exact as f32).ln();
        side + (exact + (ratio * (half - exact) as f32) as usize).min(half - 1)
    }
}

impl Op {
    /// Every view the operation reads or writes.
    pub(crate) fn views(&self) -> Vec<View> {
        match *self {
            Op::Gemm(g) => vec![g.a.view, g.b.view, g.c.view],
            Op::Activate { x, out, .. } | Op::Pool { x, out, .. } => vec![x, out],
            Op::ActivateBackward { saved, d, .. } => vec![saved, d],
            Op::BiasGradient { d, .. } | Op::EmbedBackward { d, .. } => vec![d],
            Op::ClearGradient { .. } => vec![],
            Op::Patches { x, patches, .. } => vec![x, patches],
            Op::PatchesBackward { patches, dx, .. } => vec![patches, dx],
            Op::PoolBackward { x, d, dx, .. } => vec![x, d, dx],
            Op::Norm { x, residual, out, saved: [normal, inverse], .. } => {
                residual.into_iter().chain([x, out, normal, inverse]).collect()
            }
            Op::NormBackward { d, saved: [normal, inverse], dx, .. } => vec![d, normal, inverse, dx],
            Op::NormGradient { d, normal, .. } => vec![d, normal],
            Op::Embed { out, .. } => vec![out],
            Op::AttentionSoftmax { scores, .. } => vec![scores],
            Op::AttentionSoftmaxBackward { p, d, .. } => vec![p, d],
            Op::FirstRows { x, out, .. } | Op::Dropout { x, out, .. } => vec![x, out],
            Op::FirstRowsBackward { d, dx, .. } => vec![d, dx],
            Op::CrossEntropy { logits, .. } => vec![logits],
        }
    }

    /// The buffers the operation reads or writes.
    pub(crate) fn buffers(&self) -> impl Iterator<Item = super::Id> {
        self.views().into_iter().filter_map(|view| match view.place {
            MemorySpace::Buffer(id) => Some(id),
            _ => None,
        })
    }
}
