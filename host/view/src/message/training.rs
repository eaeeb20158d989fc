//! Messages about a training run.

use super::{RunMessage, Topic, describe_faults, first};
use fabswarm_sim::record::counted;
use fabswarm_sim::scenario::Scenario;
use serde_json::{Map, Value, json};
use std::fmt::Write as _;
use std::time::Duration;

/// The first message of a training run on `device`, whose agents have `parameters` parameters each.
pub fn run(scenario: &Scenario, scenario_toml: &str, device: &str, parameters: usize) -> RunMessage {
    let training = &scenario.training;
    let problem = format!("{} on {}", training.model, training.data);
    let mut text = format!(
        "{} train {problem} ({parameters} parameters each) by {}, {}, {} topology, for {} on {device}.",
        counted(scenario.swarm.agents, "agent"),
        training.method,
        scenario.algorithm.kind,
        scenario.network.topology,
        counted(training.epochs as usize, "epoch"),
    );
    if training.corruption_rate > 0.0 {
        let _ =
            write!(text, " {} % of the labels are wrong.", (1e5 * training.corruption_rate).round() / 1e3);
    }
    describe_faults(&mut text, &scenario.faults);
    first("train", scenario, scenario_toml, &problem, text, None, "Consensus error")
}

/// An evaluation: `values` by name and, where samples have weights, samples by weight: those with right and those with wrong labels.
pub fn evaluation(
    round: u64,
    elapsed: Duration,
    values: impl Iterator<Item = (&'static str, Option<f64>)>,
    weights: Option<[&[u32]; 2]>,
) -> RunMessage {
    let mut body = Map::from_iter([("type".to_owned(), json!("evaluation"))]);
    // JSON has no NaN and no infinity.
    body.extend(
        values.map(|(name, value)| (name.to_owned(), json!(value.filter(|value| value.is_finite())))),
    );
    body.insert("round".to_owned(), json!(round));
    let bars = |[right, wrong]: [&[u32]; 2]| json!({"right": right, "wrong": wrong});
    body.insert("weights".to_owned(), weights.map_or(Value::Null, bars));
    RunMessage { topic: Topic::Evaluation, round, elapsed, json: Value::Object(body).to_string() }
}

/// The last message of a training run, with the text of its `summary.json`.
pub fn end(summary: &str, round: u64, elapsed: Duration) -> RunMessage {
    let summary = serde_json::from_str(summary).unwrap_or(Value::Null);
    let json = json!({"type": "end", "summary": summary}).to_string();
    RunMessage { topic: Topic::End, round, elapsed, json }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_evaluation_is_flat_but_for_its_histogram() {
        let values = [("round", Some(7.0)), ("test_loss", Some(f64::NAN)), ("test_accuracy", Some(0.5))];
        let bars = Some([&[1_u32, 2][..], &[0, 3][..]]);
        let message = evaluation(7, Duration::from_secs(2), values.into_iter(), bars);
        let value: Value = serde_json::from_str(&message.json).unwrap();
        let expected = json!({
            "type": "evaluation", "round": 7, "test_loss": null, "test_accuracy": 0.5,
            "weights": {"right": [1, 2], "wrong": [0, 3]},
        });
        assert_eq!(value, expected);
    }

    #[test]
    fn a_training_run_is_described_in_words() {
        let mut scenario = Scenario::default();
        scenario.faults.iid_loss = 0.3;
        let message = run(&scenario, "", "this CPU", 1234);
        let value: Value = serde_json::from_str(&message.json).unwrap();
        let text = value["description"].as_str().unwrap();
        for words in ["1234 parameters each", "on this CPU", "30 % of the frames are lost"] {
            assert!(text.contains(words), "{text}");
        }
        assert_eq!(value["command"], "train");
    }
}
