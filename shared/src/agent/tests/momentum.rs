//! Momentum: what accumulates, and for how long.

use super::*;

fn with_momentum() -> Config {
    Config { steps: Steps { x: 0.3, y: 0.06, z: 0.05, momentum: 0.7 }, founders: 1, ..config(0) }
}

#[test]
fn agents_descend_along_what_trackers_accumulate_to() {
    let steps = [0.3, 0.3, 0.06, 0.06, 0.06, 0.06, 0.05, 0.05, 0.05, 0.05];
    for order in [Order::AdaptFirst, Order::CombineFirst] {
        // An agent that hears nobody pulls its own decision, and keeps its tracker whole.
        let mut agents = [agent(with_momentum().with_order(order))];
        let mut m = [0.0f32; WORDS];
        for _ in 0..20 {
            let (mut expected, t) = (agents[0].v, agents[0].t);
            for (word, step) in steps.into_iter().enumerate() {
                m[word] = 0.7 * m[word] + ledger::value(t[word]);
                expected[word] -= step * m[word];
            }
            assert_eq!(agents[0].accumulator(), &m[..]);
            round(&mut agents, |_, _| true);
            assert_eq!(agents[0].decision(), &expected[..]);
        }
    }
}

/// Listeners average what was stepped already, and nobody's decision is what it sent.
#[test]
fn agents_that_adapt_first_average_what_was_stepped() {
    let mut agents: Vec<Small> =
        (0..AGENTS).map(|id| agent(config(id).with_order(Order::AdaptFirst))).collect();
    for _ in 0..5 {
        let stepped = |agent: &Small| {
            let mut v = agent.v;
            ledger::descend(&agent.shape, &agent.config.steps, &agent.accumulator, &mut v);
            v
        };
        let mut sums = stepped(&agents[0]);
        agents[1..].iter().for_each(|agent| crate::linear::add(&stepped(agent), &mut sums));
        round(&mut agents, |_, _| true);
        sums.iter_mut().for_each(|sum| *sum *= 1.0 / AGENTS as f32);
        assert_eq!(agents[0].decision(), &sums[..]);
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
    other.enter(Epoch::FIRST.next(0).unwrap(), other.members);
    assert_eq!(other.accumulator, [0.0; WORDS]);
}

#[test]
fn without_momentum_agents_descend_along_their_trackers() {
    let mut agents = [agent(Config { founders: 1, ..config(0) })];
    (0..5).for_each(|_| round(&mut agents, |_, _| true));
    let trackers: Vec<f32> = agents[0].trackers().iter().map(|&t| ledger::value(t)).collect();
    assert_eq!(agents[0].accumulator(), trackers);
}
