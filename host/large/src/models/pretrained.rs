//! Encoders from a folder as Hugging Face publishes them: `config.json` and `model.safetensors`.
//!
//! Their linear layers are stored output × input and query, key and value apart; ours are input × output and side by side.

use std::path::Path;

use fabswarm_diagnostic::Diagnostic;
use serde::Deserialize;

use super::bert::BertEncoder;
use crate::layers::Tables;
use crate::parameters::Layout;
use fabswarm_data::weights;

/// The keys of `config.json` we use.
#[derive(Debug, Deserialize)]
struct EncoderConfig {
    model_type: String,
    vocab_size: usize,
    hidden_size: usize,
    num_attention_heads: usize,
    num_hidden_layers: usize,
    intermediate_size: usize,
    max_position_embeddings: usize,
    #[serde(default)]
    type_vocab_size: usize,
    #[serde(default)]
    pad_token_id: usize,
    layer_norm_eps: f64,
    hidden_act: String,
    relative_attention_num_buckets: Option<usize>,
}

/// The encoder that `folder/config.json` describes, for texts of `sequence` tokens, without dropout.
///
/// # Errors
/// When there is no such file or it describes something else.
pub(crate) fn encoder(folder: &Path, sequence: usize, classes: usize) -> Result<BertEncoder, Diagnostic> {
    let path = folder.join("config.json");
    let text = std::fs::read_to_string(&path).map_err(|cause| {
        let remedy = "an encoder's folder holds config.json, model.safetensors and tokenizer.json";
        Diagnostic::new(format!("cannot read {}: {cause}", path.display()), remedy)
    })?;
    let config: EncoderConfig = serde_json::from_str(&text).map_err(|cause| {
        let remedy = "take the config.json that was published with the weights";
        Diagnostic::new(format!("{} does not describe an encoder: {cause}", path.display()), remedy)
    })?;
    let refuse = |key: &str, value: String, remedy: &str| {
        Err(Diagnostic::of_file(&path, format!("`{key}` is {value}"), remedy))
    };
    let is_mpnet = match config.model_type.as_str() {
        "bert" => false,
        "mpnet" => true,
        other => {
            let remedy = "take a folder of a `bert` or `mpnet` model";
            return refuse("model_type", format!("\"{other}\""), remedy);
        }
    };
    if config.hidden_act != "gelu" {
        return refuse("hidden_act", format!("\"{}\"", config.hidden_act), "only `gelu` is known");
    }
    if config.hidden_size == 0 {
        return refuse("hidden_size", "0".to_owned(), "it must be at least 1");
    }
    if config.num_attention_heads == 0 || !config.hidden_size.is_multiple_of(config.num_attention_heads) {
        let heads = config.num_attention_heads.to_string();
        return refuse("num_attention_heads", heads, "it must divide `hidden_size`");
    }
    // MPNet counts positions from one after its padding token.
    let first_position = if is_mpnet { config.pad_token_id + 1 } else { 0 };
    if sequence == 0 || first_position + sequence > config.max_position_embeddings {
        let most = config.max_position_embeddings.saturating_sub(first_position);
        return refuse(
            "max_position_embeddings",
            config.max_position_embeddings.to_string(),
            &format!("texts of {sequence} tokens do not fit; set training.sequence to at most {most}"),
        );
    }
    Ok(BertEncoder {
        tables: Tables {
            vocabulary: config.vocab_size,
            positions: config.max_position_embeddings,
            types: if is_mpnet { 0 } else { config.type_vocab_size },
            first_position,
        },
        width: config.hidden_size,
        heads: config.num_attention_heads,
        inner: config.intermediate_size,
        layers: config.num_hidden_layers,
        epsilon: config.layer_norm_eps,
        dropout: 0.0,
        distance_buckets: if is_mpnet { config.relative_attention_num_buckets.or(Some(32)) } else { None },
        sequence,
        classes,
    })
}

/// A packed start vector with the weights of `folder/model.safetensors`; the classifier is drawn from `seed`.
///
/// # Errors
/// When a tensor is missing or of another shape: the message lists the first few.
pub(crate) fn start(
    folder: &Path,
    encoder: &BertEncoder,
    layout: &Layout,
    seed: u64,
) -> Result<Vec<f32>, Diagnostic> {
    let mut packed = layout.start::<f32>(seed);
    let sources: Vec<TensorSource> =
        layout.tensors().iter().flat_map(|tensor| sources(&tensor.name, &tensor.shape, encoder)).collect();
    let wanted: Vec<(String, Vec<usize>)> =
        sources.iter().map(|source| (source.name.clone(), source.shape.clone())).collect();
    let found = weights::load(folder)?.take(&wanted)?;
    for (source, words) in sources.iter().zip(found) {
        // `take` gave every tensor the shape that was asked for.
        let target = layout.tensor(&source.target).map_or(0, |tensor| tensor.offset) + source.first_column;
        let (rows, columns) =
            if source.is_transposed { (source.shape[1], source.shape[0]) } else { (1, words.len()) };
        for row in 0..rows {
            for column in 0..columns {
                let from = if source.is_transposed { column * rows + row } else { row * columns + column };
                packed[target + row * source.row + column] = words[from];
            }
        }
    }
    Ok(packed)
}

/// A tensor of the file and where it goes.
#[derive(Debug)]
struct TensorSource {
    name: String,
    shape: Vec<usize>,
    target: String,
    is_transposed: bool,
    first_column: usize,
    /// Distance between rows of the target.
    row: usize,
}

/// The sources of one of our tensors: none for the classifier, three tensors for the projections.
fn sources(target: &str, shape: &[usize], encoder: &BertEncoder) -> Vec<TensorSource> {
    let is_mpnet = encoder.distance_buckets.is_some();
    let source = |name: String, shape: Vec<usize>, is_transposed: bool, first_column: usize, row: usize| {
        TensorSource { name, shape, target: target.to_owned(), is_transposed, first_column, row }
    };
    if target.starts_with("classifier.") {
        return Vec::new();
    }
    if let Some((layer, kind)) = target.split_once("attention.self.qkv.") {
        let parts =
            if is_mpnet { ["attn.q", "attn.k", "attn.v"] } else { ["self.query", "self.key", "self.value"] };
        let width = encoder.width;
        let part = |(number, part): (usize, &str)| {
            let name = format!("{layer}attention.{part}.{kind}");
            let shape = if kind == "weight" { vec![width, width] } else { vec![width] };
            source(name, shape, kind == "weight", number * width, 3 * width)
        };
        return parts.into_iter().enumerate().map(part).collect();
    }
    let name = if is_mpnet {
        target
            .replace("attention.output.dense", "attention.attn.o")
            .replace("attention.output.LayerNorm", "attention.LayerNorm")
    } else {
        target.to_owned()
    };
    let is_linear = name.ends_with(".weight")
        && shape.len() == 2
        && !name.contains("embeddings")
        && !name.contains("relative_attention_bias");
    let stored = if is_linear { vec![shape[1], shape[0]] } else { shape.to_vec() };
    vec![source(name, stored, is_linear, 0, shape.last().copied().unwrap_or(1))]
}

#[cfg(test)]
mod tests {
    use safetensors::tensor::{Dtype, TensorView};

    use super::*;

    const CONFIG: &str = r#"{"model_type": "bert", "vocab_size": 7, "hidden_size": 4, "num_attention_heads": 2, "num_hidden_layers": 1,
        "intermediate_size": 6, "max_position_embeddings": 8, "type_vocab_size": 2, "layer_norm_eps": 1e-12,
        "hidden_act": "gelu"}"#;

    fn folder(config: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("config.json"), config).unwrap();
        folder
    }

    /// Every tensor filled with its own number and, in the hundredths, its place.
    fn write_weights(folder: &Path, encoder: &BertEncoder) {
        let layout = encoder.program(1).layout;
        let sources: Vec<TensorSource> =
            layout.tensors().iter().flat_map(|t| sources(&t.name, &t.shape, encoder)).collect();
        let bytes: Vec<Vec<u8>> = sources
            .iter()
            .enumerate()
            .map(|(number, source)| {
                let words = source.shape.iter().product::<usize>();
                (0..words).flat_map(|place| (number as f32 + place as f32 / 1024.0).to_le_bytes()).collect()
            })
            .collect();
        let views = sources.iter().zip(&bytes).map(|(source, bytes)| {
            (source.name.clone(), TensorView::new(Dtype::F32, source.shape.clone(), bytes).unwrap())
        });
        std::fs::write(folder.join("model.safetensors"), safetensors::serialize(views, None).unwrap())
            .unwrap();
    }

    #[test]
    fn weights_are_transposed_and_projections_put_side_by_side() {
        let folder = folder(CONFIG);
        let encoder = encoder(folder.path(), 5, 2).unwrap();
        write_weights(folder.path(), &encoder);
        let layout = encoder.program(1).layout;
        let packed = start(folder.path(), &encoder, &layout, 1).unwrap();
        let at = |name: &str, row: usize, column: usize| {
            let tensor = layout.tensor(name).unwrap();
            packed[tensor.offset + row * tensor.shape[1] + column]
        };
        let number = |name: &str| {
            let all: Vec<TensorSource> =
                layout.tensors().iter().flat_map(|t| sources(&t.name, &t.shape, &encoder)).collect();
            all.iter().position(|source| source.name == name).unwrap() as f32
        };
        // Row 1 (input), column 2 (output) of the key's matrix is stored at [2, 1].
        let key = number("encoder.layer.0.attention.self.key.weight") + (2 * 4 + 1) as f32 / 1024.0;
        assert_eq!(at("encoder.layer.0.attention.self.qkv.weight", 1, 4 + 2), key);
        let inner = number("encoder.layer.0.intermediate.dense.weight") + (5 * 4 + 3) as f32 / 1024.0;
        assert_eq!(at("encoder.layer.0.intermediate.dense.weight", 3, 5), inner);
        let word = number("embeddings.word_embeddings.weight") + (2 * 4 + 1) as f32 / 1024.0;
        assert_eq!(at("embeddings.word_embeddings.weight", 2, 1), word);
    }

    #[test]
    fn mpnet_names_and_positions() {
        let config = CONFIG
            .replace("\"bert\"", "\"mpnet\"")
            .replace("\"vocab_size\"", "\"pad_token_id\": 1, \"vocab_size\"");
        let folder = folder(&config);
        let encoder = encoder(folder.path(), 5, 2).unwrap();
        assert_eq!(
            (encoder.tables.first_position, encoder.tables.types, encoder.distance_buckets),
            (2, 0, Some(32))
        );
        write_weights(folder.path(), &encoder);
        start(folder.path(), &encoder, &encoder.program(1).layout, 1).unwrap();
    }

    #[test]
    fn refusals_name_file_key_and_remedy() {
        let refused =
            |config: &str, sequence| encoder(folder(config).path(), sequence, 2).unwrap_err().to_string();
        assert!(refused(&CONFIG.replace("\"bert\"", "\"gpt2\""), 5).contains("`model_type` is \"gpt2\""));
        assert!(refused(CONFIG, 9).contains("set training.sequence to at most 8"));
        let narrow = CONFIG.replace("\"hidden_size\": 4", "\"hidden_size\": 0");
        assert!(refused(&narrow, 5).contains("`hidden_size` is 0"));
        assert!(refused("{}", 5).contains("config.json does not describe an encoder"));
        let folder = folder(CONFIG);
        let encoder = encoder(folder.path(), 5, 2).unwrap();
        write_weights(folder.path(), &BertEncoder { inner: 8, ..encoder.clone() });
        let message = start(folder.path(), &encoder, &encoder.program(1).layout, 1).unwrap_err().to_string();
        assert!(message.contains("encoder.layer.0.intermediate.dense.weight"), "{message}");
    }
}
