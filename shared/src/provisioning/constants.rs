//! A problem in a page: its constants are in the body, its matrices among the words.

use super::{Error, WriteError};
use crate::problem::{
    AnyProblem, Classes, HyperCleaning, HyperTuning, PolicyEvaluation, Readings, Samples, SensorTrust,
};
use serde::{Deserialize, Serialize};

/// Everything of a problem but its words.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) enum ProblemConstants<'a> {
    /// Words: features, successors, rewards.
    PolicyEvaluation {
        states: u16,
        features: u16,
        upper_weight: f32,
        lower_weight: f32,
        regularisation: f32,
        reward_noise: f32,
        seed: u64,
    },
    /// Words: training features, validation features.
    HyperTuning { classes: u8, train: &'a [u8], validation: &'a [u8], features: u16 },
    /// Words: training features, validation features.
    HyperCleaning { classes: u8, train: &'a [u8], validation: &'a [u8], features: u16, regularisation: f32 },
    /// Words: basis and values of the readings, then of the calibrated ones.
    SensorTrust { sensors: u8, sensor_of: &'a [u8], calibrated: u16, features: u16, regularisation: f32 },
    /// A problem of the user's own.
    Own { name: &'a str, bytes: &'a [u8] },
}

impl<'a> ProblemConstants<'a> {
    /// The constants and the words of a problem, in the order in which [`ProblemConstants::with`] takes them.
    pub(super) fn of(problem: &AnyProblem<'a, f32>) -> Result<(Self, [&'a [f32]; 4]), WriteError> {
        Ok(match problem {
            AnyProblem::PolicyEvaluation(problem) => {
                let constants = Self::PolicyEvaluation {
                    states: count("states", problem.rewards.len())?,
                    features: per_row(problem.features, problem.rewards.len())?,
                    upper_weight: problem.upper_weight,
                    lower_weight: problem.lower_weight,
                    regularisation: problem.regularisation,
                    reward_noise: problem.reward_noise,
                    seed: problem.seed,
                };
                (constants, [problem.features, problem.successors, problem.rewards, &[]])
            }
            AnyProblem::HyperTuning(problem) => {
                let constants = Self::HyperTuning {
                    classes: count("classes", problem.classes.0)?,
                    train: problem.train.labels,
                    validation: problem.validation.labels,
                    features: per_row(problem.train.features, problem.train.len())?,
                };
                (constants, [problem.train.features, problem.validation.features, &[], &[]])
            }
            AnyProblem::HyperCleaning(problem) => {
                let constants = Self::HyperCleaning {
                    classes: count("classes", problem.classes.0)?,
                    train: problem.train.labels,
                    validation: problem.validation.labels,
                    features: per_row(problem.train.features, problem.train.len())?,
                    regularisation: problem.regularisation,
                };
                (constants, [problem.train.features, problem.validation.features, &[], &[]])
            }
            AnyProblem::SensorTrust(problem) => {
                let (own, calibrated) = (&problem.readings, &problem.calibrated);
                let constants = Self::SensorTrust {
                    sensors: count("sensors", problem.sensors)?,
                    sensor_of: problem.sensor_of,
                    calibrated: count("calibrated readings", calibrated.values.len())?,
                    features: per_row(own.basis, own.values.len())?,
                    regularisation: problem.regularisation,
                };
                (constants, [own.basis, own.values, calibrated.basis, calibrated.values])
            }
        })
    }

    /// The problem these constants and exactly these `words` describe.
    pub(super) fn with(self, words: &'a [f32]) -> Result<AnyProblem<'a, f32>, Error> {
        let mut words = WordCursor(words);
        let problem = match self {
            Self::PolicyEvaluation {
                states,
                features,
                upper_weight,
                lower_weight,
                regularisation,
                reward_noise,
                seed,
            } => {
                let states = usize::from(states);
                AnyProblem::PolicyEvaluation(PolicyEvaluation {
                    features: words.rows(states, features)?,
                    successors: words.rows(states, features)?,
                    rewards: words.rows(states, 1)?,
                    upper_weight,
                    lower_weight,
                    regularisation,
                    reward_noise,
                    seed,
                })
            }
            Self::HyperTuning { classes, train, validation, features } => {
                AnyProblem::HyperTuning(HyperTuning {
                    train: words.samples(train, features)?,
                    validation: words.samples(validation, features)?,
                    classes: Classes(classes.into()),
                })
            }
            Self::HyperCleaning { classes, train, validation, features, regularisation } => {
                AnyProblem::HyperCleaning(HyperCleaning {
                    train: words.samples(train, features)?,
                    validation: words.samples(validation, features)?,
                    classes: Classes(classes.into()),
                    regularisation,
                })
            }
            Self::SensorTrust { sensors, sensor_of, calibrated, features, regularisation } => {
                AnyProblem::SensorTrust(SensorTrust {
                    readings: words.readings(sensor_of.len(), features)?,
                    sensor_of,
                    sensors: sensors.into(),
                    calibrated: words.readings(calibrated.into(), features)?,
                    regularisation,
                })
            }
            Self::Own { .. } => return Err(Error::OtherProblem),
        };
        if words.0.is_empty() { Ok(problem) } else { Err(Error::Malformed) }
    }
}

/// Words not yet given to a problem.
struct WordCursor<'a>(&'a [f32]);

impl<'a> WordCursor<'a> {
    fn rows(&mut self, rows: usize, columns: u16) -> Result<&'a [f32], Error> {
        let (taken, rest) = rows
            .checked_mul(columns.into())
            .and_then(|count| self.0.split_at_checked(count))
            .ok_or(Error::Malformed)?;
        self.0 = rest;
        Ok(taken)
    }

    fn samples(&mut self, labels: &'a [u8], features: u16) -> Result<Samples<'a, f32>, Error> {
        Ok(Samples { features: self.rows(labels.len(), features)?, labels })
    }

    fn readings(&mut self, readings: usize, features: u16) -> Result<Readings<'a, f32>, Error> {
        Ok(Readings { basis: self.rows(readings, features)?, values: self.rows(readings, 1)? })
    }
}

fn per_row(words: &[f32], rows: usize) -> Result<u16, WriteError> {
    count("features", words.len() / rows.max(1))
}

/// A number as a page writes it, in one or two bytes.
pub(super) fn count<N: TryFrom<usize>>(what: &'static str, count: usize) -> Result<N, WriteError> {
    N::try_from(count).map_err(|_| WriteError::Count { what, count, most: (1 << (8 * size_of::<N>())) - 1 })
}
