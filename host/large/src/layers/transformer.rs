//! One encoder layer of BERT: attention and a two-layer network, each with a residual and a norm after it.
//!
//! Query, key and value lie side by side in one `[rows, 3 · width]` buffer, and heads are read out of it by stride: nothing is
//! transposed or copied between products.

use super::linear::{LinearWeights, input_gradient, multiply, weight_gradient};
use super::{Layer, Norm};
use crate::program::op::{DistanceBias, Operand};
use crate::program::{Function, Gemm, Op, ProgramBuilder, View};

/// Sizes and constants of every encoder layer of a model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TransformerShape {
    pub samples: usize,
    pub sequence: usize,
    pub width: usize,
    pub heads: usize,
    pub inner: usize,
    pub epsilon: f64,
    /// Probability of dropout after both networks.
    pub dropout: f64,
}

impl TransformerShape {
    fn rows(&self) -> usize {
        self.samples * self.sequence
    }

    fn head(&self) -> usize {
        self.width / self.heads
    }
}

#[derive(Debug)]
pub struct Transformer {
    name: String,
    shape: TransformerShape,
    distance_bias: Option<DistanceBias>,
    projections: LinearWeights,
    output: LinearWeights,
    expand: LinearWeights,
    contract: LinearWeights,
    after_attention: Norm,
    after_network: Norm,
    dropouts: [u32; 2],
    saved: Option<TransformerSaved>,
}

#[derive(Clone, Copy, Debug)]
struct TransformerSaved {
    x: View,
    qkv: View,
    p: View,
    attended: View,
    middle: View,
    u: View,
    expanded: View,
}

impl Transformer {
    pub fn new(
        name: impl Into<String>,
        shape: TransformerShape,
        distance_bias: Option<DistanceBias>,
    ) -> Self {
        let norm = |name| Norm::layer(name, shape.rows(), shape.width, shape.epsilon);
        Transformer {
            name: name.into(),
            shape,
            distance_bias,
            projections: LinearWeights::default(),
            output: LinearWeights::default(),
            expand: LinearWeights::default(),
            contract: LinearWeights::default(),
            after_attention: norm("attention.output.LayerNorm"),
            after_network: norm("output.LayerNorm"),
            dropouts: [0; 2],
            saved: None,
        }
    }

    /// A product for every sample and head; operands of `width` columns hold heads side by side.
    fn per_head(&self, [m, n, k]: [usize; 3], [a, b, c]: [Operand; 3], alpha: f64) -> Op {
        Op::Gemm(Gemm {
            m,
            n,
            k,
            a,
            b,
            c,
            alpha,
            beta: 0.0,
            outer: self.shape.samples,
            inner: self.shape.heads,
        })
    }

    /// One of query (0), key (1) and value (2) inside a packed buffer.
    fn part(&self, packed: View, part: usize) -> Operand {
        let row = 3 * self.shape.width;
        Operand::new(packed.after(part * self.shape.width), row)
            .strides(self.shape.sequence * row, self.shape.head())
    }

    /// Heads side by side in rows of `width`.
    fn heads(&self, x: View) -> Operand {
        Operand::new(x, self.shape.width).strides(self.shape.sequence * self.shape.width, self.shape.head())
    }

    /// One square of scores per sample and head.
    fn squares(&self, scores: View) -> Operand {
        let area = self.shape.sequence * self.shape.sequence;
        Operand::new(scores, self.shape.sequence).strides(self.shape.heads * area, area)
    }

    /// Residual, norm and, when it is on, dropout between a product `x` and them.
    fn join(
        &mut self,
        builder: &mut ProgramBuilder,
        x: View,
        residual: View,
        bias: Option<usize>,
        second: bool,
    ) -> View {
        let (rows, columns, rate) = (self.shape.rows(), self.shape.width, self.shape.dropout);
        let (x, bias) = if rate > 0.0 {
            self.dropouts[usize::from(second)] = builder.dropout_layer();
            builder.push(Op::Activate { x, out: x, bias, rows, columns, function: Function::Identity });
            builder.push(Op::Dropout {
                x,
                out: x,
                words: rows * columns,
                rate,
                layer: self.dropouts[usize::from(second)],
            });
            (x, None)
        } else {
            (x, bias)
        };
        let norm = if second { &mut self.after_network } else { &mut self.after_attention };
        norm.forward_after(builder, x, Some(residual), bias)
    }

    /// The gradient that goes into a product, from `d` of its sum with the residual.
    fn part_of_join(&self, builder: &mut ProgramBuilder, d: View, second: bool) -> View {
        let rate = self.shape.dropout;
        if rate == 0.0 {
            return d;
        }
        let words = self.shape.rows() * self.shape.width;
        let out = builder.buffer(words);
        builder.push(Op::Dropout { x: d, out, words, rate, layer: self.dropouts[usize::from(second)] });
        out
    }
}

impl Layer for Transformer {
    fn forward(&mut self, builder: &mut ProgramBuilder, x: View) -> View {
        let TransformerShape { samples, sequence, width, heads, inner, .. } = self.shape;
        let (rows, head, alpha) =
            (self.shape.rows(), self.shape.head(), 1.0 / (self.shape.head() as f64).sqrt());
        let name = self.name.clone();
        builder.within(&name, |builder| {
            self.projections = builder
                .within("attention.self.qkv", |builder| LinearWeights::add(builder, width, 3 * width, true));
            let qkv = builder.buffer(rows * 3 * width);
            multiply(builder, rows, width, 3 * width, x, self.projections.matrix, qkv);
            builder.push(Op::Activate {
                x: qkv,
                out: qkv,
                bias: self.projections.bias,
                rows,
                columns: 3 * width,
                function: Function::Identity,
            });
            let p = builder.buffer(samples * heads * sequence * sequence);
            let [q, k, v] = [0, 1, 2].map(|part| self.part(qkv, part));
            builder.push(self.per_head(
                [sequence, sequence, head],
                [q, k.transposed(), self.squares(p)],
                alpha,
            ));
            builder.push(Op::AttentionSoftmax {
                scores: p,
                heads,
                sequence,
                distance_bias: self.distance_bias,
            });
            let attended = builder.buffer(rows * width);
            builder.push(self.per_head(
                [sequence, head, sequence],
                [self.squares(p), v, self.heads(attended)],
                1.0,
            ));

            self.output = builder
                .within("attention.output.dense", |builder| LinearWeights::add(builder, width, width, true));
            let projected = builder.buffer(rows * width);
            multiply(builder, rows, width, width, attended, self.output.matrix, projected);
            let middle = self.join(builder, projected, x, self.output.bias, false);

            self.expand = builder
                .within("intermediate.dense", |builder| LinearWeights::add(builder, width, inner, true));
            let (u, expanded) = (builder.buffer(rows * inner), builder.buffer(rows * inner));
            multiply(builder, rows, width, inner, middle, self.expand.matrix, u);
            builder.push(Op::Activate {
                x: u,
                out: expanded,
                bias: self.expand.bias,
                rows,
                columns: inner,
                function: Function::Gelu,
            });

            self.contract =
                builder.within("output.dense", |builder| LinearWeights::add(builder, inner, width, true));
            let contracted = builder.buffer(rows * width);
            multiply(builder, rows, inner, width, expanded, self.contract.matrix, contracted);
            let out = self.join(builder, contracted, middle, self.contract.bias, true);
            self.saved = Some(TransformerSaved { x, qkv, p, attended, middle, u, expanded });
            out
        })
    }

    fn backward(&self, builder: &mut ProgramBuilder, d: View, wants_input: bool) -> Option<View> {
        let TransformerSaved { x, qkv, p, attended, middle, u, expanded } =
            self.saved.expect("forward is laid before backward");
        let TransformerShape { sequence, width, heads, inner, .. } = self.shape;
        let (rows, head, alpha) =
            (self.shape.rows(), self.shape.head(), 1.0 / (self.shape.head() as f64).sqrt());
        let bias = |builder: &mut ProgramBuilder, d, weights: LinearWeights, columns| {
            if let Some(bias) = weights.bias {
                builder.push(Op::BiasGradient { d, bias, rows, columns });
            }
        };

        let sum = self.after_network.backward(builder, d, true)?;
        let through = self.part_of_join(builder, sum, true);
        bias(builder, through, self.contract, width);
        weight_gradient(builder, rows, inner, width, expanded, through, self.contract.matrix);
        let du = builder.buffer(rows * inner);
        input_gradient(builder, rows, inner, width, through, self.contract.matrix, du, 0.0);
        builder.push(Op::ActivateBackward { saved: u, d: du, words: rows * inner, function: Function::Gelu });
        bias(builder, du, self.expand, inner);
        weight_gradient(builder, rows, width, inner, middle, du, self.expand.matrix);
        // The residual's gradient is there already: the product adds to it.
        input_gradient(builder, rows, width, inner, du, self.expand.matrix, sum, 1.0);

        let sum = self.after_attention.backward(builder, sum, true)?;
        let through = self.part_of_join(builder, sum, false);
        bias(builder, through, self.output, width);
        weight_gradient(builder, rows, width, width, attended, through, self.output.matrix);
        let dattended = builder.buffer(rows * width);
        input_gradient(builder, rows, width, width, through, self.output.matrix, dattended, 0.0);

        let [q, k, v] = [0, 1, 2].map(|part| self.part(qkv, part));
        let (dqkv, dscores) = (builder.buffer(rows * 3 * width), builder.buffer(builder.words(p)));
        let [dq, dk, dv] = [0, 1, 2].map(|part| self.part(dqkv, part));
        let (dout, ds) = (self.heads(dattended), self.squares(dscores));
        builder.push(self.per_head([sequence, sequence, head], [dout, v.transposed(), ds], 1.0));
        builder.push(self.per_head(
            [sequence, head, sequence],
            [self.squares(p).transposed(), dout, dv],
            1.0,
        ));
        builder.push(Op::AttentionSoftmaxBackward {
            p,
            d: dscores,
            heads,
            sequence,
            distance_bias: self.distance_bias,
        });
        builder.push(self.per_head([sequence, head, sequence], [ds, k, dq], alpha));
        builder.push(self.per_head([sequence, head, sequence], [ds.transposed(), q, dk], alpha));
        bias(builder, dqkv, self.projections, 3 * width);
        weight_gradient(builder, rows, width, 3 * width, x, dqkv, self.projections.matrix);
        wants_input.then(|| {
            input_gradient(builder, rows, width, 3 * width, dqkv, self.projections.matrix, sum, 1.0);
            sum
        })
    }
}
