//! Properties of every swarm, whatever its problem and graph.

use fabswarm_sim::air::{Air, LinkSource};
use fabswarm_sim::scenario::{AlgorithmKind, PrecisionKind, ProblemKind, Scenario, TopologyKind};
use fabswarm_sim::swarm::{AgentSwarm, ArrayLedger, Swarm};
use fabswarm_sim::task::Task;
use fabswarm_sim::trial::{build, setup};
use proptest::prelude::*;

const PROBLEMS: [ProblemKind; 4] = [
    ProblemKind::PolicyEvaluation,
    ProblemKind::HyperTuning,
    ProblemKind::HyperCleaning,
    ProblemKind::SensorTrust,
];

/// Steps that no problem minds.
fn scenario(problem: ProblemKind, topology: TopologyKind, agents: usize, seed: u64) -> Scenario {
    let mut scenario = Scenario { seed, ..Scenario::default() };
    scenario.swarm.agents = agents;
    scenario.problem.kind = problem;
    scenario.network.topology = topology;
    scenario.algorithm.lambda = 10.0;
    let algorithm = &mut scenario.algorithm;
    (algorithm.eta_x, algorithm.eta_y, algorithm.eta_z) = (0.02, 0.005, 0.005);
    scenario
}

fn topology() -> impl Strategy<Value = TopologyKind> {
    prop_oneof![
        Just(TopologyKind::Paper),
        Just(TopologyKind::Ring),
        Just(TopologyKind::ReversedRing),
        Just(TopologyKind::Complete)
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn trackers_sum_to_gradients(
        problem in 0..4usize, topology in topology(), agents in 1..12usize, seed in 0..1000u64, is_double: bool,
    ) {
        let mut scenario = scenario(PROBLEMS[problem], topology, agents, seed);
        scenario.algorithm.kind = AlgorithmKind::Fab;
        scenario.swarm.precision = if is_double { PrecisionKind::F64 } else { PrecisionKind::F32 };
        let mut swarm = build(&scenario).unwrap();
        for _ in 0..60 {
            swarm.step().unwrap();
        }
        let bound = if is_double { 1e-13 } else { 1e-5 };
        prop_assert!(swarm.metrics().tracking_defect < bound, "{:e}", swarm.metrics().tracking_defect);
    }

    #[test]
    fn agents_over_a_perfect_air_are_the_ledger_on_arrays_bit_for_bit(
        problem in 0..4usize, topology in topology(), agents in 2..9usize, seed in 0..1000u64, is_sealed: bool,
        phases in prop_oneof![Just((Some(0u32), 1u32)), ((1..9u32).prop_map(Some), 1..9u32)],
    ) {
        let mut scenario = scenario(PROBLEMS[problem], topology, agents, seed);
        scenario.frames.sealed = is_sealed;
        (scenario.algorithm.gather_rounds, scenario.algorithm.descend_rounds) = phases;
        let told = setup(&scenario).unwrap();
        let mut arrays =
            ArrayLedger::new(Task::draw(&scenario), LinkSource::new(&scenario).unwrap(), told.config, agents as u32 - 1).unwrap();
        let mut speaking = AgentSwarm::<512>::new(
            Task::draw(&scenario), Air::new(&scenario).unwrap(), agents, told,
        ).unwrap();
        for _ in 0..65 {
            arrays.step().unwrap();
            speaking.step().unwrap();
            let bits = |words: &[f32]| words.iter().map(|word| word.to_bits()).collect::<Vec<_>>();
            prop_assert_eq!(bits(arrays.decisions()), bits(&speaking.decisions()));
            let trackers: Vec<i32> = speaking.agents().flat_map(|agent| agent.trackers()).copied().collect();
            prop_assert_eq!(arrays.trackers(), trackers);
            prop_assert_eq!(arrays.metrics().tracking_defect, 0.0);
            prop_assert_eq!(speaking.metrics().tracking_defect, 0.0);
        }
    }
}

#[test]
fn a_swarm_of_two_thousand_runs_the_ledger_on_arrays() {
    let mut scenario = scenario(ProblemKind::PolicyEvaluation, TopologyKind::Ring, 2000, 3);
    let mut swarm = build(&scenario).unwrap();
    for _ in 0..5 {
        swarm.step().unwrap();
    }
    assert_eq!(swarm.metrics().tracking_defect, 0.0);
    scenario.faults.iid_loss = 0.1;
    let Err(refused) = build(&scenario) else { panic!("faults need agents") };
    assert!(refused.to_string().contains("1024"), "{refused}");
}

/// On links that never come up nothing must wait, or the swarm would settle somewhere else.
#[test]
fn agents_of_a_sparse_recording_find_the_solution() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sparse.json");
    // Agent i hears i − 1, and every third one i − 3 as well: how many hear an agent differs.
    let row = |agent: usize| {
        1 << ((agent + 9) % 10) | if agent.is_multiple_of(3) { 1 << ((agent + 7) % 10) } else { 0 }
    };
    let masks: String = (0..10).map(|agent| format!("{:03x}", row(agent))).collect();
    std::fs::write(&path, format!(r#"{{"n": 10, "graphs": ["{masks}"]}}"#)).unwrap();
    let mut scenario = Scenario::default();
    scenario.network.topology = TopologyKind::Recorded;
    scenario.network.graphs = path.to_str().unwrap().to_owned();
    // So few links bear smaller steps only.
    let algorithm = &mut scenario.algorithm;
    (algorithm.eta_x, algorithm.eta_y, algorithm.eta_z) = (0.2, 0.02, 0.02);
    let mut swarm = build(&scenario).unwrap();
    for _ in 0..3000 {
        swarm.step().unwrap();
    }
    let metrics = swarm.metrics();
    assert_eq!(metrics.tracking_defect, 0.0);
    assert!(metrics.error < 0.01, "{}", metrics.error);
}
