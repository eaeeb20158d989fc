//! Samples and readings of the user's own: a table or arrays.
//!
//! | | table (CSV), a row per sample | arrays (npz, safetensors) |
//! |---|---|---|
//! | inputs | every column without another meaning, in order | `x_train`, `x_test`: samples × features, × height × width, or × height × width × channels |
//! | target | `label` or `value` | `y_train`, `y_test` |
//! | test samples | rows whose `split` is `test`; without that column the last fifth | `x_test`, `y_test` |
//! | true labels, optional | `true_label` | `y_train_true` |
//! | everything else | a column of its name | an array of its name, a number per training sample |

use fabswarm_diagnostic::Diagnostic;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

use super::{DataFile, DataTable, NamedArrays};

/// Samples of a file: those of agents, or those that a result is judged by.
#[derive(Debug, Default)]
pub struct SampleRows {
    /// The inputs of all samples, one sample after the other.
    pub inputs: Vec<f64>,
    /// Columns with a meaning, by their names.
    columns: BTreeMap<&'static str, Vec<f64>>,
    /// How the file numbers each row.
    numbers: Vec<usize>,
}

/// A file of samples.
#[derive(Debug)]
pub struct SampleFile {
    path: PathBuf,
    /// Height, width and channels of an input; 1 × features × 1 where it is no image.
    pub shape: [usize; 3],
    /// Samples to learn from.
    pub train: SampleRows,
    /// Samples to judge the result by.
    pub test: SampleRows,
}

/// The labels of a file.
#[derive(Debug)]
pub struct SampleLabels {
    /// Labels of training samples, as agents see them.
    pub given: Vec<u8>,
    /// True labels of training samples, if the file has them.
    pub truth: Option<Vec<u8>>,
    /// Labels of test samples; the true ones if the file has them.
    pub test: Vec<u8>,
    /// True for training samples whose label is known to be right, if the file says so.
    pub validation: Option<Vec<bool>>,
    /// The number of classes; each has a sample.
    pub classes: usize,
}

const NUMBERING: &str = "number classes from 0 to 255, without gaps";

/// The remedy for an agent that the swarm does not have.
pub const NUMBER_OF_AGENT: &str = "correct the number, or raise swarm.agents";

impl SampleRows {
    /// The number of samples.
    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    /// Whether there are no samples.
    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// The inputs of each sample.
    pub fn rows(&self) -> impl Iterator<Item = &[f64]> {
        self.inputs.chunks_exact((self.inputs.len() / self.len().max(1)).max(1))
    }

    /// A column with a meaning.
    pub fn column(&self, name: &str) -> Option<&[f64]> {
        self.columns.get(name).map(Vec::as_slice)
    }
}

impl SampleFile {
    /// Reads a file whose target is `target`, and which may have columns of the names in `optional`.
    ///
    /// # Errors
    /// When it cannot be read, has no training samples, or a column, row or number in it is wrong.
    pub fn read(path: &Path, target: &'static str, optional: &[&'static str]) -> Result<Self, Diagnostic> {
        let file = match DataFile::read(path)? {
            DataFile::Table(table) => Self::table(&table, target, optional)?,
            DataFile::Arrays(arrays) => Self::arrays(path, arrays, target, optional)?,
        };
        let width: usize = file.shape.iter().product();
        for (part, rows) in [("training", &file.train), ("test", &file.test)] {
            let columns = rows.columns.iter().map(|(name, values)| (*name, values, 1));
            for (name, values, width) in columns.chain([("inputs", &rows.inputs, width)]) {
                if let Some(at) = values.iter().position(|&value| !(value as f32).is_finite()) {
                    let row = rows.numbers[at / width];
                    let what = format!("{name} of {part} sample {row} has {}", values[at]);
                    return Err(file.refuse(what, "fill in what is missing, or leave the sample out"));
                }
            }
        }
        if file.train.is_empty() {
            let remedy = "mark them with `train` in the column `split`";
            return Err(file.refuse("there are no training samples", remedy));
        }
        Ok(file)
    }

    fn table(table: &DataTable, target: &'static str, optional: &[&'static str]) -> Result<Self, Diagnostic> {
        if table.column(target).is_none() {
            let what = format!("there is no column `{target}`");
            let remedy = format!("name one of the columns `{target}`");
            return Err(table.refuse(what, remedy));
        }
        let meaning = |name: &String| [target].iter().chain(optional).find(|known| *known == name).copied();
        let inputs: Vec<usize> = (0..table.names.len())
            .filter(|&column| table.names[column] != "split" && meaning(&table.names[column]).is_none())
            .collect();
        if inputs.is_empty() {
            return Err(table.refuse("there is no column of inputs", "give each feature a column of numbers"));
        }
        table.check_inputs(&inputs)?;
        let known: Vec<(usize, &'static str)> = (table.names.iter().enumerate())
            .filter_map(|(column, name)| Some((column, meaning(name)?)))
            .collect();
        let (mut train, mut test) = (SampleRows::default(), SampleRows::default());
        for (row, is_test) in table.is_test()?.into_iter().enumerate() {
            let rows = if is_test { &mut test } else { &mut train };
            for &column in &inputs {
                rows.inputs.push(table.number(row, column)?);
            }
            for &(column, name) in &known {
                // A test sample belongs to nobody.
                let is_needed = !is_test || name == target || !table.rows[row][column].is_empty();
                if is_needed {
                    rows.columns.entry(name).or_default().push(table.number(row, column)?);
                }
            }
            rows.numbers.push(table.numbers[row]);
        }
        let count = test.len();
        if let Some((name, _)) = test.columns.iter().find(|(_, values)| values.len() != count) {
            let what = format!("`{name}` is given for some test samples and not for others");
            return Err(table.refuse(what, "give it for all of them, or for none"));
        }
        Ok(Self { path: table.path.clone(), shape: [1, inputs.len(), 1], train, test })
    }

    fn arrays(
        path: &Path,
        mut arrays: NamedArrays,
        target: &'static str,
        optional: &[&'static str],
    ) -> Result<Self, Diagnostic> {
        let names: Vec<String> = arrays.keys().cloned().collect();
        let mut part = |inputs: &str, targets: &str| -> Result<([usize; 3], SampleRows), Diagnostic> {
            let mut take = |name: &str| {
                arrays.remove(name).ok_or_else(|| {
                    let what = format!("there is no array `{name}`, only {}", names.join(", "));
                    Diagnostic::of_file(path, what, "name the arrays x_train, y_train, x_test and y_test")
                })
            };
            let (x, y) = (take(inputs)?, take(targets)?);
            let shape = match x.shape[..] {
                [_, features] => [1, features, 1],
                [_, height, width] => [height, width, 1],
                [_, height, width, channels] => [height, width, channels],
                _ => [0; 3],
            };
            if shape.contains(&0) || y.shape != [x.shape[0]] {
                let what = format!("`{inputs}` is {:?} and `{targets}` {:?}", x.shape, y.shape);
                let remedy = "give samples x features, or samples x height x width (x channels), and a number for each sample";
                return Err(Diagnostic::of_file(path, what, remedy));
            }
            let (columns, numbers) = (BTreeMap::from([(target, y.values)]), (0..x.shape[0]).collect());
            Ok((shape, SampleRows { inputs: x.values, columns, numbers }))
        };
        let (shape, mut train) = part("x_train", "y_train")?;
        let (test_shape, test) = part("x_test", "y_test")?;
        if shape != test_shape {
            let what = format!("training inputs are {shape:?} and test inputs {test_shape:?}");
            return Err(Diagnostic::of_file(path, what, "give both the same shape"));
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
        Ok(Self { path: path.to_owned(), shape, train, test })
    }

    /// Reads a file of labelled samples.
    ///
    /// # Errors
    /// As [`Self::read`], and where a label is wrong, a class has no sample, or there is but one.
    pub fn read_labelled(path: &Path) -> Result<(Self, SampleLabels), Diagnostic> {
        let file = Self::read(path, "label", &["true_label", "validation", "agent"])?;
        let labels = |rows: &SampleRows, name: &str| -> Result<Option<Vec<u8>>, Diagnostic> {
            let labels = file.whole(rows, name, 256, NUMBERING)?;
            Ok(labels.map(|labels| labels.into_iter().map(|label| label as u8).collect()))
        };
        let given = labels(&file.train, "label")?.unwrap_or_default();
        let truth = labels(&file.train, "true_label")?;
        let test = match labels(&file.test, "true_label")? {
            Some(truth) => truth,
            None => labels(&file.test, "label")?.unwrap_or_default(),
        };
        let remedy = "give 0, or 1 where the label is known to be right";
        let validation = file.whole(&file.train, "validation", 2, remedy)?;
        let validation = validation.map(|flags| flags.into_iter().map(|flag| flag == 1).collect());
        let present: BTreeSet<u8> =
            given.iter().chain(truth.iter().flatten()).chain(&test).copied().collect();
        if let Some((class, label)) = (0..=u8::MAX).zip(&present).find(|(class, label)| class != *label) {
            let what = format!("there is a label {label}, and class {class} has no sample");
            return Err(file.refuse(what, NUMBERING));
        }
        let classes = present.len();
        if classes < 2 {
            return Err(file.refuse("all labels are 0", "give samples of two classes or more"));
        }
        Ok((file, SampleLabels { given, truth, test, validation, classes }))
    }

    /// A column of whole numbers from 0 to below `end`, if `rows` have it.
    ///
    /// # Errors
    /// Where a number is another.
    pub fn whole(
        &self,
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
                self.refuse(what, remedy)
            })
        };
        values.iter().zip(&rows.numbers).map(number).collect::<Result<_, _>>().map(Some)
    }

    /// The training samples of each agent: those that the column `agent` gives it, or an equal share of all, dealt out in turn.
    /// Samples for validation are dealt by themselves, so that agents have equally many of both kinds.
    ///
    /// # Errors
    /// Where an agent has none.
    pub(crate) fn shards(
        &self,
        agents: usize,
        validation: Option<&[bool]>,
    ) -> Result<Vec<Vec<usize>>, Diagnostic> {
        let mut shards = vec![Vec::new(); agents];
        if let Some(agent_of) = self.whole(&self.train, "agent", agents, NUMBER_OF_AGENT)? {
            agent_of.iter().enumerate().for_each(|(sample, &agent)| shards[agent].push(sample));
        } else {
            let is_validation = |sample: &usize| validation.is_some_and(|validation| validation[*sample]);
            let kinds: (Vec<usize>, Vec<usize>) = (0..self.train.len()).partition(is_validation);
            for kind in [kinds.0, kinds.1] {
                let dealt = kind.len() - kind.len() % agents;
                (0..dealt).for_each(|place| shards[place % agents].push(kind[place]));
            }
            shards.iter_mut().for_each(|shard| shard.sort_unstable());
        }
        match shards.iter().position(Vec::is_empty) {
            Some(agent) => Err(self.refuse(
                format!("agent {agent} of {agents} has no sample"),
                "give every agent samples, or lower swarm.agents",
            )),
            None => Ok(shards),
        }
    }

    /// Refuses the file.
    pub fn refuse(&self, what: impl fmt::Display, remedy: impl Into<String>) -> Diagnostic {
        Diagnostic::of_file(&self.path, what, remedy)
    }
}
