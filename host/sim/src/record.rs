//! The run folder: everything a run leaves behind.
//!
//! | file | what |
//! |---|---|
//! | `scenario.toml` | the resolved scenario, to run it again |
//! | `metrics.csv` | one row of [`Metrics`] every `output.metrics_every` rounds, by default thinned out as rounds go on |
//! | `answer.npz` | the final x, y and z of every agent, as NumPy arrays |
//! | `summary.json` | the [`RunSummary`] |
//! | `convergence.svg` | error, consensus error and tracking defect over the rounds |
//!
//! A file ends in `.part` until it is complete: what a killed run leaves is not mistaken for a whole one.

mod answer_file;
mod csv_table;
mod curve;
mod figure;
mod folder;
mod summary;
pub mod table;

use std::io;
use std::path::PathBuf;

pub use answer_file::bytes as answer_bytes;
pub use csv_table::{MetricColumn, metric_columns, metrics_line};
pub use curve::Curve;
pub use figure::Caption;
pub use folder::{GrowingFile, RunFolder};
pub use summary::{AirReport, CommonSummary, FinalError, RunSummary, StoppedBecause};

use crate::swarm::{Answer, ErrorKind, Metrics};
use csv_table::CsvTable;

/// A count in words: `noun` names one thing.
pub fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// The number of bytes in the unit that keeps it short.
pub fn bytes(count: u64) -> String {
    let units = [(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")];
    match units.into_iter().find(|(unit, _)| count as f64 >= *unit) {
        Some((unit, name)) => format!("{:.1} {name}", count as f64 / unit),
        None => format!("{count} B"),
    }
}

/// Why a run folder cannot be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the message of each error explains its fields")]
pub enum Error {
    /// The folder holds something already.
    #[error("the output folder {path} is not empty\nhelp: name another one with --out, or empty it", path = path.display())]
    NotEmpty { path: PathBuf },
    /// Another process writes to the folder.
    #[error("another fabswarm is writing to {path}\nhelp: wait until it has ended, or stop it", path = path.display())]
    Busy { path: PathBuf },
    /// The folder cannot be made or used.
    #[error("cannot use {path} as the output folder: {source}\nhelp: name a folder you may write to with --out", path = path.display())]
    Unusable { path: PathBuf, source: io::Error },
    /// A file in it cannot be written.
    #[error("cannot write {path}: {source}\nhelp: see that the disk is not full and the folder still there", path = path.display())]
    Unwritable { path: PathBuf, source: io::Error },
}

/// Writes a run folder during the run. Its methods fail when that can no longer be written to.
#[derive(Debug)]
pub struct Recorder {
    folder: RunFolder,
    csv: CsvTable,
    curve: Curve,
}

impl Recorder {
    /// Starts to record a run, whose error is of this kind, into `folder`.
    pub fn new(folder: RunFolder, scenario_toml: &str, error: ErrorKind) -> Result<Self, Error> {
        folder.write("scenario.toml", scenario_toml.as_bytes())?;
        Ok(Self { csv: CsvTable::create(&folder, error)?, curve: Curve::default(), folder })
    }

    /// Adds one row.
    pub fn record(&mut self, metrics: Metrics) -> Result<(), Error> {
        self.csv.push(&metrics)?;
        self.curve.push(metrics);
        Ok(())
    }

    /// Completes the folder and gives its path and the curve that was drawn.
    pub fn finish(
        self,
        answer: &Answer,
        summary: &RunSummary,
        caption: &Caption,
    ) -> Result<(PathBuf, Curve), Error> {
        let name = "answer.npz";
        let unwritable = |source| Error::Unwritable { path: self.folder.path().join(name), source };
        self.folder.write(name, &answer_bytes(answer).map_err(unwritable)?)?;
        self.csv.finish()?;
        figure::write(&self.folder, caption, summary.error.rounds_to_one_percent, &self.curve)?;
        self.folder.write("summary.json", summary.to_json().as_bytes())?;
        Ok((self.folder.path().to_owned(), self.curve))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_told_in_a_unit_that_keeps_them_short() {
        let told = [0, 999, 1_000, 40_960, 1_234_567, 2_500_000_000, 7_000_000_000_000].map(bytes);
        assert_eq!(told, ["0 B", "999 B", "1.0 kB", "41.0 kB", "1.2 MB", "2.5 GB", "7.0 TB"]);
    }
}
