//! Tables in Parquet.

use super::{DataCell, DataTable};
use fabswarm_diagnostic::Diagnostic;
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::record::Field;
use std::path::Path;

/// Reads the whole table.
pub(super) fn read(path: &Path) -> Result<DataTable, Diagnostic> {
    let file =
        std::fs::File::open(path).map_err(|error| Diagnostic::of_file(path, error, "check the path"))?;
    let refuse = |error: ParquetError| {
        let what = format!("not a Parquet file that can be read ({error})");
        Diagnostic::of_file(path, what, "write it with pandas, uncompressed or with compression=\"snappy\"")
    };
    let reader = SerializedFileReader::new(file).map_err(refuse)?;
    let schema = reader.metadata().file_metadata().schema();
    let names = schema.get_fields().iter().map(|field| field.name().to_owned()).collect();
    let mut rows = Vec::new();
    for row in reader.get_row_iter(None).map_err(refuse)? {
        rows.push(row.map_err(refuse)?.get_column_iter().map(|(_, field)| cell(field)).collect());
    }
    let numbers = (0..rows.len()).collect();
    Ok(DataTable { names, rows, numbers })
}

fn cell(field: &Field) -> DataCell {
    DataCell::Number(match field {
        Field::Null => return DataCell::Empty,
        Field::Str(text) => return DataCell::Text(text.clone()),
        Field::Bool(value) => f64::from(u8::from(*value)),
        Field::Byte(value) => (*value).into(),
        Field::Short(value) => (*value).into(),
        Field::Int(value) => (*value).into(),
        Field::Long(value) => *value as f64,
        Field::UByte(value) => (*value).into(),
        Field::UShort(value) => (*value).into(),
        Field::UInt(value) => (*value).into(),
        Field::ULong(value) => *value as f64,
        Field::Float(value) => (*value).into(),
        Field::Double(value) => *value,
        other => return DataCell::Text(other.to_string()),
    })
}
