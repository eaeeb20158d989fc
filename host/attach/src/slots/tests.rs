//! Boards that keep their own time converge, and a bit that flips is found.

use super::*;
use crate::{AgentLocation, BoardKind, Placement};
use fabswarm_sim::scenario::{self, PaceKind, RadioFamily, Scenario, TopologyKind};
use std::fs;

fn scenario() -> Scenario {
    let mut scenario = Scenario::default();
    scenario.swarm.pace = PaceKind::Slots;
    scenario.radio.kind = RadioFamily::Carried;
    scenario.radio.hops = 1;
    scenario
}

fn start(scenario: &Scenario, kind: BoardKind) -> SlotBoards {
    let locations = vec![AgentLocation::Board(kind); scenario.swarm.agents];
    let placement: Placement = kind.name().parse().unwrap();
    SlotBoards::start(scenario, None, &placement, &locations, &Arc::default()).unwrap()
}

/// Flies until the error is below 1 %, and returns the flight.
fn fly(scenario: &Scenario, kind: BoardKind) -> SlotBoards {
    let mut flight = start(scenario, kind);
    while flight.metrics().error >= 0.01 {
        assert!(flight.round() < 3000, "error {}", flight.metrics().error);
        if let Err(error) = flight.step() {
            panic!("{error}");
        }
    }
    flight
}

/// Writes what `fabswarm run` would, and verifies it.
fn verified(
    scenario: &scenario::ResolvedScenario,
    flight: &mut SlotBoards,
    change: impl FnOnce(&mut String),
) -> FlightVerdict {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("scenario.toml"), scenario.to_toml()).unwrap();
    flight.keep_logs(&folder.path().join("boards")).unwrap();
    let record = folder.path().join("boards").join(RECORD);
    let mut text = fs::read_to_string(&record).unwrap();
    change(&mut text);
    fs::write(&record, text).unwrap();
    verify(folder.path()).unwrap()
}

#[test]
fn native_boards_converge_by_their_own_clocks_and_a_flipped_bit_is_found() {
    let resolved = scenario::resolve(None, &[]).unwrap();
    let mut flight = fly(&scenario(), BoardKind::Native);
    eprintln!("{} rounds, {} digests", flight.round(), flight.replay.checks);
    let checks = flight.replay.checks;
    assert!(checks > 9 * flight.round(), "{checks} checks in {} rounds", flight.round());
    let entries = flight.record.clone();
    let heard: usize = entries.iter().map(|entry| entry.senders.len()).sum();
    assert!(heard > entries.len() * 2, "{heard} frames taken in {} rounds of agents", entries.len());

    let whole = verified(&resolved, &mut flight, |_| {});
    assert_eq!(whole.fault, None);
    assert!(whole.checks >= checks);
    assert!(whole.rounds as u64 >= flight.round());
    // One bit of one digest in the middle.
    let ended = |entry: &FlightEntry| match entry.fate {
        RoundFate::Ended(digest) => Some((entry.clone(), digest)),
        _ => None,
    };
    let (flipped, digest) = entries[entries.len() / 2..].iter().find_map(ended).unwrap();
    let verdict = verified(&resolved, &mut flight, |text| {
        let right = format!("{},{},{:#010x},", flipped.round, flipped.agent, digest);
        let wrong = format!("{},{},{:#010x},", flipped.round, flipped.agent, digest ^ 1);
        assert_eq!(text.matches(&right).count(), 1);
        *text = text.replace(&right, &wrong);
    });
    let (agent, round, wrong) = (flipped.agent, flipped.round, digest ^ 1);
    let expected = format!(
        "the board of agent {agent} differs from its shadow after round {round}: digest {wrong:#010x} instead of {digest:#010x}\nhelp: "
    );
    let fault = verdict.fault.unwrap();
    assert!(matches!(fault, FlightFault::Digest(_)) && fault.to_string().starts_with(&expected), "{fault}");
}

/// Superframes that moved would part the boards: they would take no frames of each other.
#[test]
fn recordings_and_forgeries_leave_the_slots_of_boards_where_they_are() {
    let mut scenario = scenario();
    let intruder = &mut scenario.intruder;
    (intruder.replay, intruder.wrong_key, intruder.frames_per_round) = (1.0, 1.0, 5);
    for (kind, agents) in [(BoardKind::Native, 10), (BoardKind::Qemu, 3)] {
        scenario.swarm.agents = agents;
        let flight = fly(&scenario, kind);
        let entries = flight.record.iter().filter(|entry| matches!(entry.fate, RoundFate::Ended(_)));
        let (ends, heard) =
            entries.fold((0, 0), |(ends, heard), entry| (ends + 1, heard + entry.senders.len()));
        assert!(
            ends as u64 >= flight.round() * agents as u64,
            "{ends} rounds of agents, {} of each",
            flight.round()
        );
        assert!(heard > ends, "{heard} frames taken in {ends} rounds of agents");
    }
}

#[test]
fn a_ring_on_the_bench_is_a_ring() {
    let mut scenario = scenario();
    scenario.network.topology = TopologyKind::Ring;
    scenario.swarm.agents = 4;
    let mut flight = start(&scenario, BoardKind::Native);
    for _ in 0..20 {
        flight.step().unwrap();
    }
    let mut taken = 0;
    for FlightEntry { agent, senders, .. } in &flight.record {
        let before = (agent + 3) % 4;
        assert!(senders.iter().all(|&sender| sender == before), "agent {agent} took from {senders:?}");
        taken += senders.len();
    }
    assert!(taken > 0);
}
