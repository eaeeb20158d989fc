//! Layers: each lays its forward operations down, remembers what it saved, and lays its hand-derived backward operations.

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

/// A layer between two buffers of one agent.
pub trait Layer: std::fmt::Debug {
    /// Lays the forward operations and returns the output.
    fn forward(&mut self, builder: &mut ProgramBuilder, x: View) -> View;

    /// Lays the backward operations for the output gradient `d`, which it may overwrite, and returns the input gradient, or
    /// nothing when `wants_input` is false (the first layer of a model needs none).
    fn backward(&self, builder: &mut ProgramBuilder, d: View, wants_input: bool) -> Option<View>;
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
    fn forward(&mut self, builder: &mut ProgramBuilder, x: View) -> View {
        self.0.iter_mut().fold(x, |x, layer| layer.forward(builder, x))
    }

    fn backward(&self, builder: &mut ProgramBuilder, d: View, wants_input: bool) -> Option<View> {
        let mut d = d;
        for (depth, layer) in self.0.iter().enumerate().rev() {
            d = layer.backward(builder, d, wants_input || depth > 0)?;
        }
        Some(d)
    }
}

/// The program of a classifier: `body` from the batch to features, `loss` from there on.
pub fn classifier(mut builder: ProgramBuilder, mut body: impl Layer, mut loss: CrossEntropy) -> ModelProgram {
    let features = builder.features();
    let features = body.forward(&mut builder, features);
    loss.forward(&mut builder, features);
    builder.begin_backward();
    // A body of no layers (softmax regression) hands the batch itself over: nothing lies below it.
    let has_body = features.place != MemorySpace::Features;
    if let Some(d) = loss.backward(&mut builder, has_body) {
        body.backward(&mut builder, d, false);
    }
    builder.finish()
}
