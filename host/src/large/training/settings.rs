//! What a training run is told, as a TOML file or as flags.

use fabswarm_shared::graph::Topology;
use serde::{Deserialize, Serialize};
use toml_edit::DocumentMut;

use super::Error;
use crate::large::fab::{Config, Ledger, Task};

/// What is learned, and from which samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// FAB: a weight for every training sample, judged on clean validation samples.
    Cleaning,
    /// FAB: the strength of regularisation, judged on clean validation samples.
    Tuning,
    /// Push-pull on the noisy training samples.
    Noisy,
    /// Push-pull on noisy training and clean validation samples together.
    Merged,
    /// Push-pull on the clean validation samples alone: what all others must beat.
    Validation,
}

impl Method {
    /// Every method with its name.
    pub const ALL: [(&'static str, Method); 5] = [
        ("cleaning", Method::Cleaning),
        ("tuning", Method::Tuning),
        ("noisy", Method::Noisy),
        ("merged", Method::Merged),
        ("validation", Method::Validation),
    ];

    pub fn is_bilevel(self) -> bool {
        matches!(self, Method::Cleaning | Method::Tuning)
    }
}

/// How trackers travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Push {
    /// Column-stochastic weights: needs every frame to arrive.
    Weights,
    /// The broadcast ledger: what is lost waits.
    Ledger,
}

/// The family of graphs agents hear each other over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Links {
    Paper,
    Ring,
    Complete,
    ErdosRenyi,
}

/// All settings, with the paper's Fashion-MNIST run as default.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// A data set of `fabswarm data list`, `sample`, or a folder of idx files.
    pub data: String,
    /// `softmax`, `mlp`, `lenet`, `resnet18`, an encoder of `fabswarm data list`, or a folder with one.
    pub model: String,
    /// Hidden units of `mlp`; channels of the first stage of `resnet18`.
    pub width: usize,
    /// Tokens of a text.
    pub sequence: usize,
    /// Probability of dropout inside an encoder.
    pub dropout: f64,
    pub method: Method,
    pub agents: usize,
    /// Dirichlet concentration ρ of the partition.
    pub rho: f64,
    /// Probability cr that a training label is wrong.
    pub corruption_rate: f64,
    pub links: Links,
    /// ν.
    pub edge_probability: f64,
    /// Rounds of each phase of the paper's links.
    pub phase_rounds: u32,
    /// Probability that a frame is lost on a link.
    pub loss: f64,
    pub push: Push,
    /// κ of the ledger.
    pub keep: f64,
    pub epochs: u32,
    pub batch: usize,
    /// λ.
    pub penalty: f64,
    pub normalise_by_penalty: bool,
    pub step_x: f64,
    pub step_y: f64,
    pub step_z: f64,
    /// τ: regularisation, or where tuning starts from.
    pub regularisation: f64,
    pub seed: u64,
    /// Keep the first so many training and test samples only; all when 0.
    pub train_samples: usize,
    pub test_samples: usize,
    /// Epochs between evaluations and between checkpoints; never when 0.
    pub evaluate_every: u32,
    pub checkpoint_every: u32,
}

/// The commented file all settings lie over.
pub const DEFAULT_TOML: &str = include_str!("default.toml");

impl Default for Settings {
    fn default() -> Self {
        Settings::from_toml(DEFAULT_TOML).expect("the default settings are complete")
    }
}

impl Settings {
    /// Reads complete settings.
    ///
    /// # Errors
    /// When it is no TOML, or a key or value is unknown or missing.
    pub fn from_toml(text: &str) -> Result<Self, toml_edit::de::Error> {
        toml_edit::de::from_str(text)
    }

    /// Lays settings over the defaults: those of a file first, then single keys with their values as TOML.
    ///
    /// # Errors
    /// When the file is no TOML, or a key or value is unknown.
    pub fn resolve(file: Option<&str>, keys: &[(String, String)]) -> Result<Self, Error> {
        let refuse = |what: String| Error::Settings(what.trim_end().to_owned());
        let mut all: DocumentMut =
            DEFAULT_TOML.parse().map_err(|error: toml_edit::TomlError| refuse(error.to_string()))?;
        if let Some(file) = file {
            let file: DocumentMut =
                file.parse().map_err(|error: toml_edit::TomlError| refuse(error.to_string()))?;
            file.iter().for_each(|(key, value)| all[key] = value.clone());
        }
        for (key, text) in keys {
            // A bare word is a string.
            let value = text.parse().unwrap_or_else(|_| toml_edit::Value::from(text.as_str()));
            all[key] = toml_edit::value(value);
        }
        let settings = Settings::from_toml(&all.to_string()).map_err(|error| refuse(error.to_string()))?;
        settings.check()?;
        Ok(settings)
    }

    /// Every key with the comment that explains it.
    pub fn keys() -> Vec<(String, String)> {
        let document: DocumentMut = DEFAULT_TOML.parse().expect("the default settings are TOML");
        let comment = |key: &toml_edit::Key| {
            let before = key.leaf_decor().prefix().and_then(|prefix| prefix.as_str()).unwrap_or_default();
            before.lines().last().unwrap_or_default().trim_start_matches("# ").to_owned()
        };
        document
            .as_table()
            .iter()
            .filter_map(|(name, _)| Some((name.to_owned(), comment(document.as_table().key(name)?))))
            .collect()
    }

    /// The settings as a file.
    pub fn to_toml(&self) -> String {
        toml_edit::ser::to_string(self).unwrap_or_default()
    }

    /// Whether every value makes sense.
    ///
    /// # Errors
    /// The first that does not, with what to try.
    pub fn check(&self) -> Result<(), Error> {
        let refuse =
            |key, value: String, remedy: &str| Err(Error::Setting { key, value, remedy: remedy.to_owned() });
        for (key, value) in [
            ("edge_probability", self.edge_probability),
            ("loss", self.loss),
            ("corruption_rate", self.corruption_rate),
            ("keep", self.keep),
        ] {
            if !(0.0..=1.0).contains(&value) {
                return refuse(key, value.to_string(), "take a number from 0 to 1");
            }
        }
        for (key, value) in
            [("penalty", self.penalty), ("step_y", self.step_y), ("step_z", self.step_z), ("rho", self.rho)]
        {
            if !(value > 0.0 && value.is_finite()) {
                return refuse(key, value.to_string(), "take a number above 0");
            }
        }
        for (key, value) in [("step_x", self.step_x), ("regularisation", self.regularisation)] {
            if !(value >= 0.0 && value.is_finite()) {
                return refuse(key, value.to_string(), "take 0 or a number above");
            }
        }
        if !(0.0..1.0).contains(&self.dropout) {
            return refuse("dropout", self.dropout.to_string(), "take a number from 0 to below 1");
        }
        for (key, value) in [
            ("agents", self.agents),
            ("batch", self.batch),
            ("width", self.width),
            ("epochs", self.epochs as usize),
        ] {
            if value == 0 {
                return refuse(key, "0".to_owned(), "take 1 or more");
            }
        }
        if self.loss > 0.0 && self.push == Push::Weights {
            return refuse(
                "loss",
                self.loss.to_string(),
                "a lost frame loses tracking mass for ever; set `push = \"ledger\"`",
            );
        }
        if self.push == Push::Ledger && self.agents < 2 {
            return refuse("push", "\"ledger\"".to_owned(), "a ledger needs two agents or more");
        }
        Ok(())
    }

    pub(super) fn topology(&self) -> Topology {
        match self.links {
            Links::Paper => {
                Topology::Paper { edge_probability: self.edge_probability, phase_rounds: self.phase_rounds }
            }
            Links::Ring => Topology::Ring,
            Links::Complete => Topology::Complete,
            Links::ErdosRenyi => Topology::ErdosRenyi { edge_probability: self.edge_probability },
        }
    }

    /// The constants of the swarm.
    pub(super) fn config(&self) -> Config {
        Config {
            agents: self.agents,
            task: match self.method {
                Method::Cleaning => Task::Cleaning { regularisation: self.regularisation },
                Method::Tuning => Task::Tuning { start: self.regularisation },
                Method::Noisy | Method::Merged | Method::Validation => {
                    Task::SingleLevel { regularisation: self.regularisation }
                }
            },
            penalty: self.penalty,
            normalise: self.normalise_by_penalty,
            steps: [self.step_x, self.step_y, self.step_z],
            validation_batch: if self.method.is_bilevel() { self.batch } else { 0 },
            training_batch: self.batch,
            seed: self.seed,
            ledger: (self.push == Push::Ledger)
                .then_some(Ledger { keep: self.keep, audience: self.agents - 1 }),
        }
    }

    /// Rounds in which the mean agent goes through its training samples once.
    pub fn rounds_per_epoch(&self, training_samples: usize) -> u32 {
        training_samples.div_ceil(self.agents * self.batch).max(1) as u32
    }

    pub fn rounds(&self, training_samples: usize) -> u32 {
        self.epochs.saturating_mul(self.rounds_per_epoch(training_samples))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_keys_are_refused_and_the_rest_keeps_its_default() {
        let key = [("method".to_owned(), "merged".to_owned())];
        let settings = Settings::resolve(Some("agents = 3"), &key).unwrap();
        assert_eq!(settings, Settings { agents: 3, method: Method::Merged, ..Settings::default() });
        assert_eq!(Settings::resolve(Some(&settings.to_toml()), &[]).unwrap(), settings);
        let refusal = Settings::resolve(Some("agent = 3"), &[]).unwrap_err().to_string();
        assert!(refusal.contains("agent") && refusal.contains("agents"), "{refusal}");
    }

    #[test]
    fn every_key_is_explained() {
        assert!(Settings::keys().iter().all(|(_, comment)| comment.len() > 8), "{:?}", Settings::keys());
    }

    #[test]
    fn senseless_values_are_refused_with_a_remedy() {
        let refused = |settings: Settings| settings.check().unwrap_err().to_string();
        assert!(Settings::default().check().is_ok());
        assert!(refused(Settings { loss: 0.1, ..Settings::default() }).contains("push = \"ledger\""));
        assert!(refused(Settings { rho: -1.0, ..Settings::default() }).contains("`rho` is -1"));
        assert!(refused(Settings { agents: 0, ..Settings::default() }).contains("`agents` is 0"));
    }
}
