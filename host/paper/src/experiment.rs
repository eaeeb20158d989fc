//! Experiments: one file each, named by the figure or table of the paper.
//!
//! Small problems and large models differ in their [`Workload`] alone: what a series runs, what may be searched for it, and what
//! comes out.

mod file;

pub use file::SeriesFile;

use std::fmt::Debug;
use std::io;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use fabswarm_diagnostic::Diagnostic;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::rule::{ClaimRule, Condition, Measure};
use crate::spread::samples;

/// Values of settings or of scenario keys, by name.
pub type Keys = Map<String, Value>;

/// The work of a series of an experiment.
pub trait Workload: Sized + Clone + Debug + Sync + 'static {
    /// A column of the figure.
    type Axis: Copy + Debug + Sync + DeserializeOwned;
    /// The values that are tried for series that ask for a search.
    type Search: Clone + Debug + Sync + Default + DeserializeOwned;
    /// The values that a series is run with.
    type Choice: Clone + Debug + Sync;
    /// All inputs of a run, besides the build.
    type Cell: Serialize + Sync;
    /// The measures by which runs are compared.
    type Measure: Measure<Self>;
    /// The conditions on a single series.
    type Condition: Condition<Self>;
    /// A sample of a run.
    type Point: Copy;
    /// The result of one run.
    type Run: Clone + Debug + Send + Serialize + DeserializeOwned;

    /// Names and texts of the experiments, in the order of the paper.
    const FILES: &'static [(&'static str, &'static str)];
    /// Whether a run takes the whole machine.
    const RUNS_ALONE: bool;

    /// The label and the workload of a row of a file, with the settings that lie over each other there.
    fn parse(row: &SeriesFile, settings: Keys, search: &Self::Search) -> Result<(String, Self), String>;

    /// The values of a series that searches none.
    fn given(&self) -> Option<Self::Choice>;
    /// The values that are tried for one that does.
    fn options(&self, search: &Self::Search) -> Vec<Self::Choice>;
    /// The seeds on which they are tried; others than those that count.
    fn search_seeds(search: &Self::Search) -> &[u64];
    /// A try.
    fn trial(&self, choice: &Self::Choice, seed: u64, search: &Self::Search) -> Self::Cell;
    /// The value that a search minimises, over the runs of one try.
    fn score(runs: &[Self::Run]) -> f64;

    /// A run that counts.
    fn cell(&self, choice: &Self::Choice, seed: u64) -> Self::Cell;
    /// A guess at how long it takes, to begin with the longest.
    fn effort(cell: &Self::Cell) -> u64;
    /// Runs it; `None` where it was interrupted.
    fn run(cell: &Self::Cell, interrupted: &AtomicBool) -> Result<Option<Self::Run>, Diagnostic>;

    /// The samples of a run.
    fn points(run: &Self::Run) -> &[Self::Point];
    /// Whether a series has left its start.
    fn has_moved(one: &SeriesOutcome<Self>) -> bool;

    /// Gives a key another value, and returns whether there is such a key.
    fn set(&mut self, _key: &str, _value: &str) -> bool {
        false
    }
    /// Whether this machine can run it in hours.
    fn has_device() -> bool {
        true
    }
}

/// One curve or row of an experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct Series<W> {
    /// The panel of the figure it belongs to.
    pub panel: String,
    /// Its name in legends and tables.
    pub label: String,
    /// Its work.
    pub work: W,
}

/// A figure or table of the paper.
#[derive(Clone, Debug)]
pub struct Experiment<W: Workload> {
    /// The name by which it is run.
    pub name: &'static str,
    /// Its title.
    pub title: String,
    /// Which figure or table of the paper.
    pub source: String,
    /// Differences from the paper's setting, and values that the paper leaves open.
    pub notes: Vec<String>,
    /// The columns of its figure; none where it is a table.
    pub axes: Vec<W::Axis>,
    /// Its curves or rows.
    pub series: Vec<Series<W>>,
    /// The values that are searched.
    pub search: W::Search,
    /// The claims that it is about.
    pub claims: Vec<StatedClaim<W>>,
    /// Differences that are ties: a share of errors, rounds and seconds, and of accuracies the difference itself.
    pub margin: f64,
    /// The number of seeds of each series, from 1.
    pub seeds: u64,
    /// Whether it is the small version, from which no verdict follows.
    pub is_quick: bool,
}

impl<W: Workload> Experiment<W> {
    /// All experiments; `is_quick` makes each small enough for a test.
    pub fn all(is_quick: bool) -> Result<Vec<Self>, Diagnostic> {
        let parse = |(name, text): &(&'static str, &str)| {
            file::parse(name, text, is_quick)
                .map_err(|reason| Diagnostic::bare(format!("experiment {name}: {reason}")))
        };
        W::FILES.iter().map(parse).collect()
    }

    /// The panels, in order.
    pub fn panels(&self) -> Vec<&str> {
        distinct(self.series.iter().map(|series| series.panel.as_str()))
    }
}

/// A claim in an experiment's file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, bound = "")]
pub struct StatedClaim<W: Workload> {
    /// The claim, in our words.
    pub text: String,
    /// When it holds.
    pub rule: ClaimRule<W>,
}

/// One try of a search.
#[derive(Clone, Debug)]
pub struct SearchTrial<W: Workload> {
    /// The panel.
    pub panel: String,
    /// The series.
    pub label: String,
    /// The values that were tried.
    pub choice: W::Choice,
    /// The value that the search minimises.
    pub score: f64,
}

/// All runs of a series.
#[derive(Clone, Debug)]
pub struct SeriesOutcome<W: Workload> {
    /// The series.
    pub series: Series<W>,
    /// With which values.
    pub choice: W::Choice,
    /// One run per seed.
    pub runs: Vec<W::Run>,
}

impl<W: Workload> SeriesOutcome<W> {
    /// The points of all runs, sample by sample; a run that ended early counts as it ended.
    pub(crate) fn samples(&self) -> Vec<Vec<W::Point>> {
        samples(&self.runs.iter().map(W::points).collect::<Vec<_>>())
    }

    /// The label, and the panel where there are some.
    pub(crate) fn name(&self) -> String {
        let (panel, label) = (&self.series.panel, &self.series.label);
        if panel.is_empty() { label.clone() } else { format!("{panel}, {label}") }
    }
}

/// The results of an experiment.
#[derive(Clone, Debug)]
pub struct ExperimentOutcome<W: Workload> {
    /// All series, in the order of the experiment.
    pub series: Vec<SeriesOutcome<W>>,
    /// All tries of the search.
    pub trials: Vec<SearchTrial<W>>,
}

/// The error about a file of a campaign.
pub(crate) fn failed<'a>(verb: &'a str, path: &'a Path) -> impl FnOnce(io::Error) -> Diagnostic + 'a {
    move |source| {
        let what = format!("cannot {verb} {}: {source}", path.display());
        Diagnostic::new(
            what,
            "see that the folder exists and the disk is not full, or name another with --out",
        )
    }
}

/// Each name once, in order.
pub(crate) fn distinct<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut distinct = Vec::new();
    for name in names {
        if !distinct.contains(&name) {
            distinct.push(name);
        }
    }
    distinct
}
