//! Executes a recorded run again and compares every digest with the log, and the results with those beside it.

use crate::message::{RunMessage, Topic};
use crate::recorded_run::{LoggedFrame, RecordedRun};
use crate::run_log::LOG_FILE;
use fabswarm_diagnostic::Diagnostic;
use fabswarm_shared::wire;
use fabswarm_sim::air::Air;
use fabswarm_sim::record::{MetricColumn, answer_bytes, metric_columns, metrics_line};
use fabswarm_sim::scenario::{self, Scenario};
use fabswarm_sim::swarm::{ErrorKind, Metrics, ReadingLog, Swarm, ViewRequest};
use fabswarm_sim::trial;
use serde::Deserialize;
use serde_json::Value;
use std::fs;
use std::path::Path;

/// The result of executing a run again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunVerdict {
    /// Rounds that were executed.
    pub rounds: u64,
    /// Digests that are equal.
    pub checks: u64,
    /// Frames that are equal; of sealed ones, whose key is not kept, sender and length.
    pub frames: u64,
    /// Rows of `metrics.csv` that are equal.
    pub rows: u64,
    /// The other files that were compared.
    pub files: Vec<&'static str>,
    /// The first difference, in words.
    pub difference: Option<String>,
}

#[derive(Deserialize)]
struct LoggedView {
    round: u64,
    agents: LoggedAgents,
}

#[derive(Deserialize)]
struct LoggedAgents {
    digest: Option<Vec<u32>>,
}

/// Executes the run in `folder` again, with all agents in this process, and compares all logged frames, the digests of every
/// logged round, and the rows of `metrics.csv`, `answer.npz` and `summary.json`. Boards compute the same bits, so their runs are checked as well, but for those that kept their own time.
///
/// # Errors
/// When the log is damaged, or the run cannot be executed.
pub fn verify(folder: &Path) -> Result<RunVerdict, Diagnostic> {
    let log = RecordedRun::read_with_frames(folder)?;
    // Only the log of a killed run, which has another name, may end early.
    let may_be_read = |_: &&RunMessage| log.is_complete || !folder.join(LOG_FILE).exists();
    let Some(run) = log.about(Topic::Run).next().filter(may_be_read) else {
        let remedy = "take run.mcap from a backup if there is one, or run the scenario.toml beside it again";
        return Err(Diagnostic::of_file(folder, "the log is empty or cut off", remedy));
    };
    check_format(folder, &run.json)?;
    let resolved = scenario::resolve(Some(&folder.join("scenario.toml")), &[]);
    let scenario = resolved.map_err(|error| Diagnostic::bare(error.to_string()))?.scenario.in_process();
    let mut swarm = trial::build(&scenario).map_err(|error| Diagnostic::bare(error.to_string()))?;
    swarm.replay_readings(ReadingLog::read(&folder.join("boards"))?);
    let frames = LoggedFrames { rest: &log.frames, is_sealed: scenario.frames.sealed, equal: 0 };
    let results = LoggedResults::read(folder, &scenario)?;
    let mut replay = RunReplay { folder, swarm, frames, results, checks: 0, files: Vec::new() };
    let difference = replay.first_difference(&log)?;
    let RunReplay { swarm, frames, results, checks, files, .. } = replay;
    Ok(RunVerdict {
        rounds: swarm.round(),
        checks,
        frames: frames.equal,
        rows: results.equal,
        files,
        difference,
    })
}

/// Refuses a log of agents that sent other frames: from their first round on nothing would be equal.
fn check_format(folder: &Path, run: &str) -> Result<(), Diagnostic> {
    let about: Value = serde_json::from_str(run).unwrap_or_default();
    if about["wire_format"] == wire::SCHEMA {
        return Ok(());
    }
    let version = about["version"].as_str().unwrap_or("an unknown version");
    let what =
        format!("the log is of fabswarm {version} with another wire format than {:#010x}", wire::SCHEMA);
    let remedy = "verify it with the build that wrote it, or run the scenario.toml beside it again";
    Err(Diagnostic::of_file(folder, what, remedy))
}

/// The result files beside a log.
struct LoggedResults {
    error: ErrorKind,
    columns: Vec<MetricColumn>,
    /// The rounds of the scenario, and between two rows.
    rounds: u64,
    every: u64,
    /// Rows of `metrics.csv` that were not compared yet, the last first.
    lines: Vec<String>,
    /// Whether the run was killed: its rows may be ahead of its log, and the last one cut off.
    is_killed: bool,
    /// Null where there is none.
    summary: Value,
    equal: u64,
    last: Option<Metrics>,
}

impl LoggedResults {
    fn read(folder: &Path, scenario: &Scenario) -> Result<Self, Diagnostic> {
        let error = ErrorKind::of(scenario);
        let read = |name: &str| fs::read_to_string(folder.join(name));
        let refuse = |name: &str, what: &dyn std::fmt::Display| {
            Diagnostic::of_file(&folder.join(name), what, "run the scenario again")
        };
        let (text, is_killed) = match read("metrics.csv") {
            Ok(text) => (Ok(text), false),
            Err(_) => (read("metrics.csv.part"), true),
        };
        let text = text.map_err(|error| refuse("metrics.csv", &error))?;
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.reverse();
        let columns = metric_columns(error).to_vec();
        let header: String = columns.iter().map(|(name, _)| format!(",{name}")).collect();
        if lines.pop().is_none_or(|line| line != format!("round{header}")) {
            return Err(refuse("metrics.csv", &"its columns are not those of a run"));
        }
        let (rounds, every) = (scenario.swarm.rounds, scenario.output.metrics_every);
        let summary = match read("summary.json").ok().filter(|_| !is_killed) {
            Some(text) => serde_json::from_str(&text).map_err(|error| refuse("summary.json", &error))?,
            None => Value::Null,
        };
        Ok(LoggedResults { error, columns, rounds, every, lines, is_killed, summary, equal: 0, last: None })
    }

    /// The last round of rows and summary. Rows of a killed run may be ahead of its log.
    fn end(&self) -> u64 {
        let last = self.lines.first().filter(|_| !self.is_killed);
        let last = last.and_then(|line| line.split(',').next()?.parse().ok()).unwrap_or(0);
        self.summary["rounds"].as_u64().unwrap_or(0).max(last)
    }

    /// Compares the rows of the present round.
    fn difference(&mut self, swarm: &dyn Swarm) -> Option<String> {
        let round = swarm.round();
        let start = format!("{round},");
        while let Some(line) = self.lines.pop_if(|line| line.starts_with(&start)) {
            let metrics = *self.last.insert(swarm.metrics());
            if line != metrics_line(&metrics, &self.columns) {
                return Some(format!(
                    "the row of round {round} in metrics.csv is not what the round comes to"
                ));
            }
            self.equal += 1;
        }
        let is_due = trial::is_recorded(round, self.every) || round == self.rounds;
        let is_there = self.is_killed || self.last.is_some_and(|last| last.round == round);
        (is_due && !is_there).then(|| format!("metrics.csv has no row of round {round}"))
    }

    /// Compares the summary and the answer, if the run ended with the round that the swarm is at.
    fn difference_at_end(
        &self,
        folder: &Path,
        swarm: &dyn Swarm,
        files: &mut Vec<&'static str>,
    ) -> Result<Option<String>, Diagnostic> {
        let is_ahead = |line: &&String| {
            let round = line.split(',').next().and_then(|round| round.parse().ok());
            self.is_killed && round.is_none_or(|round: u64| round > swarm.round())
        };
        if let Some(line) = self.lines.last().filter(|line| !is_ahead(line)) {
            return Ok(Some(format!("metrics.csv has a row that the log has no round for: {line}")));
        }
        if self.is_killed {
            return Ok(None);
        }
        let summary = &self.summary;
        if summary.is_null() {
            return Ok(Some("there is no summary.json".to_owned()));
        }
        let Some(last) = &self.last else { return Ok(None) };
        let number = |value: f64| if value.is_finite() { value.into() } else { Value::Null };
        let (counts, scores) = (swarm.counts(), swarm.scores());
        let expected = [
            ("rounds", swarm.round().into()),
            (self.error.name(), number(last.error)),
            ("consensus_error", number(last.consensus_error)),
            ("tracking_defect", number(last.tracking_defect)),
            ("frames_sent", counts.sent.into()),
            ("copies_lost", counts.lost.into()),
            ("copies_refused", counts.refused.into()),
            ("task", scores.into_iter().map(|(name, score)| (name.to_owned(), number(score))).collect()),
        ];
        for (key, value) in expected {
            if summary[key] != value {
                let found = &summary[key];
                return Ok(Some(format!("summary.json has `{key}` {found}, and the run comes to {value}")));
            }
        }
        files.push("summary.json");
        let name = "answer.npz";
        let Ok(answer) = fs::read(folder.join(name)) else {
            return Ok(Some(format!("there is no {name}")));
        };
        let failed = |error: std::io::Error| Diagnostic::of_file(folder, error, "run the scenario again");
        if answer != answer_bytes(&swarm.answer()).map_err(failed)? {
            return Ok(Some(format!("{name} is not the answer that the run comes to")));
        }
        files.push(name);
        Ok(None)
    }
}

/// A run that is executed again beside its log.
struct RunReplay<'a> {
    folder: &'a Path,
    swarm: Box<dyn Swarm>,
    frames: LoggedFrames<'a>,
    results: LoggedResults,
    /// Digests that were equal.
    checks: u64,
    /// Files that were equal.
    files: Vec<&'static str>,
}

impl RunReplay<'_> {
    /// The first difference, in words.
    fn first_difference(&mut self, log: &RecordedRun) -> Result<Option<String>, Diagnostic> {
        for view in log.about(Topic::Swarm) {
            if let Some(difference) = self.difference_at(&view.json)? {
                return Ok(Some(difference));
            }
        }
        // Views are logged less often than rows.
        let end = self.results.end().min(self.results.rounds);
        let difference =
            self.difference_before(end)?.or_else(|| self.results.difference(self.swarm.as_ref()));
        if difference.is_some() {
            return Ok(difference);
        }
        if self.checks == 0 {
            let remedy = "runs of plain FAB and of more than 1024 agents have none; metrics.csv can be compared instead";
            return Err(Diagnostic::of_file(self.folder, "the log holds no digest to compare", remedy));
        }
        self.results.difference_at_end(self.folder, self.swarm.as_ref(), &mut self.files)
    }

    /// Executes rounds up to `end`, and compares the frames and rows of those before it.
    fn difference_before(&mut self, end: u64) -> Result<Option<String>, Diagnostic> {
        let swarm = self.swarm.as_mut();
        while swarm.round() < end {
            if let Some(difference) = self.results.difference(swarm) {
                return Ok(Some(difference));
            }
            swarm.step().map_err(|error| {
                let round = swarm.round();
                Diagnostic::bare(format!(
                    "executed again, the swarm stops in round {round}, and the log goes on to round {end}: {error}"
                ))
            })?;
            if let Some(sender) = self.frames.first_difference(swarm) {
                let round = swarm.round();
                return Ok(Some(format!(
                    "the logged frame of agent {sender} in round {round} is not the one that it comes to"
                )));
            }
        }
        Ok(None)
    }

    /// Executes rounds up to that of a logged view, and compares them with the log.
    fn difference_at(&mut self, view: &str) -> Result<Option<String>, Diagnostic> {
        let folder = self.folder;
        let foreign = |reason: String| {
            let what = format!("a logged view cannot be read: {reason}");
            Diagnostic::of_file(folder, what, "name a log that this version of fabswarm has written")
        };
        let logged: LoggedView = serde_json::from_str(view).map_err(|error| foreign(error.to_string()))?;
        let round = logged.round;
        if let Some(difference) = self.difference_before(round)? {
            return Ok(Some(difference));
        }
        let view = self.swarm.view(&ViewRequest::default());
        let digests = logged.agents.digest.unwrap_or_default();
        let computed: Vec<u32> = view.agents.iter().filter_map(|agent| agent.digest).collect();
        if digests.len() != computed.len() {
            let (has, needs) = (digests.len(), computed.len());
            return Err(foreign(format!("round {round} has {has} digests, and {needs} agents have one")));
        }
        for (agent, (logged, computed)) in digests.into_iter().zip(computed).enumerate() {
            if logged != computed {
                return Ok(Some(format!(
                    "agent {agent} differs in round {round}: its logged digest is {logged:08x}, and it comes to {computed:08x}"
                )));
            }
            self.checks += 1;
        }
        Ok(self.results.difference(self.swarm.as_ref()))
    }
}

/// The frames of a log that were not compared yet.
struct LoggedFrames<'a> {
    rest: &'a [LoggedFrame],
    is_sealed: bool,
    equal: u64,
}

impl LoggedFrames<'_> {
    /// Compares the frames of the round that `swarm` has ended, and returns the sender of the first that differs.
    fn first_difference(&mut self, swarm: &dyn Swarm) -> Option<usize> {
        let is_of_round = |frame: &LoggedFrame| u64::from(frame.round) == swarm.round();
        let count = self.rest.iter().take_while(|frame| is_of_round(frame)).count();
        let (logged, rest) = self.rest.split_at(count);
        self.rest = rest;
        if logged.is_empty() {
            return None;
        }
        let mut computed = swarm.air().into_iter().flat_map(Air::broadcasts);
        for frame in logged {
            let is_equal = computed.next().is_some_and(|(sender, bytes)| {
                let is_same =
                    if self.is_sealed { frame.bytes.len() == bytes.len() } else { frame.bytes == bytes };
                sender == frame.sender && is_same
            });
            if !is_equal {
                return Some(frame.sender);
            }
            self.equal += 1;
        }
        computed.next().map(|(sender, _)| sender)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_of_another_wire_format_is_refused() {
        let check = |run: String| check_format(Path::new("old"), &run);
        assert!(check(format!("{{\"wire_format\": {}}}", wire::SCHEMA)).is_ok());
        for run in ["{\"version\": \"0.1.0\"}", "{\"version\": \"0.1.0\", \"wire_format\": 5}"] {
            let message = check(run.to_owned()).unwrap_err().to_string();
            assert!(
                message.contains("old: the log is of fabswarm 0.1.0 with another wire format"),
                "{message}"
            );
            assert!(message.contains("run the scenario.toml beside it again"), "{message}");
        }
    }

    #[test]
    fn a_frame_that_differs_is_found() {
        let mut scenario = scenario::resolve(None, &[]).unwrap().scenario;
        (scenario.swarm.agents, scenario.frames.sealed) = (3, false);
        let mut swarm = trial::build(&scenario).unwrap();
        swarm.step().unwrap();
        let sent = swarm.air().unwrap().broadcasts();
        let recorded =
            |(sender, bytes): (usize, &[u8])| LoggedFrame { round: 1, sender, bytes: bytes.into() };
        let whole: Vec<LoggedFrame> = sent.map(recorded).collect();
        assert!(whole.len() >= 3);
        let compare = |logged: &[LoggedFrame], is_sealed| {
            let mut frames = LoggedFrames { rest: logged, is_sealed, equal: 0 };
            (frames.first_difference(swarm.as_ref()), frames.equal)
        };
        let count = whole.len() as u64;
        assert_eq!(compare(&whole, false), (None, count));
        let mut flipped = whole.clone();
        flipped[1].bytes[7] ^= 1;
        assert_eq!(compare(&flipped, false), (Some(flipped[1].sender), 1));
        // Sealed frames have other bytes in every run.
        assert_eq!(compare(&flipped, true), (None, count));
        flipped[1].bytes.pop();
        assert_eq!(compare(&flipped, true), (Some(flipped[1].sender), 1));
        assert_eq!(compare(&whole[..2], false), (Some(whole[2].sender), 2), "one was not logged");
        // A log that has no room for more frames has none of the later rounds.
        assert_eq!(compare(&[], false), (None, 0));
    }
}
