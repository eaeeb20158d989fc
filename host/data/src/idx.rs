//! The idx format of MNIST and its relatives: a magic number, big-endian dimensions, bytes.

use std::io::Read;
use std::path::Path;

use super::cache::open_content;
use fabswarm_diagnostic::Diagnostic;

use super::error::{in_file, io_error};
use super::{Dataset, Images, Inputs, LabelledSamples};

/// Refused before memory is asked for: far above every data set of this format.
const MOST_BYTES: usize = 1 << 32;
const UNSIGNED_BYTE: u8 = 8;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Idx {
    dimensions: Vec<usize>,
    bytes: Vec<u8>,
}

/// Reads an idx array from a stream, which must end where the array ends.
pub(super) fn read(mut stream: impl Read) -> Result<Idx, String> {
    let mut word = || -> Result<[u8; 4], String> {
        let mut word = [0; 4];
        stream.read_exact(&mut word).map_err(|error| format!("cut or unreadable header: {error}"))?;
        Ok(word)
    };
    let [0, 0, kind, rank] = word()? else {
        return Err("not an idx file: it does not begin with two zero bytes".to_owned());
    };
    if kind != UNSIGNED_BYTE {
        return Err(format!("idx element type {kind:#04x}, but only bytes (0x08) are read"));
    }
    let mut dimensions = Vec::new();
    let mut size = 1_usize;
    for _ in 0..rank {
        let dimension = u32::from_be_bytes(word()?) as usize;
        size = size.checked_mul(dimension).filter(|size| *size <= MOST_BYTES).ok_or_else(|| {
            format!("idx dimensions {dimensions:?} and {dimension} promise more than {MOST_BYTES} bytes")
        })?;
        dimensions.push(dimension);
    }
    // Grown as the bytes come, so that a lying header costs nothing.
    let mut bytes = Vec::new();
    stream
        .take(size as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| format!("unreadable after {} bytes: {error}", bytes.len()))?;
    match bytes.len() {
        found if found == size => Ok(Idx { dimensions, bytes }),
        found if found < size => Err(format!("cut: the header promises {size} bytes, {found} are there")),
        _ => Err(format!("bytes after the {size} that the header promises")),
    }
}

/// Makes samples of an array of grey images and one of labels, pixels between 0 and 1.
pub(super) fn samples(images: Idx, labels: Idx) -> Result<LabelledSamples, String> {
    let [_, height, width] = images.dimensions[..] else {
        return Err(format!(
            "images have dimensions {:?}; number, height and width are needed",
            images.dimensions
        ));
    };
    if labels.dimensions.len() != 1 {
        return Err(format!("labels have dimensions {:?}; their number is needed", labels.dimensions));
    }
    let shape = [1, height, width];
    if shape.contains(&0) {
        return Err(format!("images of {height} x {width} pixels"));
    }
    Ok(LabelledSamples {
        inputs: Inputs::Images(Images { shape, pixels: images.bytes }),
        labels: labels.bytes,
    })
}

/// Reads a folder with the four files of an MNIST-like data set, compressed or not.
pub(super) fn read_folder(folder: &Path) -> Result<Dataset, Diagnostic> {
    let array = |name: &str| -> Result<Idx, Diagnostic> {
        let plain = folder.join(name);
        let compressed = folder.join(format!("{name}.gz"));
        let path = if compressed.is_file() { compressed } else { plain };
        let stream = open_content(&path).map_err(io_error(&path))?;
        read(std::io::BufReader::new(stream)).map_err(in_file(&path))
    };
    let part = |prefix: &str| -> Result<LabelledSamples, Diagnostic> {
        let images = array(&format!("{prefix}-images-idx3-ubyte"))?;
        let labels = array(&format!("{prefix}-labels-idx1-ubyte"))?;
        samples(images, labels).map_err(in_file(folder))
    };
    dataset(part("train")?, part("t10k")?).map_err(in_file(folder))
}

/// Puts both parts together; the largest label says how many classes there are.
pub(super) fn dataset(train: LabelledSamples, test: LabelledSamples) -> Result<Dataset, String> {
    if let (Inputs::Images(train), Inputs::Images(test)) = (&train.inputs, &test.inputs)
        && train.shape != test.shape
    {
        return Err(format!("training images are {:?}, test images {:?}", train.shape, test.shape));
    }
    let classes = train.labels.iter().max().map_or(0, |label| usize::from(*label) + 1);
    Dataset { classes, train, test }.checked()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn encode(dimensions: &[u32], bytes: &[u8]) -> Vec<u8> {
        let mut file = vec![0, 0, UNSIGNED_BYTE, u8::try_from(dimensions.len()).unwrap()];
        for dimension in dimensions {
            file.extend(dimension.to_be_bytes());
        }
        file.extend(bytes);
        file
    }

    #[test]
    fn cut_long_and_lying_files_are_refused_with_numbers() {
        let whole = encode(&[2, 2], &[1, 2, 3, 4]);
        for cut in 0..whole.len() {
            assert!(read(&whole[..cut]).is_err(), "cut at {cut}");
        }
        assert!(read(&encode(&[2, 2], &[0; 3])[..]).unwrap_err().contains("promises 4 bytes, 3"));
        assert!(read(&encode(&[2, 2], &[0; 5])[..]).unwrap_err().contains("after the 4"));
        assert!(read(&encode(&[u32::MAX, u32::MAX, u32::MAX], &[])[..]).unwrap_err().contains("more than"));
        assert!(read(&[0, 0, 0x0d, 1, 0, 0, 0, 0][..]).unwrap_err().contains("0x0d"));
        assert!(read(&b"<html>"[..]).unwrap_err().contains("not an idx file"));
    }

    #[test]
    fn empty_and_flat_arrays_are_no_images() {
        let labels = || read(&encode(&[0], &[])[..]).unwrap();
        let flat = read(&encode(&[4], &[0; 4])[..]).unwrap();
        assert!(samples(flat, labels()).is_err());
        let none = read(&encode(&[0, 0, 3], &[])[..]).unwrap();
        assert!(samples(none, labels()).is_err());
    }

    #[test]
    fn a_folder_is_read_and_a_missing_file_named() {
        let folder = tempfile::tempdir().unwrap();
        let put = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).unwrap();
        put("train-images-idx3-ubyte", &encode(&[2, 1, 1], &[1, 2]));
        put("train-labels-idx1-ubyte", &encode(&[2], &[0, 1]));
        put("t10k-images-idx3-ubyte", &encode(&[1, 1, 1], &[3]));
        let message = read_folder(folder.path()).unwrap_err().to_string();
        assert!(message.contains("t10k-labels-idx1-ubyte"), "{message}");
        put("t10k-labels-idx1-ubyte", &encode(&[1], &[1]));
        let dataset = read_folder(folder.path()).unwrap();
        assert_eq!((dataset.classes, dataset.train.inputs.count(), dataset.test.inputs.count()), (2, 2, 1));
        assert_eq!(dataset.train.labels, [0, 1]);
        put("t10k-labels-idx1-ubyte", &encode(&[1], &[2]));
        let message = read_folder(folder.path()).unwrap_err().to_string();
        assert!(message.contains("test label 0 is 2"), "{message}");
    }

    proptest! {
        #[test]
        fn garbage_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&bytes[..]);
            let mut with_magic = vec![0, 0, UNSIGNED_BYTE];
            with_magic.extend(&bytes);
            if let Ok(array) = read(&with_magic[..]) {
                prop_assert_eq!(array.dimensions.iter().product::<usize>(), array.bytes.len());
                let labels = Idx { dimensions: vec![1], bytes: vec![0] };
                if let Ok(samples) = samples(array, labels) {
                    let _ = samples.inputs.count();
                }
            }
        }
    }
}
