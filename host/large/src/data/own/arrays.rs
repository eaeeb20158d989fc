//! Data sets as named arrays.

use std::collections::BTreeMap;
use std::path::Path;

use half::{bf16, f16};
use safetensors::tensor::{Dtype, SafeTensors};

use super::RawSamples;
use crate::data::Error;
use fabswarm_sim::npz::{self, NpyArray};

const INPUTS: &str = "x_train";

/// Training and test samples of an archive of numpy.savez.
pub(super) fn npz(path: &Path) -> Result<(RawSamples, RawSamples), Error> {
    let arrays = npz::read(path).map_err(|error| Error::format(path, error.to_string()))?;
    samples(path, arrays)
}

/// Whether a safetensors file holds a data set of this form; tokenised texts have another.
pub(super) fn is_own_safetensors(path: &Path) -> bool {
    let Ok(bytes) = std::fs::read(path) else { return false };
    SafeTensors::deserialize(&bytes).is_ok_and(|tensors| tensors.names().contains(&INPUTS))
}

/// Training and test samples of a safetensors file.
pub(super) fn safetensors(path: &Path) -> Result<(RawSamples, RawSamples), Error> {
    let bytes = std::fs::read(path).map_err(Error::io(path))?;
    let tensors = SafeTensors::deserialize(&bytes).map_err(|error| Error::format(path, error.to_string()))?;
    let mut arrays = BTreeMap::new();
    for (name, tensor) in tensors.tensors() {
        macro_rules! words {
            ($kind:ty) => {
                tensor
                    .data()
                    .chunks_exact(size_of::<$kind>())
                    .map(|bytes| <$kind>::from_le_bytes(bytes.try_into().unwrap_or_default()) as f64)
                    .collect()
            };
            ($kind:ty, $into:expr) => {
                tensor
                    .data()
                    .chunks_exact(size_of::<$kind>())
                    .map(|bytes| $into(<$kind>::from_le_bytes(bytes.try_into().unwrap_or_default())))
                    .collect()
            };
        }
        let values: Vec<f64> = match tensor.dtype() {
            Dtype::F32 => words!(f32),
            Dtype::F64 => words!(f64),
            Dtype::F16 => words!(f16, f64::from),
            Dtype::BF16 => words!(bf16, f64::from),
            Dtype::U8 | Dtype::BOOL => words!(u8),
            Dtype::I8 => words!(i8),
            Dtype::I16 => words!(i16),
            Dtype::U16 => words!(u16),
            Dtype::I32 => words!(i32),
            Dtype::U32 => words!(u32),
            Dtype::I64 => words!(i64),
            Dtype::U64 => words!(u64),
            other => {
                let what = format!("tensor `{name}` is {other:?}");
                return Err(Error::unfit(path, what, "convert it to float32 or int64"));
            }
        };
        arrays.insert(name, NpyArray { shape: tensor.shape().to_vec(), values });
    }
    samples(path, arrays)
}

fn samples(path: &Path, mut arrays: BTreeMap<String, NpyArray>) -> Result<(RawSamples, RawSamples), Error> {
    let names: Vec<String> = arrays.keys().cloned().collect();
    let mut part = |inputs: &str, labels: &str| -> Result<RawSamples, Error> {
        let mut take = |name: &str| {
            arrays.remove(name).ok_or_else(|| {
                let what = format!("there is no array `{name}`, only {}", names.join(", "));
                Error::unfit(path, what, "name the arrays x_train, y_train, x_test and y_test")
            })
        };
        let (x, y) = (take(inputs)?, take(labels)?);
        let shape = match x.shape[..] {
            [_, features] => [1, features, 1],
            [_, height, width] => [height, width, 1],
            [_, height, width, channels] => [height, width, channels],
            _ => {
                let what = format!("`{inputs}` has {} dimensions", x.shape.len());
                return Err(Error::unfit(
                    path,
                    what,
                    "give samples x features, or samples x height x width (x channels)",
                ));
            }
        };
        let count = x.shape[0];
        if y.shape != [count] || shape.contains(&0) {
            let what = format!("`{inputs}` is {:?} and `{labels}` {:?}", x.shape, y.shape);
            return Err(Error::unfit(path, what, "give one label for each sample"));
        }
        Ok(RawSamples {
            shape,
            inputs: x.values.iter().map(|&value| value as f32).collect(),
            labels: y.values,
            rows: (0..count).collect(),
            ..RawSamples::default()
        })
    };
    let mut train = part(INPUTS, "y_train")?;
    let test = part("x_test", "y_test")?;
    let count = train.labels.len();
    let mut optional = |name: &str| -> Result<Option<Vec<f64>>, Error> {
        match arrays.remove(name) {
            Some(array) if array.shape != [count] => {
                let what = format!("`{name}` is {:?} for {count} training samples", array.shape);
                Err(Error::unfit(path, what, "give one value for each training sample"))
            }
            array => Ok(array.map(|array| array.values)),
        }
    };
    train.true_labels = optional("y_train_true")?;
    train.validation = optional("validation")?;
    train.agent = optional("agent")?;
    Ok((train, test))
}
