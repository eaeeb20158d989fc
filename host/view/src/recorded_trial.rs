//! A run that leaves a folder: metrics, answer, summary, figure, log and report.

use crate::message;
use crate::report::{self, REPORT_FILE};
use crate::run_files::RunFiles;
use crate::run_log::LOG_FILE;
use crate::watch::{Audience, RunWatch};
use fabswarm_diagnostic::Diagnostic;
use fabswarm_sim::record::{self, Caption, Curve, Recorder, RunFolder};
use fabswarm_sim::scenario::Scenario;
use fabswarm_sim::swarm::{BoardWarning, ErrorKind, Swarm};
use fabswarm_sim::trial::{self, RoundEnd, TrialObserver, TrialOutcome};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A run about to begin, with the folder it fills.
#[derive(Debug)]
pub struct RecordedTrial<'a> {
    scenario: &'a Scenario,
    recorder: Recorder,
    watch: RunWatch,
}

/// The outcome of a run, and its folder.
#[derive(Debug)]
pub struct TrialArtifacts {
    /// The outcome.
    pub outcome: TrialOutcome,
    /// Its folder.
    pub folder: PathBuf,
    /// The curve that was drawn.
    pub curve: Curve,
}

impl<'a> RecordedTrial<'a> {
    /// Begins the files of a run of `scenario` in `folder`, and shows the run to `audience`, if there is one.
    ///
    /// # Errors
    /// When the folder cannot be written to.
    pub fn start(
        scenario: &'a Scenario,
        scenario_toml: &str,
        folder: RunFolder,
        audience: Option<Arc<dyn Audience>>,
    ) -> Result<Self, record::Error> {
        let log = folder.growing_file(LOG_FILE)?;
        let recorder = Recorder::new(folder, scenario_toml, ErrorKind::of(scenario))?;
        let watch = RunWatch::start(vec![message::run(scenario, scenario_toml)], log, audience)?
            .with_frames((1e6 * scenario.output.log_frames_mb) as u64);
        Ok(Self { scenario, recorder, watch })
    }

    /// Runs `swarm` as [`trial::run`] does, and completes the folder.
    ///
    /// # Errors
    /// When the folder can no longer be written to.
    pub fn run(
        self,
        swarm: &mut dyn Swarm,
        observer: &mut dyn TrialObserver,
        interrupted: &AtomicBool,
    ) -> Result<TrialArtifacts, Diagnostic> {
        let Self { scenario, mut recorder, watch } = self;
        let mut observers = Observers { observer, watch };
        let unrecorded = |error: record::Error| Diagnostic::bare(error.to_string());
        let outcome = trial::run(scenario, swarm, Some(&mut recorder), &mut observers, interrupted)
            .map_err(unrecorded)?;
        let finished = recorder.finish(&swarm.answer(), &outcome.summary, &Caption::of(scenario));
        let (folder, curve) = finished.map_err(unrecorded)?;
        let last = message::end(&outcome.summary, observers.watch.elapsed());
        observers.watch.end(last).map_err(unrecorded)?;
        let logs = folder.join("boards");
        let kept = swarm.boards().map_or(Ok(()), |boards| boards.keep_logs(&logs));
        kept.map_err(|error| unwritable(&logs, &error))?;
        let report = folder.join(REPORT_FILE);
        fs::write(&report, report::of_run(&RunFiles::read(&folder)?))
            .map_err(|error| unwritable(&report, &error))?;
        Ok(TrialArtifacts { outcome, folder, curve })
    }
}

fn unwritable(path: &Path, error: &io::Error) -> Diagnostic {
    let what = format!("cannot write {}: {error}", path.display());
    Diagnostic::new(what, "see that the disk is not full and the folder still there")
}

/// Passes rounds to the log and to another observer.
struct Observers<'a> {
    observer: &'a mut dyn TrialObserver,
    watch: RunWatch,
}

impl TrialObserver for Observers<'_> {
    fn round(&mut self, end: RoundEnd<'_>) {
        self.observer.round(end);
        self.watch.round(end);
    }

    fn warn(&mut self, warnings: &[BoardWarning]) {
        self.observer.warn(warnings);
        self.watch.warn(warnings);
    }

    fn finish(&mut self) {
        self.observer.finish();
        self.watch.finish();
    }
}
