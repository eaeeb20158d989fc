//! The same run with and without an intruder. Its relays are left out: they are links that the graph does not have.

use super::{Agents, agents, distance, run, scenario};
use fabswarm_shared::agent::Agent;
use fabswarm_sim::scenario::{IntruderSection, ModeKind, OrderKind, PenaltyKind, Scenario};
use fabswarm_sim::swarm::Swarm;

/// Faults of the air that an intruder is added to, as lines of a scenario.
const NOISE: &str = "iid_loss = 0.3\nbit_corruption = 0.02\nduplication = 0.05\nreordering = 0.05\n";

/// Restarts with and without memory, alone, together and in quick succession.
const RESTARTS: &str = "crashes = \"1@40+20, 2@50+1 forgets, 3@90+0 forgets, 4@90+30, 5@120+15 forgets, 1@140+5 forgets, \
                        0@150+80, 2@160+0, 3@230+3, 4@231+3, 5@232+3\"\n";

/// On a directed ring nobody can confirm anything while one is down: these come one by one.
const RING_RESTARTS: &str = "crashes = \"1@40+20, 3@120+10 forgets, 5@200+0, 0@250+5 forgets, 2@310+2\"\n";

/// Scenarios in lock-step with `late_rounds` 0, all sealed.
fn in_lock_step() -> Vec<Scenario> {
    let swarm = "[swarm]\nagents = 6\n";
    let network = |topology: &str| format!("[network]\ntopology = \"{topology}\"\n");
    let faults = format!("[faults]\n{NOISE}{RESTARTS}");
    [
        format!("{swarm}{}{faults}", network("paper")),
        format!("{swarm}{}{faults}[algorithm]\ngive_up_after = 60\n", network("erdos-renyi")),
        format!("{swarm}{}{faults}[frames]\nwidth = \"byte\"\n", network("complete")),
        format!("{swarm}{}[faults]\n{RING_RESTARTS}", network("ring")),
        format!("{swarm}{}{faults}[motion]\narea_m = 120.0\n", network("motion")),
    ]
    .map(|lines| scenario(&lines))
    .into()
}

/// All that the intruder does but relaying, `frames` times per round.
fn with_intruder(scenario: &Scenario, frames: u32) -> Scenario {
    let intruder = IntruderSection {
        replay: 1.0,
        wrong_key: 0.5,
        frames_per_round: frames,
        memory_frames: 4096,
        ambush_frames: 8 * frames,
        relay: 0.0,
        forged_fragments: 2,
    };
    Scenario { intruder, ..scenario.clone() }
}

/// Frames that the intruder sent, counted at each agent that they reached.
fn intruder_frames(swarm: &Agents) -> u64 {
    let counters = swarm.air().counters();
    assert!(counters.replayed > counters.forged && counters.forged > 0 && counters.forged_fragments > 0);
    counters.replayed + counters.forged
}

/// Steps both swarms through rounds with checked books and equal states. Returns how many frames the intruder sent.
fn assert_same_states(scenario: &Scenario, rounds: u32, frames: u32) -> u64 {
    let (mut alone, mut attacked) = (agents(scenario), agents(&with_intruder(scenario, frames)));
    let topology = scenario.network.topology;
    for round in 0..rounds {
        alone.step().unwrap_or_else(|error| panic!("{topology:?}: {error}"));
        attacked.step().unwrap_or_else(|error| panic!("{topology:?}, attacked: {error}"));
        for (one, other) in alone.agents().zip(attacked.agents()) {
            let state = |agent: &Agent<_, _, 64>| (agent.digest(), *agent.members());
            let id = one.id();
            assert_eq!(
                state(one),
                state(other),
                "{topology:?}, seed {}: agent {id} in round {round}",
                scenario.seed
            );
        }
    }
    assert_eq!(alone.metrics(), attacked.metrics());
    let counters = attacked.air().counters();
    assert_eq!((counters.replayed_taken, counters.forged_taken, counters.damaged_taken), (0, 0, 0));
    assert_eq!(counters.refused.get("fragments in conflict"), None);
    // Everybody came back.
    assert!(
        attacked.agents().all(|agent| agent.members().len() == 6),
        "{topology:?}, seed {}",
        scenario.seed
    );
    intruder_frames(&attacked)
}

/// How far apart the x of the two swarms are at most, relative, once both have run.
fn distance_in_free_running(scenario: &Scenario, rounds: u32, frames: u32) -> (f32, u64) {
    let mut scenario = scenario.clone();
    scenario.swarm.mode = ModeKind::FreeRunning;
    // Steps for agents in lock-step are too large on clocks of their own.
    let algorithm = &mut scenario.algorithm;
    (algorithm.eta_x, algorithm.eta_y, algorithm.eta_z, algorithm.self_weight) =
        (0.6, 0.06, 0.06, Some(0.98));
    (algorithm.order, algorithm.penalty) = (OrderKind::CombineFirst, PenaltyKind::OneSided);
    let (mut alone, mut attacked) = (agents(&scenario), agents(&with_intruder(&scenario, frames)));
    run(&mut alone, rounds);
    run(&mut attacked, rounds);
    (distance(&attacked, &alone, scenario.swarm.agents), intruder_frames(&attacked))
}

#[test]
fn an_intruder_changes_no_state_in_lock_step() {
    let frames: u64 = in_lock_step().iter().map(|scenario| assert_same_states(scenario, 400, 3)).sum();
    println!("{frames} frames");
    assert!(frames > 50_000);
}

#[test]
fn an_intruder_leaves_the_answer_of_free_running_agents() {
    for scenario in in_lock_step().iter().take(2) {
        let (distance, frames) = distance_in_free_running(scenario, 2500, 1);
        println!("{distance} after {frames} frames");
        assert!(distance < 0.01, "{distance}");
    }
}

/// `cargo nextest run -p fabswarm-sim --test swarm --run-ignored only --no-capture`
#[test]
#[ignore = "a million frames take minutes"]
fn a_million_frames_change_nothing() {
    let (mut same, mut free, mut farthest) = (0, 0, 0.0_f32);
    for seed in 1..=10 {
        for mut scenario in in_lock_step() {
            scenario.seed = seed;
            same += assert_same_states(&scenario, 400, 8);
        }
        let mut scenario = in_lock_step().swap_remove((seed % 2) as usize);
        scenario.seed = seed;
        let (distance, frames) = distance_in_free_running(&scenario, 2500, 4);
        (farthest, free) = (farthest.max(distance), free + frames);
    }
    println!("lock-step: {same} frames; free-running: {free} frames, farthest {farthest}");
    assert!(same > 1_000_000 && free > 500_000);
    assert!(farthest < 0.01, "{farthest}");
}
