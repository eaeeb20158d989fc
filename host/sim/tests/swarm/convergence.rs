//! Rounds to 1 % for every fault and topology, as one table that a change of behaviour shows up in.

use fabswarm_sim::scenario::{AlgorithmKind, Crash, Crashes, Outage, OutageList, Scenario, TopologyKind};
use fabswarm_sim::trial::build;
use rayon::prelude::*;
use std::fmt::Write as _;

const PROBLEMS: u64 = 10;
/// Problems of plain FAB under faults, which never gets there: each takes all rounds. With `FABSWARM_LONG` it is all of them.
const HOPELESS_PROBLEMS: u64 = 2;
/// Rounds after which a run counts as one that never gets there.
const MOST_ROUNDS: u64 = 4000;

type Change = fn(&mut Scenario);

const FAULTS: [(&str, Change); 13] = [
    ("none", |_| ()),
    ("iid loss 5 %", |scenario| scenario.faults.iid_loss = 0.05),
    ("iid loss 10 %", |scenario| scenario.faults.iid_loss = 0.1),
    ("iid loss 30 %", |scenario| scenario.faults.iid_loss = 0.3),
    ("iid loss 50 %", |scenario| scenario.faults.iid_loss = 0.5),
    ("iid loss 70 %", |scenario| scenario.faults.iid_loss = 0.7),
    ("bursts of 10, loss 10 %", |scenario| scenario.faults.burst_loss = 0.1),
    ("bursts of 10, loss 30 %", |scenario| scenario.faults.burst_loss = 0.3),
    ("bursts of 10, loss 50 %", |scenario| scenario.faults.burst_loss = 0.5),
    ("delay ≤ 5, doubled 20 %, loss 20 %", |scenario| {
        scenario.faults.delay_rounds = 5;
        scenario.faults.duplication = 0.2;
        scenario.faults.iid_loss = 0.2;
    }),
    ("one silent for 500 rounds, loss 10 %", |scenario| {
        scenario.faults.iid_loss = 0.1;
        scenario.faults.radio_off = OutageList(vec![Outage { agent: 3, from: 30, rounds: 500 }]);
    }),
    ("crash with memory, 50 rounds down", |scenario| {
        scenario.faults.crashes =
            Crashes(vec![Crash { agent: 3, round: 40, down_rounds: 50, keeps_memory: true }]);
    }),
    ("crash, memory lost", |scenario| {
        scenario.faults.crashes =
            Crashes(vec![Crash { agent: 3, round: 40, down_rounds: 50, keeps_memory: false }]);
    }),
];

const TOPOLOGIES: [(&str, Change); 2] = [
    ("paper, ν = .3", |_| ()),
    ("Erdős–Rényi, ν = .2", |scenario| {
        scenario.network.topology = TopologyKind::ErdosRenyi;
        scenario.network.edge_probability = 0.2;
    }),
];

const ALGORITHMS: [(&str, Change); 2] = [
    ("ledger", |scenario| scenario.frames.sealed = false),
    ("plain FAB", |scenario| {
        scenario.algorithm.kind = AlgorithmKind::Fab;
        super::publish(&mut scenario.algorithm);
    }),
];

/// The first round with an error below 1 % that stays below for 30 rounds.
fn rounds_to_one_percent(scenario: &Scenario) -> Option<u64> {
    let mut swarm = build(scenario).expect("a scenario that can be run");
    let mut since = None;
    while swarm.round() < MOST_ROUNDS {
        swarm.step().ok()?;
        let metrics = swarm.metrics();
        if scenario.algorithm.kind == AlgorithmKind::Ledger {
            assert_eq!(metrics.tracking_defect, 0.0, "the ledger balances after every round");
        }
        if metrics.error >= 0.01 {
            since = None;
        } else if metrics.round - *since.get_or_insert(metrics.round) >= 30 {
            return since;
        }
    }
    None
}

/// `median / worst` over all problems; a run that never gets there is worse than all others.
fn cell(changes: [Change; 3]) -> String {
    let scenario = |seed| {
        let mut scenario = Scenario { seed, ..Scenario::default() };
        changes.iter().for_each(|change| change(&mut scenario));
        scenario
    };
    let is_hopeless = scenario(1).algorithm.kind == AlgorithmKind::Fab && !scenario(1).faults.are_none();
    let is_long = std::env::var_os("FABSWARM_LONG").is_some();
    let problems = if is_hopeless && !is_long { HOPELESS_PROBLEMS } else { PROBLEMS };
    let mut rounds: Vec<u64> =
        (1..=problems).map(|seed| rounds_to_one_percent(&scenario(seed)).unwrap_or(u64::MAX)).collect();
    rounds.sort_unstable();
    let shown = |rounds: u64| if rounds == u64::MAX { "never".to_owned() } else { rounds.to_string() };
    let middle = rounds[rounds.len() / 2 - 1].midpoint(rounds[rounds.len() / 2]);
    let median = if rounds[rounds.len() / 2] == u64::MAX { u64::MAX } else { middle };
    format!("{} / {}", shown(median), shown(rounds[rounds.len() - 1]))
}

#[test]
fn rounds_to_one_percent_by_fault_and_topology() {
    let columns: Vec<(String, Change, Change)> = TOPOLOGIES
        .iter()
        .flat_map(|&(place, topology)| {
            ALGORITHMS.iter().map(move |&(name, algorithm)| (format!("{name}, {place}"), algorithm, topology))
        })
        .collect();
    let cells: Vec<Vec<String>> = FAULTS
        .par_iter()
        .map(|&(_, fault)| {
            columns.iter().map(|&(_, algorithm, topology)| cell([algorithm, topology, fault])).collect()
        })
        .collect();

    let mut table = String::new();
    let header: Vec<&str> = columns.iter().map(|(name, ..)| name.as_str()).collect();
    let _ = writeln!(table, "| rounds to 1 %, median / worst of {PROBLEMS} | {} |", header.join(" | "));
    let _ = writeln!(table, "|---|{}", "---|".repeat(columns.len()));
    for ((fault, _), row) in FAULTS.iter().zip(&cells) {
        let _ = writeln!(table, "| {fault} | {} |", row.join(" | "));
    }
    insta::assert_snapshot!("rounds_to_one_percent", table);
}
