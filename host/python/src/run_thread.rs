//! The thread of a run, and its events.

use crate::python_method::MethodMaker;
use fabswarm_sim::record::{MetricColumn, RunFolder, metric_columns};
use fabswarm_sim::scenario::{IN_PROCESS, ResolvedScenario};
use fabswarm_sim::swarm::{Answer, ErrorKind};
use fabswarm_sim::task::OwnProblem;
use fabswarm_sim::trial::{self, RoundEnd, TrialObserver};
use fabswarm_view::RecordedTrial;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

/// Events of the thread.
pub(crate) enum RunEvent {
    /// The scenario was accepted.
    Begun,
    /// A row of the metrics, where Python takes rows.
    Row(Vec<(&'static str, f64)>, Option<Answer>),
    Ended(Box<EndedRun>),
    /// It cannot begin, or its folder could not be written.
    Failed(String),
}

/// Everything that came of a run.
pub(crate) struct EndedRun {
    pub(crate) columns: Vec<(&'static str, Vec<f64>)>,
    pub(crate) answer: Option<Answer>,
    /// As JSON.
    pub(crate) summary: String,
    pub(crate) complaint: Option<String>,
    pub(crate) folder: Option<PathBuf>,
}

/// Keeps the rows of a run, and sends them where Python takes rows.
pub(crate) struct RowCollector {
    pub(crate) columns: Vec<(&'static str, Vec<f64>)>,
    sender: SyncSender<RunEvent>,
    /// Python takes row by row, and sends a message to go on.
    go: Option<Receiver<()>>,
    pub(crate) interrupted: Arc<AtomicBool>,
}

impl RowCollector {
    /// Tells Python that the run has begun.
    pub(crate) fn begin(&self) {
        let _ = self.sender.send(RunEvent::Begun);
    }

    pub(crate) fn take(&mut self, row: Vec<(&'static str, f64)>, answer: Option<Answer>) {
        if self.columns.is_empty() {
            self.columns = row.iter().map(|(name, _)| (*name, Vec::new())).collect();
        }
        self.columns.iter_mut().zip(&row).for_each(|((_, column), (_, value))| column.push(*value));
        if let Some(go) = &self.go {
            let _ = self.sender.send(RunEvent::Row(row, answer));
            if go.recv().is_err() {
                // The run was dropped by Python.
                self.interrupted.store(true, Ordering::Relaxed);
            }
        }
    }
}

/// Does `run` on a new thread; with `go`, it waits for a message after every row.
pub(crate) fn start(
    go: Option<Receiver<()>>,
    interrupted: &Arc<AtomicBool>,
    run: impl FnOnce(RowCollector) -> Result<EndedRun, String> + Send + 'static,
) -> Receiver<RunEvent> {
    let (sender, receiver) = sync_channel(1);
    let interrupted = Arc::clone(interrupted);
    thread::spawn(move || {
        let event = run(RowCollector { columns: Vec::new(), sender: sender.clone(), go, interrupted });
        let _ = sender.send(match event {
            Ok(ended) => RunEvent::Ended(Box::new(ended)),
            Err(message) => RunEvent::Failed(message),
        });
    });
    receiver
}

/// Runs a scenario of small agents, with the user's own problem and method if there are any. With `answers`, rows come with the agents' decisions.
pub(crate) fn run(
    resolved: &ResolvedScenario,
    own: Option<&OwnProblem>,
    method: Option<MethodMaker>,
    answers: bool,
    rows: RowCollector,
) -> Result<EndedRun, String> {
    let scenario = &resolved.scenario;
    let interrupted = Arc::clone(&rows.interrupted);
    if scenario.swarm.boards != IN_PROCESS {
        return Err(format!(
            "swarm.boards = \"{}\", and in Python all agents run in this process\nhelp: run boards with the command \
             `fabswarm run`, and read its folder with fabswarm.load",
            scenario.swarm.boards
        ));
    }
    let swarm = match method {
        Some(method) => {
            trial::build_with_method(scenario, own, |task| method.make(task, scenario.swarm.agents))
        }
        None => trial::build_with(scenario, own),
    };
    let mut swarm = swarm.map_err(|error| error.to_string())?;
    let out = Path::new(&scenario.output.out);
    let mut observer = RowObserver { rows, columns: metric_columns(ErrorKind::of(scenario)), answers };
    let (outcome, folder) = if out.as_os_str().is_empty() {
        observer.rows.begin();
        let outcome = trial::run(scenario, swarm.as_mut(), None, &mut observer, &interrupted);
        (outcome.map_err(|error| error.to_string())?, None)
    } else {
        let folder = RunFolder::at(out).map_err(|error| error.to_string())?;
        let kept = RecordedTrial::start(scenario, &resolved.to_repeatable_toml(), folder, None);
        let kept = kept.map_err(|error| error.to_string())?;
        observer.rows.begin();
        let kept = kept.run(swarm.as_mut(), &mut observer, &interrupted);
        let kept = kept.map_err(|error| error.to_string())?;
        (kept.outcome, Some(kept.folder))
    };
    Ok(EndedRun {
        columns: observer.rows.columns,
        answer: Some(swarm.answer()),
        summary: serde_json::to_string(&outcome.summary).map_err(|error| error.to_string())?,
        complaint: outcome.complaint(scenario),
        folder,
    })
}

/// Takes the rows that a run records.
struct RowObserver {
    rows: RowCollector,
    columns: [MetricColumn; 8],
    answers: bool,
}

impl TrialObserver for RowObserver {
    fn round(&mut self, end: RoundEnd<'_>) {
        if end.is_recorded {
            let values = self.columns.iter().map(|(name, value)| (*name, value(end.metrics)));
            let row = std::iter::once(("round", end.metrics.round as f64)).chain(values).collect();
            self.rows.take(row, self.answers.then(|| end.swarm.answer()));
        }
    }
}
