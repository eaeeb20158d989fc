//! The mean model as safetensors, with all that is needed to use it elsewhere in its metadata.

use safetensors::tensor::{Dtype, TensorView};
use serde::Serialize;

use super::block::to_bytes;
use super::{TrainingOutcome, TrainingSetup};
use fabswarm_data::{Features, Images, Inputs};
use fabswarm_sim::scenario::Scenario;

/// The key of the metadata that holds [`ModelAbout`] as JSON. One key: the order of several would differ from run to run.
const KEY: &str = "fabswarm";

/// The description of the model in the file's metadata.
#[derive(Debug, Serialize)]
struct ModelAbout<'a> {
    version: u32,
    model: &'a str,
    classes: usize,
    /// The layers to compute, from input to logits.
    layers: Vec<String>,
    /// The preprocessing of samples, where samples are pictures or numbers.
    input: Option<InputAbout>,
    test_accuracy: f64,
}

/// Preprocessing: `word * scale + shift` for each channel, as rows of height × width × channels.
#[derive(Debug, Serialize)]
struct InputAbout {
    height: usize,
    width: usize,
    channels: usize,
    scale: Vec<f32>,
    shift: Vec<f32>,
}

/// The file of the mean model.
pub(super) fn bytes(prepared: &TrainingSetup, scenario: &Scenario, outcome: &TrainingOutcome) -> Vec<u8> {
    let input = match prepared.inputs() {
        Inputs::Images(images) => {
            let [channels, height, width] = images.shape;
            // The sign of zero is that of the files so far.
            let (scale, shift) = (vec![Images::SCALE; channels], vec![-0.0; channels]);
            Some(InputAbout { height, width, channels, scale, shift })
        }
        Inputs::Features(Features { shape: [height, width, channels], .. }) => Some(InputAbout {
            height: *height,
            width: *width,
            channels: *channels,
            scale: vec![1.0; *channels],
            shift: vec![0.0; *channels],
        }),
        Inputs::Texts(_) | Inputs::Tokens(_) => None,
    };
    let about = ModelAbout {
        version: 1,
        model: &scenario.training.model,
        classes: prepared.model.classes(),
        layers: prepared.model.description(),
        input,
        test_accuracy: outcome.evaluation.test.accuracy,
    };
    let about = serde_json::to_string(&about).expect("plain numbers and strings serialise");
    let layout = prepared.model.program(1).layout;
    let (words, word) = (to_bytes(&outcome.mean), size_of::<f32>());
    let tensors = layout.tensors().iter().map(|tensor| {
        let bytes = &words[word * tensor.offset..word * (tensor.offset + tensor.words())];
        let view = TensorView::new(Dtype::F32, tensor.shape.clone(), bytes);
        (tensor.name.as_str(), view.expect("a tensor has a word for each element"))
    });
    safetensors::serialize(tensors, Some([(KEY.to_owned(), about)].into()))
        .expect("tensors of f32 words serialise")
}
