//! Layers: each lays its forward operations down, and hands over what lays its hand-derived backward operations.

#[cfg(test)]
mod checking;
pub(crate) mod conv2d;
pub(crate) mod dropout;
pub(crate) mod embedding;
pub(crate) mod first_token;
pub(crate) mod linear;
pub(crate) mod loss;
pub(crate) mod norm;
pub(crate) mod pool;
pub(crate) mod transformer;

pub(crate) use conv2d::Conv2d;
pub(crate) use dropout::Dropout;
pub(crate) use embedding::Embedding;
pub(crate) use first_token::FirstToken;
pub(crate) use linear::Linear;
pub(crate) use loss::CrossEntropy;
pub(crate) use norm::Norm;
pub(crate) use pool::Pool;
pub(crate) use transformer::Transformer;

use crate::program::{MemorySpace, ModelProgram, ProgramBuilder, View};

/// Lays the backward operations of a layer for the gradient of its output, which they may overwrite. Returns the gradient of its
/// input, or nothing where that is not wanted: the first layer of a model needs none.
pub(crate) type Backward = Box<dyn FnOnce(&mut ProgramBuilder, View, bool) -> Option<View>>;

/// A layer between two buffers of one agent.
pub(crate) trait Layer: std::fmt::Debug {
    /// Lays the forward operations. Returns the output, and what lays the backward operations.
    fn lay(&self, builder: &mut ProgramBuilder, x: View) -> (View, Backward);
}

/// Layers one after the other.
#[derive(Debug, Default)]
pub(crate) struct Sequence(pub Vec<Box<dyn Layer>>);

impl Sequence {
    pub(crate) fn then(mut self, layer: impl Layer + 'static) -> Self {
        self.0.push(Box::new(layer));
        self
    }
}

impl Layer for Sequence {
    fn lay(&self, builder: &mut ProgramBuilder, mut x: View) -> (View, Backward) {
        let mut all = Vec::new();
        for layer in &self.0 {
            let (out, backward) = layer.lay(builder, x);
            x = out;
            all.push(backward);
        }
        let backward = |builder: &mut ProgramBuilder, mut d: View, wants_input: bool| {
            for (depth, backward) in all.into_iter().enumerate().rev() {
                d = backward(builder, d, wants_input || depth > 0)?;
            }
            Some(d)
        };
        (x, Box::new(backward))
    }
}

/// The program of a classifier: `body` from the batch to features, `loss` from there on.
pub(crate) fn classifier(
    mut builder: ProgramBuilder,
    body: &impl Layer,
    loss: &CrossEntropy,
) -> ModelProgram {
    let features = builder.features();
    let (features, body_backward) = body.lay(&mut builder, features);
    let loss_backward = loss.lay(&mut builder, features);
    builder.begin_backward();
    // A body of no layers (softmax regression) hands the batch itself over: nothing lies below it.
    let has_body = features.place != MemorySpace::Features;
    if let Some(d) = loss_backward(&mut builder, has_body) {
        body_backward(&mut builder, d, false);
    }
    builder.finish()
}
