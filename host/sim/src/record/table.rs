//! Tables of named, typed columns, as CSV and as Parquet.

use std::fmt::Write as _;
use std::path::Path;

use super::Error;
use crate::whole_file;

/// A column of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct TableColumn {
    /// Its name.
    pub name: String,
    /// What it holds, row by row.
    pub cells: TableCells,
}

/// The cells of a column; `None` where there is no value.
#[derive(Clone, Debug, PartialEq)]
pub enum TableCells {
    Integers(Vec<Option<i64>>),
    Reals(Vec<Option<f64>>),
    Texts(Vec<Option<String>>),
}

impl TableCells {
    /// How many rows there are.
    pub fn len(&self) -> usize {
        match self {
            Self::Integers(cells) => cells.len(),
            Self::Reals(cells) => cells.len(),
            Self::Texts(cells) => cells.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn text(&self, row: usize) -> Option<String> {
        match self {
            Self::Integers(cells) => cells.get(row)?.map(|cell| cell.to_string()),
            // The shortest form that reads back as the same bits.
            Self::Reals(cells) => cells.get(row)?.map(|cell| format!("{cell:?}")),
            Self::Texts(cells) => cells.get(row)?.clone(),
        }
    }
}

/// Writes a table as CSV.
///
/// # Errors
/// [`Error::Unwritable`] when the disk is full.
pub fn write_csv(path: &Path, columns: &[TableColumn]) -> Result<(), Error> {
    let rows = columns.iter().map(|column| column.cells.len()).max().unwrap_or(0);
    let names: Vec<String> = columns.iter().map(|column| quoted(&column.name)).collect();
    let mut text = names.join(",") + "\n";
    for row in 0..rows {
        for (index, column) in columns.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            let _ = write!(text, "{comma}{}", quoted(&column.cells.text(row).unwrap_or_default()));
        }
        text.push('\n');
    }
    whole_file::write(path, text.as_bytes())
        .map_err(|source| Error::Unwritable { path: path.to_owned(), source })
}

/// A cell as CSV has it.
fn quoted(cell: &str) -> String {
    if cell.contains([',', '"', '\n']) {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell.to_owned()
    }
}

/// Writes a table as Parquet.
///
/// # Errors
/// [`Error::Unwritable`] when the disk is full.
#[cfg(feature = "parquet")]
pub fn write_parquet(path: &Path, columns: &[TableColumn]) -> Result<(), Error> {
    let unwritable = |source| Error::Unwritable { path: path.to_owned(), source };
    let bytes = parquet::bytes_of(columns).map_err(|error| unwritable(std::io::Error::other(error)))?;
    whole_file::write(path, &bytes).map_err(unwritable)
}

#[cfg(feature = "parquet")]
mod parquet {
    use super::{TableCells, TableColumn};
    use ::parquet::basic::{Compression, LogicalType, Repetition, Type as PhysicalType};
    use ::parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
    use ::parquet::errors::ParquetError;
    use ::parquet::file::properties::WriterProperties;
    use ::parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
    use ::parquet::schema::types::Type;
    use std::sync::Arc;

    pub(super) fn bytes_of(columns: &[TableColumn]) -> Result<Vec<u8>, ParquetError> {
        let fields = columns.iter().map(field).collect::<Result<_, _>>()?;
        let schema = Type::group_type_builder("table").with_fields(fields).build()?;
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
        let mut bytes = Vec::new();
        let mut writer = SerializedFileWriter::new(&mut bytes, Arc::new(schema), Arc::new(properties))?;
        let mut group = writer.next_row_group()?;
        for TableColumn { cells, .. } in columns {
            match cells {
                TableCells::Integers(cells) => write::<Int64Type>(&mut group, cells.iter().copied())?,
                TableCells::Reals(cells) => write::<DoubleType>(&mut group, cells.iter().copied())?,
                TableCells::Texts(cells) => {
                    let cells = cells.iter().map(|cell| cell.as_deref().map(ByteArray::from));
                    write::<ByteArrayType>(&mut group, cells)?;
                }
            }
        }
        group.close()?;
        writer.close()?;
        Ok(bytes)
    }

    fn field(column: &TableColumn) -> Result<Arc<Type>, ParquetError> {
        let (physical, logical) = match column.cells {
            TableCells::Integers(_) => (PhysicalType::INT64, None),
            TableCells::Reals(_) => (PhysicalType::DOUBLE, None),
            TableCells::Texts(_) => (PhysicalType::BYTE_ARRAY, Some(LogicalType::String)),
        };
        Type::primitive_type_builder(&column.name, physical)
            .with_repetition(Repetition::OPTIONAL)
            .with_logical_type(logical)
            .build()
            .map(Arc::new)
    }

    fn write<T: DataType>(
        group: &mut SerializedRowGroupWriter<'_, &mut Vec<u8>>,
        cells: impl Iterator<Item = Option<T::T>>,
    ) -> Result<(), ParquetError> {
        let (mut values, mut levels) = (Vec::new(), Vec::new());
        for cell in cells {
            levels.push(i16::from(cell.is_some()));
            values.extend(cell);
        }
        if let Some(mut column) = group.next_column()? {
            column.typed::<T>().write_batch(&values, Some(&levels), None)?;
            column.close()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns() -> Vec<TableColumn> {
        let column = |name: &str, cells| TableColumn { name: name.to_owned(), cells };
        vec![
            column("seed", TableCells::Integers(vec![Some(1), Some(2)])),
            column("loss", TableCells::Reals(vec![Some(0.25), None])),
            column("ended", TableCells::Texts(vec![Some("a, \"b\"".to_owned()), None])),
        ]
    }

    #[test]
    fn csv_has_a_line_per_row_and_quotes_what_needs_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("table.csv");
        write_csv(&path, &columns()).unwrap();
        let text = std::fs::read_to_string(path).unwrap();
        assert_eq!(text, "seed,loss,ended\n1,0.25,\"a, \"\"b\"\"\"\n2,,\n");
    }

    #[cfg(feature = "parquet")]
    #[test]
    fn parquet_keeps_names_types_and_gaps() {
        use ::parquet::file::reader::{FileReader, SerializedFileReader};

        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("table.parquet");
        write_parquet(&path, &columns()).unwrap();
        let reader = SerializedFileReader::new(std::fs::File::open(path).unwrap()).unwrap();
        let rows: Vec<String> =
            reader.get_row_iter(None).unwrap().map(|row| row.unwrap().to_string()).collect();
        assert_eq!(
            rows,
            ["{seed: 1, loss: 0.25, ended: \"a, \"b\"\"}", "{seed: 2, loss: null, ended: null}"]
        );
    }
}
