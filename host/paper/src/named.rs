//! Experiments of all kinds behind one interface, as the command has them.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use fabswarm_diagnostic::Diagnostic;

use crate::campaign::{self, CampaignError, Progress};
use crate::experiment::Experiment;
use crate::page::{self, Presentation, Section};
use crate::small::MethodWorkload;
use crate::training::TrainingWorkload;

/// An experiment of any kind.
pub trait NamedExperiment {
    /// The name by which it is run.
    fn name(&self) -> &'static str;

    /// Its title, and its figure or table of the paper.
    fn about(&self) -> [&str; 2];

    /// Returns whether this machine runs it in hours rather than days.
    fn has_device(&self) -> bool;

    /// Runs every series for the seeds from 1 to `seeds`.
    fn set_seeds(&mut self, seeds: u64);

    /// Gives a key of all series another value where they have it, and says so in the notes.
    fn set(&mut self, key: &str, value: &str);

    /// Runs it, with results kept in `out`, and writes its figures and tables.
    fn run(
        &self,
        out: &Path,
        progress: &dyn Progress,
        interrupted: &AtomicBool,
    ) -> Result<Section, CampaignError>;
}

/// All experiments; `is_quick` makes each small enough for a test, on data that come with the program.
pub fn all(is_quick: bool) -> Result<Vec<Box<dyn NamedExperiment>>, Diagnostic> {
    fn of_kind<W: Presentation>(is_quick: bool) -> Result<Vec<Box<dyn NamedExperiment>>, Diagnostic> {
        let boxed = |experiment: Experiment<W>| -> Box<dyn NamedExperiment> { Box::new(experiment) };
        Ok(Experiment::all(is_quick)?.into_iter().map(boxed).collect())
    }
    let mut all = of_kind::<MethodWorkload>(is_quick)?;
    all.extend(of_kind::<TrainingWorkload>(is_quick)?);
    Ok(all)
}

impl<W: Presentation> NamedExperiment for Experiment<W> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn about(&self) -> [&str; 2] {
        [&self.title, &self.source]
    }

    fn has_device(&self) -> bool {
        W::has_device()
    }

    fn set_seeds(&mut self, seeds: u64) {
        self.seeds = seeds;
    }

    fn set(&mut self, key: &str, value: &str) {
        let mut is_known = false;
        for series in &mut self.series {
            is_known |= series.work.set(key, value) && series.searched.set(key, value);
        }
        if is_known {
            self.notes.push(format!("Run with {key} = {value}."));
        }
    }

    fn run(
        &self,
        out: &Path,
        progress: &dyn Progress,
        interrupted: &AtomicBool,
    ) -> Result<Section, CampaignError> {
        let outcome = campaign::run(self, &out.join("results"), progress, interrupted)?;
        Ok(page::write_experiment(self, &outcome, &out.join(self.name))?)
    }
}
