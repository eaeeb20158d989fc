//! WordPiece, the tokenizer of the BERT family, from a model's `tokenizer.json`.
//!
//! Text is cleaned, lower-cased and stripped of accents as `bert-base-uncased` does it, split at spaces and punctuation, and each word
//! is cut greedily into the longest pieces the vocabulary has. Names of special tokens inside a text are text: no
//! review can end its own sentence.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use fabswarm_diagnostic::Diagnostic;
use serde::Deserialize;
use unicode_normalization::UnicodeNormalization;
use unicode_properties::{GeneralCategory, GeneralCategoryGroup, UnicodeGeneralCategory};

use super::Tokens;
use super::error::{in_file, io_error};

/// Longer words are unknown, as in the original.
const LONGEST_WORD: usize = 100;

/// Cuts text into vocabulary entries.
#[derive(Debug, Clone)]
pub struct Tokenizer {
    source: PathBuf,
    is_lowercasing: bool,
    /// Pieces that begin a word.
    first: HashMap<String, u32>,
    /// Pieces that go on within a word, without their `##`.
    inner: HashMap<String, u32>,
    longest_piece: usize,
    largest_id: u32,
    special: Special,
}

#[derive(Debug, Clone, Copy)]
struct Special {
    begin: u32,
    end: u32,
    pad: u32,
    unknown: u32,
}

#[derive(Deserialize)]
struct Description {
    model: TokenizerModel,
    normalizer: Option<Normalizer>,
}

#[derive(Deserialize)]
struct TokenizerModel {
    // Older files leave it out.
    #[serde(rename = "type")]
    kind: Option<String>,
    vocab: serde_json::Value,
}

#[derive(Deserialize)]
struct Normalizer {
    #[serde(rename = "type")]
    kind: String,
    lowercase: Option<bool>,
}

impl Tokenizer {
    /// Reads `tokenizer.json` of a model's folder.
    ///
    /// # Errors
    /// When it is not there, or does not describe WordPiece of the BERT family.
    pub fn from_folder(folder: &Path) -> Result<Self, Diagnostic> {
        let path = folder.join("tokenizer.json");
        let bytes = std::fs::read(&path).map_err(io_error(&path))?;
        let (pieces, is_lowercasing) = parse_description(&bytes).map_err(in_file(&path))?;
        Self::new(pieces, is_lowercasing, path.clone()).map_err(in_file(&path))
    }

    fn new(pieces: HashMap<String, u32>, is_lowercasing: bool, source: PathBuf) -> Result<Self, String> {
        let special = |names: [&str; 2]| -> Result<u32, String> {
            let id = names.iter().find_map(|name| pieces.get(*name));
            id.copied().ok_or_else(|| format!("the vocabulary has neither {} nor {}", names[0], names[1]))
        };
        // MPNet puts its own special tokens before BERT's vocabulary; of BERT's special tokens it uses [UNK] alone.
        let special = Special {
            begin: special(["<s>", "[CLS]"])?,
            end: special(["</s>", "[SEP]"])?,
            pad: special(["<pad>", "[PAD]"])?,
            unknown: special(["[UNK]", "<unk>"])?,
        };
        let longest_piece = pieces.keys().map(|piece| piece.chars().count()).max().unwrap_or(0);
        let largest_id = pieces.values().copied().max().unwrap_or(0);
        let mut first = HashMap::new();
        let mut inner = HashMap::new();
        for (piece, id) in pieces {
            match piece.strip_prefix("##").filter(|rest| !rest.is_empty()) {
                // "##" at the beginning of a word is punctuation, never a piece with that prefix.
                Some(rest) => inner.insert(rest.to_owned(), id),
                None => first.insert(piece, id),
            };
        }
        Ok(Self { source, is_lowercasing, first, inner, longest_piece, largest_id, special })
    }

    /// Refuses a model whose embedding has no row for some entry of the vocabulary.
    ///
    /// # Errors
    /// Names the tokenizer's file and both sizes.
    pub fn check_vocabulary(&self, embeddings: usize) -> Result<(), Diagnostic> {
        if (self.largest_id as usize) < embeddings {
            return Ok(());
        }
        let largest = self.largest_id;
        Err(Diagnostic::of_file(
            &self.source,
            format!(
                "the tokenizer does not match the model: its largest id is {largest}, the model has {embeddings} embeddings"
            ),
            "use the tokenizer that came with the weights",
        ))
    }

    /// The ids of a text with begin and end, cut to `length`.
    fn encode(&self, text: &str, length: usize) -> Vec<u32> {
        let mut ids = vec![self.special.begin];
        let room = length.saturating_sub(1).max(1);
        let mut word = String::new();
        let cleaned = self.clean(text);
        for letter in cleaned.chars().chain([' ']) {
            if ids.len() >= room {
                break;
            }
            let is_space = letter.is_whitespace();
            let is_alone = is_punctuation(letter);
            if !is_space && !is_alone {
                word.push(letter);
                continue;
            }
            self.cut_word(&word, &mut ids);
            word.clear();
            if is_alone {
                self.cut_word(letter.encode_utf8(&mut [0; 4]), &mut ids);
            }
        }
        ids.truncate(room);
        ids.push(self.special.end);
        ids
    }

    /// Encodes many texts, padded to one length, which has room for begin and end.
    pub(super) fn encode_all(&self, texts: &[String], length: usize) -> Tokens {
        use rayon::prelude::*;

        assert!(length >= 2, "a sentence has a begin and an end");
        let sentences: Vec<Vec<u32>> = texts.par_iter().map(|text| self.encode(text, length)).collect();
        let mut tokens =
            Tokens { length, ids: vec![self.special.pad; texts.len() * length], used: Vec::new() };
        for (sentence, room) in sentences.iter().zip(tokens.ids.chunks_exact_mut(length)) {
            room[..sentence.len()].copy_from_slice(sentence);
            // At most `length`, which indexes memory that holds u32.
            tokens.used.push(sentence.len() as u32);
        }
        tokens
    }

    /// Drops control characters, sets ideographs apart, and, when the model is uncased, drops accents and case.
    fn clean(&self, text: &str) -> String {
        if text.is_ascii() {
            // Nearly all English text takes this path, which needs no tables.
            let letters = text.bytes().filter_map(|byte| match byte {
                b'\t' | b'\n' | b'\r' => Some(b' '),
                control if control.is_ascii_control() => None,
                letter if self.is_lowercasing => Some(letter.to_ascii_lowercase()),
                letter => Some(letter),
            });
            return letters.map(char::from).collect();
        }
        let mut spaced = String::with_capacity(text.len() + 16);
        for letter in text.chars() {
            match letter {
                '\t' | '\n' | '\r' => spaced.push(' '),
                char::REPLACEMENT_CHARACTER => {}
                // Before spaces: U+0085 is both, and old reviews are full of it.
                letter if letter.general_category_group() == GeneralCategoryGroup::Other => {}
                letter if letter.is_whitespace() => spaced.push(' '),
                letter if is_ideograph(letter) => spaced.extend([' ', letter, ' ']),
                letter => spaced.push(letter),
            }
        }
        if !self.is_lowercasing {
            return spaced;
        }
        let is_accent = |letter: &char| letter.general_category() == GeneralCategory::NonspacingMark;
        spaced.nfd().filter(|letter| !is_accent(letter)).flat_map(char::to_lowercase).collect()
    }

    /// Cuts a word into the longest pieces there are; a word with a part that is not in the vocabulary is unknown as a whole.
    fn cut_word(&self, word: &str, ids: &mut Vec<u32>) {
        if word.is_empty() {
            return;
        }
        let before = ids.len();
        if word.chars().count() > LONGEST_WORD {
            ids.push(self.special.unknown);
            return;
        }
        let mut rest = word;
        while !rest.is_empty() {
            let pieces = if rest.len() == word.len() { &self.first } else { &self.inner };
            let ends =
                rest.char_indices().map(|(at, letter)| at + letter.len_utf8()).take(self.longest_piece);
            let ends: Vec<usize> = ends.collect();
            let Some((end, id)) = ends.iter().rev().find_map(|end| Some((*end, *pieces.get(&rest[..*end])?)))
            else {
                ids.truncate(before);
                ids.push(self.special.unknown);
                return;
            };
            ids.push(id);
            rest = &rest[end..];
        }
    }
}

fn parse_description(bytes: &[u8]) -> Result<(HashMap<String, u32>, bool), String> {
    let description: Description = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    if let Some(kind) = description.model.kind.filter(|kind| kind != "WordPiece") {
        return Err(format!("a tokenizer of type {kind}; only WordPiece (the BERT family) is read"));
    }
    let normalizer =
        description.normalizer.ok_or("the tokenizer has no normalizer; BertNormalizer is needed")?;
    if normalizer.kind != "BertNormalizer" {
        return Err(format!("a normalizer of type {}; only BertNormalizer is read", normalizer.kind));
    }
    let pieces =
        serde_json::from_value(description.model.vocab).map_err(|error| format!("vocabulary: {error}"))?;
    Ok((pieces, normalizer.lowercase.unwrap_or(true)))
}

fn is_punctuation(letter: char) -> bool {
    if letter.is_ascii() {
        return letter.is_ascii_punctuation();
    }
    letter.general_category_group() == GeneralCategoryGroup::Punctuation
}

/// The blocks of Chinese characters, as BERT knows them.
fn is_ideograph(letter: char) -> bool {
    matches!(u32::from(letter),
        0x4e00..=0x9fff | 0x3400..=0x4dbf | 0x2_0000..=0x2_a6df | 0x2_a700..=0x2_b73f | 0x2_b740..=0x2_b81f
        | 0x2_b920..=0x2_ceaf | 0xf900..=0xfaff | 0x2_f800..=0x2_fa1f)
}

#[cfg(test)]
mod tests;
