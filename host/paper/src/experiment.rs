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
pub(crate) struct Experiment<W: Workload> {
    /// The name by which it is run.
    pub(crate) name: &'static str,
    pub(crate) title: String,
    /// Which figure or table of the paper.
    pub(crate) source: String,
    /// Differences from the paper's setting, and values that the paper leaves open.
    pub(crate) notes: Vec<String>,
    /// The columns of its figure; none where it is a table.
    pub(crate) axes: Vec<W::Axis>,
    pub(crate) series: Vec<Series<W>>,
    pub(crate) search: W::Search,
    pub(crate) claims: Vec<StatedClaim<W>>,
    /// Differences that are ties: a share of errors, rounds and seconds, and of accuracies the difference itself.
    pub(crate) margin: f64,
    /// The number of seeds of each series, from 1.
    pub(crate) seeds: u64,
    /// Whether it is the small version, from which no verdict follows.
    pub(crate) is_quick: bool,
}

impl<W: Workload> Experiment<W> {
    /// All experiments; `is_quick` makes each small enough for a test.
    pub(crate) fn all(is_quick: bool) -> Result<Vec<Self>, Diagnostic> {
        let parse = |(name, text): &(&'static str, &str)| {
            file::parse(name, text, is_quick)
                .map_err(|reason| Diagnostic::bare(format!("experiment {name}: {reason}")))
        };
        W::FILES.iter().map(parse).collect()
    }

    pub(crate) fn panels(&self) -> Vec<&str> {
        distinct(self.series.iter().map(|series| series.panel.as_str()))
    }
}

/// A claim in an experiment's file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, bound = "")]
pub(crate) struct StatedClaim<W: Workload> {
    /// The claim, in our words.
    pub(crate) text: String,
    /// When it holds.
    pub(crate) rule: ClaimRule<W>,
}

/// One try of a search.
#[derive(Clone, Debug)]
pub(crate) struct SearchTrial<W: Workload> {
    pub(crate) panel: String,
    pub(crate) label: String,
    pub(crate) choice: W::Choice,
    /// The value that the search minimises.
    pub(crate) score: f64,
}

/// The results of an experiment.
#[derive(Clone, Debug)]
pub(crate) struct ExperimentOutcome<W: Workload> {
    /// All series, in the order of the experiment.
    pub(crate) series: Vec<SeriesOutcome<W>>,
    pub(crate) trials: Vec<SearchTrial<W>>,
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
