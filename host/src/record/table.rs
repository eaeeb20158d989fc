//! The metrics as CSV and Parquet, written row by row.

use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parquet::basic::{Compression, Repetition, Type as PhysicalType};
use parquet::data_type::{DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;

use super::Error;
use super::folder::{Part, PartPath, RunFolder};
use crate::swarm::Metrics;

/// A column's name and where its values come from.
type Column = (&'static str, fn(&Metrics) -> f64);

/// The columns after `round`, in the order of the files.
const COLUMNS: [Column; 6] = [
    ("error", |metrics| metrics.error),
    ("consensus_error", |metrics| metrics.consensus_error),
    ("tracking_defect", |metrics| metrics.tracking_defect),
    ("x_norm", |metrics| metrics.x_norm),
    ("y_norm", |metrics| metrics.y_norm),
    ("z_norm", |metrics| metrics.z_norm),
];

/// `metrics.csv`.
#[derive(Debug)]
pub(super) struct CsvTable {
    part: Part,
    lines: String,
    flushed: Instant,
}

impl CsvTable {
    /// Lines wait this long at most, so that a kill loses no more than that.
    const FLUSH_AFTER: Duration = Duration::from_millis(500);
    const FLUSH_BYTES: usize = 64 * 1024;

    pub(super) fn create(folder: &RunFolder) -> Result<Self, Error> {
        let mut lines = "round".to_owned();
        for (name, _) in COLUMNS {
            lines.push(',');
            lines.push_str(name);
        }
        lines.push('\n');
        Ok(Self { part: folder.part("metrics.csv")?, lines, flushed: Instant::now() })
    }

    pub(super) fn push(&mut self, metrics: &Metrics) -> Result<(), Error> {
        let _ = write!(self.lines, "{}", metrics.round);
        for (_, value) in COLUMNS {
            // Debug is the shortest form that reads back as the same bits, with an exponent where that is shorter.
            let _ = write!(self.lines, ",{:?}", value(metrics));
        }
        self.lines.push('\n');
        if self.lines.len() >= Self::FLUSH_BYTES || self.flushed.elapsed() >= Self::FLUSH_AFTER {
            self.flush()?;
        }
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<(), Error> {
        self.flush()?;
        self.part.path.complete()
    }

    /// Writes whole lines only: what a killed run leaves can be read.
    fn flush(&mut self) -> Result<(), Error> {
        self.part
            .file
            .write_all(self.lines.as_bytes())
            .map_err(|source| self.part.path.unwritable(source))?;
        self.lines.clear();
        self.flushed = Instant::now();
        Ok(())
    }
}

/// `metrics.parquet`.
pub(super) struct ParquetTable {
    writer: SerializedFileWriter<std::fs::File>,
    path: PartPath,
    rounds: Vec<i64>,
    values: [Vec<f64>; COLUMNS.len()],
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

    pub(super) fn create(folder: &RunFolder) -> Result<Self, Error> {
        let Part { file, path } = folder.part("metrics.parquet")?;
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
        let writer = schema()
            .and_then(|schema| SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties)));
        match writer {
            Ok(writer) => Ok(Self { writer, path, rounds: Vec::new(), values: Default::default() }),
            Err(error) => Err(path.unwritable(std::io::Error::other(error))),
        }
    }

    pub(super) fn push(&mut self, metrics: &Metrics) -> Result<(), Error> {
        self.rounds.push(i64::try_from(metrics.round).unwrap_or(i64::MAX));
        for (column, (_, value)) in self.values.iter_mut().zip(COLUMNS) {
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

fn schema() -> Result<Type, ParquetError> {
    let column = |name: &str, physical| {
        Type::primitive_type_builder(name, physical)
            .with_repetition(Repetition::REQUIRED)
            .build()
            .map(Arc::new)
    };
    let mut fields = vec![column("round", PhysicalType::INT64)?];
    for (name, _) in COLUMNS {
        fields.push(column(name, PhysicalType::DOUBLE)?);
    }
    Type::group_type_builder("metrics").with_fields(fields).build()
}

#[cfg(test)]
mod tests {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::RowAccessor;

    use super::*;

    fn row(round: u64) -> Metrics {
        let value = 1.0 / (round as f64 + 3.0);
        Metrics {
            round,
            error: value,
            consensus_error: 1e-9,
            tracking_defect: 0.0,
            x_norm: 2.5,
            y_norm: 1e300,
            z_norm: f64::NAN,
        }
    }

    #[test]
    fn both_tables_hold_every_row_to_the_last_bit() {
        let folder = tempfile::tempdir().unwrap();
        let run = RunFolder::at(folder.path()).unwrap();
        let (mut csv, mut parquet) = (CsvTable::create(&run).unwrap(), ParquetTable::create(&run).unwrap());
        let rows = ParquetTable::GROUP_ROWS as u64 + 5;
        for round in 0..rows {
            csv.push(&row(round)).unwrap();
            parquet.push(&row(round)).unwrap();
        }
        assert!(folder.path().join("metrics.csv.part").exists());
        csv.finish().unwrap();
        parquet.finish().unwrap();

        let text = std::fs::read_to_string(folder.path().join("metrics.csv")).unwrap();
        assert_eq!(
            text.lines().next(),
            Some("round,error,consensus_error,tracking_defect,x_norm,y_norm,z_norm")
        );
        assert_eq!(text.lines().nth(1), Some("0,0.3333333333333333,1e-9,0.0,2.5,1e300,NaN"));
        let last = text.lines().last().unwrap().split(',').nth(1).unwrap();
        assert_eq!(last.parse::<f64>().unwrap(), row(rows - 1).error);

        let file = std::fs::File::open(folder.path().join("metrics.parquet")).unwrap();
        let reader = SerializedFileReader::new(file).unwrap();
        assert_eq!(reader.metadata().file_metadata().num_rows() as u64, rows);
        let last = reader.get_row_iter(None).unwrap().last().unwrap().unwrap();
        assert_eq!(last.get_long(0).unwrap() as u64, rows - 1);
        assert_eq!(last.get_double(1).unwrap(), row(rows - 1).error);
    }
}
