//! Attacks and accidents that once changed the answer of a swarm, unseen.

use super::{Agents, agents, distance, run, scenario};
use fabswarm_shared::agent::Epoch;
use fabswarm_sim::air::Air;
use fabswarm_sim::scenario::{Crash, Crashes};
use fabswarm_sim::swarm::{AgentSwarm, Swarm};
use fabswarm_sim::task::Task;
use fabswarm_sim::trial::setup;

#[test]
fn a_ring_with_a_replaying_intruder_finds_the_same_answer() {
    let free =
        "[network]\ntopology = \"ring\"\n[swarm]\nagents = 6\nmode = \"free-running\"\n[intruder]\nreplay = ";
    let late = "[network]\ntopology = \"ring\"\n[swarm]\nagents = 6\n[frames]\nlate_rounds = 5\n[intruder]\nreplay = ";
    for (lines, replays, rounds) in [(free, &["0.05", "1.0"][..], 8000), (late, &["0.5"], 4000)] {
        let mut alone = agents(&scenario(&format!("{lines}0.0")));
        run(&mut alone, rounds);
        for replay in replays {
            let mut attacked = agents(&scenario(&format!("{lines}{replay}")));
            run(&mut attacked, rounds);
            let distance = distance(&attacked, &alone, 6);
            println!(
                "replay {replay}: {distance}, errors {} and {}",
                attacked.metrics().error,
                alone.metrics().error
            );
            assert!(distance < 0.01, "replay {replay}: {distance}");
        }
    }
}

/// Links come up so often that nobody alive is silent for 40 rounds.
const LIVELY: &str = "[swarm]\nagents = 6\n[algorithm]\ngive_up_after = 40\n\
     [network]\ntopology = \"erdos-renyi\"\nedge_probability = 0.6\n";

#[test]
fn two_that_die_together_are_given_up_and_the_survivors_find_their_own_answer() {
    let mut farthest: f32 = 0.0;
    for seed in 0..20 {
        let mut all = scenario(LIVELY);
        all.seed = seed;
        let mut survivors = all.clone();
        survivors.swarm.agents = 4;
        let crash = |agent| Crash { agent, round: 30 + seed as u32, down_rounds: 10_000, keeps_memory: true };
        all.faults.crashes = Crashes(vec![crash(4), crash(5)]);
        let mut swarm = agents(&all);
        run(&mut swarm, 30 + seed as u32 + 900);
        for agent in swarm.agents().take(4) {
            assert_eq!(agent.members().as_bytes(), [0b1111], "seed {seed}: agent {}", agent.id());
        }
        let air = Air::new(&survivors).unwrap();
        let mut own: Agents = AgentSwarm::new(Task::draw(&all), air, 4, setup(&survivors).unwrap()).unwrap();
        run(&mut own, 900);
        farthest = farthest.max(distance(&swarm, &own, 4));
    }
    println!("farthest {farthest}");
    assert!(farthest < 0.01, "{farthest}");
}

/// Links of the paper's topology are often silent for more than 40 rounds, but agents tell each other whom they hear.
#[test]
fn the_dead_are_given_up_and_the_living_stay() {
    const LIVING: usize = 4;
    for seed in 0..10 {
        let mut scenario = scenario("[swarm]\nagents = 6\n[algorithm]\ngive_up_after = 40\n");
        scenario.seed = seed;
        let crash = |agent| Crash { agent, round: 30, down_rounds: 10_000, keeps_memory: true };
        scenario.faults.crashes = Crashes(vec![crash(4), crash(5)]);
        let mut swarm = agents(&scenario);
        for _ in 0..2000 {
            run(&mut swarm, 1);
            for agent in swarm.agents().take(LIVING) {
                assert!(agent.epoch() > Epoch::NONE, "seed {seed}: agent {} was given up", agent.id());
            }
        }
        let are_together = |swarm: &Agents| {
            swarm
                .agents()
                .take(LIVING)
                .all(|agent| agent.members().as_bytes() == [0b1111] && agent.epoch() > Epoch::NONE)
        };
        let together = (0..100).find(|_| {
            run(&mut swarm, 1);
            are_together(&swarm)
        });
        assert!(together.is_some(), "seed {seed}: the living are not together");
    }
}

/// A recorded hello of a member that left, over a sealed air, to receivers that have restarted and have no replay window.
#[test]
fn a_recorded_hello_lets_no_ghost_in_after_a_restart() {
    for forgets in ["", " forgets"] {
        // Agent 5 loses its memory and says hello; later it dies and is given up. Then receivers restart, one by one.
        let restarts: String = (0..5).map(|id| format!(", {id}@{}+2{forgets}", 300 + 60 * id)).collect();
        let crashes = format!("crashes = \"5@60+10 forgets, 5@150+100000{restarts}\"");
        let lines = |intruder| {
            format!("{LIVELY}[frames]\nsealed = true\n[faults]\n{crashes}\n[intruder]\n{intruder}\n")
        };
        let mut alone = agents(&scenario(&lines("")));
        // A memory that holds every frame: hellos are some of the oldest.
        let attack = "replay = 1.0\nframes_per_round = 20\nambush_frames = 100\nmemory_frames = 20000";
        let mut attacked = agents(&scenario(&lines(attack)));
        for round in 0..700 {
            run(&mut alone, 1);
            run(&mut attacked, 1);
            let ghosts =
                attacked.agents().filter(|agent| agent.id() < 5 && agent.members().contains(5)).count();
            assert!(ghosts == 0 || round < 260, "round {round}: {ghosts} have the ghost of agent 5");
        }
        let distance = distance(&attacked, &alone, 5);
        assert!(distance < 0.01, "{distance}");
        assert!(attacked.agents().take(5).all(|agent| agent.members().len() == 5));
    }
}
