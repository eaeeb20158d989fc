//! `out = x W + b`, with W stored input × output.

use super::Layer;
use crate::parameters::Start;
use crate::program::op::Operand;
use crate::program::{Function, Gemm, Op, ProgramBuilder, View};

/// A dense layer over rows, with the function that follows it.
#[derive(Debug)]
pub struct Linear {
    name: String,
    rows: usize,
    inputs: usize,
    outputs: usize,
    function: Function,
    weights: LinearWeights,
    saved: Option<LinearSaved>,
}

#[derive(Clone, Copy, Debug)]
struct LinearSaved {
    x: View,
    /// What the function's derivative needs.
    function: View,
}

/// Offsets of a weight matrix and, when there is one, its bias.
#[derive(Clone, Copy, Debug, Default)]
pub struct LinearWeights {
    pub matrix: usize,
    pub bias: Option<usize>,
}

impl Linear {
    pub fn new(
        name: impl Into<String>,
        rows: usize,
        inputs: usize,
        outputs: usize,
        function: Function,
    ) -> Self {
        Linear {
            name: name.into(),
            rows,
            inputs,
            outputs,
            function,
            weights: LinearWeights::default(),
            saved: None,
        }
    }
}

impl Layer for Linear {
    fn forward(&mut self, builder: &mut ProgramBuilder, x: View) -> View {
        self.weights = builder
            .within(&self.name, |builder| LinearWeights::add(builder, self.inputs, self.outputs, true));
        let u = builder.buffer(self.rows * self.outputs);
        multiply(builder, self.rows, self.inputs, self.outputs, x, self.weights.matrix, u);
        let out = if self.function == Function::Gelu { builder.buffer(self.rows * self.outputs) } else { u };
        let (rows, columns) = (self.rows, self.outputs);
        builder.push(Op::Activate {
            x: u,
            out,
            bias: self.weights.bias,
            rows,
            columns,
            function: self.function,
        });
        self.saved = Some(LinearSaved { x, function: u });
        out
    }

    fn backward(&self, builder: &mut ProgramBuilder, d: View, wants_input: bool) -> Option<View> {
        let saved = self.saved.expect("forward is laid before backward");
        let (rows, columns) = (self.rows, self.outputs);
        if self.function != Function::Identity {
            builder.push(Op::ActivateBackward {
                saved: saved.function,
                d,
                words: rows * columns,
                function: self.function,
            });
        }
        if let Some(bias) = self.weights.bias {
            builder.push(Op::BiasGradient { d, bias, rows, columns });
        }
        weight_gradient(builder, rows, self.inputs, columns, saved.x, d, self.weights.matrix);
        wants_input.then(|| {
            let dx = builder.buffer(rows * self.inputs);
            input_gradient(builder, rows, self.inputs, columns, d, self.weights.matrix, dx, 0.0);
            dx
        })
    }
}

impl LinearWeights {
    /// Adds `weight` and `bias`, started as PyTorch starts them: uniform in ±1/√inputs.
    pub fn add(builder: &mut ProgramBuilder, inputs: usize, outputs: usize, has_bias: bool) -> Self {
        let bound = Start::Uniform(1.0 / (inputs as f64).sqrt());
        let matrix = builder.parameter("weight", &[inputs, outputs], bound);
        LinearWeights { matrix, bias: has_bias.then(|| builder.parameter("bias", &[outputs], bound)) }
    }
}

/// `out = x W`.
pub fn multiply(
    builder: &mut ProgramBuilder,
    rows: usize,
    inputs: usize,
    outputs: usize,
    x: View,
    matrix: usize,
    out: View,
) {
    builder.push(Op::Gemm(Gemm {
        m: rows,
        n: outputs,
        k: inputs,
        a: Operand::new(x, inputs),
        b: Operand::new(View::parameters(matrix), outputs),
        c: Operand::new(out, outputs),
        alpha: 1.0,
        beta: 0.0,
        outer: 1,
        inner: 1,
    }));
}

/// `dW = xᵀ d`.
pub fn weight_gradient(
    builder: &mut ProgramBuilder,
    rows: usize,
    inputs: usize,
    outputs: usize,
    x: View,
    d: View,
    matrix: usize,
) {
    builder.push(Op::Gemm(Gemm {
        m: inputs,
        n: outputs,
        k: rows,
        a: Operand::new(x, inputs).transposed(),
        b: Operand::new(d, outputs),
        c: Operand::new(View::gradient(matrix), outputs),
        alpha: 1.0,
        beta: 0.0,
        outer: 1,
        inner: 1,
    }));
}

/// `dx = d Wᵀ + beta · dx`.
#[expect(clippy::too_many_arguments, reason = "a matrix product has this many")]
pub fn input_gradient(
    builder: &mut ProgramBuilder,
    rows: usize,
    inputs: usize,
    outputs: usize,
    d: View,
    matrix: usize,
    dx: View,
    beta: f64,
) {
    builder.push(Op::Gemm(Gemm {
        m: rows,
        n: inputs,
        k: outputs,
        a: Operand::new(d, outputs),
        b: Operand::new(View::parameters(matrix), outputs).transposed(),
        c: Operand::new(dx, inputs),
        alpha: 1.0,
        beta,
        outer: 1,
        inner: 1,
    }));
}
