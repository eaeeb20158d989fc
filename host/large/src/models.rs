//! The models a swarm can train, each as a [`ModelProgram`] for a number of samples.

pub mod bert;
pub mod image;
pub mod pretrained;

use crate::program::{Input, ModelProgram};
pub use bert::BertEncoder;
pub use image::LayerConfig;

/// A model by name and size.
#[derive(Clone, Debug, PartialEq)]
pub enum Model {
    /// One linear layer: convex, the smallest that learns.
    SoftmaxRegression { inputs: usize, classes: usize },
    /// Two linear layers with ReLU between them; the paper's Fashion-MNIST model has 256 hidden units.
    Mlp { inputs: usize, hidden: usize, classes: usize },
    /// LeNet-like: two convolutions of 5 × 5 with pooling, two linear layers.
    LeNet { side: usize, channels: usize, classes: usize },
    /// The layers of a file, on images of height, width and channels.
    Layers { shape: [usize; 3], layers: Vec<LayerConfig>, classes: usize },
    /// BERT or MPNet with a classifier on its first token.
    Encoder(BertEncoder),
}

impl Model {
    pub fn input(&self) -> Input {
        match self {
            Model::SoftmaxRegression { inputs, .. } | Model::Mlp { inputs, .. } => {
                Input::Features { width: *inputs }
            }
            Model::LeNet { side, channels, .. } => Input::Features { width: side * side * channels },
            Model::Layers { shape, .. } => Input::Features { width: shape.iter().product() },
            Model::Encoder(encoder) => Input::Tokens { sequence: encoder.sequence },
        }
    }

    pub fn classes(&self) -> usize {
        match self {
            Model::SoftmaxRegression { classes, .. }
            | Model::Mlp { classes, .. }
            | Model::LeNet { classes, .. }
            | Model::Layers { classes, .. } => *classes,
            Model::Encoder(encoder) => encoder.classes,
        }
    }

    /// The same model with every word kept: what is evaluated.
    pub fn without_dropout(&self) -> Self {
        match self {
            Model::Encoder(encoder) => Model::Encoder(BertEncoder { dropout: 0.0, ..encoder.clone() }),
            other => other.clone(),
        }
    }

    /// The operations of the model, layer by layer from its input to its logits, with the names of its tensors.
    pub fn description(&self) -> Vec<String> {
        let mut layers = match self {
            Model::Encoder(_) => {
                vec!["encoder as published, weights transposed to input x output, query, key and value side by side".to_owned()]
            }
            _ => image::description(self),
        };
        layers.push("head: x @ head.weight + head.bias".to_owned());
        layers
    }

    /// The passes of one agent over `samples` samples.
    pub fn program(&self, samples: usize) -> ModelProgram {
        match self {
            Model::Encoder(encoder) => encoder.program(samples),
            _ => image::program(self, samples),
        }
    }
}
