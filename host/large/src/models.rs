//! The models a swarm can train, each as a program for a number of samples.

mod bert;
mod image;
pub(crate) mod pretrained;

use crate::program::{Input, ModelProgram};
pub use bert::BertEncoder;
pub use image::ImageModel;
use image::LayerConfig;

/// The model that all agents train, each its own copy.
#[derive(Clone, Debug, PartialEq)]
pub enum Model {
    /// Layers one after the other, on images or on numbers.
    Image(ImageModel),
    /// BERT or MPNet with a classifier on its first token.
    Encoder(BertEncoder),
}

impl Model {
    /// One linear layer: convex, the smallest that learns.
    pub const fn softmax(inputs: usize, classes: usize) -> Self {
        Model::Image(ImageModel { shape: [1, 1, inputs], layers: Vec::new(), classes })
    }

    /// Two linear layers with ReLU between them; the paper's Fashion-MNIST model has 256 hidden units.
    pub fn mlp(inputs: usize, hidden: usize, classes: usize) -> Self {
        Model::Image(ImageModel::new([1, 1, inputs], [("hidden", LayerConfig::dense(hidden))], classes))
    }

    /// LeNet-like: two convolutions of 5 × 5 with pooling, two linear layers.
    pub fn lenet(side: usize, channels: usize, classes: usize) -> Self {
        let pooling = LayerConfig::Pooling { size: 2 };
        let layers = [
            ("conv1", LayerConfig::convolution(6)),
            ("pool1", pooling.clone()),
            ("conv2", LayerConfig::convolution(16)),
            ("pool2", pooling),
            ("hidden1", LayerConfig::dense(120)),
            ("hidden2", LayerConfig::dense(84)),
        ];
        Model::Image(ImageModel::new([side, side, channels], layers, classes))
    }

    /// The form of its samples.
    pub fn input(&self) -> Input {
        match self {
            Model::Image(model) => Input::Features { width: model.shape.iter().product() },
            Model::Encoder(encoder) => Input::Tokens { sequence: encoder.sequence },
        }
    }

    /// The number of classes.
    pub fn classes(&self) -> usize {
        match self {
            Model::Image(model) => model.classes,
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
            Model::Image(model) => model.description(),
        };
        layers.push("head: x @ head.weight + head.bias".to_owned());
        layers
    }

    /// The passes of one agent over `samples` samples.
    pub fn program(&self, samples: usize) -> ModelProgram {
        match self {
            Model::Encoder(encoder) => encoder.program(samples),
            Model::Image(model) => model.program(samples),
        }
    }
}
