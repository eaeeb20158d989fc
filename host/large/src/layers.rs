//! Layers: each lays its forward operations down, and hands over what lays its hand-derived backward operations.

#[cfg(test)]
mod checking;
pub mod conv2d;
pub mod dropout;
pub mod embedding;
pub mod first_token;
pub mod linear;
pub mod loss;
pub mod norm;
pub mod pool;
pub mod transformer;

pub use conv2d::Conv2d;
pub use dropout::Dropout;
pub use embedding::Embedding;
pub use first_token::FirstToken;
pub use linear::Linear;
pub use loss::CrossEntropy;
pub use norm::Norm;
pub use pool::Pool;
pub use transformer::Transformer;

use crate::program::{MemorySpace, ModelProgram, ProgramBuilder, View};

/// Lays the backward operations of a layer for the gradient of its output, which they may overwrite. Returns the gradient of its
/// input, or nothing where that is not wanted: the first layer of a model needs none.
pub type Backward = Box<dyn FnOnce(&mut ProgramBuilder, View, bool) -> Option<View>>;

/// A layer between two buffers of one agent.
pub trait Layer: std::fmt::Debug {
    /// Lays the forward operations. Returns the output, and what lays the backward operations.
    fn lay(&self, builder: &mut ProgramBuilder, x: View) -> (View, Backward);
}

/// Layers one after the other.
#[derive(Debug, Default)]
pub struct Sequence(pub Vec<Box<dyn Layer>>);

impl Sequence {
    pub fn then(mut self, layer: impl Layer + 'static) -> Self {
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
pub fn classifier(mut builder: ProgramBuilder, body: &impl Layer, loss: &CrossEntropy) -> ModelProgram {
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
