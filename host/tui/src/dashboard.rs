//! What the screen shows, gathered from messages.

use fabswarm_view::message::{Message, Topic};
use serde::Deserialize;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// Points of the curve: more than a terminal has columns.
const MOST_POINTS: usize = 1024;
/// Lines of the log: more than a terminal has rows.
const MOST_LINES: usize = 100;

/// A run, as far as messages have told of it.
#[derive(Debug, Default)]
pub struct Dashboard {
    pub(crate) run: RunFacts,
    pub(crate) round: u64,
    pub(crate) elapsed: Duration,
    pub(crate) row: MetricsRow,
    /// Rounds and decimal logarithms of errors.
    pub(crate) curve: Vec<(f64, f64)>,
    pub(crate) agents: Vec<AgentRow>,
    pub(crate) lines: VecDeque<LogLine>,
    pub(crate) has_ended: bool,
}

/// The first message of a run.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct RunFacts {
    pub(crate) description: String,
    pub(crate) rounds: u64,
    pub(crate) error_kind: String,
    pub(crate) error_label: String,
}

/// A row of the metrics.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct MetricsRow {
    /// What `error_kind` names.
    #[serde(alias = "distance_to_solution", alias = "gradient_norm")]
    pub(crate) error: Option<f64>,
    pub(crate) consensus_error: Option<f64>,
    pub(crate) tracking_defect: Option<f64>,
    pub(crate) frames: BTreeMap<String, u64>,
}

/// A line of the log.
#[derive(Debug, Deserialize)]
pub(crate) struct LogLine {
    pub(crate) round: u64,
    pub(crate) level: u8,
    pub(crate) name: String,
    pub(crate) message: String,
}

/// One agent.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AgentRow {
    pub(crate) condition: &'static str,
    pub(crate) round: Option<u64>,
    pub(crate) epoch: Option<u64>,
    pub(crate) boot: Option<u64>,
    /// Links over which something arrived in the last slot, in and out.
    pub(crate) hears: usize,
    pub(crate) is_heard_by: usize,
    /// The mean of what its incoming links lost lately, in per cent.
    pub(crate) loss: Option<f64>,
    pub(crate) deviation: Option<f64>,
}

#[derive(Deserialize)]
struct SwarmMessage {
    agents: AgentColumns,
    links: Vec<i64>,
}

#[derive(Deserialize)]
struct AgentColumns {
    condition: String,
    round: Option<Vec<Option<u64>>>,
    epoch: Option<Vec<Option<u64>>>,
    boot: Option<Vec<Option<u64>>>,
    deviation: Option<Vec<Option<f64>>>,
}

impl Dashboard {
    /// Takes a message; one that is not as it should be changes nothing.
    pub fn take(&mut self, message: &Message) {
        let json = message.json.as_str();
        match message.topic {
            Topic::Run => self.run = serde_json::from_str(json).unwrap_or_default(),
            Topic::Metrics => {
                if let Ok(row) = serde_json::from_str::<MetricsRow>(json) {
                    self.add_to_curve(message.round, row.error);
                    self.row = row;
                    (self.round, self.elapsed) = (message.round, message.elapsed);
                }
            }
            Topic::Swarm => {
                if let Ok(view) = serde_json::from_str::<SwarmMessage>(json) {
                    self.agents = agents(&view);
                    (self.round, self.elapsed) = (message.round, message.elapsed);
                }
            }
            Topic::Log => {
                if let Ok(line) = serde_json::from_str(json) {
                    self.lines.push_back(line);
                    if self.lines.len() > MOST_LINES {
                        self.lines.pop_front();
                    }
                }
            }
            // The terminal shows trials only.
            Topic::Evaluation | Topic::Scene => {}
            Topic::End => self.has_ended = true,
        }
    }

    /// How many agents there are.
    #[must_use]
    pub fn agents(&self) -> usize {
        self.agents.len()
    }

    /// Rounds per second since the run began.
    pub(crate) fn rate(&self) -> f64 {
        let seconds = self.elapsed.as_secs_f64();
        if seconds > 0.0 { self.round as f64 / seconds } else { 0.0 }
    }

    /// Adds a point; a curve that is full keeps every second one.
    fn add_to_curve(&mut self, round: u64, error: Option<f64>) {
        let Some(error) = error.filter(|error| *error > 0.0) else { return };
        if self.curve.len() >= MOST_POINTS {
            let mut index = 0;
            self.curve.retain(|_| {
                index += 1;
                index % 2 == 1
            });
        }
        self.curve.push((round as f64, error.log10()));
    }
}

fn agents(view: &SwarmMessage) -> Vec<AgentRow> {
    fn value<T: Copy>(column: Option<&Vec<Option<T>>>, agent: usize) -> Option<T> {
        column?.get(agent).copied().flatten()
    }
    let columns = &view.agents;
    let mut rows: Vec<AgentRow> = (columns.condition.chars().enumerate())
        .map(|(agent, letter)| AgentRow {
            condition: match letter {
                'r' => "running",
                's' => "silent",
                'f' => "frozen",
                _ => "down",
            },
            round: value(columns.round.as_ref(), agent),
            epoch: value(columns.epoch.as_ref(), agent),
            boot: value(columns.boot.as_ref(), agent),
            hears: 0,
            is_heard_by: 0,
            loss: None,
            deviation: value(columns.deviation.as_ref(), agent),
        })
        .collect();
    let mut losses = vec![(0.0, 0_u32); rows.len()];
    for link in view.links.chunks_exact(5) {
        let place = |number: i64| usize::try_from(number).ok().filter(|place| *place < rows.len());
        let (Some(sender), Some(receiver)) = (place(link[0]), place(link[1])) else { continue };
        if link[2] == 1 {
            rows[receiver].hears += 1;
            rows[sender].is_heard_by += 1;
        }
        if link[3] >= 0 {
            losses[receiver].0 += link[3] as f64;
            losses[receiver].1 += 1;
        }
    }
    for (row, (sum, links)) in rows.iter_mut().zip(losses) {
        row.loss = (links > 0).then(|| sum / f64::from(links));
    }
    rows
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn message(topic: Topic, round: u64, json: &str) -> Message {
        Message { topic, round, elapsed: Duration::from_secs(2), json: json.to_owned() }
    }

    /// A run of three agents, one of them down.
    pub(crate) fn dashboard() -> Dashboard {
        let mut dashboard = Dashboard::default();
        for (topic, round, json) in [
            (
                Topic::Run,
                0,
                r#"{"description":"3 agents solve a problem.","rounds":1000,"error_kind":"gradient_norm","error_label":"gradient norm, relative"}"#,
            ),
            (Topic::Metrics, 0, r#"{"gradient_norm":1.0,"frames":{}}"#),
            (
                Topic::Metrics,
                500,
                r#"{"gradient_norm":0.01,"consensus_error":1e-3,"tracking_defect":0.0,"frames":{"sent":1500,"lost":30}}"#,
            ),
            (
                Topic::Swarm,
                500,
                r#"{"agents":{"condition":"rrd","round":[500,500,20],"epoch":[1,1,null],"boot":[1,2,1],"deviation":[0.5,null,0.25]},"links":[0,1,1,10,0, 1,0,1,30,0, 2,0,0,100,480],"links_left_out":0}"#,
            ),
            (Topic::Log, 20, r#"{"round":20,"level":3,"name":"agent 2","message":"is down"}"#),
        ] {
            dashboard.take(&message(topic, round, json));
        }
        dashboard
    }

    #[test]
    fn links_are_summed_up_by_agent() {
        let dashboard = dashboard();
        let [first, second, third] = &dashboard.agents[..] else { panic!("{:?}", dashboard.agents) };
        assert_eq!((first.hears, first.is_heard_by, first.loss), (1, 1, Some(65.0)));
        assert_eq!((second.hears, second.is_heard_by, second.loss), (1, 1, Some(10.0)));
        assert_eq!((third.condition, third.hears, third.loss, third.epoch), ("down", 0, None, None));
        assert_eq!(dashboard.rate(), 250.0);
        assert_eq!(dashboard.curve, [(0.0, 0.0), (500.0, -2.0)]);
    }

    #[test]
    fn what_is_not_a_message_changes_nothing() {
        let mut dashboard = dashboard();
        for topic in [Topic::Metrics, Topic::Swarm, Topic::Log] {
            dashboard.take(&message(topic, 900, "{"));
        }
        let far = r#"{"agents":{"condition":"r"},"links":[7,0,1,1,1, 0,-1,1,1,1, 0,0]}"#;
        dashboard.take(&message(Topic::Swarm, 501, far));
        assert_eq!((dashboard.round, dashboard.agents(), dashboard.lines.len()), (501, 1, 1));
        assert_eq!(dashboard.agents[0].hears, 0);
    }

    #[test]
    fn a_long_run_keeps_its_whole_curve() {
        let mut dashboard = Dashboard::default();
        for round in 0..100_000 {
            dashboard.take(&message(Topic::Metrics, round, r#"{"distance_to_solution":0.5}"#));
        }
        assert!((512..=1024).contains(&dashboard.curve.len()), "{}", dashboard.curve.len());
        assert_eq!(dashboard.curve[0].0, 0.0);
        assert!(dashboard.curve.is_sorted_by_key(|point| point.0));
    }
}
