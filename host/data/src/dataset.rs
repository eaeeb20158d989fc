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
    /// The map from pixels to inputs.
    pub normalisation: Normalisation,
}

impl Images {
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
        let plane = self.shape[1] * self.shape[2];
        for (channel, (from, to)) in
            picture.chunks_exact(plane).zip(input.chunks_exact_mut(plane)).enumerate()
        {
            let (scale, shift) = self.normalisation.scale_and_shift(channel);
            for (pixel, word) in from.iter().zip(to) {
                *word = f32::from(*pixel) * scale + shift;
            }
        }
    }
}

/// Mean and standard deviation of each channel, for pixels from 0 to 1.
#[derive(Debug, Clone, PartialEq)]
pub struct Normalisation {
    mean: Vec<f32>,
    deviation: Vec<f32>,
}

impl Normalisation {
    /// Shifts and scales every channel to mean 0 and deviation 1.
    ///
    /// # Panics
    /// When the two differ in length.
    pub fn new(mean: Vec<f32>, deviation: Vec<f32>) -> Self {
        assert_eq!(mean.len(), deviation.len(), "a mean and a deviation for each channel");
        Self { mean, deviation }
    }

    /// Leaves pixels between 0 and 1.
    pub fn unit(channels: usize) -> Self {
        Self::new(vec![0.0; channels], vec![1.0; channels])
    }

    /// Scale and shift of `input = byte * scale + shift`, for engines that compute it on a device.
    pub fn scale_and_shift(&self, channel: usize) -> (f32, f32) {
        (1.0 / (255.0 * self.deviation[channel]), -self.mean[channel] / self.deviation[channel])
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

    /// The ids of one sentence, padding included.
    pub fn sentence(&self, index: usize) -> &[u32] {
        &self.ids[index * self.length..(index + 1) * self.length]
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
        Images { shape: [1, 1, 2], pixels, normalisation: Normalisation::new(vec![0.5], vec![0.25]) }
    }

    #[test]
    fn normalised_pixels_have_the_promised_range() {
        let images = images(vec![0, 255, 51, 204]);
        let mut input = [0.0; 2];
        images.write_input(0, &mut input);
        assert!((input[0] + 2.0).abs() < 1e-6 && (input[1] - 2.0).abs() < 1e-6, "{input:?}");
        images.write_input(1, &mut input);
        assert!((input[0] + 1.2).abs() < 1e-6 && (input[1] - 1.2).abs() < 1e-6, "{input:?}");
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
