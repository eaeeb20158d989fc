//! Slots on clocks that differ, beside what was planned.

use super::places::{BENCH, Places};
use super::simulation::{RadioAir, RadioEvent, RadioSwarmConfig};
use fabswarm_sim::air::radio::{LoraModulation, RadioConfig, RadioKind, RadioPlan, RadioTiming};

/// Frames of 120 bytes, full payloads in turns.
fn needs(agents: u16) -> RadioConfig {
    RadioConfig { agents, frame_bytes: 122, shared_bytes: 369, ..RadioConfig::default() }
}

/// Five groups in a row, each in reach of its neighbours: four hops from end to end.
const FOUR_HOPS: Places = Places::Groups { count: 5, spacing_m: 70.0, radius_m: 8.0, speed_m_s: 5.0 };

fn all_on(settings: RadioSwarmConfig) -> RadioAir {
    let agents = usize::from(settings.superframe.agents);
    let mut air = RadioAir::new(settings);
    for agent in 0..agents {
        air.switch_on(agent, 0);
    }
    air
}

/// Runs until all agents keep one time, and returns how many superframes that took.
fn superframes_to_synchronise(air: &mut RadioAir, period_s: f64, at_most: u32) -> u32 {
    (1..=at_most)
        .find(|_| {
            air.run_until(air.seconds() + period_s, |_| {});
            air.is_synchronised()
        })
        .unwrap_or_else(|| {
            panic!("not synchronised: {:?}", air.schedules().map(|s| s.stamp()).collect::<Vec<_>>())
        })
}

fn check_ten_thousand_rounds(settings: RadioSwarmConfig, most_superframes: u32) {
    let period = settings.period_s();
    let mut air = RadioAir::new(settings);
    // Somebody switches them on one after the other, in an order of its own.
    for index in 0..20 {
        air.switch_on(index * 7 % 20, 0);
        air.run_until(air.seconds() + 0.31, |_| {});
    }
    let took = superframes_to_synchronise(&mut air, period, most_superframes);
    eprintln!("synchronised {took} superframes of {:.1} ms after the last was switched on", 1000.0 * period);
    // Corrections of the first superframes may still be under way.
    air.run_until(air.seconds() + 2.0 * period, |_| {});
    let before = air.counts();
    air.run_until(air.seconds() + 10_000.0 * period, |_| {});
    let after = air.counts();
    assert_eq!(after.collisions, before.collisions, "{after:?}");
    assert_eq!(
        after.late + after.too_long + after.deaf,
        before.late + before.too_long + before.deaf,
        "{after:?}"
    );
    assert!(after.received - before.received > 10_000 * 20 * 4);
    assert!(air.is_synchronised());
    for agent in 0..20 {
        assert!(air.rounds(agent) >= 10_000, "agent {agent}");
    }
}

#[test]
fn twenty_agents_in_reach_never_collide() {
    check_ten_thousand_rounds(RadioSwarmConfig::new(RadioKind::Ieee802154, &needs(20), BENCH), 10);
}

#[test]
fn twenty_agents_over_four_hops_never_collide() {
    let settings =
        RadioSwarmConfig { loss: 0.2, ..RadioSwarmConfig::new(RadioKind::Ieee802154, &needs(20), FOUR_HOPS) };
    check_ten_thousand_rounds(settings, 40);
}

#[test]
fn the_row_of_groups_is_four_hops_long() {
    let mut air = all_on(RadioSwarmConfig::new(RadioKind::Ieee802154, &needs(20), FOUR_HOPS));
    air.run_until(30.0, |_| {});
    let hops: Vec<u8> = air.schedules().map(|schedule| schedule.stamp().hops).collect();
    assert!((0..20).all(|agent| usize::from(hops[agent]) >= agent % 5), "{hops:?}");
    assert_eq!(hops.iter().max(), Some(&4), "{hops:?}");
}

#[test]
fn ten_boards_make_fourteen_rounds_a_second_as_planned() {
    let needs = needs(10);
    let radio = RadioTiming::new(RadioKind::Ieee802154);
    let plan = RadioPlan::new(&radio, &needs).unwrap();
    assert!(plan.rounds_per_second >= 14.0, "{plan:?}");
    assert_eq!(plan.packets, 1);
    let mut air = all_on(RadioSwarmConfig::new(RadioKind::Ieee802154, &needs, BENCH));
    air.run_until(10.0, |_| {});
    let (rounds, mut delivered) = (air.rounds(3), 0);
    air.run_until(70.0, |event| delivered += u64::from(matches!(event, RadioEvent::Delivered { .. })));
    let measured = (air.rounds(3) - rounds) as f64 / 60.0;
    assert!((measured / plan.rounds_per_second - 1.0).abs() < 0.05, "{measured} of {plan:?}");
    assert!(measured >= 14.0);
    // All to all in all but the silent superframes.
    let frames = delivered as f64 / 60.0 / measured / 90.0;
    assert!((0.93..1.1).contains(&frames), "{frames} of the frames");
}

#[test]
fn other_radios_keep_to_their_plans() {
    let lora = LoraModulation::default();
    for kind in
        [RadioKind::EspNow, RadioKind::Lora(lora), RadioKind::Lora(LoraModulation { spreading: 9, ..lora })]
    {
        let needs = RadioConfig { hops: 1, ..needs(10) };
        let plan = RadioPlan::new(&RadioTiming::new(kind), &needs).unwrap();
        let settings = RadioSwarmConfig::new(kind, &needs, BENCH);
        let period = settings.period_s();
        let mut air = all_on(settings);
        air.run_until(40.0 * period, |_| {});
        assert!(air.is_synchronised(), "{kind}");
        let (rounds, before) = (air.rounds(3), air.counts());
        air.run_until(540.0 * period, |_| {});
        let measured = (air.rounds(3) - rounds) as f64 / (500.0 * period);
        assert!((measured / plan.rounds_per_second - 1.0).abs() < 0.05, "{kind}: {measured} of {plan:?}");
        let after = air.counts();
        assert_eq!((after.collisions, after.over_duty), (before.collisions, 0), "{kind}: {after:?}");
    }
}

#[test]
fn nobody_sends_more_than_the_law_allows() {
    let kind = RadioKind::Lora(LoraModulation::default());
    let radio = RadioTiming::new(kind);
    let legal = RadioPlan::new(&radio, &needs(10)).unwrap();
    assert!(legal.duty_cycle <= 0.01 && legal.duty_cycle > 0.0095, "{legal:?}");
    let period_us = Some(legal.superframe.length_us() / 2);
    let error = RadioPlan::new(&radio, &RadioConfig { period_us, ..needs(10) }).unwrap_err();
    assert!(error.to_string().contains("the law allows 1.00 %"), "{error}");

    // The radio stops an agent whose superframe was planned without the law.
    let lawless = RadioTiming { duty_limit: None, ..radio };
    let superframe = RadioPlan::new(&lawless, &needs(10)).unwrap().superframe;
    let settings = RadioSwarmConfig { superframe, ..RadioSwarmConfig::new(kind, &needs(10), BENCH) };
    let mut air = all_on(settings);
    air.run_until(3600.0, |_| {});
    assert!(air.counts().over_duty > 100, "{:?}", air.counts());
}

#[test]
fn late_joiners_and_leavers_are_absorbed() {
    let settings = RadioSwarmConfig::new(RadioKind::Ieee802154, &needs(10), BENCH);
    let period = settings.period_s();
    let mut air = RadioAir::new(settings);
    // The root itself comes late, and finds a swarm that keeps the time of agent 3.
    for agent in 3..9 {
        air.switch_on(agent, 0);
    }
    air.run_until(100.0 * period, |_| {});
    assert!(air.is_synchronised());
    let jumps: u64 = (3..9).map(|agent| air.jumps(agent)).sum();
    let before = air.counts();
    for (at, agent) in [(110, 9), (130, 0), (150, 1)] {
        air.run_until(f64::from(at) * period, |_| {});
        air.switch_on(agent, 0);
    }
    air.run_until(200.0 * period, |_| {});
    assert!(air.is_synchronised());
    assert_eq!(air.counts().collisions, before.collisions, "nobody was disturbed");
    assert_eq!(
        (3..9).map(|agent| air.jumps(agent)).sum::<u64>(),
        jumps,
        "the newcomers took over the time as it was"
    );
    air.switch_off(4);
    air.switch_off(9);
    air.run_until(300.0 * period, |_| {});
    assert!(air.is_synchronised());
    assert_eq!(air.counts().collisions, before.collisions);
}

#[test]
fn a_root_that_dies_is_replaced_without_a_collision() {
    let settings =
        RadioSwarmConfig { loss: 0.2, ..RadioSwarmConfig::new(RadioKind::Ieee802154, &needs(20), FOUR_HOPS) };
    let period = settings.period_s();
    let mut air = all_on(settings);
    superframes_to_synchronise(&mut air, period, 120);
    air.run_until(air.seconds() + 50.0 * period, |_| {});
    let before = air.counts();
    air.switch_off(0);
    air.run_until(air.seconds() + 20.0 * period, |_| {});
    assert!(!air.is_synchronised(), "its news are still believed");
    let took = 20 + superframes_to_synchronise(&mut air, period, 100);
    eprintln!("agent 1 keeps the time {took} superframes after the root died");
    air.run_until(air.seconds() + 1000.0 * period, |_| {});
    assert_eq!(air.counts().collisions, before.collisions);
    // It comes back, finds its place and takes over again.
    air.switch_on(0, 0);
    superframes_to_synchronise(&mut air, period, 60);
    assert_eq!(air.counts().collisions, before.collisions);
}

#[test]
fn clocks_that_swing_are_followed() {
    let settings = RadioSwarmConfig {
        swing_ppm: 20.0,
        ..RadioSwarmConfig::new(RadioKind::Ieee802154, &needs(20), BENCH)
    };
    let period = settings.period_s();
    let mut air = all_on(settings);
    superframes_to_synchronise(&mut air, period, 40);
    air.run_until(air.seconds() + 10.0 * period, |_| {});
    let before = air.counts();
    air.run_until(air.seconds() + 2000.0 * period, |_| {});
    assert_eq!(air.counts().collisions, before.collisions);
}

/// The test of the tests.
#[test]
fn clocks_that_are_worse_than_planned_for_run_out_of_their_guard_times() {
    let settings = RadioSwarmConfig::new(RadioKind::Ieee802154, &needs(20), BENCH);
    let mut air = all_on(RadioSwarmConfig { ppm: 3000.0, ..settings });
    air.run_until(60.0, |_| {});
    assert!(air.counts().collisions > 0, "{:?}", air.counts());
}

#[test]
fn a_longer_round_makes_a_host_that_carries_frames_no_hurry() {
    let plan = |kind, period_us| {
        let needs = RadioConfig { period_us, ..needs(3) };
        RadioPlan::new(&RadioTiming::new(kind), &needs).unwrap().superframe
    };
    for kind in [RadioKind::Carried, RadioKind::Ieee802154] {
        let (shortest, longer) = (plan(kind, None), plan(kind, Some(300_000)));
        assert_eq!(longer.length_us(), 300_000);
        assert!(longer.tail_us >= shortest.tail_us, "{longer:?}");
        // Radios know when a packet began: their slots stay short, and the processor may sleep.
        assert_eq!(longer.guard_us > 50_000, kind == RadioKind::Carried, "{longer:?}");
    }
}
