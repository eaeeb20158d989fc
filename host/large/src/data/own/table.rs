//! Data sets with a row per sample.

use std::path::Path;

use fabswarm_diagnostic::Diagnostic;

use super::RawSamples;
use fabswarm_sim::data_file::DataTable;

/// Columns with a meaning; all others are inputs.
const LABEL: &str = "label";
const NAMED: [&str; 5] = [LABEL, "true_label", "validation", "agent", "split"];

/// Training and test samples of a table.
pub(super) fn samples(path: &Path, table: &DataTable) -> Result<(RawSamples, RawSamples), Diagnostic> {
    let refuse = |what: String, remedy| Diagnostic::of_file(path, what, remedy);
    let Some(label) = table.column(LABEL) else {
        return Err(refuse(
            format!("there is no column `{LABEL}`"),
            "name the column of classes `label`, numbered from 0",
        ));
    };
    let inputs: Vec<usize> =
        (0..table.names.len()).filter(|&at| !NAMED.contains(&table.names[at].as_str())).collect();
    if inputs.is_empty() {
        return Err(refuse(
            "there are no columns beside label".to_owned(),
            "give each feature a column of numbers",
        ));
    }
    table.check_inputs(path, &inputs)?;
    let optional = |name: &str| table.column(name).map(|column| (column, Vec::new()));
    let shape = [1, inputs.len(), 1];
    let mut train = RawSamples { shape, ..RawSamples::default() };
    let mut test = RawSamples { shape, ..RawSamples::default() };
    let (mut truth, mut validation, mut agent) =
        (optional("true_label"), optional("validation"), optional("agent"));
    for (row, is_test) in table.is_test(path)?.into_iter().enumerate() {
        let samples = if is_test { &mut test } else { &mut train };
        for &column in &inputs {
            samples.inputs.push(table.number(path, row, column)? as f32);
        }
        // A test sample is scored by its true label where it has one.
        let scored = truth.as_ref().map(|(column, _)| *column).filter(|_| is_test).unwrap_or(label);
        samples.labels.push(table.number(path, row, scored)?);
        samples.rows.push(table.numbers[row]);
        if !is_test {
            for (column, values) in [&mut truth, &mut validation, &mut agent].into_iter().flatten() {
                values.push(table.number(path, row, *column)?);
            }
        }
    }
    let values = |column: Option<(usize, Vec<f64>)>| column.map(|(_, values)| values);
    train.true_labels = values(truth);
    train.validation = values(validation);
    train.agent = values(agent);
    Ok((train, test))
}
