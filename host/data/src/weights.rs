//! Pretrained weights from safetensors files, as f32 whatever they were stored in.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fabswarm_diagnostic::Diagnostic;
use half::{bf16, f16};
use safetensors::tensor::{Dtype, SafeTensors, TensorView};

use super::error::{in_file, io_error};

/// The tensors of a pretrained model, by name.
#[derive(Debug, Clone, PartialEq)]
pub struct PretrainedWeights {
    folder: PathBuf,
    pub(super) tensors: BTreeMap<String, WeightTensor>,
}

/// A tensor in row-major order.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct WeightTensor {
    shape: Vec<usize>,
    pub(super) words: Vec<f32>,
}

/// Loads the weights of a folder, from its `model.safetensors`.
///
/// Names lose the prefix of the architecture (`bert.`, `mpnet.`), and layer norms have `weight` and `bias` also where an old file
/// says `gamma` and `beta`. Integer tensors (position indices) are left out.
///
/// # Errors
/// When there is no such file, or it is damaged.
pub fn load(folder: &Path) -> Result<PretrainedWeights, Diagnostic> {
    let path = folder.join("model.safetensors");
    if !path.is_file() {
        let remedy = "convert other formats to safetensors first";
        return Err(Diagnostic::of_file(folder, "no model.safetensors here", remedy));
    }
    let bytes = std::fs::read(&path).map_err(io_error(&path))?;
    let tensors = parse(&bytes).map_err(in_file(&path))?;
    Ok(PretrainedWeights { folder: folder.to_owned(), tensors })
}

fn parse(bytes: &[u8]) -> Result<BTreeMap<String, WeightTensor>, String> {
    let file = SafeTensors::deserialize(bytes).map_err(|error| error.to_string())?;
    let mut tensors = BTreeMap::new();
    for (name, view) in file.iter() {
        if let Some(words) = decode(&view).map_err(|what| format!("{name}: {what}"))? {
            let (name, shape) = (plain_name(name), view.shape().to_vec());
            if tensors.insert(name.clone(), WeightTensor { shape, words }).is_some() {
                return Err(format!("tensor {name} is there twice"));
            }
        }
    }
    Ok(tensors)
}

/// The words of a tensor; none where it holds integers.
fn decode(view: &TensorView<'_>) -> Result<Option<Vec<f32>>, String> {
    fn words<const BYTES: usize>(bytes: &[u8], decode: impl Fn([u8; BYTES]) -> f32) -> Option<Vec<f32>> {
        Some(bytes.as_chunks().0.iter().map(|word| decode(*word)).collect())
    }
    match view.dtype() {
        Dtype::F32 => Ok(words(view.data(), f32::from_le_bytes)),
        Dtype::F16 => Ok(words(view.data(), |word| f16::from_le_bytes(word).to_f32())),
        Dtype::BF16 => Ok(words(view.data(), |word| bf16::from_le_bytes(word).to_f32())),
        Dtype::F64 => Ok(words(view.data(), |word| f64::from_le_bytes(word) as f32)),
        Dtype::I64
        | Dtype::U64
        | Dtype::I32
        | Dtype::U32
        | Dtype::I16
        | Dtype::U16
        | Dtype::I8
        | Dtype::U8
        | Dtype::BOOL => Ok(None),
        other => Err(format!("elements of type {other:?}; f32, f16, bf16 and f64 are read")),
    }
}

fn plain_name(name: &str) -> String {
    let name = ["bert.", "mpnet."].iter().find_map(|prefix| name.strip_prefix(prefix)).unwrap_or(name);
    match name.rsplit_once('.') {
        Some((layer, "gamma")) => format!("{layer}.weight"),
        Some((layer, "beta")) => format!("{layer}.bias"),
        _ => name.to_owned(),
    }
}

/// The most names of each sort in an error.
const FEW: usize = 5;

impl PretrainedWeights {
    /// Takes the tensors a model needs, in the order of `wanted`. More than that may be there: heads of another task.
    ///
    /// # Errors
    /// When a tensor is missing or has another shape; lists the first few, and names that were not expected.
    pub fn take(mut self, wanted: &[(String, Vec<usize>)]) -> Result<Vec<Vec<f32>>, Diagnostic> {
        let mut taken = Vec::new();
        let mut missing = Vec::new();
        let mut misshapen = Vec::new();
        for (name, shape) in wanted {
            match self.tensors.remove(name) {
                Some(tensor) if tensor.shape == *shape => taken.push(tensor.words),
                Some(tensor) => {
                    misshapen.push(format!("{name}: {:?} in the file, {shape:?} in the model", tensor.shape))
                }
                None => missing.push(name.clone()),
            }
        }
        if missing.is_empty() && misshapen.is_empty() {
            return Ok(taken);
        }
        let unexpected: Vec<String> =
            self.tensors.iter().map(|(name, tensor)| format!("{name} {:?}", tensor.shape)).collect();
        let sorts = [("missing", missing), ("of another shape", misshapen), ("not expected", unexpected)];
        let what: Vec<String> = sorts.iter().filter(|(_, names)| !names.is_empty()).map(list_few).collect();
        Err(Diagnostic::of_file(
            &self.folder,
            format!("the weights do not fit the model\n{}", what.join("\n")),
            "take the weights that its config.json describes",
        ))
    }
}

fn list_few((sort, names): &(&str, Vec<String>)) -> String {
    let few: String = names.iter().take(FEW).map(|name| format!("\n  {name}")).collect();
    format!("{} {sort}:{few}{}", names.len(), if names.len() > FEW { "\n  …" } else { "" })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn file(tensors: &[(&str, Dtype, Vec<usize>, Vec<u8>)]) -> Vec<u8> {
        let views = tensors.iter().map(|(name, dtype, shape, bytes)| {
            (*name, TensorView::new(*dtype, shape.clone(), bytes).unwrap())
        });
        safetensors::serialize(views, None).unwrap()
    }

    fn weights(tensors: &[(&str, Dtype, Vec<usize>, Vec<u8>)]) -> PretrainedWeights {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("model.safetensors"), file(tensors)).unwrap();
        load(folder.path()).unwrap()
    }

    #[test]
    fn every_float_becomes_f32_and_integers_stay_out() {
        let loaded = weights(&[
            ("bert.a.LayerNorm.gamma", Dtype::F32, vec![1], 1.5_f32.to_le_bytes().to_vec()),
            (
                "b",
                Dtype::F16,
                vec![2],
                [f16::from_f32(-0.25), f16::from_f32(2.0)].iter().flat_map(|w| w.to_le_bytes()).collect(),
            ),
            ("c", Dtype::BF16, vec![1, 1], bf16::from_f32(3.0).to_le_bytes().to_vec()),
            ("position_ids", Dtype::I64, vec![1], 7_i64.to_le_bytes().to_vec()),
        ]);
        let found: Vec<(&str, &[f32])> =
            loaded.tensors.iter().map(|(name, tensor)| (name.as_str(), &tensor.words[..])).collect();
        assert_eq!(found, [("a.LayerNorm.weight", &[1.5][..]), ("b", &[-0.25, 2.0]), ("c", &[3.0])]);
    }

    #[test]
    fn mismatches_list_the_first_few() {
        let loaded = weights(&[
            ("there", Dtype::F32, vec![2], vec![0; 8]),
            ("extra", Dtype::F32, vec![1], vec![0; 4]),
        ]);
        assert_eq!(loaded.clone().take(&[("there".into(), vec![2])]).unwrap(), [[0.0, 0.0]]);
        let mut wanted = vec![("there".to_owned(), vec![1, 2])];
        wanted.extend((0..7).map(|layer| (format!("layer.{layer}"), vec![1])));
        let message = loaded.take(&wanted).unwrap_err().to_string();
        for part in [
            "7 missing",
            "layer.0",
            "layer.4",
            "…",
            "there: [2] in the file, [1, 2] in the model",
            "extra [1]",
        ] {
            assert!(message.contains(part), "{part} not in {message}");
        }
        assert!(!message.contains("layer.5"), "{message}");
    }

    #[test]
    fn a_missing_file_and_repeated_names_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        assert!(load(folder.path()).unwrap_err().to_string().contains("no model.safetensors"));
        let twice = ["bert.a", "a"].map(|name| (name, Dtype::F32, vec![1], vec![0; 4]));
        assert!(parse(&file(&twice)).unwrap_err().contains("a is there twice"));
    }

    proptest! {
        #[test]
        fn damaged_files_never_panic(position in 0_usize..400, byte in any::<u8>(), cut in 0_usize..400) {
            let mut bytes = file(&[("a", Dtype::F16, vec![2, 3], vec![1; 12]), ("b", Dtype::F32, vec![1], vec![0; 4])]);
            let length = bytes.len();
            bytes[position % length] = byte;
            let _ = parse(&bytes);
            bytes.truncate(cut % length);
            prop_assert!(parse(&bytes).is_err());
        }
    }
}
