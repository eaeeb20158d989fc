//! Samples and readings of the user's own for agents of a microcontroller's size: a table (CSV) or arrays (npz).
//!
//! | | CSV, a row per sample | npz |
//! |---|---|---|
//! | inputs | every column without another meaning, in order | `x_train`, `x_test`: samples × features |
//! | target | `label` or `value` | `y_train`, `y_test` |
//! | test samples | rows whose `split` is `test`; without that column the last fifth | `x_test`, `y_test` |
//! | everything else | a column of its name | an array of its name, a number per training sample |

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::npz;

/// Why such a file cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{}: {what}\nhelp: {remedy}", path.display())]
pub struct SampleFileError {
    path: PathBuf,
    what: String,
    remedy: String,
}

impl SampleFileError {
    pub(super) fn new(path: &Path, what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { path: path.to_owned(), what: what.into(), remedy: remedy.into() }
    }
}

/// One test sample for so many samples, where the file does not say which.
const SPLIT: usize = 5;

/// Samples of a file: those of agents, or those that a result is judged by.
#[derive(Debug, Default)]
pub(super) struct SampleRows {
    /// One row behind the other.
    inputs: Vec<f64>,
    /// Columns with a meaning, by their names.
    columns: BTreeMap<&'static str, Vec<f64>>,
    /// How the file numbers each row.
    numbers: Vec<usize>,
}

/// A file of samples.
#[derive(Debug)]
pub(super) struct SampleFile {
    path: PathBuf,
    /// Inputs of a sample.
    pub(super) width: usize,
    pub(super) train: SampleRows,
    pub(super) test: SampleRows,
}

impl SampleRows {
    pub(super) fn len(&self) -> usize {
        self.numbers.len()
    }

    /// The inputs of a sample.
    pub(super) fn inputs(&self, width: usize, row: usize) -> &[f64] {
        &self.inputs[row * width..][..width]
    }

    pub(super) fn column(&self, name: &str) -> Option<&[f64]> {
        self.columns.get(name).map(Vec::as_slice)
    }
}

impl SampleFile {
    /// Reads a file whose target is `target`, and which may have columns of the names in `optional`.
    pub(super) fn read(
        path: &Path,
        target: &'static str,
        optional: &[&'static str],
    ) -> Result<Self, SampleFileError> {
        let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        let file = match extension {
            "csv" => Self::table(path, target, optional)?,
            "npz" => Self::arrays(path, target, optional)?,
            _ => {
                return Err(SampleFileError::new(
                    path,
                    "it is neither .csv nor .npz",
                    "give a table or an archive of numpy.savez",
                ));
            }
        };
        for (part, rows) in [("training", &file.train), ("test", &file.test)] {
            let columns = rows.columns.iter().map(|(name, values)| (*name, values, 1));
            for (name, values, width) in columns.chain([("inputs", &rows.inputs, file.width)]) {
                if let Some(at) = values.iter().position(|value| !value.is_finite()) {
                    let row = rows.numbers[at / width];
                    let what = format!("{name} of {part} sample {row} has {}", values[at]);
                    return Err(SampleFileError::new(
                        path,
                        what,
                        "fill in what is missing, or leave the sample out",
                    ));
                }
            }
        }
        if file.train.len() == 0 {
            return Err(SampleFileError::new(
                path,
                "there are no training samples",
                "mark them with `train` in the column `split`",
            ));
        }
        Ok(file)
    }

    fn table(path: &Path, target: &'static str, optional: &[&'static str]) -> Result<Self, SampleFileError> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| SampleFileError::new(path, error.to_string(), "check the path"))?;
        let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let (_, head) = lines
            .next()
            .ok_or_else(|| SampleFileError::new(path, "it is empty", "begin with a line of names"))?;
        let names: Vec<&str> = head.split(',').map(|name| name.trim().trim_matches('"')).collect();
        if !names.contains(&target) {
            let what = format!("there is no column `{target}`");
            return Err(SampleFileError::new(
                path,
                what,
                format!("begin with a line of names, one of which is `{target}`"),
            ));
        }
        let split = names.iter().position(|name| *name == "split");
        let known: Vec<Option<&'static str>> = names
            .iter()
            .map(|name| [target].iter().chain(optional).find(|known| known == &name).copied())
            .collect();
        let is_input = |column: usize| known[column].is_none() && Some(column) != split;
        let width = (0..names.len()).filter(|&column| is_input(column)).count();
        if width == 0 {
            return Err(SampleFileError::new(
                path,
                "there is no column of inputs",
                "give each feature a column of numbers",
            ));
        }
        let lines: Vec<(usize, &str)> = lines.collect();
        let first_test = lines.len() - lines.len() / SPLIT;
        let (mut train, mut test) = (SampleRows::default(), SampleRows::default());
        for (row, &(at, line)) in lines.iter().enumerate() {
            let cells: Vec<&str> = line.split(',').map(|cell| cell.trim().trim_matches('"')).collect();
            if cells.len() != names.len() {
                let what =
                    format!("row {} has {} cells, and there are {} names", at + 1, cells.len(), names.len());
                return Err(SampleFileError::new(
                    path,
                    what,
                    "give every row a cell for every name, without commas inside",
                ));
            }
            let rows = match split.map(|column| cells[column]) {
                None if row < first_test => &mut train,
                Some("train") => &mut train,
                None | Some("test") => &mut test,
                Some(other) => {
                    let what = format!("row {}, column `split` is `{other}`", at + 1);
                    return Err(SampleFileError::new(path, what, "give `train` or `test`"));
                }
            };
            for (column, cell) in cells.iter().enumerate().filter(|(column, _)| Some(*column) != split) {
                let number = cell.parse().map_err(|_| {
                    let what = format!("row {}, column `{}` is `{cell}`", at + 1, names[column]);
                    SampleFileError::new(path, what, "give numbers; encode words as numbers first")
                })?;
                match known[column] {
                    Some(name) => rows.columns.entry(name).or_default().push(number),
                    None => rows.inputs.push(number),
                }
            }
            rows.numbers.push(at + 1);
        }
        Ok(Self { path: path.to_owned(), width, train, test })
    }

    fn arrays(path: &Path, target: &'static str, optional: &[&'static str]) -> Result<Self, SampleFileError> {
        let mut arrays = npz::read(path)
            .map_err(|error| SampleFileError::new(path, error.to_string(), "write it with numpy.savez"))?;
        let names: Vec<String> = arrays.keys().cloned().collect();
        let mut part = |inputs: &str, targets: &str| -> Result<(usize, SampleRows), SampleFileError> {
            let mut take = |name: &str| {
                arrays.remove(name).ok_or_else(|| {
                    let what = format!("there is no array `{name}`, only {}", names.join(", "));
                    SampleFileError::new(path, what, "name the arrays x_train, y_train, x_test and y_test")
                })
            };
            let (x, y) = (take(inputs)?, take(targets)?);
            match x.shape[..] {
                [count, width] if y.shape == [count] && width > 0 => Ok((
                    width,
                    SampleRows {
                        inputs: x.values,
                        columns: BTreeMap::from([(target, y.values)]),
                        numbers: (0..count).collect(),
                    },
                )),
                _ => {
                    let what = format!("`{inputs}` is {:?} and `{targets}` {:?}", x.shape, y.shape);
                    Err(SampleFileError::new(
                        path,
                        what,
                        "give samples x features, and a number for each sample",
                    ))
                }
            }
        };
        let (width, mut train) = part("x_train", "y_train")?;
        let (test_width, test) = part("x_test", "y_test")?;
        if width != test_width {
            let what = format!("training samples have {width} features and test samples {test_width}");
            return Err(SampleFileError::new(path, what, "give both the same"));
        }
        for &name in optional {
            let known = if name == "true_label" { "y_train_true" } else { name };
            let Some(array) = arrays.remove(known) else { continue };
            if array.shape != [train.len()] {
                let what = format!("`{known}` is {:?} for {} training samples", array.shape, train.len());
                return Err(SampleFileError::new(path, what, "give one number for each training sample"));
            }
            train.columns.insert(name, array.values);
        }
        Ok(Self { path: path.to_owned(), width, train, test })
    }

    /// A column of whole numbers from 0 to below `end`, if the training samples have it.
    pub(super) fn whole(
        &self,
        name: &str,
        end: usize,
        remedy: &str,
    ) -> Result<Option<Vec<usize>>, SampleFileError> {
        whole(&self.path, &self.train, name, end, remedy)
    }

    /// The same of test samples.
    pub(super) fn whole_of_test(
        &self,
        name: &str,
        end: usize,
        remedy: &str,
    ) -> Result<Option<Vec<usize>>, SampleFileError> {
        whole(&self.path, &self.test, name, end, remedy)
    }

    /// The training samples of each agent: those that the column `agent` gives it, or an equal share of all, dealt out in turn.
    pub(super) fn shards(&self, agents: usize) -> Result<Vec<Vec<usize>>, SampleFileError> {
        let remedy = "correct the number, or raise swarm.agents";
        let count = self.train.len();
        let agent_of = match self.whole("agent", agents, remedy)? {
            Some(agent_of) => agent_of,
            None => (0..count - count % agents).map(|sample| sample % agents).collect(),
        };
        let mut shards = vec![Vec::new(); agents];
        agent_of.iter().enumerate().for_each(|(sample, &agent)| shards[agent].push(sample));
        match shards.iter().position(Vec::is_empty) {
            Some(agent) => Err(self.refuse(
                format!("agent {agent} of {agents} has no sample"),
                "give every agent samples, or lower swarm.agents",
            )),
            None => Ok(shards),
        }
    }

    pub(super) fn refuse(&self, what: impl Into<String>, remedy: impl Into<String>) -> SampleFileError {
        SampleFileError::new(&self.path, what, remedy)
    }
}

fn whole(
    path: &Path,
    rows: &SampleRows,
    name: &str,
    end: usize,
    remedy: &str,
) -> Result<Option<Vec<usize>>, SampleFileError> {
    let Some(values) = rows.column(name) else { return Ok(None) };
    let number = |(&value, row): (&f64, &usize)| {
        let is_whole = value.fract() == 0.0 && value >= 0.0 && value < end as f64;
        is_whole.then_some(value as usize).ok_or_else(|| {
            let what = format!("`{name}` of sample {row} is {value}, and it may be 0 to {}", end - 1);
            SampleFileError::new(path, what, remedy)
        })
    };
    values.iter().zip(&rows.numbers).map(number).collect::<Result<_, _>>().map(Some)
}
