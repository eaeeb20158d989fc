//! Ledgers that exchange payloads: no frame, no epoch and no member.

use super::*;
use crate::fab::Phases;

/// An agent that hears nobody, with momentum.
const ALONE: Config = Config {
    steps: Steps { x: 0.3, y: 0.06, z: 0.05, momentum: 0.7 },
    self_weight: 0.9,
    ..Config::founder(0, 1)
};

/// Ledgers at the start of round 0, with their configurations.
fn ledgers(count: u16, config: impl Fn(usize) -> Config) -> Vec<(Config, Ledger)> {
    let members = MemberSet::first(count).unwrap();
    (0..usize::from(count))
        .map(|id| {
            let config = config(id);
            let mut ledger = Ledger::blank(&config, problem(id).shape(), Peers4::new());
            ledger.start_at(&config, &[0.0; WORDS]).unwrap();
            ledger.take_gradient(&config, &problem(id), 0).unwrap();
            ledger.begin_epoch(&config, &members, 0);
            assert_eq!(ledger.begin_round(&config, 0, false), (true, None));
            (config, ledger)
        })
        .collect()
}

/// Round `now`, in which `hears(receiver, sender)` decides.
fn exchange(ledgers: &mut [(Config, Ledger)], now: u32, hears: impl Fn(usize, usize) -> bool) {
    let mut out = [0; 128];
    for sender in 0..ledgers.len() {
        let length = ledgers[sender].1.write_payload(now, &mut out).unwrap();
        for receiver in (0..ledgers.len()).filter(|&receiver| receiver != sender && hears(receiver, sender)) {
            let (config, ledger) = &mut ledgers[receiver];
            let at = ledger.find_or_insert(config, sender as u16).unwrap();
            assert_eq!(ledger.read(at, now, false, &out[..length]), Received::Taken);
            ledger.take(at, now, now, true);
            assert_eq!(ledger.read(at, now, false, &out[..length]), Received::Stale);
        }
    }
    for (id, (config, ledger)) in ledgers.iter_mut().enumerate() {
        let heard = ledger.peers.active().count() as u16;
        ledger.end_round(config, &problem(id), now, heard).unwrap();
        assert_eq!(ledger.begin_round(config, now + 1, false), (true, None));
    }
    check_balance(ledgers.iter().map(|(_, ledger)| ledger));
}

#[test]
fn agents_descend_along_what_trackers_accumulate_to() {
    let steps = [0.3, 0.3, 0.06, 0.06, 0.06, 0.06, 0.05, 0.05, 0.05, 0.05];
    for (order, momentum) in [(Order::AdaptFirst, 0.7), (Order::CombineFirst, 0.7), (Order::AdaptFirst, 0.0)]
    {
        // An agent that hears nobody pulls its own decision, and keeps its tracker whole.
        let steps_of = Steps { momentum, ..ALONE.steps };
        let mut alone = ledgers(1, |_| Config { order, steps: steps_of, ..ALONE });
        let mut m = [0.0f32; WORDS];
        for now in 0..20 {
            let Ledger { v: mut expected, t, .. } = alone[0].1;
            for (word, step) in steps.into_iter().enumerate() {
                m[word] = momentum * m[word] + ledger::value(t[word]);
                expected[word] -= step * m[word];
            }
            assert_eq!(alone[0].1.accumulator, m);
            exchange(&mut alone, now, |_, _| true);
            assert_eq!(alone[0].1.v, expected);
        }
    }
}

/// Listeners average what was stepped already, and nobody's decision is what it sent.
#[test]
fn agents_that_adapt_first_average_what_was_stepped() {
    let mut all = ledgers(4, |id| Config { order: Order::AdaptFirst, ..config(id) });
    for now in 0..5 {
        let stepped = |(config, ledger): &(Config, Ledger)| {
            let mut v = ledger.v;
            ledger::descend(&ledger.shape, &config.steps, &ledger.accumulator, &mut v);
            v
        };
        let mut sums = stepped(&all[0]);
        all[1..].iter().for_each(|other| crate::linear::add(&stepped(other), &mut sums));
        exchange(&mut all, now, |_, _| true);
        assert_eq!(all[0].1.v, sums.map(|sum| sum * (1.0 / AGENTS as f32)));
    }
}

#[test]
fn momentum_ends_with_its_epoch() {
    let mut alone = ledgers(1, |_| ALONE);
    (0..5).for_each(|now| exchange(&mut alone, now, |_, _| true));
    let (config, ledger) = &mut alone[0];
    assert_ne!(ledger.accumulator, [0.0; WORDS]);
    ledger.begin_epoch(config, &MemberSet::NOBODY, 5);
    assert_eq!((ledger.accumulator, ledger.sigma, ledger.t), ([0.0; WORDS], [0; WORDS], ledger.d));
}

/// A directed ring on which agents gather for 8 rounds, descend for 5 and gather for 8.
fn ring() -> Vec<(Config, Ledger)> {
    ledgers(4, |id| Config {
        phases: Phases { gather_rounds: 8, descend_rounds: 5 },
        steps: Steps { x: 0.4, y: 0.08, z: 0.08, momentum: 0.5 },
        self_weight: 0.5,
        links: ring_links(id),
        ..config(id)
    })
}

/// Mass that an agent gives away while it gathers waits for the receivers that missed it. While it descends, no sum changes.
#[test]
fn agents_push_and_descend_in_different_rounds() {
    let mut all = ring();
    for now in 0..130 {
        let sums: Vec<_> = all.iter().map(|(_, ledger)| ledger.sigma).collect();
        let is_moving = all.iter().any(|(_, ledger)| ledger.accumulator.iter().any(|&m| m != 0.0));
        assert_eq!(is_moving, (8..13).contains(&(now % 21)), "round {now}");
        let is_up = |sender: usize| !(now as usize + sender).is_multiple_of(5);
        exchange(&mut all, now, |receiver, sender| (sender + 1) % AGENTS == receiver && is_up(sender));
        let has_pushed = all.iter().zip(&sums).any(|((_, ledger), sums)| ledger.sigma != *sums);
        assert_eq!(has_pushed, (now + 1) % 21 < 8, "round {now}");
    }
}

/// Decisions agree while nobody descends, and then stand still while trackers travel.
#[test]
fn decisions_come_together_after_a_descent_and_then_stand_still() {
    let mut all = ring();
    let mut decisions_in = |rounds: core::ops::Range<u32>| {
        rounds.for_each(|now| exchange(&mut all, now, |receiver, sender| (sender + 1) % AGENTS == receiver));
        all.iter().map(|(_, ledger)| ledger.v).collect::<Vec<_>>()
    };
    let spread = |decisions: &[[f32; WORDS]]| {
        let gaps = decisions.iter().flat_map(|v| v.iter().zip(&decisions[0]).map(|(a, b)| (a - b).abs()));
        gaps.fold(0.0, f32::max)
    };
    let (before, gathered) = (decisions_in(0..13), decisions_in(13..21));
    assert!(spread(&before) > 0.0 && spread(&gathered) < 0.2 * spread(&before));
    assert_eq!(decisions_in(21..29), gathered);
    assert_ne!(decisions_in(29..30), gathered);
}
