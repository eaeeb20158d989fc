//! The model of a scenario, as its data ask for.

use std::path::{Path, PathBuf};

use super::Error;
use crate::models::{BertEncoder, ImageModel, Model, pretrained};
use fabswarm_data::tokenizer::Tokenizer;
use fabswarm_data::{Cache, Dataset, Features, Inputs, catalogue};
use fabswarm_sim::scenario::TrainingSection;

/// Whether a model is a file of layers.
pub(super) fn is_layer_file(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension == "toml")
}

/// Refuses the model of the scenario.
fn refuse_model(training: &TrainingSection, remedy: impl Into<String>) -> Error {
    Error::setting("training.model", format!("\"{}\"", training.model), remedy)
}

/// The model of the scenario for the data, its folder where it has one, and the data, tokenised where the model reads tokens.
pub(super) fn choose(
    cache: &Cache,
    training: &TrainingSection,
    data: Dataset,
) -> Result<(Model, Option<PathBuf>, Dataset), Error> {
    let shape = match &data.train.inputs {
        Inputs::Images(images) => images.shape,
        Inputs::Features(Features { shape: [height, width, channels], .. }) => [*channels, *height, *width],
        Inputs::Texts(_) | Inputs::Tokens(_) => {
            let (encoder, folder, data) = encoder_for(cache, training, data)?;
            return Ok((Model::Encoder(encoder), Some(folder), data));
        }
    };
    Ok((image_model(training, shape, data.classes)?, None, data))
}

/// The model of the scenario for images, or for numbers that are none.
fn image_model(
    training: &TrainingSection,
    [channels, height, width]: [usize; 3],
    classes: usize,
) -> Result<Model, Error> {
    let inputs = channels * height * width;
    let square = || -> Result<usize, Error> {
        let fits = height == width && height.is_multiple_of(4);
        fits.then_some(height).ok_or_else(|| {
            let sides = format!("sides in multiples of 4, not {height} x {width}");
            refuse_model(training, format!("it needs square images with {sides}"))
        })
    };
    Ok(match training.model.as_str() {
        "softmax" => Model::softmax(inputs, classes),
        "mlp" => Model::mlp(inputs, training.model_width, classes),
        "lenet" => Model::lenet(square()?, channels, classes),
        name if is_layer_file(name) => {
            Model::Image(ImageModel::read(Path::new(name), [height, width, channels], classes)?)
        }
        _ => {
            let remedy = "for images take softmax, mlp, lenet, or a .toml file of layers";
            return Err(refuse_model(training, remedy));
        }
    })
}

/// The encoder of the scenario, its folder, and its texts as tokens.
fn encoder_for(
    cache: &Cache,
    training: &TrainingSection,
    data: Dataset,
) -> Result<(BertEncoder, PathBuf, Dataset), Error> {
    let name = training.model.as_str();
    let folder = match catalogue::find(name) {
        Some(entry) if !entry.kind.is_data() => cache.checked_folder(entry)?,
        _ if Path::new(name).is_dir() => PathBuf::from(name),
        _ => {
            let remedy = "for texts take minilm, mpnet-base, or a folder with config.json, model.safetensors and tokenizer.json";
            return Err(refuse_model(training, remedy));
        }
    };
    let encoder = BertEncoder {
        dropout: training.dropout,
        ..pretrained::encoder(&folder, training.sequence, data.classes)?
    };
    let vocabulary = encoder.tables.vocabulary;
    let Inputs::Tokens(tokens) = &data.train.inputs else {
        let tokenizer = Tokenizer::from_folder(&folder)?;
        tokenizer.check_vocabulary(vocabulary)?;
        return Ok((encoder, folder, data.tokenise(&tokenizer, training.sequence)));
    };
    if tokens.length != training.sequence {
        let (file, length) = (&training.data, tokens.length);
        let remedy = format!("the texts of {file} were cut to {length} tokens; set it to that");
        return Err(Error::setting("training.sequence", training.sequence, remedy));
    }
    // An id outside the vocabulary would index past the embedding table, unchecked on a GPU.
    for (part, samples) in [("train", &data.train), ("test", &data.test)] {
        let Inputs::Tokens(tokens) = &samples.inputs else { continue };
        if let Some((row, column, id)) = tokens.first_id_outside(vocabulary) {
            let place = format!("{}: {part}.ids row {row}, column {column} is token {id}", training.data);
            return Err(refuse_model(
                training,
                format!(
                    "it has {vocabulary} words, but {place}: it was made for another model; tokenise the texts again with `fabswarm data tokens`"
                ),
            ));
        }
    }
    Ok((encoder, folder, data))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabswarm_data::{LabelledSamples, Tokens};
    use fabswarm_sim::scenario::Scenario;

    #[test]
    fn token_ids_outside_the_vocabulary_are_refused_in_both_splits() {
        let folder = tempfile::tempdir().unwrap();
        let config = r#"{"model_type": "bert", "vocab_size": 7, "hidden_size": 4, "num_attention_heads": 2,
            "num_hidden_layers": 1, "intermediate_size": 6, "max_position_embeddings": 8, "type_vocab_size": 2,
            "layer_norm_eps": 1e-12, "hidden_act": "gelu"}"#;
        std::fs::write(folder.path().join("config.json"), config).unwrap();
        let training = TrainingSection {
            data: "texts.safetensors".to_owned(),
            model: folder.path().display().to_string(),
            sequence: 2,
            ..Scenario::default().training
        };
        let samples = |ids: Vec<u32>| LabelledSamples {
            labels: vec![0; ids.len() / 2],
            inputs: Inputs::Tokens(Tokens { length: 2, used: vec![2; ids.len() / 2], ids }),
        };
        let choose_with = |train, test| {
            let data = Dataset { classes: 2, train: samples(train), test: samples(test) };
            choose(&Cache::at(folder.path()), &training, data).map(|_| ())
        };
        choose_with(vec![6, 6], vec![0, 6]).unwrap();
        for (part, refused) in [
            ("train", choose_with(vec![0, 0, 0, 9], vec![0, 0])),
            ("test", choose_with(vec![0, 0], vec![0, 0, 0, 9])),
        ] {
            let message = refused.unwrap_err().to_string();
            let expected = format!("texts.safetensors: {part}.ids row 1, column 1 is token 9");
            assert!(message.contains(&expected) && message.contains("fabswarm data tokens"), "{message}");
        }
    }
}
