//! One encoder layer of BERT: attention and a two-layer network, each with a residual and a norm after it.
//!
//! Query, key and value lie side by side in one `[rows, 3 · width]` buffer, and heads are read out of it by stride: nothing is
//! transposed or copied between products.

use super::linear::LinearWeights;
use super::norm_after;
use crate::program::op::{Activation, AttentionRows, DistanceBias, Operand};
use crate::program::{Function, Gemm, Op, ProgramBuilder, View};

/// Sizes and constants of every encoder layer of a model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct TransformerShape {
    pub samples: usize,
    pub sequence: usize,
    pub width: usize,
    pub heads: usize,
    pub inner: usize,
    pub epsilon: f64,
    /// Probability of dropout after both networks.
    pub dropout: f64,
    pub distance_bias: Option<DistanceBias>,
}

impl TransformerShape {
    fn rows(&self) -> usize {
        self.samples * self.sequence
    }

    fn head(&self) -> usize {
        self.width / self.heads
    }

    /// A product for every sample and head; operands of `width` columns hold heads side by side.
    fn per_head(&self, [m, n, k]: [usize; 3], [a, b, c]: [Operand; 3], alpha: f64) -> Op {
        let (outer, inner) = (self.samples, self.heads);
        Op::Gemm(Gemm { m, n, k, a, b, c, alpha, beta: 0.0, outer, inner })
    }

    /// Query, key and value inside a packed buffer.
    fn parts(&self, packed: View) -> [Operand; 3] {
        let row = 3 * self.width;
        [0, 1, 2].map(|part| {
            Operand::new(packed.after(part * self.width), row).strides(self.sequence * row, self.head())
        })
    }

    /// Heads side by side in rows of `width`.
    fn heads(&self, x: View) -> Operand {
        Operand::new(x, self.width).strides(self.sequence * self.width, self.head())
    }

    /// One square of scores per sample and head.
    fn squares(&self, scores: View) -> Operand {
        let area = self.sequence * self.sequence;
        Operand::new(scores, self.sequence).strides(self.heads * area, area)
    }

    /// Lays the residual and a norm after a product `x`, with dropout between where it is on. Returns the output, and what lays the
    /// backward operations: these give the gradients of the residual and of the product.
    fn join(
        self,
        builder: &mut ProgramBuilder,
        name: &str,
        [x, residual]: [View; 2],
        bias: usize,
    ) -> (View, impl FnOnce(&mut ProgramBuilder, View) -> Option<[View; 2]> + use<>) {
        let (rows, columns, rate) = (self.rows(), self.width, self.dropout);
        let words = rows * columns;
        let layer = (rate > 0.0).then(|| builder.dropout_layer());
        if let Some(layer) = layer {
            let activation = Activation { bias: Some(bias), rows, columns, function: Function::Identity };
            builder.push(Op::Activate { x, out: x, activation });
            builder.push(Op::Dropout { x, out: x, words, rate, layer });
        }
        let bias = if layer.is_none() { Some(bias) } else { None };
        let (out, backward) =
            norm_after(builder, x, Some(residual), bias, name, [rows, columns], self.epsilon);
        let backward = move |builder: &mut ProgramBuilder, d: View| {
            let sum = backward(builder, d, true)?;
            let Some(layer) = layer else { return Some([sum, sum]) };
            let through = builder.buffer(words);
            builder.push(Op::Dropout { x: sum, out: through, words, rate, layer });
            Some([sum, through])
        };
        (out, backward)
    }
}

/// An encoder layer, whose parameters have names that begin with `name`.
pub(crate) fn transformer(
    builder: &mut ProgramBuilder,
    x: View,
    name: &str,
    shape: TransformerShape,
) -> View {
    builder.within(name, |builder| {
        let TransformerShape { samples, sequence, width, heads, inner, distance_bias, .. } = shape;
        let (rows, head, all_scores) = (shape.rows(), shape.head(), samples * heads * sequence * sequence);
        let alpha = 1.0 / (head as f64).sqrt();

        let projections = LinearWeights::add(builder, "attention.self.qkv", [rows, width, 3 * width]);
        let qkv = projections.multiply(builder, x);
        projections.activate(builder, qkv, Function::Identity);
        let p = builder.buffer(all_scores);
        let [q, k, v] = shape.parts(qkv);
        let scores = [q, k.transposed(), shape.squares(p)];
        builder.push(shape.per_head([sequence, sequence, head], scores, alpha));
        let rows_of_scores = AttentionRows { heads, sequence, distance_bias };
        builder.push(Op::AttentionSoftmax { scores: p, rows: rows_of_scores });
        let attended = builder.buffer(rows * width);
        let values = [shape.squares(p), v, shape.heads(attended)];
        builder.push(shape.per_head([sequence, head, sequence], values, 1.0));

        let output = LinearWeights::add(builder, "attention.output.dense", [rows, width, width]);
        let projected = output.multiply(builder, attended);
        let (middle, after_attention) =
            shape.join(builder, "attention.output.LayerNorm", [projected, x], output.bias);

        let expand = LinearWeights::add(builder, "intermediate.dense", [rows, width, inner]);
        let u = expand.multiply(builder, middle);
        let expanded = expand.activate(builder, u, Function::Gelu);
        let contract = LinearWeights::add(builder, "output.dense", [rows, inner, width]);
        let contracted = contract.multiply(builder, expanded);
        let (out, after_network) =
            shape.join(builder, "output.LayerNorm", [contracted, middle], contract.bias);

        builder.back_by(move |builder, d, wants_input| {
            let [sum, through] = after_network(builder, d)?;
            contract.gradients(builder, expanded, through);
            let du = contract.input_gradient(builder, through);
            expand.activate_backward(builder, u, du, Function::Gelu);
            expand.gradients(builder, middle, du);
            // The residual's gradient is there already: the product adds to it.
            expand.write_input_gradient(builder, du, sum, 1.0);

            let [sum, through] = after_attention(builder, sum)?;
            output.gradients(builder, attended, through);
            let dattended = output.input_gradient(builder, through);

            let (dqkv, dscores) = (builder.buffer(rows * 3 * width), builder.buffer(all_scores));
            let [dq, dk, dv] = shape.parts(dqkv);
            let (dout, ds) = (shape.heads(dattended), shape.squares(dscores));
            builder.push(shape.per_head([sequence, sequence, head], [dout, v.transposed(), ds], 1.0));
            let values = [shape.squares(p).transposed(), dout, dv];
            builder.push(shape.per_head([sequence, head, sequence], values, 1.0));
            builder.push(Op::AttentionSoftmaxBackward { p, d: dscores, rows: rows_of_scores });
            builder.push(shape.per_head([sequence, head, sequence], [ds, k, dq], alpha));
            builder.push(shape.per_head([sequence, head, sequence], [ds.transposed(), q, dk], alpha));
            projections.gradients(builder, x, dqkv);
            wants_input.then(|| {
                projections.write_input_gradient(builder, dqkv, sum, 1.0);
                sum
            })
        });
        out
    })
}
