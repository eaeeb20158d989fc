//! The last linear layer with softmax cross-entropy, `Σ_j w_j ℓ_j`, where the batch carries each sample's weight w_j.

use super::linear::LinearWeights;
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
        self.weights = LinearWeights::add(builder, &self.name, [samples, self.inputs, classes]);
        let logits = self.weights.multiply(builder, x);
        builder.push(Op::CrossEntropy { logits, bias: self.weights.bias, classes });
        self.saved = Some((x, logits));
    }

    /// Returns the gradient of the layer's input, or nothing when `wants_input` is false.
    pub fn backward(&self, builder: &mut ProgramBuilder, wants_input: bool) -> Option<View> {
        let (x, d) = self.saved.expect("forward is laid before backward");
        self.weights.gradients(builder, x, d);
        wants_input.then(|| self.weights.input_gradient(builder, d))
    }
}
