//! Samples and readings of the user's own for agents of a microcontroller's size: a table or arrays.
//!
//! | | table (CSV), a row per sample | arrays (npz, safetensors) |
//! |---|---|---|
//! | inputs | every column without another meaning, in order | `x_train`, `x_test`: samples × features |
//! | target | `label` or `value` | `y_train`, `y_test` |
//! | test samples | rows whose `split` is `test`; without that column the last fifth | `x_test`, `y_test` |
//! | everything else | a column of its name | an array of its name, a number per training sample |

use fabswarm_diagnostic::Diagnostic;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use crate::data_file::{DataCell, DataFile, DataTable, NamedArrays};

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
    ) -> Result<Self, Diagnostic> {
        let file = match DataFile::read(path)? {
            DataFile::Table(table) => Self::table(path, &table, target, optional)?,
            DataFile::Arrays(arrays) => Self::arrays(path, arrays, target, optional)?,
        };
        for (part, rows) in [("training", &file.train), ("test", &file.test)] {
            let columns = rows.columns.iter().map(|(name, values)| (*name, values, 1));
            for (name, values, width) in columns.chain([("inputs", &rows.inputs, file.width)]) {
                if let Some(at) = values.iter().position(|value| !value.is_finite()) {
                    let row = rows.numbers[at / width];
                    let what = format!("{name} of {part} sample {row} has {}", values[at]);
                    return Err(Diagnostic::of_file(
                        path,
                        what,
                        "fill in what is missing, or leave the sample out",
                    ));
                }
            }
        }
        if file.train.len() == 0 {
            return Err(Diagnostic::of_file(
                path,
                "there are no training samples",
                "mark them with `train` in the column `split`",
            ));
        }
        Ok(file)
    }

    fn table(
        path: &Path,
        table: &DataTable,
        target: &'static str,
        optional: &[&'static str],
    ) -> Result<Self, Diagnostic> {
        if table.column(target).is_none() {
            let what = format!("there is no column `{target}`");
            let remedy = format!("name one of the columns `{target}`");
            return Err(Diagnostic::of_file(path, what, remedy));
        }
        let meaning = |name: &String| [target].iter().chain(optional).find(|known| *known == name).copied();
        let inputs: Vec<usize> = (0..table.names.len())
            .filter(|&column| table.names[column] != "split" && meaning(&table.names[column]).is_none())
            .collect();
        if inputs.is_empty() {
            return Err(Diagnostic::of_file(
                path,
                "there is no column of inputs",
                "give each feature a column of numbers",
            ));
        }
        table.check_inputs(path, &inputs)?;
        let known: Vec<(usize, &'static str)> = (table.names.iter().enumerate())
            .filter_map(|(column, name)| Some((column, meaning(name)?)))
            .collect();
        let (mut train, mut test) = (SampleRows::default(), SampleRows::default());
        for (row, is_test) in table.is_test(path)?.into_iter().enumerate() {
            let rows = if is_test { &mut test } else { &mut train };
            for &column in &inputs {
                rows.inputs.push(table.number(path, row, column)?);
            }
            for &(column, name) in &known {
                // A test sample belongs to nobody.
                let is_needed = !is_test || name == target || table.rows[row][column] != DataCell::Empty;
                if is_needed {
                    rows.columns.entry(name).or_default().push(table.number(path, row, column)?);
                }
            }
            rows.numbers.push(table.numbers[row]);
        }
        let count = test.len();
        if let Some((name, _)) = test.columns.iter().find(|(_, values)| values.len() != count) {
            let what = format!("`{name}` is given for some test samples and not for others");
            return Err(Diagnostic::of_file(path, what, "give it for all of them, or for none"));
        }
        Ok(Self { path: path.to_owned(), width: inputs.len(), train, test })
    }

    fn arrays(
        path: &Path,
        mut arrays: NamedArrays,
        target: &'static str,
        optional: &[&'static str],
    ) -> Result<Self, Diagnostic> {
        let names: Vec<String> = arrays.keys().cloned().collect();
        let mut part = |inputs: &str, targets: &str| -> Result<(usize, SampleRows), Diagnostic> {
            let mut take = |name: &str| {
                arrays.remove(name).ok_or_else(|| {
                    let what = format!("there is no array `{name}`, only {}", names.join(", "));
                    Diagnostic::of_file(path, what, "name the arrays x_train, y_train, x_test and y_test")
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
                    Err(Diagnostic::of_file(
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
            return Err(Diagnostic::of_file(path, what, "give both the same"));
        }
        for &name in optional {
            let known = if name == "true_label" { "y_train_true" } else { name };
            let Some(array) = arrays.remove(known) else { continue };
            if array.shape != [train.len()] {
                let what = format!("`{known}` is {:?} for {} training samples", array.shape, train.len());
                return Err(Diagnostic::of_file(path, what, "give one number for each training sample"));
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
    ) -> Result<Option<Vec<usize>>, Diagnostic> {
        whole(&self.path, &self.train, name, end, remedy)
    }

    /// The same of test samples.
    pub(super) fn whole_of_test(
        &self,
        name: &str,
        end: usize,
        remedy: &str,
    ) -> Result<Option<Vec<usize>>, Diagnostic> {
        whole(&self.path, &self.test, name, end, remedy)
    }

    /// The training samples of each agent: those that the column `agent` gives it, or an equal share of all, dealt out in turn.
    pub(super) fn shards(&self, agents: usize) -> Result<Vec<Vec<usize>>, Diagnostic> {
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

    pub(super) fn refuse(&self, what: impl fmt::Display, remedy: impl Into<String>) -> Diagnostic {
        Diagnostic::of_file(&self.path, what, remedy)
    }
}

fn whole(
    path: &Path,
    rows: &SampleRows,
    name: &str,
    end: usize,
    remedy: &str,
) -> Result<Option<Vec<usize>>, Diagnostic> {
    let Some(values) = rows.column(name) else { return Ok(None) };
    let number = |(&value, row): (&f64, &usize)| {
        let is_whole = value.fract() == 0.0 && value >= 0.0 && value < end as f64;
        is_whole.then_some(value as usize).ok_or_else(|| {
            let what = format!("`{name}` of sample {row} is {value}, and it may be 0 to {}", end - 1);
            Diagnostic::of_file(path, what, remedy)
        })
    };
    values.iter().zip(&rows.numbers).map(number).collect::<Result<_, _>>().map(Some)
}
