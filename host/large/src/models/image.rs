//! Models of images and of numbers: layers one after the other, those of a name or those of a file.

use std::path::Path;

use fabswarm_sim::Diagnostic;
use serde::Deserialize;

use crate::layers::{TransformerShape, conv2d, cross_entropy, linear, norm, pool, transformer};
use crate::program::{Function, Geometry, Input, ModelProgram, ProgramBuilder, Squares, View};

/// Most units or filters of a layer, and most layers of a file.
const MOST_UNITS: usize = 65_536;
const MOST_LAYERS: usize = 64;
/// Largest side of a filter.
const MOST_KERNEL: usize = 31;
/// Most pixels that attend to each other: a row of scores of the softmax on a GPU.
const MOST_PIXELS: usize = 1024;
const EPSILON: f64 = 1e-5;

/// A layer.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum LayerConfig {
    /// `x W + b` of all numbers of a sample.
    Dense {
        units: usize,
        #[serde(default = "relu")]
        function: Function,
    },
    /// A convolution that keeps the size of its image.
    Convolution {
        filters: usize,
        /// The side of a filter, in pixels.
        kernel: usize,
        #[serde(default = "relu")]
        function: Function,
    },
    /// The maximum of disjoint squares.
    Pooling {
        /// The side of a square, in pixels.
        size: usize,
    },
    /// Layer norm: of the channels of each pixel, or of all numbers where there is no image.
    Norm {},
    /// An encoder layer of BERT with the pixels of an image as its tokens.
    Attention {
        heads: usize,
        /// Units of the network behind it.
        inner: usize,
    },
}

const fn relu() -> Function {
    Function::Relu
}

/// The file of a model.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LayerFile {
    layer: Vec<LayerConfig>,
}

fn read(path: &Path, shape: [usize; 3]) -> Result<Vec<LayerConfig>, Diagnostic> {
    let refuse = |what: &dyn std::fmt::Display, remedy: &str| {
        Diagnostic::new(format!("{}: {what}", path.display()), remedy)
    };
    let text = std::fs::read_to_string(path).map_err(|error| {
        refuse(&error, "name a file of layers, or take softmax, mlp or lenet as training.model")
    })?;
    let LayerFile { layer: layers } = toml_edit::de::from_str(&text).map_err(|error| {
        let remedy = "each [[layer]] has a kind, dense (units, function), convolution (filters, kernel, function), pooling (size), norm or \
                      attention (heads, inner)";
        refuse(&error.to_string().trim_end(), remedy)
    })?;
    if layers.len() > MOST_LAYERS {
        return Err(refuse(&format!("it has {} layers", layers.len()), "take at most 64"));
    }
    layers.iter().enumerate().try_fold(shape, |shape, (at, layer)| {
        layer.output(shape).map_err(|(what, remedy)| refuse(&format!("layer {}: {what}", at + 1), &remedy))
    })?;
    Ok(layers)
}

impl LayerConfig {
    pub(super) const fn dense(units: usize) -> Self {
        LayerConfig::Dense { units, function: Function::Relu }
    }

    /// A convolution of 5 × 5.
    pub(super) const fn convolution(filters: usize) -> Self {
        LayerConfig::Convolution { filters, kernel: 5, function: Function::Relu }
    }

    /// The height, width and channels of what it makes of an input, or what does not fit and the remedy.
    fn output(&self, [height, width, channels]: [usize; 3]) -> Result<[usize; 3], (String, String)> {
        let is_image = height * width > 1;
        let (what, remedy) = match *self {
            Self::Dense { units: units @ 1..=MOST_UNITS, .. } => return Ok([1, 1, units]),
            Self::Dense { units, .. } => (format!("dense with units = {units}"), "set 1 to 65536".to_owned()),
            Self::Convolution { .. } | Self::Pooling { .. } | Self::Attention { .. } if !is_image => (
                format!("its input is no image but {channels} numbers"),
                "put convolution, pooling and attention before the first dense layer, on images".to_owned(),
            ),
            Self::Convolution { filters: filters @ 1..=MOST_UNITS, kernel, .. }
                if kernel % 2 == 1 && kernel <= MOST_KERNEL =>
            {
                return Ok([height, width, filters]);
            }
            Self::Convolution { filters, kernel, .. } => (
                format!("convolution of {height} x {width} with filters = {filters} and kernel = {kernel}"),
                "set filters to 1 to 65536, and kernel to an odd number up to 31".to_owned(),
            ),
            Self::Pooling { size } if size > 0 && height % size == 0 && width % size == 0 => {
                return Ok([height / size, width / size, channels]);
            }
            Self::Pooling { size } => (
                format!("pooling of {height} x {width} with size = {size}"),
                "set size to a number that divides both sides".to_owned(),
            ),
            Self::Attention { heads: 1.., inner: 1..=MOST_UNITS } if height * width > MOST_PIXELS => (
                format!("attention among the {} pixels of {height} x {width}", height * width),
                format!("put pooling before it, down to {MOST_PIXELS} pixels"),
            ),
            Self::Attention { heads, inner: 1..=MOST_UNITS }
                if (1..=channels).contains(&heads) && channels % heads == 0 =>
            {
                return Ok([height, width, channels]);
            }
            Self::Attention { heads, inner } => (
                format!("attention of {channels} channels with heads = {heads} and inner = {inner}"),
                "set heads to a divisor of the channels, and inner to 1 to 65536".to_owned(),
            ),
            Self::Norm {} => return Ok([height, width, channels]),
        };
        Err((what, remedy))
    }

    /// Lays the layer for images of this height, width and number of channels.
    fn lay(
        &self,
        builder: &mut ProgramBuilder,
        x: View,
        name: &str,
        [height, width, channels]: [usize; 3],
    ) -> View {
        let images = builder.samples();
        match *self {
            Self::Dense { units, function } => {
                linear(builder, x, name, [images, height * width * channels, units], function)
            }
            Self::Convolution { filters, kernel, function } => {
                let geometry = Geometry { images, height, width, channels, kernel };
                conv2d(builder, x, name, geometry, filters, function)
            }
            Self::Pooling { size } => pool(builder, x, Squares { images, height, width, channels, size }),
            Self::Norm {} => norm(builder, x, name, [images * height * width, channels], EPSILON),
            Self::Attention { heads, inner } => {
                let (samples, sequence, width) = (images, height * width, channels);
                let (epsilon, dropout, distance_bias) = (EPSILON, 0.0, None);
                let shape = TransformerShape {
                    samples,
                    sequence,
                    width,
                    heads,
                    inner,
                    epsilon,
                    dropout,
                    distance_bias,
                };
                transformer(builder, x, name, shape)
            }
        }
    }

    /// The operations, with the names of their tensors.
    fn description(&self, name: &str) -> String {
        let after = |function| match function {
            Function::Identity => "",
            Function::Relu => ", ReLU",
            Function::Tanh => ", tanh",
            Function::Gelu => ", GELU",
        };
        match *self {
            Self::Dense { function, .. } => {
                format!("{name}: x @ {name}.weight + {name}.bias{}", after(function))
            }
            Self::Convolution { kernel, function, .. } => format!(
                "{name}: {kernel} x {kernel} convolution, padding {}, of images in height, width, channel; {name}.weight is \
                 (kernel row, kernel column, channel) x filter{}",
                kernel / 2,
                after(function)
            ),
            Self::Pooling { size } => format!("{size} x {size} maximum"),
            Self::Norm {} => {
                format!("{name}: layer norm of the last axis, epsilon 1e-5, {name}.weight and {name}.bias")
            }
            Self::Attention { heads, .. } => format!(
                "{name}: encoder layer of BERT over the pixels, row by row, with {heads} heads, GELU and epsilon 1e-5; the columns of \
                 {name}.attention.self.qkv.weight are those of query, key and value"
            ),
        }
    }
}

/// A model of images, or of numbers that are none.
#[derive(Clone, Debug, PartialEq)]
pub struct ImageModel {
    /// Height, width and channels of its input.
    pub shape: [usize; 3],
    /// Its layers before the classifier, by name.
    pub(super) layers: Vec<(String, LayerConfig)>,
    /// The number of classes.
    pub classes: usize,
}

impl ImageModel {
    pub(super) fn new<'n>(
        shape: [usize; 3],
        layers: impl IntoIterator<Item = (&'n str, LayerConfig)>,
        classes: usize,
    ) -> Self {
        let layers = layers.into_iter().map(|(name, layer)| (name.to_owned(), layer)).collect();
        ImageModel { shape, layers, classes }
    }

    /// The layers of the file at `path`, for inputs of height, width and channels.
    ///
    /// # Errors
    /// Where it cannot be read, or a layer does not fit what comes before it.
    pub fn read(path: &Path, shape: [usize; 3], classes: usize) -> Result<Self, Diagnostic> {
        let layers = (1..).zip(read(path, shape)?).map(|(number, layer)| (format!("layer{number}"), layer));
        Ok(ImageModel { shape, layers: layers.collect(), classes })
    }

    pub(super) fn program(&self, samples: usize) -> ModelProgram {
        let width = self.shape.iter().product();
        let mut builder = ProgramBuilder::new(Input::Features { width }, samples, self.classes);
        let (mut shape, mut x) = (self.shape, builder.features());
        for (name, layer) in &self.layers {
            x = layer.lay(&mut builder, x, name, shape);
            shape = layer
                .output(shape)
                .expect("layers of a file fit when they are read, and those of a name always");
        }
        let logits = cross_entropy(&mut builder, x, "head", shape.iter().product());
        builder.finish(logits)
    }

    /// Its layers before the classifier, in words.
    pub(super) fn description(&self) -> Vec<String> {
        self.layers.iter().map(|(name, layer)| layer.description(name)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::Model;

    #[test]
    fn parameter_counts_are_the_published_ones() {
        let count = |model: Model| model.program(1).layout.count();
        assert_eq!(count(Model::softmax(784, 10)), 7_850);
        assert_eq!(count(Model::mlp(784, 256, 10)), 203_530);
        assert_eq!(count(Model::lenet(28, 1, 10)), 107_786);
    }

    fn read_text(text: &str, shape: [usize; 3]) -> Result<Model, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mine.toml");
        std::fs::write(&path, text).unwrap();
        ImageModel::read(&path, shape, 10).map(Model::Image).map_err(|error| error.to_string())
    }

    const LENET: &str = r#"
        layer = [
            { kind = "convolution", filters = 6, kernel = 5 },
            { kind = "pooling", size = 2 },
            { kind = "convolution", filters = 16, kernel = 5, function = "relu" },
            { kind = "pooling", size = 2 },
            { kind = "dense", units = 120 },
            { kind = "dense", units = 84 },
        ]"#;

    #[test]
    fn lenet_from_a_file_is_lenet() {
        let own = read_text(LENET, [28, 28, 1]).unwrap();
        let (own, lenet) = (own.program(3), Model::lenet(28, 1, 10).program(3));
        assert_eq!(own.layout.start::<f32>(1), lenet.layout.start::<f32>(1));
        assert_eq!(format!("{:?}", own.forward), format!("{:?}", lenet.forward));
    }

    #[test]
    fn layers_that_do_not_fit_are_refused_by_number() {
        let refused = |layers: &str, expected: &str| {
            let text: Vec<String> =
                layers.split(';').map(|layer| format!("[[layer]]\nkind = {layer}\n")).collect();
            let message = read_text(&text.concat().replace(',', "\n"), [6, 9, 1]).unwrap_err();
            assert!(message.contains(expected) && message.contains("mine.toml: "), "{message}");
        };
        refused("'dense',units = 4;'pooling',size = 2", "layer 2: its input is no image but 4 numbers");
        refused("'norm';'pooling',size = 2", "layer 2: pooling of 6 x 9 with size = 2\nhelp: set size to");
        refused(
            "'convolution',filters = 2,kernel = 4",
            "layer 1: convolution of 6 x 9 with filters = 2 and kernel = 4",
        );
        refused("'dense',units = 0", "layer 1: dense with units = 0");
        refused("'attention',heads = 2", "missing field `inner`");
        refused("'attention',heads = 2,inner = 8", "layer 1: attention of 1 channels with heads = 2");
        refused("'dense',units = 4;'attention',heads = 1,inner = 8", "layer 2: its input is no image");
        refused("'dense',units = 4,dropout = 0.5", "unknown field");
        refused("'dense',units = 4,function = 'sine'", "unknown variant");
    }
}
