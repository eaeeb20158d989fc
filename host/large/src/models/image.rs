//! Models of images, from one linear layer to a convolutional network.

use super::Model;
use crate::layers::{Conv2d, CrossEntropy, Linear, Pool, Sequence, classifier};
use crate::program::{Function, Geometry, ModelProgram, ProgramBuilder};

/// # Panics
/// When `model` is not an image model.
pub(super) fn program(model: &Model, samples: usize) -> ModelProgram {
    let builder = ProgramBuilder::new(model.input(), samples, model.classes());
    let (body, features) = match *model {
        Model::SoftmaxRegression { inputs, .. } => (Sequence::default(), inputs),
        Model::Mlp { inputs, hidden, .. } => {
            (Sequence::default().then(Linear::new("hidden", samples, inputs, hidden, Function::Relu)), hidden)
        }
        Model::LeNet { side, channels, .. } => lenet(samples, side, channels),
        Model::Encoder(_) => panic!("an encoder reads tokens"),
    };
    classifier(builder, body, CrossEntropy::new("head", features))
}

/// 5 × 5 convolutions of 6 and 16 filters that keep the size, each halved by pooling, then 120 and 84 units.
fn lenet(images: usize, side: usize, channels: usize) -> (Sequence, usize) {
    let conv = |name, side, channels, filters| {
        let geometry = Geometry { images, height: side, width: side, channels, kernel: 5 };
        Conv2d::new(name, geometry, filters, Function::Relu)
    };
    let (half, quarter) = (side / 2, side / 4);
    let body = Sequence::default()
        .then(conv("conv1", side, channels, 6))
        .then(Pool::new(images, [side, side, 6], 2))
        .then(conv("conv2", half, 6, 16))
        .then(Pool::new(images, [half, half, 16], 2))
        .then(Linear::new("hidden1", images, quarter * quarter * 16, 120, Function::Relu))
        .then(Linear::new("hidden2", images, 120, 84, Function::Relu));
    (body, 84)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameter_counts_are_the_published_ones() {
        let count = |model: Model| model.program(1).layout.count();
        assert_eq!(count(Model::SoftmaxRegression { inputs: 784, classes: 10 }), 7_850);
        assert_eq!(count(Model::Mlp { inputs: 784, hidden: 256, classes: 10 }), 203_530);
        assert_eq!(count(Model::LeNet { side: 28, channels: 1, classes: 10 }), 107_786);
    }
}
