//! Boards that keep their own time take frames in their slots.

use super::record::RoundFate;
use super::*;
use crate::firmware::board_kind::BoardKind;
use crate::placement::{AgentLocation, Placement};
use fabswarm_sim::scenario::{PaceKind, RadioFamily, Scenario, TopologyKind};

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

/// Superframes that moved would part the boards: they would take no frames of each other.
#[test]
fn recordings_and_forgeries_leave_the_slots_of_boards_where_they_are() {
    let mut scenario = scenario();
    let intruder = &mut scenario.intruder;
    (intruder.replay, intruder.wrong_key, intruder.frames_per_round) = (1.0, 1.0, 5);
    for (kind, agents) in [(BoardKind::Native, 10), (BoardKind::Qemu, 3)] {
        scenario.swarm.agents = agents;
        let mut flight = start(&scenario, kind);
        while flight.metrics().error >= 0.01 {
            assert!(flight.round() < 3000, "error {}", flight.metrics().error);
            flight.step().unwrap();
        }
        let entries = flight.record.iter().filter(|entry| matches!(entry.fate, RoundFate::Ended(_)));
        let (ends, heard) =
            entries.fold((0, 0), |(ends, heard), entry| (ends + 1, heard + entry.senders.len()));
        let rounds = flight.round();
        assert!(ends as u64 >= rounds * agents as u64, "{ends} rounds of agents, {rounds} of each");
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
