//! Momentum: what accumulates, and for how long.

use super::*;

fn with_momentum() -> Config {
    Config { steps: Steps { x: 0.3, y: 0.06, z: 0.05, momentum: 0.7 }, founders: 1, ..config(0) }
}

#[test]
fn momentum_accumulates_the_trackers_before_a_push() {
    // Who hears nobody pulls its own decision.
    let mut agents = [agent(with_momentum())];
    let steps = [0.3, 0.3, 0.06, 0.06, 0.06, 0.06, 0.05, 0.05, 0.05, 0.05];
    let mut m = [0.0f32; WORDS];
    for _ in 0..20 {
        let (mut expected, before) = (agents[0].v, agents[0].before);
        for (word, step) in steps.into_iter().enumerate() {
            m[word] = 0.7 * m[word] + ledger::value(before[word]);
            expected[word] -= step * m[word];
        }
        round(&mut agents, |_, _| true);
        assert_eq!((agents[0].decision(), agents[0].accumulator()), (&expected[..], &m[..]));
    }
}

#[test]
fn momentum_is_saved_and_digested_and_ends_with_its_epoch() {
    let mut agents = [agent(with_momentum())];
    (0..5).for_each(|_| round(&mut agents, |_, _| true));
    let mut restored = [agent(Config { boot: 2, ..with_momentum() })];
    restored[0].restore(read_from(&saved(&agents[0]))).unwrap();
    for _ in 0..3 {
        assert_eq!(restored[0].digest(), agents[0].digest());
        round(&mut agents, |_, _| true);
        round(&mut restored, |_, _| true);
    }
    let [mut other] = restored;
    other.accumulator[WORDS - 1] += 0.5;
    assert_ne!(other.digest(), agents[0].digest());
    other.enter(next_epoch(1, 0).unwrap(), other.members);
    assert_eq!(other.accumulator, [0.0; WORDS]);
}

#[test]
fn without_momentum_nothing_accumulates() {
    let mut agents = swarm();
    (0..5).for_each(|_| round(&mut agents, |_, _| true));
    assert!(agents.iter().all(|agent| agent.accumulator == [0.0; WORDS]));
    let digest = agents[0].digest();
    agents[0].accumulator[0] = 1.0;
    assert_eq!(agents[0].digest(), digest);
}
