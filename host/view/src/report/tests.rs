use super::*;
use crate::message::{self, LogLevel, RunMessage, SwarmEncoder};
use crate::recorded_run::RecordedRun;
use fabswarm_sim::scenario::Scenario;
use fabswarm_sim::swarm::{AgentView, LinkView, SwarmView};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

const HOSTILE: &str = "<script>alert(1)</script>\"'&";

fn run(name: &str, agents: usize) -> RunFiles {
    let scenario = Scenario::default();
    let link = LinkView { sender: 1, receiver: 0, is_up: true, copies: 9, lost: 3, collected_round: None };
    let view =
        SwarmView { round: 9, agents: vec![AgentView::default(); 2], links: vec![link], links_left_out: 0 };
    let line = message::log(LogLevel::Warning, HOSTILE, HOSTILE, 3, Duration::ZERO, Duration::ZERO);
    let view: RunMessage = SwarmEncoder::default().encode(&view, Duration::ZERO);
    let messages = vec![message::run(&scenario, HOSTILE), line, view];
    RunFiles {
        path: PathBuf::from(name),
        name: name.to_owned(),
        scenario: format!("# {HOSTILE}\nseed = 1\n[swarm]\nagents = {agents}\n[faults]\niid_loss = 0.3\n"),
        summary: Some(json!({"stopped_because": HOSTILE, "rounds": 366, "task": {HOSTILE: 0.5}})),
        metrics: BTreeMap::from([
            ("round".to_owned(), vec![0.0, 1.0, 2.0]),
            ("distance_to_solution".to_owned(), vec![1.0, f64::NAN, 0.01]),
        ]),
        log: Some(RecordedRun { messages, is_complete: true, ..RecordedRun::default() }),
    }
}

#[test]
fn nothing_in_a_run_becomes_markup() {
    let report = of_run(&run(HOSTILE, 10));
    assert!(!report.contains("<script"), "{report}");
    assert!(report.contains("&lt;script&gt;"));
    let comparison = of_comparison(&[run(HOSTILE, 10), run("b", 12)]);
    assert!(!comparison.contains("<script"), "{comparison}");
}

#[test]
fn a_report_says_what_happened() {
    let report = of_run(&run("a", 10));
    for part in [
        "10 agents solve policy-evaluation",
        "366",
        "faults.iid_loss",
        "1 → 0: 33 % lost",
        "class=\"line",
        "running",
    ] {
        assert!(report.contains(part), "{part} is missing in {report}");
    }
    let named = report.replace(" xmlns=\"http://www.w3.org/2000/svg\"", "");
    assert!(!named.contains("http:") && !named.contains("https:"), "it needs nothing from elsewhere");
}

#[test]
fn a_comparison_names_what_differs_and_nothing_else() {
    let comparison = of_comparison(&[run("a", 10), run("b", 12)]);
    assert!(comparison.contains("<th scope=\"row\">swarm.agents</th><td>10</td><td>12</td>"), "{comparison}");
    assert!(!comparison.contains("faults.iid_loss"), "{comparison}");
    // Each run has a line, and a sample of it in the legend.
    assert_eq!(comparison.matches("class=\"line").count(), 4);
    assert!(of_comparison(&[run("a", 10), run("b", 10)]).contains("All keys of the scenarios are the same"));
}

#[test]
fn errors_that_measure_different_things_are_drawn_apart() {
    let of_kind = |name: &str, kind: &str| {
        let mut run = run(name, 10);
        let error = run.metrics.remove("distance_to_solution").unwrap();
        run.metrics.insert(kind.to_owned(), error);
        run
    };
    let (distance, gradient) = (of_kind("a", "distance_to_solution"), of_kind("b", "gradient_norm"));
    let comparison = of_comparison(&[distance, gradient]);
    assert!(
        comparison.contains(">distance to solution<") && comparison.contains(">gradient norm<"),
        "{comparison}"
    );
    assert_eq!(comparison.matches("class=\"figure\"").count(), 2);
    let alike = of_comparison(&[of_kind("a", "gradient_norm"), of_kind("b", "gradient_norm")]);
    assert_eq!(alike.matches("class=\"figure\"").count(), 1);
    assert!(of_run(&of_kind("a", "gradient_norm")).contains("gradient norm over rounds"));
}

#[test]
fn numbers_are_short() {
    let shown = [
        json!(1_234_567),
        json!(999),
        json!(0.0),
        json!(0.0012345678),
        json!(2491.4773),
        json!(1.5e-9),
        json!("converged"),
    ];
    let shown = shown.map(|value| number(&value));
    assert_eq!(shown, ["1 234 567", "999", "0", "0.001235", "2491", "1.500e-9", "converged"]);
}
