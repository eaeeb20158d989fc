//! The air as a whole.

use super::*;
use crate::scenario::{self, OutageList, TopologyKind};
use proptest::prelude::*;

/// A delivery to a receiver: slot, receiver, sender, bytes.
type Delivery = (u32, usize, usize, Vec<u8>);

fn complete(change: impl FnOnce(&mut Scenario)) -> Scenario {
    let mut scenario = Scenario::default();
    scenario.network.topology = TopologyKind::Complete;
    change(&mut scenario);
    scenario
}

/// Lets every agent broadcast a frame of its own in every slot.
fn fly(scenario: &Scenario, slots: u32) -> (Air, Vec<Delivery>) {
    let mut air = Air::new(scenario).unwrap();
    let mut heard = Vec::new();
    for slot in 0..slots {
        for sender in 0..scenario.swarm.agents {
            air.transmit(slot, sender, &frame(slot, sender));
        }
        air.deliver(slot, |receiver, sender, bytes| {
            heard.push((slot, receiver, sender, bytes.to_vec()));
            if bytes == frame(slot, sender) { FrameVerdict::Taken } else { FrameVerdict::Useless }
        });
        assert_accounts_balance(air.counters());
    }
    (air, heard)
}

fn frame(slot: u32, sender: usize) -> Vec<u8> {
    let mut frame = vec![sender as u8; 40];
    frame[..4].copy_from_slice(&slot.to_le_bytes());
    frame
}

fn assert_accounts_balance(counters: &Counters) {
    let put_in =
        counters.copies + counters.duplicated + counters.replayed + counters.forged + counters.relayed;
    assert_eq!(put_in, counters.heard() + counters.lost.total() + counters.waiting);
    let links: u64 = counters.worst_links(usize::MAX).iter().map(|link| link.lost).sum();
    assert!(links <= counters.lost.total());
}

fn share(part: u64, whole: u64) -> f64 {
    part as f64 / whole as f64
}

#[test]
fn without_faults_everybody_hears_what_the_graph_says_in_order() {
    let (air, heard) = fly(&Scenario::default(), 60);
    let mut expected = Vec::new();
    for slot in 0..60 {
        for receiver in 0..10 {
            air.source().each_link(receiver, slot, |sender, _| {
                expected.push((slot, receiver, sender, frame(slot, sender)));
            });
        }
    }
    assert_eq!(heard, expected);
    assert_eq!(air.counters().taken, expected.len() as u64);
    assert_eq!((air.counters().frames, air.counters().lost.total()), (600, 0));
}

#[test]
fn the_chain_without_faults_is_the_clear_way() {
    for topology in [TopologyKind::Paper, TopologyKind::Motion] {
        let mut scenario = Scenario::default();
        scenario.network.topology = topology;
        let (clear, heard_clear) = fly(&scenario, 100);
        // Somebody silent after the end keeps the air from taking the short way.
        scenario.faults.radio_off = OutageList(vec![scenario::Outage { agent: 0, from: 1000, rounds: 1 }]);
        let (chain, heard_chain) = fly(&scenario, 100);
        assert!(clear.is_clear && !chain.is_clear);
        assert_eq!(heard_clear, heard_chain);
        assert_eq!(clear.counters(), chain.counters());
    }
}

#[test]
fn iid_loss_is_as_asked_and_counted() {
    for loss in [0.05, 0.3, 0.7] {
        let (air, heard) = fly(&complete(|scenario| scenario.faults.iid_loss = loss), 400);
        let counters = air.counters();
        assert_eq!(counters.copies, 400 * 90);
        assert!((share(counters.lost.iid, counters.copies) - loss).abs() < 0.01);
        assert_eq!(counters.lost.iid, counters.lost.total());
        assert_eq!(heard.len() as u64, counters.taken);
        let worst = counters.worst_links(3);
        assert!(worst.len() == 3 && worst[0].loss() >= worst[1].loss() && worst[0].loss() > loss);
    }
}

#[test]
fn delays_are_uniform_and_cross_slots() {
    let (air, heard) = fly(&complete(|scenario| scenario.faults.delay_rounds = 5), 1000);
    let mut by_delay = [0u64; 6];
    for (slot, _, _, bytes) in &heard {
        let sent = u32::from_le_bytes(bytes[..4].try_into().unwrap());
        by_delay[(slot - sent) as usize] += 1;
    }
    for count in by_delay {
        assert!((share(count, heard.len() as u64) - 1.0 / 6.0).abs() < 0.01, "{by_delay:?}");
    }
    let counters = air.counters();
    assert!(counters.waiting > 0 && counters.lost.total() == 0);
    assert_eq!(counters.delayed, counters.waiting + by_delay[1..].iter().sum::<u64>());
}

#[test]
fn duplicates_reorderings_and_damages_are_as_asked() {
    let faulty = complete(|scenario| {
        let faults = &mut scenario.faults;
        (faults.duplication, faults.reordering, faults.bit_corruption) = (0.2, 0.1, 0.05);
    });
    let (air, heard) = fly(&faulty, 500);
    let counters = air.counters();
    assert!((share(counters.duplicated, counters.copies) - 0.2).abs() < 0.01);
    assert!((share(counters.damaged, counters.heard()) - 0.05).abs() < 0.005);
    assert!((share(counters.reordered, counters.heard()) - 0.1).abs() < 0.01);
    let damaged = heard.iter().filter(|(slot, _, sender, bytes)| *bytes != frame(*slot, *sender)).count();
    assert_eq!(damaged as u64, counters.damaged, "every damage shows");
    let out_of_order =
        heard.windows(2).filter(|pair| pair[0].1 == pair[1].1 && pair[0].2 > pair[1].2).count();
    assert!(out_of_order > 1000);
}

#[test]
fn silent_agents_neither_send_nor_hear() {
    let scenario = complete(|scenario| {
        scenario.faults.radio_off = OutageList(vec![scenario::Outage { agent: 3, from: 20, rounds: 10 }]);
    });
    let (air, heard) = fly(&scenario, 50);
    let is_about = |heard: &&Delivery| heard.1 == 3 || heard.2 == 3;
    let slots: Vec<u32> = heard.iter().filter(is_about).map(|heard| heard.0).collect();
    assert_eq!(slots.len(), 40 * 18);
    assert!(slots.iter().all(|slot| !(20..30).contains(slot)));
    assert_eq!((air.counters().unsent, air.counters().lost.away), (10, 90));
    let is_silent =
        [(3, 20), (3, 29), (3, 30), (2, 25)].map(|(agent, slot)| air.outages.is_silent(agent, slot));
    assert_eq!(is_silent, [true, true, false, false]);
}

#[test]
fn crashes_begin_and_end_when_asked() {
    let mut scenario = complete(|_| {});
    let crash = scenario::Crash { agent: 3, round: 20, down_rounds: 10, keeps_memory: false };
    scenario.faults.crashes = scenario::Crashes(vec![crash]);
    let (air, _) = fly(&scenario, 50);
    assert_eq!(air.outages.crashes(20).collect::<Vec<_>>(), [&crash]);
    assert_eq!(air.outages.restarts(30).collect::<Vec<_>>(), [&crash]);
    assert_eq!((air.outages.crashes(30).count(), air.outages.restarts(20).count()), (0, 0));
    assert_eq!([20, 29, 30].map(|slot| air.outages.is_down(3, slot)), [true, true, false]);
    assert_eq!((air.counters().unsent, air.counters().lost.away), (10, 90));

    scenario.faults.crashes.0.push(scenario::Crash { round: 25, ..crash });
    assert!(Air::new(&scenario).unwrap_err().to_string().contains("agent 3 crash in round 25"));
    scenario.faults.crashes.0[1].agent = 10;
    assert!(Air::new(&scenario).unwrap_err().to_string().contains("agents 0 to 9"));
}

#[test]
fn an_intruder_is_heard_by_everybody() {
    let scenario = complete(|scenario| (scenario.intruder.replay, scenario.intruder.wrong_key) = (0.5, 0.25));
    let (air, heard) = fly(&scenario, 1000);
    let counters = air.counters();
    assert!((share(counters.replayed, 10_000) - 0.5).abs() < 0.05);
    assert!((share(counters.forged, 10_000) - 0.25).abs() < 0.05);
    let replayed = heard.iter().filter(|heard| heard.3.len() == 40 && heard.3[..4] != heard.0.to_le_bytes());
    assert_eq!(replayed.count() as u64, counters.replayed);
    assert_eq!(heard.iter().filter(|heard| heard.3.len() > 40).count() as u64, counters.forged);
    assert_eq!((counters.replayed_taken, counters.forged_taken), (0, 0));
}

#[test]
fn weak_signals_lose_frames() {
    let mut scenario = Scenario::default();
    scenario.network.topology = TopologyKind::Motion;
    let (air, heard) = fly(&scenario, 2000);
    let counters = air.counters();
    assert_eq!(heard.len() as u64, counters.taken);
    let loss = share(counters.lost.margin, counters.copies);
    assert!((0.02..0.4).contains(&loss), "{loss}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn the_same_scenario_gives_the_same_bytes_and_accounts_balance(
        seed in 0u64..1 << 40,
        agents in 1usize..8,
        shares in prop::array::uniform6(0.0..0.9f64),
        delay_rounds in 0u32..6,
        topology in prop::sample::select(vec![TopologyKind::Paper, TopologyKind::ErdosRenyi, TopologyKind::Motion]),
        silent in (0usize..8, 0u32..40, 0u32..40),
        crash in (0usize..8, 0u32..40, 0u32..40),
    ) {
        let [iid_loss, burst_loss, duplication, reordering, bit_corruption, intrusion] = shares;
        let mut scenario = Scenario { seed, ..Scenario::default() };
        scenario.swarm.agents = agents;
        scenario.network.topology = topology;
        scenario.faults = scenario::FaultsSection {
            iid_loss, burst_loss, burst_rounds: 10.0, delay_rounds, duplication, reordering, bit_corruption,
            radio_off: OutageList(vec![scenario::Outage { agent: silent.0 % agents, from: silent.1, rounds: silent.2 }]),
            frozen: OutageList::default(),
            crashes: scenario::Crashes(vec![scenario::Crash {
                agent: crash.0 % agents, round: crash.1, down_rounds: crash.2, keeps_memory: true,
            }]),
            ..scenario.faults
        };
        scenario.intruder = scenario::IntruderSection {
            replay: intrusion, wrong_key: intrusion, relay: intrusion, frames_per_round: 3, memory_frames: 40,
            ambush_frames: 5, forged_fragments: 0,
        };
        let (first, heard) = fly(&scenario, 50);
        let (second, heard_again) = fly(&scenario, 50);
        prop_assert_eq!(heard, heard_again);
        prop_assert_eq!(first.counters(), second.counters());
    }
}
