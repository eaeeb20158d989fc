//! Tokenised data sets as files: a machine without network or tokenizer trains from them.
//!
//! The format is safetensors with `train.ids`, `train.used`, `train.labels` and the same for `test`, so that other tools read it too.

use std::collections::HashMap;
use std::path::Path;

use fabswarm_diagnostic::Diagnostic;
use safetensors::tensor::{Dtype, SafeTensors, TensorView};

use super::error::{in_file, io_error};
use super::{Dataset, Inputs, LabelledSamples, Tokens};
use fabswarm_sim::whole_file;

/// Writes a tokenised data set, two bytes per token.
///
/// # Errors
/// When the inputs are not tokens, an id does not fit, or the file cannot be written.
pub fn save(dataset: &Dataset, path: &Path) -> Result<(), Diagnostic> {
    let mut buffers: Vec<(String, Dtype, Vec<usize>, Vec<u8>)> = Vec::new();
    for (part, samples) in [("train", &dataset.train), ("test", &dataset.test)] {
        let Inputs::Tokens(tokens) = &samples.inputs else {
            return Err(Diagnostic::of_file(
                path,
                "nothing to write: the data set has no tokens",
                "name a data set of texts, such as imdb",
            ));
        };
        let too_wide = |what| {
            Diagnostic::of_file(path, what, "two bytes hold numbers up to 65535; take another tokenizer")
        };
        let ids = narrow(&tokens.ids).ok_or_else(|| too_wide("a token id above 65535"))?;
        let used = narrow(&tokens.used).ok_or_else(|| too_wide("a sentence above 65535 tokens"))?;
        let count = tokens.count();
        buffers.push((format!("{part}.ids"), Dtype::U16, vec![count, tokens.length], ids));
        buffers.push((format!("{part}.used"), Dtype::U16, vec![count], used));
        buffers.push((format!("{part}.labels"), Dtype::U8, vec![count], samples.labels.clone()));
    }
    let mut views = Vec::new();
    for (name, dtype, shape, bytes) in &buffers {
        let view = TensorView::new(*dtype, shape.clone(), bytes).map_err(in_file(path))?;
        views.push((name.as_str(), view));
    }
    let notes = HashMap::from([("classes".to_owned(), dataset.classes.to_string())]);
    let bytes = safetensors::serialize(views, Some(notes)).map_err(in_file(path))?;
    whole_file::write(path, &bytes).map_err(io_error(path))
}

fn narrow(numbers: &[u32]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(2 * numbers.len());
    for number in numbers {
        bytes.extend(u16::try_from(*number).ok()?.to_le_bytes());
    }
    Some(bytes)
}

/// Reads a file that [`save`] wrote.
///
/// # Errors
/// When the file cannot be read or is not such a file.
pub fn load(path: &Path) -> Result<Dataset, Diagnostic> {
    let bytes = std::fs::read(path).map_err(io_error(path))?;
    parse(&bytes).map_err(in_file(path))
}

fn parse(bytes: &[u8]) -> Result<Dataset, String> {
    let (_, header) = SafeTensors::read_metadata(bytes).map_err(|error| error.to_string())?;
    let notes = header.metadata().as_ref();
    let classes = notes
        .and_then(|notes| notes.get("classes")?.parse().ok())
        .ok_or("not a tokenised data set: its metadata has no `classes`")?;
    let file = SafeTensors::deserialize(bytes).map_err(|error| error.to_string())?;
    let tensor = |name: String, dtype: Dtype, rank: usize| -> Result<(Vec<usize>, Vec<u8>), String> {
        let view = file.tensor(&name).map_err(|error| format!("{name}: {error}"))?;
        if view.dtype() != dtype || view.shape().len() != rank {
            return Err(format!(
                "{name} is {:?} {:?}; {dtype:?} of rank {rank} is needed",
                view.dtype(),
                view.shape()
            ));
        }
        Ok((view.shape().to_vec(), view.data().to_vec()))
    };
    let part = |part: &str| -> Result<(Tokens, Vec<u8>), String> {
        let (shape, ids) = tensor(format!("{part}.ids"), Dtype::U16, 2)?;
        let (_, used) = tensor(format!("{part}.used"), Dtype::U16, 1)?;
        let (_, labels) = tensor(format!("{part}.labels"), Dtype::U8, 1)?;
        let tokens = Tokens { length: shape[1], ids: widen(&ids), used: widen(&used) };
        if tokens.count() != shape[0] {
            return Err(format!("{part}.used has {} rows, {part}.ids {}", tokens.count(), shape[0]));
        }
        // A softmax over no token has no value, and one over more tokens than there are reads the next row.
        let fits = |used: u32| (1..=tokens.length).contains(&(used as usize));
        if let Some(row) = tokens.used.iter().position(|&used| !fits(used)) {
            let used = tokens.used[row];
            return Err(format!("{part}.used row {row} is {used}; it must be 1 to {}", tokens.length));
        }
        Ok((tokens, labels))
    };
    let ((train, train_labels), (test, test_labels)) = (part("train")?, part("test")?);
    if test.length != train.length {
        return Err(format!("test.ids has {} tokens per row, train.ids {}", test.length, train.length));
    }
    let samples = |tokens, labels| LabelledSamples { inputs: Inputs::Tokens(tokens), labels };
    Dataset { classes, train: samples(train, train_labels), test: samples(test, test_labels) }.checked()
}

fn widen(bytes: &[u8]) -> Vec<u32> {
    let (pairs, _) = bytes.as_chunks::<2>();
    pairs.iter().map(|pair| u32::from(u16::from_le_bytes(*pair))).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn dataset(ids: Vec<u32>) -> Dataset {
        let samples = |ids: Vec<u32>| LabelledSamples {
            labels: vec![1; ids.len() / 2],
            inputs: Inputs::Tokens(Tokens { length: 2, used: vec![2; ids.len() / 2], ids }),
        };
        Dataset { classes: 2, train: samples(ids), test: samples(vec![5, 6]) }
    }

    #[test]
    fn saved_tokens_load_equal() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("imdb.safetensors");
        let whole = dataset(vec![0, 65535, 101, 102]);
        save(&whole, &path).unwrap();
        assert_eq!(load(&path).unwrap(), whole);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        assert!(save(&dataset(vec![0, 65536]), &path).unwrap_err().to_string().contains("65535"));
        assert_eq!(load(&path).unwrap(), whole, "a refused save leaves the file alone");
        save(&Dataset { classes: 257, ..whole }, &path).unwrap();
        assert!(load(&path).unwrap_err().to_string().contains("257 classes"));
    }

    #[test]
    fn rows_that_do_not_fit_are_refused_in_both_splits_with_their_values() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.safetensors");
        let refused = |change: &dyn Fn(&mut Tokens, &mut Vec<u8>), is_test: bool| {
            let mut whole = dataset(vec![1, 2, 3, 4]);
            let samples = if is_test { &mut whole.test } else { &mut whole.train };
            let Inputs::Tokens(tokens) = &mut samples.inputs else { unreachable!("made of tokens") };
            change(tokens, &mut samples.labels);
            save(&whole, &path).unwrap();
            load(&path).unwrap_err().to_string()
        };
        for (is_test, part) in [(false, "train"), (true, "test")] {
            for used in [0, 3] {
                let message = refused(&|tokens, _| tokens.used[0] = used, is_test);
                let expected = format!("x.safetensors: {part}.used row 0 is {used}; it must be 1 to 2");
                assert!(message.contains(&expected) && message.contains("\nhelp: "), "{message}");
            }
            let message = refused(&|_, labels| labels[0] = 7, is_test);
            assert!(message.contains("label 0 is 7, but there are 2 classes"), "{message}");
        }
        let wider = |tokens: &mut Tokens, _: &mut Vec<u8>| (tokens.length, tokens.ids) = (3, vec![1, 2, 3]);
        assert!(refused(&wider, true).contains("test.ids has 3 tokens per row, train.ids 2"));
    }

    proptest! {
        #[test]
        fn damaged_files_never_panic(position in 0_usize..600, byte in any::<u8>(), cut in 0_usize..600) {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("x.safetensors");
            save(&dataset(vec![1, 2, 3, 4]), &path).unwrap();
            let mut bytes = std::fs::read(&path).unwrap();
            let length = bytes.len();
            bytes[position % length] = byte;
            let _ = parse(&bytes);
            bytes.truncate(cut % length);
            prop_assert!(parse(&bytes).is_err());
        }
    }
}
