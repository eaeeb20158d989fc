//! The metrics as CSV, written row by row, and the columns of every table of metrics.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use super::Error;
use super::folder::{GrowingFile, RunFolder};
use crate::swarm::{ErrorKind, Metrics};

/// A column's name and where its values come from.
pub type MetricColumn = (&'static str, fn(&Metrics) -> f64);

/// The columns of a run after `round`, in the order of the files; the first is named after what its error measures.
pub const fn metric_columns(error: ErrorKind) -> [MetricColumn; 8] {
    [
        (error.name(), |metrics| metrics.error),
        ("consensus_error", |metrics| metrics.consensus_error),
        ("tracking_defect", |metrics| metrics.tracking_defect),
        ("x_norm", |metrics| metrics.x_norm),
        ("y_norm", |metrics| metrics.y_norm),
        ("z_norm", |metrics| metrics.z_norm),
        ("upper_value", |metrics| metrics.upper_value),
        ("lower_value", |metrics| metrics.lower_value),
    ]
}

/// A row of `metrics.csv`, without the end of its line.
pub fn metrics_line(metrics: &Metrics, columns: &[MetricColumn]) -> String {
    let mut line = metrics.round.to_string();
    for (_, value) in columns {
        // Debug is the shortest form that reads back as the same bits, with an exponent where that is shorter.
        let _ = write!(line, ",{:?}", value(metrics));
    }
    line
}

/// `metrics.csv`.
#[derive(Debug)]
pub(super) struct CsvTable {
    file: GrowingFile,
    columns: [MetricColumn; 8],
    lines: String,
    flushed: Instant,
}

impl CsvTable {
    /// Lines wait this long at most, so that a kill loses no more than that.
    const FLUSH_AFTER: Duration = Duration::from_millis(500);
    const FLUSH_BYTES: usize = 64 * 1024;

    pub(super) fn create(folder: &RunFolder, error: ErrorKind) -> Result<Self, Error> {
        let columns = metric_columns(error);
        let lines = format!("round,{}\n", columns.map(|(name, _)| name).join(","));
        Ok(Self { file: folder.growing_file("metrics.csv")?, columns, lines, flushed: Instant::now() })
    }

    pub(super) fn push(&mut self, metrics: &Metrics) -> Result<(), Error> {
        self.lines += &metrics_line(metrics, &self.columns);
        self.lines.push('\n');
        if self.lines.len() >= Self::FLUSH_BYTES || self.flushed.elapsed() >= Self::FLUSH_AFTER {
            self.flush()?;
        }
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<(), Error> {
        self.flush()?;
        self.file.complete()
    }

    /// Writes whole lines only: what a killed run leaves can be read.
    fn flush(&mut self) -> Result<(), Error> {
        self.file.append(self.lines.as_bytes())?;
        self.lines.clear();
        self.flushed = Instant::now();
        Ok(())
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::record) fn row(round: u64) -> Metrics {
        let value = 1.0 / (round as f64 + 3.0);
        Metrics {
            round,
            error: value,
            consensus_error: 1e-9,
            tracking_defect: 0.0,
            x_norm: 2.5,
            y_norm: 1e300,
            z_norm: f64::NAN,
            upper_value: 0.5,
            lower_value: f64::NAN,
        }
    }

    #[test]
    fn the_table_holds_every_row_to_the_last_bit() {
        let folder = tempfile::tempdir().unwrap();
        let run = RunFolder::at(folder.path()).unwrap();
        let mut csv = CsvTable::create(&run, ErrorKind::GradientNorm).unwrap();
        let rows = 1000;
        for round in 0..rows {
            csv.push(&row(round)).unwrap();
        }
        assert!(folder.path().join("metrics.csv.part").exists());
        csv.finish().unwrap();

        let text = std::fs::read_to_string(folder.path().join("metrics.csv")).unwrap();
        assert_eq!(
            text.lines().next(),
            Some(
                "round,gradient_norm,consensus_error,tracking_defect,x_norm,y_norm,z_norm,upper_value,lower_value"
            )
        );
        assert_eq!(text.lines().nth(1), Some("0,0.3333333333333333,1e-9,0.0,2.5,1e300,NaN,0.5,NaN"));
        let last = text.lines().last().unwrap().split(',').nth(1).unwrap();
        assert_eq!(last.parse::<f64>().unwrap(), row(rows - 1).error);
    }
}
