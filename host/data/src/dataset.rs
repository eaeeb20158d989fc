//! Samples in memory: compact as stored, floats only where a batch is made.

use super::tokenizer::Tokenizer;

/// A label is one byte.
const MOST_CLASSES: usize = 256;

/// Training and test samples of a classification task.
#[derive(Debug, Clone, PartialEq)]
pub struct Dataset {
    /// Classes that labels name.
    pub classes: usize,
    /// Samples to deal out to the agents.
    pub train: LabelledSamples,
    /// Samples no agent ever sees in training.
    pub test: LabelledSamples,
}

/// Samples with their classes.
#[derive(Debug, Clone, PartialEq)]
pub struct LabelledSamples {
    /// The inputs, in the order of the labels.
    pub inputs: Inputs,
    /// The true class of each.
    pub labels: Vec<u8>,
}

/// The inputs of a model.
#[derive(Debug, Clone, PartialEq)]
pub enum Inputs {
    /// Pictures.
    Images(Images),
    /// Numbers as they are, of a user's own file.
    Features(Features),
    /// Sentences, before a tokenizer has seen them.
    Texts(Vec<String>),
    /// Sentences as the vocabulary entries of a model.
    Tokens(Tokens),
}

impl Inputs {
    /// How many there are.
    pub fn count(&self) -> usize {
        match self {
            Self::Images(images) => images.count(),
            Self::Features(features) => features.count(),
            Self::Texts(texts) => texts.len(),
            Self::Tokens(tokens) => tokens.count(),
        }
    }
}

/// Vectors of numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct Features {
    /// Height, width, channels; 1 × features × 1 where an input is no picture.
    pub shape: [usize; 3],
    /// Every input in turn, row by row.
    pub values: Vec<f32>,
}

impl Features {
    /// Numbers of one input.
    pub fn words(&self) -> usize {
        self.shape.iter().product()
    }

    /// How many inputs there are.
    pub fn count(&self) -> usize {
        self.values.len().checked_div(self.words()).unwrap_or(0)
    }
}

/// Pictures, one byte per channel and pixel: a quarter of the memory of floats, on the host and on its way to a GPU.
#[derive(Debug, Clone, PartialEq)]
pub struct Images {
    /// Channels, height, width.
    pub shape: [usize; 3],
    /// Every picture in turn, channel by channel, row by row.
    pub pixels: Vec<u8>,
}

impl Images {
    /// Factor of each byte, which makes inputs between 0 and 1.
    pub const SCALE: f32 = 1.0 / 255.0;

    /// Bytes of one picture, and floats of one input.
    pub fn words(&self) -> usize {
        self.shape.iter().product()
    }

    /// How many pictures there are.
    pub fn count(&self) -> usize {
        self.pixels.len().checked_div(self.words()).unwrap_or(0)
    }

    /// Writes one picture as a model's input.
    ///
    /// # Panics
    /// When `index` is not below [`count`](Self::count), or `input` has not [`words`](Self::words) words.
    pub fn write_input(&self, index: usize, input: &mut [f32]) {
        let words = self.words();
        assert_eq!(input.len(), words, "an input has {words} words");
        let picture = &self.pixels[index * words..(index + 1) * words];
        for (pixel, word) in picture.iter().zip(input) {
            *word = f32::from(*pixel) * Self::SCALE;
        }
    }
}

/// Sentences of one length, cut or padded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tokens {
    /// Tokens of a sentence, padding included.
    pub length: usize,
    /// Every sentence in turn.
    pub ids: Vec<u32>,
    /// How many tokens of each sentence are not padding.
    pub used: Vec<u32>,
}

impl Tokens {
    /// How many sentences there are.
    pub fn count(&self) -> usize {
        self.used.len()
    }

    /// The first id that is not in a vocabulary of this size, as row, column and id.
    pub fn first_id_outside(&self, vocabulary: usize) -> Option<(usize, usize, u32)> {
        let at = self.ids.iter().position(|&id| id as usize >= vocabulary)?;
        Some((at / self.length, at % self.length, self.ids[at]))
    }
}

impl Dataset {
    /// Checks that there are as many labels as inputs, and that every label is a class.
    pub(super) fn checked(self) -> Result<Self, String> {
        if self.classes > MOST_CLASSES {
            return Err(format!("{} classes, and a label is one of {MOST_CLASSES}", self.classes));
        }
        for (part, samples) in [("training", &self.train), ("test", &self.test)] {
            if samples.inputs.count() != samples.labels.len() {
                return Err(format!(
                    "{} {part} inputs but {} labels",
                    samples.inputs.count(),
                    samples.labels.len()
                ));
            }
            if let Some(index) = samples.labels.iter().position(|label| usize::from(*label) >= self.classes) {
                let label = samples.labels[index];
                return Err(format!(
                    "{part} label {index} is {label}, but there are {} classes",
                    self.classes
                ));
            }
        }
        Ok(self)
    }

    /// Turns texts into tokens of a model; everything else stays as it is.
    #[must_use]
    pub fn tokenise(mut self, tokenizer: &Tokenizer, length: usize) -> Self {
        for samples in [&mut self.train, &mut self.test] {
            if let Inputs::Texts(texts) = &samples.inputs {
                samples.inputs = Inputs::Tokens(tokenizer.encode_all(texts, length));
            }
        }
        self
    }

    /// Keeps the first samples only, for short trials.
    #[must_use]
    pub fn truncated(mut self, train: usize, test: usize) -> Self {
        for (samples, count) in [(&mut self.train, train), (&mut self.test, test)] {
            samples.labels.truncate(count);
            match &mut samples.inputs {
                Inputs::Images(images) => images.pixels.truncate(count.saturating_mul(images.words())),
                Inputs::Features(features) => {
                    features.values.truncate(count.saturating_mul(features.words()));
                }
                Inputs::Texts(texts) => texts.truncate(count),
                Inputs::Tokens(tokens) => {
                    tokens.ids.truncate(count.saturating_mul(tokens.length));
                    tokens.used.truncate(count);
                }
            }
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn images(pixels: Vec<u8>) -> Images {
        Images { shape: [1, 1, 2], pixels }
    }

    #[test]
    fn inputs_are_between_zero_and_one() {
        let images = images(vec![0, 255, 51, 204]);
        for (index, expected) in [[0.0, 1.0], [0.2, 0.8]].into_iter().enumerate() {
            let mut input = [0.0; 2];
            images.write_input(index, &mut input);
            let apart = |(found, expected): (&f32, f32)| (found - expected).abs();
            assert!(input.iter().zip(expected).map(apart).all(|apart| apart < 1e-6), "{input:?}");
        }
    }

    #[test]
    fn labels_that_are_no_class_are_refused() {
        let samples = |labels| LabelledSamples { inputs: Inputs::Images(images(vec![0; 4])), labels };
        let dataset = |labels| Dataset { classes: 3, train: samples(labels), test: samples(vec![0, 1]) };
        assert!(dataset(vec![0, 2]).checked().is_ok());
        assert!(dataset(vec![0, 3]).checked().unwrap_err().contains("label 1 is 3"));
        assert!(dataset(vec![0]).checked().unwrap_err().contains("2 training inputs but 1 labels"));
    }
}
