//! `out = x W + b`, with W stored input × output.

use super::{Backward, Layer};
use crate::parameters::Start;
use crate::program::op::Operand;
use crate::program::{Function, Gemm, Op, ProgramBuilder, View};

/// A dense layer over rows, with the function that follows it.
#[derive(Debug)]
pub(crate) struct Linear {
    name: String,
    /// Rows, inputs and outputs.
    sizes: [usize; 3],
    function: Function,
}

impl Linear {
    pub(crate) fn new(
        name: impl Into<String>,
        rows: usize,
        inputs: usize,
        outputs: usize,
        function: Function,
    ) -> Self {
        Linear { name: name.into(), sizes: [rows, inputs, outputs], function }
    }
}

impl Layer for Linear {
    fn lay(&self, builder: &mut ProgramBuilder, x: View) -> (View, Backward) {
        let &Linear { ref name, sizes, function } = self;
        let weights = LinearWeights::add(builder, name, sizes);
        let u = weights.multiply(builder, x);
        let backward = move |builder: &mut ProgramBuilder, d: View, wants_input: bool| {
            weights.activate_backward(builder, u, d, function);
            weights.gradients(builder, x, d);
            wants_input.then(|| weights.input_gradient(builder, d))
        };
        (weights.activate(builder, u, function), Box::new(backward))
    }
}

/// Where a weight matrix and its bias are, and what is multiplied with it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LinearWeights {
    rows: usize,
    inputs: usize,
    outputs: usize,
    matrix: usize,
    pub(super) bias: usize,
}

impl LinearWeights {
    /// Adds `weight` and `bias`, started as PyTorch starts them: uniform in ±1/√inputs.
    pub(crate) fn add(builder: &mut ProgramBuilder, name: &str, [rows, inputs, outputs]: [usize; 3]) -> Self {
        let bound = Start::Uniform(1.0 / (inputs as f64).sqrt());
        builder.within(name, |builder| {
            let matrix = builder.parameter("weight", &[inputs, outputs], bound);
            let bias = builder.parameter("bias", &[outputs], bound);
            LinearWeights { rows, inputs, outputs, matrix, bias }
        })
    }

    /// `x W`.
    pub(crate) fn multiply(&self, builder: &mut ProgramBuilder, x: View) -> View {
        let &LinearWeights { rows, inputs, outputs, matrix, .. } = self;
        let out = builder.buffer(rows * outputs);
        let b = Operand::new(View::parameters(matrix), outputs);
        let operands = [Operand::new(x, inputs), b, Operand::new(out, outputs)];
        builder.push(product([rows, outputs, inputs], operands, 0.0));
        out
    }

    /// The function of `u` and the bias: in place, but where the derivative needs `u`.
    pub(crate) fn activate(&self, builder: &mut ProgramBuilder, u: View, function: Function) -> View {
        let &LinearWeights { rows, outputs, bias, .. } = self;
        let out = if function == Function::Gelu { builder.buffer(rows * outputs) } else { u };
        builder.push(Op::Activate { x: u, out, bias: Some(bias), rows, columns: outputs, function });
        out
    }

    /// Multiplies `d` by the function's derivative at `u`.
    pub(crate) fn activate_backward(
        &self,
        builder: &mut ProgramBuilder,
        u: View,
        d: View,
        function: Function,
    ) {
        if function != Function::Identity {
            let (rows, columns) = (self.rows, self.outputs);
            let bias = (function == Function::Gelu).then_some(self.bias);
            builder.push(Op::ActivateBackward { saved: u, d, bias, rows, columns, function });
        }
    }

    /// The gradients of bias and matrix.
    pub(crate) fn gradients(&self, builder: &mut ProgramBuilder, x: View, d: View) {
        self.bias_gradient(builder, d);
        self.matrix_gradient(builder, x, d);
    }

    pub(crate) fn bias_gradient(&self, builder: &mut ProgramBuilder, d: View) {
        builder.push(Op::BiasGradient { d, bias: self.bias, rows: self.rows, columns: self.outputs });
    }

    /// `dW = xᵀ d`.
    pub(crate) fn matrix_gradient(&self, builder: &mut ProgramBuilder, x: View, d: View) {
        let &LinearWeights { rows, inputs, outputs, matrix, .. } = self;
        let c = Operand::new(View::gradient(matrix), outputs);
        let operands = [Operand::new(x, inputs).transposed(), Operand::new(d, outputs), c];
        builder.push(product([inputs, outputs, rows], operands, 0.0));
    }

    /// `dx = d Wᵀ`.
    pub(crate) fn input_gradient(&self, builder: &mut ProgramBuilder, d: View) -> View {
        let dx = builder.buffer(self.rows * self.inputs);
        self.write_input_gradient(builder, d, dx, 0.0);
        dx
    }

    /// `dx = d Wᵀ + beta · dx`.
    pub(crate) fn write_input_gradient(&self, builder: &mut ProgramBuilder, d: View, dx: View, beta: f64) {
        let &LinearWeights { rows, inputs, outputs, matrix, .. } = self;
        let b = Operand::new(View::parameters(matrix), outputs).transposed();
        let operands = [Operand::new(d, outputs), b, Operand::new(dx, inputs)];
        builder.push(product([rows, inputs, outputs], operands, beta));
    }
}

/// `c = a b + beta · c`, of one matrix each.
fn product([m, n, k]: [usize; 3], [a, b, c]: [Operand; 3], beta: f64) -> Op {
    Op::Gemm(Gemm { m, n, k, a, b, c, alpha: 1.0, beta, outer: 1, inner: 1 })
}
