//! Data sets as named arrays.

use std::path::Path;

use fabswarm_diagnostic::Diagnostic;

use super::RawSamples;
use fabswarm_sim::data_file::NamedArrays;

/// Training and test samples of named arrays.
pub(super) fn samples(path: &Path, mut arrays: NamedArrays) -> Result<(RawSamples, RawSamples), Diagnostic> {
    let names: Vec<String> = arrays.keys().cloned().collect();
    let mut part = |inputs: &str, labels: &str| -> Result<RawSamples, Diagnostic> {
        let mut take = |name: &str| {
            arrays.remove(name).ok_or_else(|| {
                let what = format!("there is no array `{name}`, only {}", names.join(", "));
                Diagnostic::of_file(path, what, "name the arrays x_train, y_train, x_test and y_test")
            })
        };
        let (x, y) = (take(inputs)?, take(labels)?);
        let shape = match x.shape[..] {
            [_, features] => [1, features, 1],
            [_, height, width] => [height, width, 1],
            [_, height, width, channels] => [height, width, channels],
            _ => {
                let what = format!("`{inputs}` has {} dimensions", x.shape.len());
                return Err(Diagnostic::of_file(
                    path,
                    what,
                    "give samples x features, or samples x height x width (x channels)",
                ));
            }
        };
        let count = x.shape[0];
        if y.shape != [count] || shape.contains(&0) {
            let what = format!("`{inputs}` is {:?} and `{labels}` {:?}", x.shape, y.shape);
            return Err(Diagnostic::of_file(path, what, "give one label for each sample"));
        }
        Ok(RawSamples {
            shape,
            inputs: x.values.iter().map(|&value| value as f32).collect(),
            labels: y.values,
            rows: (0..count).collect(),
            ..RawSamples::default()
        })
    };
    let mut train = part("x_train", "y_train")?;
    let test = part("x_test", "y_test")?;
    let count = train.labels.len();
    let mut optional = |name: &str| -> Result<Option<Vec<f64>>, Diagnostic> {
        match arrays.remove(name) {
            Some(array) if array.shape != [count] => {
                let what = format!("`{name}` is {:?} for {count} training samples", array.shape);
                Err(Diagnostic::of_file(path, what, "give one value for each training sample"))
            }
            array => Ok(array.map(|array| array.values)),
        }
    };
    train.true_labels = optional("y_train_true")?;
    train.validation = optional("validation")?;
    train.agent = optional("agent")?;
    Ok((train, test))
}
