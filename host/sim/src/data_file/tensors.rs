//! Arrays in safetensors.

use super::NamedArrays;
use crate::npz::NpyArray;
use fabswarm_diagnostic::Diagnostic;
use half::{bf16, f16};
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use std::path::Path;

/// Reads all arrays.
pub(super) fn read(path: &Path) -> Result<NamedArrays, Diagnostic> {
    let bytes = std::fs::read(path).map_err(|error| super::unreadable(path, error))?;
    let tensors = SafeTensors::deserialize(&bytes).map_err(|error| {
        let what = format!("not a safetensors file ({error})");
        Diagnostic::of_file(path, what, "write it with safetensors.numpy.save_file")
    })?;
    let array = |(name, tensor): (String, TensorView<'_>)| {
        let values = numbers(&tensor).ok_or_else(|| {
            let what = format!("tensor `{name}` is {:?}", tensor.dtype());
            Diagnostic::of_file(path, what, "convert it to float32 or int64")
        })?;
        Ok((name, NpyArray { shape: tensor.shape().to_vec(), values }))
    };
    tensors.tensors().into_iter().map(array).collect()
}

fn numbers(tensor: &TensorView<'_>) -> Option<Vec<f64>> {
    macro_rules! words {
        ($kind:ty) => {
            words!($kind, |word| word as f64)
        };
        ($kind:ty, $number:expr) => {
            tensor
                .data()
                .chunks_exact(size_of::<$kind>())
                .map(|bytes| $number(<$kind>::from_le_bytes(bytes.try_into().unwrap_or_default())))
                .collect()
        };
    }
    Some(match tensor.dtype() {
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
        _ => return None,
    })
}
