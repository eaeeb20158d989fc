//! The last linear layer with softmax cross-entropy, `Σ_j w_j ℓ_j`, where the batch carries each sample's weight w_j.

use super::linear::LinearWeights;
use crate::program::{Op, ProgramBuilder, View};

#[derive(Debug)]
pub(crate) struct CrossEntropy {
    name: String,
    inputs: usize,
}

impl CrossEntropy {
    pub(crate) fn new(name: impl Into<String>, inputs: usize) -> Self {
        CrossEntropy { name: name.into(), inputs }
    }

    /// Lays the forward operations. Returns what lays the backward operations, and gives the gradient of the layer's input where it
    /// is wanted.
    pub(crate) fn lay(
        &self,
        builder: &mut ProgramBuilder,
        x: View,
    ) -> impl FnOnce(&mut ProgramBuilder, bool) -> Option<View> + use<> {
        let (samples, classes) = (builder.samples(), builder.classes());
        let weights = LinearWeights::add(builder, &self.name, [samples, self.inputs, classes]);
        let logits = weights.multiply(builder, x);
        builder.push(Op::CrossEntropy { logits, bias: weights.bias, classes });
        move |builder, wants_input| {
            weights.gradients(builder, x, logits);
            wants_input.then(|| weights.input_gradient(builder, logits))
        }
    }
}
