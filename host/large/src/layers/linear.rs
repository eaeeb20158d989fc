//! `out = x W + b`, with W stored input × output: dense layers, convolutions and the classifier.

use crate::parameters::Start;
use crate::program::op::{Activation, Operand};
use crate::program::{Function, Gemm, Geometry, Op, ProgramBuilder, View};

/// A dense layer over rows, with the function that follows it; sizes are rows, inputs and outputs.
pub(crate) fn linear(
    builder: &mut ProgramBuilder,
    x: View,
    name: &str,
    sizes: [usize; 3],
    function: Function,
) -> View {
    let weights = LinearWeights::add(builder, name, sizes);
    let u = weights.multiply(builder, x);
    builder.back_by(move |builder, d, wants_input| {
        weights.activate_backward(builder, u, d, function);
        weights.gradients(builder, x, d);
        wants_input.then(|| weights.input_gradient(builder, d))
    });
    weights.activate(builder, u, function)
}

/// Convolution as one matrix product over patches: an image row-major in height, width, channel makes the output of the
/// product the next image, and bias and pooling see plain rows.
///
/// The matrix of patches is up to `kernel²` times the image, so it is rebuilt in the backward pass instead of kept.
pub(crate) fn conv2d(
    builder: &mut ProgramBuilder,
    x: View,
    name: &str,
    geometry: Geometry,
    filters: usize,
    function: Function,
) -> View {
    let patches_of = move |builder: &mut ProgramBuilder| {
        let patches = builder.buffer(geometry.rows() * geometry.patch());
        builder.push(Op::Patches { x, patches, geometry });
        patches
    };
    let weights = LinearWeights::add(builder, name, [geometry.rows(), geometry.patch(), filters]);
    let patches = patches_of(builder);
    let u = weights.multiply(builder, patches);
    builder.back_by(move |builder, d, wants_input| {
        weights.activate_backward(builder, u, d, function);
        weights.bias_gradient(builder, d);
        let patches = patches_of(builder);
        weights.matrix_gradient(builder, patches, d);
        wants_input.then(|| {
            let dx = builder.buffer(geometry.rows() * geometry.channels);
            // The patches have been read for the last time: their gradient takes their place.
            weights.write_input_gradient(builder, d, patches, 0.0);
            builder.push(Op::PatchesBackward { patches, dx, geometry });
            dx
        })
    });
    weights.activate(builder, u, function)
}

/// The last linear layer with softmax cross-entropy, `Σ_j w_j ℓ_j`, where the batch carries each sample's weight w_j. Returns the
/// logits, which become the gradient that the way back begins with.
pub(crate) fn cross_entropy(builder: &mut ProgramBuilder, x: View, name: &str, inputs: usize) -> View {
    let (samples, classes) = (builder.samples(), builder.classes());
    let weights = LinearWeights::add(builder, name, [samples, inputs, classes]);
    let logits = weights.multiply(builder, x);
    builder.push(Op::CrossEntropy { logits, bias: weights.bias, classes });
    builder.back_by(move |builder, d, wants_input| {
        weights.gradients(builder, x, d);
        wants_input.then(|| weights.input_gradient(builder, d))
    });
    logits
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
        let &LinearWeights { rows, outputs: columns, bias, .. } = self;
        let out = if function == Function::Gelu { builder.buffer(rows * columns) } else { u };
        let activation = Activation { bias: Some(bias), rows, columns, function };
        builder.push(Op::Activate { x: u, out, activation });
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
            let &LinearWeights { rows, outputs: columns, .. } = self;
            let bias = (function == Function::Gelu).then_some(self.bias);
            let activation = Activation { bias, rows, columns, function };
            builder.push(Op::ActivateBackward { saved: u, d, activation });
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
