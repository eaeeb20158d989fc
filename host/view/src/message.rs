//! Messages about a run, as JSON. `run.mcap` and the page get the same bytes.

mod encoder;
mod scene;
pub mod training;

pub(crate) use encoder::SwarmEncoder;
pub(crate) use scene::scene;

use fabswarm_shared::{BUILD_ID, wire};
use fabswarm_sim::record::{Caption, RunSummary, counted, metric_columns};
use fabswarm_sim::scenario::{FaultsSection, Scenario, TopologyKind};
use fabswarm_sim::swarm::{ErrorKind, Metrics, Swarm};
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

/// The subject of a message; its topic in a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Topic {
    /// The run itself: sent once, first.
    Run,
    /// Agents and links after a round.
    Swarm,
    /// Agents and links as a 3D scene, for Foxglove.
    Scene,
    /// A row of the metrics.
    Metrics,
    /// A row of the metrics of a training run.
    Evaluation,
    /// A line of text about an agent or the run.
    Log,
    /// The summary: sent once, last.
    End,
}

impl Topic {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Run, Self::Swarm, Self::Scene, Self::Metrics, Self::Evaluation, Self::Log, Self::End];

    /// Its name in a log.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Run => "/run",
            Self::Swarm => "/swarm",
            Self::Scene => "/scene",
            Self::Metrics => "/metrics",
            Self::Evaluation => "/evaluation",
            Self::Log => "/log",
            Self::End => "/end",
        }
    }
}

/// A message: one JSON object, whose `type` is its topic without the slash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunMessage {
    /// Its subject.
    pub topic: Topic,
    /// The round it is of.
    pub round: u64,
    /// Time since the run began.
    pub elapsed: Duration,
    /// The object.
    pub json: String,
}

/// The severity of a line of the log, in the numbers of Foxglove's `Log`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogLevel {
    Info = 2,
    Warning = 3,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ViewMessage<'a> {
    Run {
        command: &'static str,
        version: &'static str,
        /// The number of the format of its frames.
        wire_format: u32,
        problem: &'a str,
        algorithm: &'static str,
        topology: &'static str,
        boards: &'a str,
        agents: usize,
        seed: u64,
        rounds: u64,
        error_below: f64,
        /// The key of the error in the rows; evaluations have none.
        error_kind: Option<ErrorKind>,
        error_label: &'a str,
        /// Sides of the area that agents fly over, in m.
        area_m: Option<[f64; 2]>,
        description: String,
        scenario: &'a str,
        /// Build id of the code that ran.
        build: String,
        system: String,
        cores: usize,
    },
    Metrics {
        round: u64,
        seconds: f64,
        #[serde(flatten)]
        values: NamedMetrics<'a>,
        /// Frames and copies so far, by outcome.
        frames: BTreeMap<&'static str, u64>,
    },
    Log {
        round: u64,
        seconds: f64,
        timestamp: Timestamp,
        level: u8,
        message: &'a str,
        name: &'a str,
        file: &'static str,
        line: u32,
    },
    End {
        summary: &'a RunSummary,
    },
}

/// Metrics by the names of their columns.
struct NamedMetrics<'a> {
    metrics: &'a Metrics,
    error: ErrorKind,
}

impl Serialize for NamedMetrics<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(metric_columns(self.error).iter().map(|(name, value)| {
            let value = value(self.metrics);
            // JSON has no NaN and no infinity.
            (name, value.is_finite().then_some(value))
        }))
    }
}

#[derive(Serialize)]
struct Timestamp {
    sec: u64,
    nsec: u32,
}

fn json(body: &ViewMessage<'_>) -> String {
    serde_json::to_string(body).expect("plain numbers and strings serialise")
}

/// Describes `scenario` in a sentence or two.
fn description(scenario: &Scenario) -> String {
    let Scenario { swarm, problem, algorithm, network, faults, .. } = scenario;
    let mut text = format!(
        "{} solve {} by {}, {} topology, for at most {}",
        counted(swarm.agents, "agent"),
        problem.kind.word(),
        algorithm.kind.word(),
        network.topology.word(),
        counted(swarm.rounds as usize, "round")
    );
    if swarm.boards != fabswarm_sim::scenario::IN_PROCESS {
        let _ = write!(text, ", on boards ({})", swarm.boards);
    }
    text.push('.');
    describe_faults(&mut text, faults);
    text
}

/// Adds a sentence for each fault of the air.
fn describe_faults(text: &mut String, faults: &FaultsSection) {
    let percent = |text: &mut String, share: f64, what: &str| {
        if share > 0.0 {
            let _ = write!(text, " {} % of the frames {what}.", (1e5 * share).round() / 1e3);
        }
    };
    percent(text, faults.iid_loss, "are lost");
    percent(text, faults.burst_loss, "are lost in bursts");
    percent(text, faults.duplication, "arrive twice");
    percent(text, faults.reordering, "arrive out of order");
    percent(text, faults.bit_corruption, "arrive damaged");
    if faults.delay_rounds > 0 {
        let _ = write!(text, " Frames are up to {} rounds late.", faults.delay_rounds);
    }
}

/// The first message of a run.
pub(crate) fn run(scenario: &Scenario, scenario_toml: &str) -> RunMessage {
    let caption = Caption::of(scenario);
    let (problem, text) = (scenario.problem.kind.word(), description(scenario));
    first("run", scenario, scenario_toml, problem, text, Some(ErrorKind::of(scenario)), caption.error)
}

/// The first message of any run.
fn first(
    command: &'static str,
    scenario: &Scenario,
    scenario_toml: &str,
    problem: &str,
    description: String,
    error_kind: Option<ErrorKind>,
    error_label: &str,
) -> RunMessage {
    let side = scenario.motion.area_m;
    let body = ViewMessage::Run {
        command,
        version: env!("CARGO_PKG_VERSION"),
        wire_format: wire::SCHEMA,
        problem,
        algorithm: scenario.algorithm.kind.word(),
        topology: scenario.network.topology.word(),
        boards: &scenario.swarm.boards,
        agents: scenario.swarm.agents,
        seed: scenario.seed,
        rounds: scenario.swarm.rounds,
        error_below: scenario.stop.error_below,
        error_kind,
        error_label,
        area_m: (scenario.network.topology == TopologyKind::Motion).then_some([side, side]),
        description,
        scenario: scenario_toml,
        build: format!("{BUILD_ID:016x}"),
        system: format!("{} on {}", std::env::consts::OS, std::env::consts::ARCH),
        cores: std::thread::available_parallelism().map_or(1, usize::from),
    };
    RunMessage { topic: Topic::Run, round: 0, elapsed: Duration::ZERO, json: json(&body) }
}

/// Frames and copies of `swarm` so far, by outcome.
pub(crate) fn frames(swarm: &dyn Swarm) -> BTreeMap<&'static str, u64> {
    match swarm.air() {
        Some(air) => air.counters().outcomes().into(),
        None => {
            let counts = swarm.counts();
            [("sent", counts.sent), ("lost", counts.lost), ("refused", counts.refused)].into()
        }
    }
}

/// A row of the metrics, whose error is of this kind, with the frames until then.
pub(crate) fn metrics(
    metrics: &Metrics,
    error: ErrorKind,
    frames: BTreeMap<&'static str, u64>,
    elapsed: Duration,
) -> RunMessage {
    let body = ViewMessage::Metrics {
        round: metrics.round,
        seconds: elapsed.as_secs_f64(),
        values: NamedMetrics { metrics, error },
        frames,
    };
    RunMessage { topic: Topic::Metrics, round: metrics.round, elapsed, json: json(&body) }
}

/// A line of the log, said by `name`. `began` is when the run began, since 1970.
pub(crate) fn log(
    level: LogLevel,
    name: &str,
    text: &str,
    round: u64,
    elapsed: Duration,
    began: Duration,
) -> RunMessage {
    let now = began + elapsed;
    let body = ViewMessage::Log {
        round,
        seconds: elapsed.as_secs_f64(),
        timestamp: Timestamp { sec: now.as_secs(), nsec: now.subsec_nanos() },
        level: level as u8,
        message: text,
        name,
        file: "",
        line: 0,
    };
    RunMessage { topic: Topic::Log, round, elapsed, json: json(&body) }
}

/// The last message of a run.
pub(crate) fn end(summary: &RunSummary, elapsed: Duration) -> RunMessage {
    let json = json(&ViewMessage::End { summary });
    RunMessage { topic: Topic::End, round: summary.common.rounds, elapsed, json }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn non_finite_metrics_are_null() {
        let row = Metrics {
            round: 3,
            error: f64::NAN,
            consensus_error: f64::INFINITY,
            lower_value: f64::NAN,
            ..Metrics::default()
        };
        let frames = BTreeMap::from([("sent", 30)]);
        let message = metrics(&row, ErrorKind::GradientNorm, frames, Duration::ZERO);
        let value: Value = serde_json::from_str(&message.json).unwrap();
        for name in ["gradient_norm", "consensus_error", "lower_value"] {
            assert_eq!(value.get(name), Some(&Value::Null), "{name}");
        }
        assert_eq!((value.get("distance_to_solution"), &value["type"]), (None, &json!("metrics")));
        assert_eq!((&value["tracking_defect"], &value["frames"]), (&json!(0.0), &json!({"sent": 30})));
    }

    #[test]
    fn lines_of_the_log_stay_text() {
        let hostile = "</script><img src=x onerror=alert(1)>\"\n";
        let message = log(LogLevel::Warning, hostile, hostile, 4, Duration::ZERO, Duration::from_secs(60));
        let value: Value = serde_json::from_str(&message.json).unwrap();
        assert_eq!(value["message"], hostile);
        assert_eq!((&value["level"], &value["timestamp"]["sec"]), (&json!(3), &json!(60)));
    }
}
