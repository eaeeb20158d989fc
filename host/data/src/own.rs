//! A data set of the user's own in one file, as [`SampleFile`] reads it.

use std::path::Path;

use fabswarm_diagnostic::Diagnostic;

use super::error::in_file;
use super::{Dataset, Features, Inputs, LabelledSamples};
use fabswarm_sim::data_file::{NUMBER_OF_AGENT, SampleFile, SampleLabels, SampleRows};
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

/// Reads such a file, for a swarm of `agents` agents.
///
/// # Errors
/// When it cannot be read, or a column, row or number in it is wrong.
pub fn read(path: &Path, agents: usize) -> Result<(Dataset, OwnColumns), Diagnostic> {
    let (file, labels) = SampleFile::read_labelled(path)?;
    let SampleLabels { given, truth, test, validation, classes } = labels;
    if test.is_empty() {
        return Err(file.refuse("there are no test samples", "mark them with `test` in the column `split`"));
    }
    let columns = OwnColumns {
        validation,
        agent: file.whole(&file.train, "agent", agents, NUMBER_OF_AGENT)?,
        given: truth.is_some().then(|| given.clone()),
    };
    let samples = |rows: &SampleRows, labels| LabelledSamples {
        inputs: Inputs::Features(Features {
            shape: file.shape,
            values: rows.inputs.iter().map(|&value| value as f32).collect(),
        }),
        labels,
    };
    let train = samples(&file.train, truth.unwrap_or(given));
    let dataset = Dataset { classes, train, test: samples(&file.test, test) };
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
        read(&path, 2).map_err(|error| error.to_string().replace(&path.display().to_string(), "own.csv"))
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
            ("label\n1\n", "own.csv: there is no column of inputs\nhelp: "),
            ("a,label,split\n1,0,train\n,1,test\n", "own.csv: row 3, column `a` is empty\nhelp: "),
            ("a,label,split\nnan,0,train\n1,1,test\n", "own.csv: row 2, column `a` is NaN\nhelp: "),
            (
                "a,label,split\n1,0.5,train\n1,1,test\n",
                "own.csv: `label` of sample 2 is 0.5, and it may be 0 to 255\nhelp: number classes",
            ),
            ("a,label,split\n1,0,train\n2,1,train\n", "own.csv: there are no test samples\nhelp: "),
            (
                "a,label,split\n1,1,train\n2,2,train\n1,1,test\n",
                "own.csv: there is a label 1, and class 0 has no sample\nhelp: number classes from 0",
            ),
            (
                "a,label,split\n1,0,train\n2,5,train\n1,10,test\n",
                "own.csv: there is a label 5, and class 1 has no sample\nhelp: number classes from 0 to 255, without gaps",
            ),
            ("a,label,split\n1,0,train\n1,0,test\n", "own.csv: all labels are 0\nhelp: give samples of two"),
            ("a,label,agent,split\n1,0,-1,train\n1,1,0,test\n", "own.csv: `agent` of sample 2 is -1, and "),
            (
                "a,label,agent,split\n1,0,1,train\n1,1,2,train\n1,1,0,test\n",
                "own.csv: `agent` of sample 3 is 2, and it may be 0 to 1\nhelp: correct the number, or raise swarm.agents",
            ),
            (
                "a,label,validation,split\n1,0,2,train\n1,0,0,test\n",
                "own.csv: `validation` of sample 2 is 2, and it may be 0 to 1\nhelp: ",
            ),
        ] {
            let message = read_csv(text).unwrap_err();
            assert!(message.starts_with(expected), "{message}\ndoes not start with\n{expected}");
        }
    }
}
