//! The metrics as Parquet, written in groups of rows.

use std::sync::Arc;

use parquet::basic::{Compression, Repetition, Type as PhysicalType};
use parquet::data_type::{DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;

use super::Error;
use super::csv_table::{MetricColumn, metric_columns};
use super::folder::{GrowingFile, PartPath, RunFolder};
use crate::swarm::{ErrorKind, Metrics};

/// `metrics.parquet`.
pub(super) struct ParquetTable {
    writer: SerializedFileWriter<std::fs::File>,
    path: PartPath,
    rounds: Vec<i64>,
    columns: [MetricColumn; 6],
    values: [Vec<f64>; 6],
}

impl std::fmt::Debug for ParquetTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ParquetTable")
            .field("path", &self.path)
            .field("rows_waiting", &self.rounds.len())
            .finish()
    }
}

impl ParquetTable {
    /// Rows that wait in memory: 3.5 MB, however long the run.
    const GROUP_ROWS: usize = 64 * 1024;

    pub(super) fn create(folder: &RunFolder, error: ErrorKind) -> Result<Self, Error> {
        let GrowingFile { file, path } = folder.growing_file("metrics.parquet")?;
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
        let columns = metric_columns(error);
        let writer = schema(&columns)
            .and_then(|schema| SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties)));
        match writer {
            Ok(writer) => Ok(Self { writer, path, rounds: Vec::new(), columns, values: Default::default() }),
            Err(error) => Err(path.unwritable(std::io::Error::other(error))),
        }
    }

    pub(super) fn push(&mut self, metrics: &Metrics) -> Result<(), Error> {
        self.rounds.push(i64::try_from(metrics.round).unwrap_or(i64::MAX));
        for (column, (_, value)) in self.values.iter_mut().zip(self.columns) {
            column.push(value(metrics));
        }
        if self.rounds.len() >= Self::GROUP_ROWS {
            self.write_group().map_err(|error| self.path.unwritable(std::io::Error::other(error)))?;
        }
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<(), Error> {
        let written = self.write_group().and_then(|()| self.writer.close());
        match written {
            Ok(_) => self.path.complete(),
            Err(error) => Err(self.path.unwritable(std::io::Error::other(error))),
        }
    }

    fn write_group(&mut self) -> Result<(), ParquetError> {
        if self.rounds.is_empty() {
            return Ok(());
        }
        let mut group = self.writer.next_row_group()?;
        if let Some(mut column) = group.next_column()? {
            column.typed::<Int64Type>().write_batch(&self.rounds, None, None)?;
            column.close()?;
        }
        for values in &mut self.values {
            if let Some(mut column) = group.next_column()? {
                column.typed::<DoubleType>().write_batch(values, None, None)?;
                column.close()?;
            }
            values.clear();
        }
        self.rounds.clear();
        group.close().map(drop)
    }
}

fn schema(columns: &[MetricColumn]) -> Result<Type, ParquetError> {
    let column = |name: &str, physical| {
        Type::primitive_type_builder(name, physical)
            .with_repetition(Repetition::REQUIRED)
            .build()
            .map(Arc::new)
    };
    let mut fields = vec![column("round", PhysicalType::INT64)?];
    for (name, _) in columns {
        fields.push(column(name, PhysicalType::DOUBLE)?);
    }
    Type::group_type_builder("metrics").with_fields(fields).build()
}

#[cfg(test)]
mod tests {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::RowAccessor;

    use super::super::csv_table::tests::row;
    use super::*;

    #[test]
    fn the_table_holds_every_row_to_the_last_bit() {
        let folder = tempfile::tempdir().unwrap();
        let run = RunFolder::at(folder.path()).unwrap();
        let mut parquet = ParquetTable::create(&run, ErrorKind::DistanceToSolution).unwrap();
        let rows = ParquetTable::GROUP_ROWS as u64 + 5;
        for round in 0..rows {
            parquet.push(&row(round)).unwrap();
        }
        parquet.finish().unwrap();

        let file = std::fs::File::open(folder.path().join("metrics.parquet")).unwrap();
        let reader = SerializedFileReader::new(file).unwrap();
        assert_eq!(reader.metadata().file_metadata().num_rows() as u64, rows);
        let last = reader.get_row_iter(None).unwrap().last().unwrap().unwrap();
        assert_eq!(last.get_long(0).unwrap() as u64, rows - 1);
        assert_eq!(last.get_double(1).unwrap(), row(rows - 1).error);
    }
}
