//! Experiments: one file each, named by the figure or table of the paper.
//!
//! Small problems and large models differ in their [`Workload`] alone: what a series runs, what may be searched for it, and what
//! comes out.

mod file;

use std::io;
use std::path::Path;

use fabswarm_diagnostic::Diagnostic;
use serde::Deserialize;

use crate::rule::ClaimRule;
use crate::workload::{Series, SeriesOutcome, Workload, distinct};

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
