//! A sample of Fashion-MNIST inside the program: tests and first steps need no network.
//!
//! The first 60 training and 20 test images of each class, in the order of the full set. Copyright 2017 Zalando SE, MIT licence
//! (`sample/LICENSE`).

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
    use crate::{Cache, Inputs, load};

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

    #[test]
    #[ignore = "needs `fabswarm data fetch fashion-mnist`"]
    fn the_sample_is_the_beginning_of_the_full_set() {
        let sample = fashion_mnist().unwrap();
        let full = load(&Cache::from_environment().unwrap(), "fashion-mnist").unwrap();
        for (few, all, each) in [(&sample.train, &full.train, 60), (&sample.test, &full.test, 20)] {
            let (Inputs::Images(few_images), Inputs::Images(all_images)) = (&few.inputs, &all.inputs) else {
                panic!("images")
            };
            let mut left = [each; 10];
            let mut next = 0;
            for (index, label) in all.labels.iter().enumerate() {
                let left = &mut left[usize::from(*label)];
                if *left > 0 {
                    *left -= 1;
                    assert_eq!(few.labels[next], *label);
                    let picture =
                        |images: &crate::Images, at: usize| images.pixels[at * 784..][..784].to_vec();
                    assert_eq!(picture(few_images, next), picture(all_images, index));
                    next += 1;
                }
            }
            assert_eq!(next, few.labels.len());
        }
    }
}
