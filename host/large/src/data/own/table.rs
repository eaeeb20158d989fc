//! Data sets with a row per sample.

use std::path::Path;

use super::RawSamples;
use crate::data::Error;

/// Columns with a meaning; all others are inputs.
const LABEL: &str = "label";
const NAMED: [&str; 5] = [LABEL, "true_label", "validation", "agent", "split"];
/// One test sample for so many samples, where the file does not say which.
const SPLIT: usize = 5;

/// A cell of a table.
#[derive(Clone, Debug, PartialEq)]
enum OwnCell {
    Number(f64),
    Text(String),
    Empty,
}

/// A file in memory: the names of its columns, and its rows.
struct OwnTable {
    names: Vec<String>,
    rows: Vec<Vec<OwnCell>>,
    /// The number of the first row, as the user's editor counts.
    first_row: usize,
}

/// Training and test samples of a CSV file.
pub(super) fn csv(path: &Path) -> Result<(RawSamples, RawSamples), Error> {
    let format = |error: csv::Error| Error::format(path, error.to_string());
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_path(path).map_err(format)?;
    let names = reader.headers().map_err(format)?.iter().map(str::to_owned).collect();
    let mut rows = Vec::new();
    for record in reader.records() {
        let cell = |text: &str| match (text, text.parse()) {
            ("", _) => OwnCell::Empty,
            (_, Ok(number)) => OwnCell::Number(number),
            (text, Err(_)) => OwnCell::Text(text.to_owned()),
        };
        rows.push(record.map_err(format)?.iter().map(cell).collect());
    }
    samples(path, OwnTable { names, rows, first_row: 2 })
}

/// Training and test samples of a Parquet file.
#[cfg(feature = "parquet")]
pub(super) fn parquet(path: &Path) -> Result<(RawSamples, RawSamples), Error> {
    use parquet::file::reader::{FileReader as _, SerializedFileReader};
    use parquet::record::Field;

    let file = std::fs::File::open(path).map_err(Error::io(path))?;
    let format = |error: parquet::errors::ParquetError| Error::format(path, error.to_string());
    let reader = SerializedFileReader::new(file).map_err(format)?;
    let schema = reader.metadata().file_metadata().schema();
    let names = schema.get_fields().iter().map(|field| field.name().to_owned()).collect();
    let mut rows = Vec::new();
    for row in reader.get_row_iter(None).map_err(format)? {
        let cell = |field: &Field| match field {
            Field::Null => OwnCell::Empty,
            Field::Bool(value) => OwnCell::Number(f64::from(u8::from(*value))),
            Field::Byte(value) => OwnCell::Number((*value).into()),
            Field::Short(value) => OwnCell::Number((*value).into()),
            Field::Int(value) => OwnCell::Number((*value).into()),
            Field::Long(value) => OwnCell::Number(*value as f64),
            Field::UByte(value) => OwnCell::Number((*value).into()),
            Field::UShort(value) => OwnCell::Number((*value).into()),
            Field::UInt(value) => OwnCell::Number((*value).into()),
            Field::ULong(value) => OwnCell::Number(*value as f64),
            Field::Float(value) => OwnCell::Number((*value).into()),
            Field::Double(value) => OwnCell::Number(*value),
            Field::Str(value) => OwnCell::Text(value.clone()),
            other => OwnCell::Text(other.to_string()),
        };
        rows.push(row.map_err(format)?.get_column_iter().map(|(_, field)| cell(field)).collect());
    }
    samples(path, OwnTable { names, rows, first_row: 0 })
}

#[cfg(not(feature = "parquet"))]
pub(super) fn parquet(path: &Path) -> Result<(RawSamples, RawSamples), Error> {
    Err(Error::unfit(
        path,
        "this build of fabswarm reads no Parquet",
        "add the feature `parquet`, or write the table as CSV",
    ))
}

fn samples(path: &Path, table: OwnTable) -> Result<(RawSamples, RawSamples), Error> {
    let refuse = |what: String, remedy| Error::unfit(path, what, remedy);
    let place = |name: &str| table.names.iter().position(|known| known == name);
    let Some(label) = place(LABEL) else {
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
    let number = |row: usize, column: usize| -> Result<f64, Error> {
        let (at, name) = (row + table.first_row, &table.names[column]);
        match table.rows[row].get(column) {
            Some(OwnCell::Number(number)) => Ok(*number),
            Some(OwnCell::Text(text)) => Err(refuse(
                format!("row {at}, column `{name}` is `{text}`"),
                "give numbers; encode words as numbers first",
            )),
            Some(OwnCell::Empty) | None => Err(refuse(
                format!("row {at}, column `{name}` is empty"),
                "fill in what is missing, or leave the row out",
            )),
        }
    };
    let split = place("split");
    let first_test = table.rows.len() - table.rows.len() / SPLIT;
    let is_test = |row: usize| -> Result<bool, Error> {
        let Some(column) = split else { return Ok(row >= first_test) };
        match table.rows[row].get(column) {
            Some(OwnCell::Text(word)) if word == "train" => Ok(false),
            Some(OwnCell::Text(word)) if word == "test" => Ok(true),
            other => {
                let shown = match other {
                    Some(OwnCell::Text(word)) => word.clone(),
                    Some(OwnCell::Number(number)) => number.to_string(),
                    Some(OwnCell::Empty) | None => String::new(),
                };
                let at = row + table.first_row;
                Err(refuse(format!("row {at}, column `split` is `{shown}`"), "give `train` or `test`"))
            }
        }
    };
    let optional = |name: &str| place(name).map(|column| (column, Vec::new()));
    let shape = [1, inputs.len(), 1];
    let mut train = RawSamples { shape, ..RawSamples::default() };
    let mut test = RawSamples { shape, ..RawSamples::default() };
    let (mut truth, mut validation, mut agent) =
        (optional("true_label"), optional("validation"), optional("agent"));
    for row in 0..table.rows.len() {
        let is_test = is_test(row)?;
        let samples = if is_test { &mut test } else { &mut train };
        for &column in &inputs {
            samples.inputs.push(number(row, column)? as f32);
        }
        // A test sample is scored by its true label where it has one.
        let scored = truth.as_ref().map(|(column, _)| *column).filter(|_| is_test).unwrap_or(label);
        samples.labels.push(number(row, scored)?);
        samples.rows.push(row + table.first_row);
        if !is_test {
            for (column, values) in [&mut truth, &mut validation, &mut agent].into_iter().flatten() {
                values.push(number(row, *column)?);
            }
        }
    }
    let values = |column: Option<(usize, Vec<f64>)>| column.map(|(_, values)| values);
    train.true_labels = values(truth);
    train.validation = values(validation);
    train.agent = values(agent);
    Ok((train, test))
}
