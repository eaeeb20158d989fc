//! A sample of Fashion-MNIST inside the program: tests and first steps need no network.
//!
//! The first 60 training and 20 test images of each class, in order. Copyright 2017 Zalando SE, MIT licence (`sample/LICENSE`).

use fabswarm_diagnostic::Diagnostic;
use flate2::read::GzDecoder;

use super::error::in_file;
use super::{Dataset, LabelledSamples, idx};

pub(super) fn fashion_mnist() -> Result<Dataset, Diagnostic> {
    let part = |images: &[u8], labels: &[u8]| -> Result<LabelledSamples, String> {
        idx::samples(idx::read(GzDecoder::new(images))?, idx::read(GzDecoder::new(labels))?)
    };
    let train = part(
        include_bytes!("sample/train-images-idx3-ubyte.gz"),
        include_bytes!("sample/train-labels-idx1-ubyte.gz"),
    );
    let test = part(
        include_bytes!("sample/t10k-images-idx3-ubyte.gz"),
        include_bytes!("sample/t10k-labels-idx1-ubyte.gz"),
    );
    train.and_then(|train| idx::dataset(train, test?)).map_err(in_file("bundled sample".as_ref()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sample_has_every_class_equally_often() {
        let dataset = fashion_mnist().unwrap();
        assert_eq!(dataset.classes, 10);
        for (samples, each) in [(&dataset.train, 60), (&dataset.test, 20)] {
            assert_eq!(samples.inputs.count(), 10 * each);
            for class in 0..10 {
                assert_eq!(samples.labels.iter().filter(|label| **label == class).count(), each);
            }
        }
    }
}
