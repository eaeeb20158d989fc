//! The models a swarm can train, each as a [`ModelProgram`] for a number of samples.

pub mod bert;
pub mod image;
pub mod pretrained;

use crate::program::{Input, ModelProgram};
pub use bert::BertEncoder;

/// A model by name and size.
#[derive(Clone, Debug, PartialEq)]
pub enum Model {
    /// One linear layer: convex, the smallest that learns.
    SoftmaxRegression { inputs: usize, classes: usize },
    /// Two linear layers with ReLU between them; the paper's Fashion-MNIST model has 256 hidden units.
    Mlp { inputs: usize, hidden: usize, classes: usize },
    /// LeNet-like: two convolutions of 5 × 5 with pooling, two linear layers.
    LeNet { side: usize, channels: usize, classes: usize },
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
            Model::Encoder(encoder) => Input::Tokens { sequence: encoder.sequence },
        }
    }

    pub fn classes(&self) -> usize {
        match self {
            Model::SoftmaxRegression { classes, .. }
            | Model::Mlp { classes, .. }
            | Model::LeNet { classes, .. } => *classes,
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
        let linear = |name: &str, after: &str| format!("{name}: x @ {name}.weight + {name}.bias{after}");
        let head = linear("head", "");
        match self {
            Model::SoftmaxRegression { .. } => vec![head],
            Model::Mlp { .. } => vec![linear("hidden", ", ReLU"), head],
            Model::LeNet { .. } => {
                let conv = |name: &str| {
                    format!(
                        "{name}: 5 x 5 convolution, padding 2, of images in height, width, channel; {name}.weight is \
                         (kernel row, kernel column, channel) x filter, ReLU; then 2 x 2 maximum"
                    )
                };
                vec![
                    conv("conv1"),
                    conv("conv2"),
                    linear("hidden1", ", ReLU"),
                    linear("hidden2", ", ReLU"),
                    head,
                ]
            }
            Model::Encoder(_) => {
                let encoder = "encoder as published, weights transposed to input x output, query, key and value side by side";
                vec![encoder.to_owned(), head]
            }
        }
    }

    /// The passes of one agent over `samples` samples.
    pub fn program(&self, samples: usize) -> ModelProgram {
        match self {
            Model::SoftmaxRegression { .. } | Model::Mlp { .. } | Model::LeNet { .. } => {
                image::program(self, samples)
            }
            Model::Encoder(encoder) => encoder.program(samples),
        }
    }
}
