//! The last linear layer with softmax cross-entropy, `Σ_j w_j ℓ_j`, where the batch carries each sample's weight w_j.

use super::linear::{LinearWeights, input_gradient, multiply, weight_gradient};
use crate::program::{Op, ProgramBuilder, View};

#[derive(Debug)]
pub struct CrossEntropy {
    name: String,
    inputs: usize,
    weights: LinearWeights,
    saved: Option<(View, View)>,
}

impl CrossEntropy {
    pub fn new(name: impl Into<String>, inputs: usize) -> Self {
        CrossEntropy { name: name.into(), inputs, weights: LinearWeights::default(), saved: None }
    }

    pub fn forward(&mut self, builder: &mut ProgramBuilder, x: View) {
        let (samples, classes) = (builder.samples(), builder.classes());
        self.weights =
            builder.within(&self.name, |builder| LinearWeights::add(builder, self.inputs, classes, true));
        let logits = builder.buffer(samples * classes);
        multiply(builder, samples, self.inputs, classes, x, self.weights.matrix, logits);
        builder.push(Op::CrossEntropy { logits, bias: self.weights.bias, classes });
        self.saved = Some((x, logits));
    }

    /// Returns the gradient of the layer's input, or nothing when `wants_input` is false.
    pub fn backward(&self, builder: &mut ProgramBuilder, wants_input: bool) -> Option<View> {
        let (x, d) = self.saved.expect("forward is laid before backward");
        let (samples, classes) = (builder.samples(), builder.classes());
        if let Some(bias) = self.weights.bias {
            builder.push(Op::BiasGradient { d, bias, rows: samples, columns: classes });
        }
        weight_gradient(builder, samples, self.inputs, classes, x, d, self.weights.matrix);
        wants_input.then(|| {
            let dx = builder.buffer(samples * self.inputs);
            input_gradient(builder, samples, self.inputs, classes, d, self.weights.matrix, dx, 0.0);
            dx
        })
    }
}
