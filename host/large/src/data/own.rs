//! A data set of the user's own in one file: CSV with a row per sample, npz or safetensors with arrays.
//!
//! | | table (CSV) | arrays (npz, safetensors) |
//! |---|---|---|
//! | inputs | every other column, in order | `x_train`, `x_test`: samples × features, × height × width, or × height × width × channels |
//! | labels, as agents see them | `label` | `y_train`, `y_test` |
//! | test samples | rows whose `split` is `test`; without that column the last fifth | `x_test`, `y_test` |
//! | true labels, optional | `true_label` | `y_train_true` |
//! | clean validation samples, optional | `validation`, 0 or 1 | `validation` |
//! | whose sample it is, optional | `agent` | `agent` |

mod arrays;
mod table;

use std::path::Path;

use fabswarm_diagnostic::Diagnostic;

use super::error::in_file;
use super::{Dataset, Features, Inputs, LabelledSamples};
use fabswarm_sim::data_file::DataFile;
use safetensors::SafeTensors;

/// Optional columns of the training samples, beside their true labels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnColumns {
    /// The label of each sample as agents see it; without it labels are corrupted at random.
    pub given: Option<Vec<u8>>,
    /// True where the label is known to be right.
    pub validation: Option<Vec<bool>>,
    /// The agent that has it; without it samples are dealt out.
    pub agent: Option<Vec<usize>>,
}

impl OwnColumns {
    /// Keeps the first samples only.
    pub fn truncate(&mut self, count: usize) {
        self.given.iter_mut().for_each(|given| given.truncate(count));
        self.validation.iter_mut().for_each(|validation| validation.truncate(count));
        self.agent.iter_mut().for_each(|agent| agent.truncate(count));
    }
}

/// Samples as they stand in a file, before anything is checked.
#[derive(Debug, Default)]
struct RawSamples {
    /// Height, width and channels of an input; 1 × features × 1 where it is no image.
    shape: [usize; 3],
    inputs: Vec<f32>,
    labels: Vec<f64>,
    true_labels: Option<Vec<f64>>,
    validation: Option<Vec<f64>>,
    agent: Option<Vec<f64>>,
    /// The row of each sample in the file, for messages; its number where there is none.
    rows: Vec<usize>,
}

/// Returns whether `path` names a file of this kind by its ending.
pub fn is_own(path: &Path) -> bool {
    matches!(extension(path), "csv" | "npz" | "parquet")
        || (extension(path) == "safetensors" && has_samples(path))
}

fn extension(path: &Path) -> &str {
    path.extension().and_then(|extension| extension.to_str()).unwrap_or_default()
}

/// Returns whether a safetensors file holds samples of this form; tokenised texts have another.
fn has_samples(path: &Path) -> bool {
    let Ok(bytes) = std::fs::read(path) else { return false };
    SafeTensors::deserialize(&bytes).is_ok_and(|tensors| tensors.names().contains(&"x_train"))
}

/// Reads such a file.
///
/// # Errors
/// When it cannot be read, or a column, row or number in it is wrong.
pub fn read(path: &Path) -> Result<(Dataset, OwnColumns), Diagnostic> {
    let (train, test) = match DataFile::read(path)? {
        DataFile::Table(table) => table::samples(path, &table)?,
        DataFile::Arrays(arrays) => arrays::samples(path, arrays)?,
    };
    let refuse = |what: String, remedy| Diagnostic::of_file(path, what, remedy);
    for (part, samples) in [("training", &train), ("test", &test)] {
        if samples.labels.is_empty() {
            return Err(refuse(format!("there are no {part} samples"), "mark them with a column `split`"));
        }
        let width = samples.shape.iter().product::<usize>().max(1);
        if let Some(at) = samples.inputs.iter().position(|value| !value.is_finite()) {
            let (row, value) = (samples.rows[at / width], samples.inputs[at]);
            return Err(refuse(
                format!("input {} of {part} sample {row} is {value}", at % width),
                "fill in what is missing, or leave the sample out",
            ));
        }
    }
    if train.shape != test.shape {
        return Err(refuse(
            format!("training inputs are {:?} and test inputs {:?}", train.shape, test.shape),
            "give both the same shape",
        ));
    }
    let whole = |values: &[f64], rows: &[usize], name: &str, most: f64, remedy: &'static str| {
        let check = |(value, row): (&f64, &usize)| {
            let is_valid = value.fract() == 0.0 && (0.0..=most).contains(value);
            let refused = || refuse(format!("{name} of sample {row} is {value}"), remedy);
            is_valid.then_some(*value as usize).ok_or_else(refused)
        };
        values.iter().zip(rows).map(check).collect::<Result<Vec<usize>, Diagnostic>>()
    };
    let labels = |values: &[f64], rows: &[usize], name: &str| -> Result<Vec<u8>, Diagnostic> {
        let labels = whole(values, rows, name, 255.0, "number classes from 0 to 255")?;
        Ok(labels.into_iter().map(|label| label as u8).collect())
    };
    let given = labels(&train.labels, &train.rows, "the label")?;
    let truth =
        train.true_labels.as_ref().map(|truth| labels(truth, &train.rows, "the true label")).transpose()?;
    let test_labels = labels(&test.labels, &test.rows, "the label")?;
    let optional = |values: &Option<Vec<f64>>, name: &str, most: f64, remedy: &'static str| {
        values.as_ref().map(|values| whole(values, &train.rows, name, most, remedy)).transpose()
    };
    let remedy = "give 0, or 1 where the label is known to be right";
    let validation = optional(&train.validation, "`validation`", 1.0, remedy)?;
    let columns = OwnColumns {
        validation: validation.map(|flags| flags.into_iter().map(|flag| flag == 1).collect()),
        agent: optional(&train.agent, "`agent`", 1e6, "number agents from 0 on")?,
        given: truth.is_some().then(|| given.clone()),
    };
    let truth = truth.unwrap_or(given);
    let all = truth.iter().chain(&test_labels).chain(columns.given.iter().flatten());
    let (least, most) = all.fold((u8::MAX, 0), |(least, most), &label| (least.min(label), most.max(label)));
    if least > 0 {
        let what = format!("the least label is {least}: class 0 has no sample");
        return Err(refuse(what, "number classes from 0 on"));
    }
    let classes = usize::from(most) + 1;
    let samples = |samples: RawSamples, labels| LabelledSamples {
        inputs: Inputs::Features(Features { shape: samples.shape, values: samples.inputs }),
        labels,
    };
    let dataset = Dataset { classes, train: samples(train, truth), test: samples(test, test_labels) };
    let dataset = dataset.checked().map_err(in_file(path))?;
    Ok((dataset, columns))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_csv(text: &str) -> Result<(Dataset, OwnColumns), String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("own.csv");
        std::fs::write(&path, text).unwrap();
        read(&path).map_err(|error| error.to_string().replace(&path.display().to_string(), "own.csv"))
    }

    #[test]
    fn a_table_becomes_samples_with_what_it_says_about_them() {
        let text = "a,label,true_label,b,split,agent,validation\n1,0,1,2,train,1,0\n3,1,1,4.5,train,0,1\n5,2,2,6,test,,\n";
        let (dataset, columns) = read_csv(text).unwrap();
        assert_eq!(dataset.classes, 3);
        let Inputs::Features(train) = &dataset.train.inputs else { panic!("numbers") };
        assert_eq!((train.shape, &train.values[..]), ([1, 2, 1], &[1.0, 2.0, 3.0, 4.5][..]));
        assert_eq!((&dataset.train.labels[..], &dataset.test.labels[..]), (&[1, 1][..], &[2][..]));
        let expected = OwnColumns {
            given: Some(vec![0, 1]),
            validation: Some(vec![false, true]),
            agent: Some(vec![1, 0]),
        };
        assert_eq!(columns, expected);
        // Without `split` the last fifth is for testing.
        let rows: String = (0..10).map(|row| format!("{row},{}\n", row % 2)).collect();
        let (dataset, columns) = read_csv(&format!("a,label\n{rows}")).unwrap();
        assert_eq!((dataset.train.labels.len(), dataset.test.labels.len()), (8, 2));
        assert_eq!(columns, OwnColumns::default());
    }

    #[test]
    fn errors_name_file_row_and_remedy() {
        for (text, expected) in [
            ("a,b\n1,2\n", "own.csv: there is no column `label`\nhelp: "),
            ("label\n1\n", "own.csv: there are no columns beside label\nhelp: "),
            ("a,label,split\n1,0,train\n,1,test\n", "own.csv: row 3, column `a` is empty\nhelp: "),
            ("a,label,split\nnan,0,train\n1,1,test\n", "own.csv: row 2, column `a` is NaN\nhelp: "),
            (
                "a,label,split\n1,0.5,train\n1,1,test\n",
                "own.csv: the label of sample 2 is 0.5\nhelp: number classes",
            ),
            ("a,label,split\n1,0,train\n", "own.csv: there are no test samples\nhelp: "),
            (
                "a,label,split\n1,1,train\n2,2,train\n1,1,test\n",
                "own.csv: the least label is 1: class 0 has no sample\nhelp: number classes from 0",
            ),
            ("a,label,agent,split\n1,0,-1,train\n1,0,0,test\n", "own.csv: `agent` of sample 2 is -1\nhelp: "),
            (
                "a,label,validation,split\n1,0,2,train\n1,0,0,test\n",
                "own.csv: `validation` of sample 2 is 2\nhelp: ",
            ),
        ] {
            let message = read_csv(text).unwrap_err();
            assert!(message.starts_with(expected), "{message}\ndoes not start with\n{expected}");
        }
    }
}
