//! The thread that a run is stepped on.

use fabswarm_sim::record::RunFolder;
use fabswarm_sim::scenario::ResolvedScenario;
use fabswarm_sim::swarm::{Answer, Metrics};
use fabswarm_sim::trial::{self, RoundEnd, TrialObserver, TrialOutcome};
use fabswarm_view::{Audience, KeptRun};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

/// What the thread tells.
pub(crate) enum RunEvent {
    /// The swarm is built and its folder made: from now on nothing is refused.
    Begun,
    /// A row of the metrics, where somebody waits for rows.
    Row(Metrics, Option<Answer>),
    /// The run is over.
    Ended(Box<EndedRun>),
    /// It cannot begin, or its folder could not be written.
    Failed(String),
}

/// Everything that came of a run.
pub(crate) struct EndedRun {
    pub(crate) rows: Vec<Metrics>,
    pub(crate) answer: Answer,
    pub(crate) outcome: TrialOutcome,
    pub(crate) complaint: Option<String>,
    pub(crate) folder: Option<PathBuf>,
}

/// Which rows are sent while the run goes on.
#[derive(Clone, Copy)]
pub(crate) struct SentRows {
    /// All of them; the run waits until each is taken.
    pub(crate) all: bool,
    /// With what the agents have decided.
    pub(crate) answers: bool,
}

/// Runs a scenario, until its end or until `interrupted`.
pub(crate) fn start(
    resolved: ResolvedScenario,
    sent: SentRows,
    interrupted: &Arc<AtomicBool>,
) -> Receiver<RunEvent> {
    let (sender, receiver) = sync_channel(0);
    let interrupted = Arc::clone(interrupted);
    thread::spawn(move || {
        let collector = Collector { rows: Vec::new(), sent, sender, interrupted };
        let sender = collector.sender.clone();
        let event = match run(&resolved, collector) {
            Ok(ended) => RunEvent::Ended(Box::new(ended)),
            Err(message) => RunEvent::Failed(message),
        };
        // Nobody waits for a run that was dropped.
        let _ = sender.send(event);
    });
    receiver
}

fn run(resolved: &ResolvedScenario, mut collector: Collector) -> Result<EndedRun, String> {
    let scenario = &resolved.scenario;
    let interrupted = Arc::clone(&collector.interrupted);
    let mut swarm = trial::build(scenario).map_err(|error| error.to_string())?;
    let out = Path::new(&scenario.output.out);
    let (outcome, folder) = if out.as_os_str().is_empty() {
        let _ = collector.sender.send(RunEvent::Begun);
        let outcome = trial::run(scenario, swarm.as_mut(), None, &mut collector, &interrupted);
        (outcome.map_err(|error| error.to_string())?, None)
    } else {
        let folder = RunFolder::at(out).map_err(|error| error.to_string())?;
        let nobody: Vec<Arc<dyn Audience>> = Vec::new();
        let kept = KeptRun::start(scenario, &resolved.to_repeatable_toml(), folder, Arc::new(nobody));
        let kept = kept.map_err(|error| error.to_string())?;
        let _ = collector.sender.send(RunEvent::Begun);
        let kept = kept.run(swarm.as_mut(), &mut collector, &interrupted);
        let kept = kept.map_err(|error| error.to_string())?;
        (kept.outcome, Some(kept.folder))
    };
    Ok(EndedRun {
        rows: collector.rows,
        answer: swarm.answer(),
        complaint: outcome.complaint(scenario),
        outcome,
        folder,
    })
}

/// Keeps the rows of a run, and sends them where somebody waits for them.
struct Collector {
    rows: Vec<Metrics>,
    sent: SentRows,
    sender: SyncSender<RunEvent>,
    interrupted: Arc<AtomicBool>,
}

impl TrialObserver for Collector {
    fn round(&mut self, end: RoundEnd<'_>) {
        if !end.is_recorded {
            return;
        }
        self.rows.push(*end.metrics);
        if self.sent.all {
            let answer = self.sent.answers.then(|| end.swarm.answer());
            if self.sender.send(RunEvent::Row(*end.metrics, answer)).is_err() {
                self.interrupted.store(true, Ordering::Relaxed);
            }
        }
    }

    fn warn(&mut self, _: &[String]) {}

    fn finish(&mut self) {}
}
