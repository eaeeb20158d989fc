//! NumPy's archives of arrays, as `numpy.savez` writes them.

use crate::data_file::unreadable;
use fabswarm_diagnostic::Diagnostic;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use zip::ZipArchive;
use zip::result::ZipError;

/// An array, row by row.
#[derive(Clone, Debug, PartialEq)]
pub struct NpyArray {
    /// Its dimensions.
    pub shape: Vec<usize>,
    /// Its words.
    pub values: Vec<f64>,
}

/// Reads every array of the archive at `path`.
///
/// # Errors
/// When it cannot be read, or an array has neither whole nor real numbers.
pub fn read(path: &Path) -> Result<BTreeMap<String, NpyArray>, Diagnostic> {
    let refuse = |what: String| Diagnostic::of_file(path, what, "write it with numpy.savez");
    let not_an_archive = |error: ZipError| refuse(format!("not an archive of numpy.savez ({error})"));
    let file = File::open(path).map_err(|error| unreadable(path, error))?;
    let mut archive = ZipArchive::new(file).map_err(not_an_archive)?;
    let mut arrays = BTreeMap::new();
    for index in 0..archive.len() {
        let file = archive.by_index(index).map_err(not_an_archive)?;
        let name = file.name().map_err(not_an_archive)?.trim_end_matches(".npy").to_owned();
        let array = array(file).map_err(|what| refuse(format!("array `{name}`: {what}")))?;
        arrays.insert(name, array);
    }
    Ok(arrays)
}

/// A type of words: its bytes, and what makes a number of them.
pub(crate) type WordType = (usize, fn(&[u8]) -> f64);

/// The type of words that NumPy describes so.
pub(crate) fn word_type(descr: &str) -> Option<WordType> {
    macro_rules! words {
        ($kind:ty) => {
            (size_of::<$kind>(), |bytes: &[u8]| match bytes.try_into() {
                Ok(bytes) => <$kind>::from_le_bytes(bytes) as f64,
                Err(_) => f64::NAN,
            })
        };
    }
    Some(match descr {
        "<f4" => words!(f32),
        "<f8" => words!(f64),
        "|u1" | "|b1" => words!(u8),
        "|i1" => words!(i8),
        "<u2" => words!(u16),
        "<i2" => words!(i16),
        "<u4" => words!(u32),
        "<i4" => words!(i32),
        "<u8" => words!(u64),
        "<i8" => words!(i64),
        _ => return None,
    })
}

fn array(mut file: impl Read) -> Result<NpyArray, String> {
    let cut = |error: io::Error| format!("it is cut or unreadable ({error})");
    let mut start = [0; 8];
    file.read_exact(&mut start).map_err(cut)?;
    if &start[..6] != b"\x93NUMPY" {
        return Err("it is not an array of NumPy".to_owned());
    }
    // Format 1.0 has two bytes for the length of its header, later ones have four.
    let mut length = [0; 4];
    file.read_exact(&mut length[..if start[6] == 1 { 2 } else { 4 }]).map_err(cut)?;
    let mut header = String::new();
    file.by_ref().take(u32::from_le_bytes(length).into()).read_to_string(&mut header).map_err(cut)?;
    let after = |key: &str| header.split_once(&format!("'{key}':")).map(|(_, rest)| rest.trim_start());
    let descr =
        after("descr").and_then(|rest| rest.strip_prefix('\'')).and_then(|rest| rest.split('\'').next());
    let descr = descr.ok_or("it has several values per element")?;
    let (bytes, number) = word_type(descr)
        .ok_or_else(|| format!("its type is {descr}; convert it with .astype(\"float32\")"))?;
    if after("fortran_order").is_some_and(|rest| rest.starts_with("True")) {
        return Err("it is stored by columns; convert it with numpy.ascontiguousarray".to_owned());
    }
    let inner =
        after("shape").and_then(|rest| rest.strip_prefix('(')).and_then(|rest| rest.split(')').next());
    let sizes = inner.ok_or("it has no shape")?.split(',').map(str::trim).filter(|size| !size.is_empty());
    let shape =
        sizes.map(str::parse).collect::<Result<Vec<usize>, _>>().map_err(|error| error.to_string())?;
    let size = shape.iter().try_fold(bytes, |size, &dimension| size.checked_mul(dimension));
    let size = size.ok_or_else(|| format!("its shape {shape:?} is too large"))?;
    // Grown as the bytes come, so that a header that lies costs nothing.
    let mut words = Vec::new();
    file.take((size as u64).saturating_add(1)).read_to_end(&mut words).map_err(cut)?;
    if words.len() != size {
        return Err(format!("its shape {shape:?} needs {size} bytes, and {} are there", words.len()));
    }
    Ok(NpyArray { shape, values: words.chunks_exact(bytes).map(number).collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn npy(descr: &str, order: &str, shape: &str, words: &[u8]) -> Vec<u8> {
        let text = format!("{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}\n");
        [b"\x93NUMPY\x01\x00", &(text.len() as u16).to_le_bytes()[..], text.as_bytes(), words].concat()
    }

    #[test]
    fn arrays_of_numbers_are_read() {
        let read = array(&npy("'<i2'", "False", "(2, 1)", &[1, 0, 255, 255])[..]).unwrap();
        assert_eq!(read, NpyArray { shape: vec![2, 1], values: vec![1.0, -1.0] });
        let read = array(&npy("'<f8'", "False", "(1,)", &2.5_f64.to_le_bytes())[..]).unwrap();
        assert_eq!(read, NpyArray { shape: vec![1], values: vec![2.5] });
    }

    #[test]
    fn what_is_not_read_is_refused_with_a_remedy() {
        for (bytes, expected) in [
            (npy("'<U3'", "False", "(1,)", &[0; 12]), "astype"),
            (npy("[('a', '<f4')]", "False", "(1,)", &[0; 4]), "several values"),
            (npy("'<f4'", "True", "(1,)", &[0; 4]), "ascontiguousarray"),
            (npy("'<f4'", "False", "(3,)", &[0; 4]), "needs 12 bytes, and 4"),
            (npy("'<f4'", "False", "(99999999999999999, 99999999999)", &[]), "too large"),
            (b"\x93NUMP".to_vec(), "cut"),
            (b"12345678".to_vec(), "not an array"),
        ] {
            let message = array(&bytes[..]).unwrap_err();
            assert!(message.contains(expected), "{message}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_make_it_panic(text in "\\PC{0,80}", words in proptest::collection::vec(0_u8..255, 0..40)) {
            let _ = array(&words[..]);
            let _ = array(&[b"\x93NUMPY\x01\x00", &(text.len() as u16).to_le_bytes()[..], text.as_bytes()].concat()[..]);
        }
    }
}
