//! Models of images, from one linear layer to a residual network.

use super::Model;
use crate::layers::{
    Activation, Conv2d, CrossEntropy, Layer, Linear, Norm, Pool, Residual, Sequence, classifier,
};
use crate::program::{Function, Geometry, ModelProgram, Pooling, ProgramBuilder};

/// Groups of channels that share statistics; every width of ours is a multiple.
const GROUPS: usize = 8;

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
        Model::ResNet18 { side, channels, width, .. } => resnet18(samples, side, channels, width),
        Model::Encoder(_) => panic!("an encoder reads tokens"),
    };
    classifier(builder, body, CrossEntropy::new("head", features))
}

/// 5 × 5 convolutions of 6 and 16 filters that keep the size, each halved by pooling, then 120 and 84 units.
fn lenet(images: usize, side: usize, channels: usize) -> (Sequence, usize) {
    let conv = |name, side, channels, filters| {
        let geometry =
            Geometry { images, height: side, width: side, channels, kernel: 5, stride: 1, padding: 2 };
        Conv2d::new(name, geometry, filters, Function::Relu)
    };
    let (half, quarter) = (side / 2, side / 4);
    let body = Sequence::default()
        .then(conv("conv1", side, channels, 6))
        .then(Pool::new(images, [side, side, 6], 2, Pooling::Max))
        .then(conv("conv2", half, 6, 16))
        .then(Pool::new(images, [half, half, 16], 2, Pooling::Max))
        .then(Linear::new("hidden1", images, quarter * quarter * 16, 120, Function::Relu))
        .then(Linear::new("hidden2", images, 120, 84, Function::Relu));
    (body, 84)
}

/// Four stages of two blocks; each stage but the first halves the side and doubles the width.
fn resnet18(images: usize, side: usize, channels: usize, width: usize) -> (Sequence, usize) {
    let geometry = Geometry { images, height: side, width: side, channels, kernel: 3, stride: 1, padding: 1 };
    let area = side * side;
    let mut body = Sequence::default()
        .then(Conv2d::plain("stem.conv", geometry, width))
        .then(Norm::group("stem.norm", images, area, width, GROUPS))
        .then(Activation::new(images * area, width, Function::Relu));
    let (mut side, mut channels) = (side, width);
    for stage in 0..4 {
        for block in 0..2 {
            let stride = if stage > 0 && block == 0 { 2 } else { 1 };
            body = body.then(residual(
                &format!("stage{stage}.block{block}"),
                images,
                side,
                channels,
                width << stage,
                stride,
            ));
            (side, channels) = (side / stride, width << stage);
        }
    }
    (body.then(Pool::new(images, [side, side, channels], side, Pooling::Mean)), channels)
}

fn residual(
    name: &str,
    images: usize,
    side: usize,
    channels: usize,
    width: usize,
    stride: usize,
) -> impl Layer + use<> {
    let out = side / stride;
    let conv = |part: &str, side, channels, kernel, stride| {
        let geometry =
            Geometry { images, height: side, width: side, channels, kernel, stride, padding: kernel / 2 };
        Conv2d::plain(format!("{name}.{part}"), geometry, width)
    };
    let norm = |part: &str| Norm::group(format!("{name}.{part}"), images, out * out, width, GROUPS);
    let body = Sequence::default()
        .then(conv("conv1", side, channels, 3, stride))
        .then(norm("norm1"))
        .then(Activation::new(images * out * out, width, Function::Relu))
        .then(conv("conv2", out, width, 3, 1))
        .then(norm("norm2"));
    let skip = if stride == 1 && channels == width {
        Sequence::default()
    } else {
        Sequence::default().then(conv("skip.conv", side, channels, 1, stride)).then(norm("skip.norm"))
    };
    Residual::new(body, skip, images * out * out, width)
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
        // torchvision's ResNet-18 with a 3 x 3 stem and 10 classes.
        assert_eq!(count(Model::ResNet18 { side: 32, channels: 3, width: 64, classes: 10 }), 11_173_962);
    }
}
