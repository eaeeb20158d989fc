//! One encoder layer of BERT: attention and a two-layer network, each with a residual and a norm after it.
//!
//! Query, key and value lie side by side in one `[rows, 3 · width]` buffer, and heads are read out of it by stride: nothing is
//! transposed or copied between products.

use super::linear::LinearWeights;
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
        let norm = |name| Norm::new(name, shape.rows(), shape.width, shape.epsilon);
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
        bias: usize,
        second: bool,
    ) -> View {
        let (rows, columns, rate) = (self.shape.rows(), self.shape.width, self.shape.dropout);
        let (x, bias) = if rate > 0.0 {
            self.dropouts[usize::from(second)] = builder.dropout_layer();
            builder.push(Op::Activate {
                x,
                out: x,
                bias: Some(bias),
                rows,
                columns,
                function: Function::Identity,
            });
            builder.push(Op::Dropout {
                x,
                out: x,
                words: rows * columns,
                rate,
                layer: self.dropouts[usize::from(second)],
            });
            (x, None)
        } else {
            (x, Some(bias))
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
            let sizes = [rows, width, 3 * width];
            self.projections = LinearWeights::add(builder, "attention.self.qkv", sizes);
            let qkv = self.projections.multiply(builder, x);
            self.projections.activate(builder, qkv, Function::Identity);
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

            let sizes = [rows, width, width];
            self.output = LinearWeights::add(builder, "attention.output.dense", sizes);
            let projected = self.output.multiply(builder, attended);
            let middle = self.join(builder, projected, x, self.output.bias, false);

            self.expand = LinearWeights::add(builder, "intermediate.dense", [rows, width, inner]);
            let u = self.expand.multiply(builder, middle);
            let expanded = self.expand.activate(builder, u, Function::Gelu);

            self.contract = LinearWeights::add(builder, "output.dense", [rows, inner, width]);
            let contracted = self.contract.multiply(builder, expanded);
            let out = self.join(builder, contracted, middle, self.contract.bias, true);
            self.saved = Some(TransformerSaved { x, qkv, p, attended, middle, u, expanded });
            out
        })
    }

    fn backward(&self, builder: &mut ProgramBuilder, d: View, wants_input: bool) -> Option<View> {
        let TransformerSaved { x, qkv, p, attended, middle, u, expanded } =
            self.saved.expect("forward is laid before backward");
        let TransformerShape { sequence, width, heads, .. } = self.shape;
        let (rows, head, alpha) =
            (self.shape.rows(), self.shape.head(), 1.0 / (self.shape.head() as f64).sqrt());

        let sum = self.after_network.backward(builder, d, true)?;
        let through = self.part_of_join(builder, sum, true);
        self.contract.gradients(builder, expanded, through);
        let du = self.contract.input_gradient(builder, through);
        self.expand.activate_backward(builder, u, du, Function::Gelu);
        self.expand.gradients(builder, middle, du);
        // The residual's gradient is there already: the product adds to it.
        self.expand.write_input_gradient(builder, du, sum, 1.0);

        let sum = self.after_attention.backward(builder, sum, true)?;
        let through = self.part_of_join(builder, sum, false);
        self.output.gradients(builder, attended, through);
        let dattended = self.output.input_gradient(builder, through);

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
        self.projections.gradients(builder, x, dqkv);
        wants_input.then(|| {
            self.projections.write_input_gradient(builder, dqkv, sum, 1.0);
            sum
        })
    }
}
