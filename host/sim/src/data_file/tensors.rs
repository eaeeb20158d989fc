//! Arrays in safetensors.

use super::NamedArrays;
use crate::npz::{NpyArray, WordType, word_type};
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
    let (bytes, number): WordType = match tensor.dtype() {
        Dtype::F16 => (2, |bytes| f16::from_le_bytes([bytes[0], bytes[1]]).into()),
        Dtype::BF16 => (2, |bytes| bf16::from_le_bytes([bytes[0], bytes[1]]).into()),
        Dtype::F32 => word_type("<f4")?,
        Dtype::F64 => word_type("<f8")?,
        Dtype::U8 | Dtype::BOOL => word_type("|u1")?,
        Dtype::I8 => word_type("|i1")?,
        Dtype::I16 => word_type("<i2")?,
        Dtype::U16 => word_type("<u2")?,
        Dtype::I32 => word_type("<i4")?,
        Dtype::U32 => word_type("<u4")?,
        Dtype::I64 => word_type("<i8")?,
        Dtype::U64 => word_type("<u8")?,
        _ => return None,
    };
    Some(tensor.data().chunks_exact(bytes).map(number).collect())
}
