//! The work of a series of an experiment, its runs, and how they are measured.

use std::fmt::Debug;
use std::sync::atomic::AtomicBool;

use fabswarm_diagnostic::Diagnostic;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::case::Case;
use crate::method::{MethodKind, StepSizes};

/// Values of settings or of scenario keys, by name.
pub(crate) type Keys = Map<String, Value>;

/// The work of a series of an experiment.
pub(crate) trait Workload: Sized + Clone + Debug + Sync + 'static {
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
    type Point: Copy;
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
    /// The panel in which the values of all panels are searched; `None` where each has its own.
    fn search_panel(_: &Self::Search) -> Option<&str> {
        None
    }
    fn trial(&self, choice: &Self::Choice, seed: u64, search: &Self::Search) -> Self::Cell;
    /// The value that a search minimises, over the runs of one try.
    fn score(runs: &[Self::Run]) -> f64;

    /// A run that counts.
    fn cell(&self, choice: &Self::Choice, seed: u64) -> Self::Cell;
    /// A guess at how long it takes, to begin with the longest.
    fn effort(cell: &Self::Cell) -> u64;
    /// Runs it; `None` where it was interrupted.
    fn run(cell: &Self::Cell, interrupted: &AtomicBool) -> Result<Option<Self::Run>, Diagnostic>;

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

/// A number per run that two series are compared by.
pub(crate) trait Measure<W: Workload>: Copy + Debug + Sync + DeserializeOwned {
    /// The values of a run of each of two series.
    fn values(self, pair: [(&SeriesOutcome<W>, &W::Run); 2]) -> [f64; 2];
    /// How much better one value is than another.
    fn advantage(self, own: f64, other: f64) -> f64;
    /// The advantage below which two values are tied, where the experiment's margin is `margin`.
    fn tie(self, margin: f64) -> f64;
    /// The mean value of a series in words.
    fn text(self, one: &SeriesOutcome<W>, mean: f64) -> String;
    /// Whether it counts for a series that has not left its start.
    fn counts_at_rest(self) -> bool {
        false
    }
}

/// A condition on a single series.
pub(crate) trait Condition<W: Workload>: Clone + Debug + Sync + DeserializeOwned {
    /// The verdict; `None` where it was not measured.
    fn judge(&self, one: &SeriesOutcome<W>) -> Option<Case>;
}

/// One curve or row of an experiment.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Series<W> {
    pub(crate) panel: String,
    /// Its name in legends and tables.
    pub(crate) label: String,
    pub(crate) work: W,
    /// The work for which its values are searched: its own, or that of the panel in which all are.
    pub(crate) searched: W,
}

/// A series in each of its panels.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SeriesFile {
    /// Its name; that of its method where it is not given.
    pub(crate) label: Option<String>,
    /// Panels it belongs to; all where it is not given.
    pub(crate) panels: Option<Vec<String>>,
    #[serde(default)]
    pub(crate) setting: Keys,
    /// The method, on small problems.
    pub(crate) method: Option<MethodKind>,
    /// Its steps; searched where they are not given.
    pub(crate) steps: Option<StepSizes>,
    pub(crate) paper: Option<String>,
    /// The value that an independent implementation measured.
    pub(crate) reference: Option<f64>,
    /// Keys whose values are searched, for large models.
    #[serde(default)]
    pub(crate) search: Vec<String>,
}

#[derive(Clone, Debug)]
pub(crate) struct SeriesOutcome<W: Workload> {
    pub(crate) series: Series<W>,
    pub(crate) choice: W::Choice,
    /// One run per seed.
    pub(crate) runs: Vec<W::Run>,
}

impl<W: Workload> SeriesOutcome<W> {
    /// The points of all runs, sample by sample; a run that ended early counts as it ended.
    pub(crate) fn samples(&self) -> Vec<Vec<W::Point>> {
        let count = self.runs.iter().map(|run| W::points(run).len()).max().unwrap_or(0);
        let at = |sample: usize| {
            let runs = self.runs.iter().map(W::points);
            runs.filter_map(|points| points.get(sample).or(points.last()).copied()).collect()
        };
        (0..count).map(at).collect()
    }

    /// The label, and the panel where there are some.
    pub(crate) fn name(&self) -> String {
        let (panel, label) = (&self.series.panel, &self.series.label);
        if panel.is_empty() { label.clone() } else { format!("{panel}, {label}") }
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
