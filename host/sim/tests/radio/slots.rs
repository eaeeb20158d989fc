//! Slots on clocks that differ, beside what was planned.

use super::channel::ChannelCounts;
use super::places::{BENCH, Places};
use super::simulation::{RadioAir, RadioEvent, RadioSwarmConfig};
use fabswarm_sim::air::radio::{LoraModulation, RadioConfig, RadioKind, RadioPlan, RadioTiming};

/// Frames of 120 bytes, full payloads in turns.
fn needs(agents: u16) -> RadioConfig {
    RadioConfig { agents, frame_bytes: 122, shared_bytes: 369, ..RadioConfig::default() }
}

/// Five groups in a row, each in reach of its neighbours: four hops from end to end.
const FOUR_HOPS: Places = Places { groups: 5, spacing_m: 70.0, radius_m: 8.0, speed_m_s: 5.0 };

/// Boards with radios of IEEE 802.15.4.
fn boards(agents: u16, places: Places) -> RadioSwarmConfig {
    RadioSwarmConfig::new(RadioKind::Ieee802154, &needs(agents), places)
}

/// Runs until all agents keep one time, and returns how many superframes that took.
fn superframes_to_synchronise(air: &mut RadioAir, at_most: u32) -> u32 {
    let is_synchronised = |_: &u32| {
        air.pass(1.0);
        air.is_synchronised()
    };
    let took = (1..=at_most).find(is_synchronised);
    took.unwrap_or_else(|| panic!("{:?}", air.schedules().map(|s| s.stamp()).collect::<Vec<_>>()))
}

/// Goes on for a number of superframes, in which no packets may overlap.
fn pass_without_collision(air: &mut RadioAir, superframes: f64) {
    let before = air.counts();
    air.pass(superframes);
    assert_eq!(air.counts().collisions, before.collisions, "{:?}", air.counts());
}

fn check_ten_thousand_rounds(settings: RadioSwarmConfig, most_superframes: u32) {
    let mut air = RadioAir::new(settings);
    // Somebody switches them on one after the other, in an order of its own.
    for index in 0..20 {
        air.switch_on(index * 7 % 20, 0);
        air.run_until(air.seconds() + 0.31, |_| {});
    }
    let took = superframes_to_synchronise(&mut air, most_superframes);
    eprintln!("synchronised {took} superframes after the last was switched on");
    // Corrections of the first superframes may still be under way.
    air.pass(2.0);
    let before = air.counts();
    pass_without_collision(&mut air, 10_000.0);
    let after = air.counts();
    let failed = |counts: ChannelCounts| counts.late + counts.too_long + counts.deaf;
    assert_eq!(failed(after), failed(before), "{after:?}");
    assert!(after.received - before.received > 10_000 * 20 * 4);
    assert!(air.is_synchronised());
    assert!(air.stations.iter().all(|station| station.rounds >= 10_000));
}

#[test]
fn twenty_agents_in_reach_never_collide() {
    check_ten_thousand_rounds(boards(20, BENCH), 10);
}

#[test]
fn twenty_agents_over_four_hops_never_collide() {
    check_ten_thousand_rounds(RadioSwarmConfig { loss: 0.2, ..boards(20, FOUR_HOPS) }, 40);
}

#[test]
fn the_row_of_groups_is_four_hops_long() {
    let mut air = RadioAir::all_on(boards(20, FOUR_HOPS));
    air.run_until(30.0, |_| {});
    let hops: Vec<u8> = air.schedules().map(|schedule| schedule.stamp().hops).collect();
    assert!((0..20).all(|agent| usize::from(hops[agent]) >= agent % 5), "{hops:?}");
    assert_eq!(hops.iter().max(), Some(&4), "{hops:?}");
}

#[test]
fn ten_boards_make_fourteen_rounds_a_second_as_planned() {
    let radio = RadioTiming::new(RadioKind::Ieee802154);
    let plan = RadioPlan::new(&radio, &needs(10)).unwrap();
    assert!(plan.rounds_per_second >= 14.0, "{plan:?}");
    assert_eq!(plan.packets, 1);
    let mut air = RadioAir::all_on(boards(10, BENCH));
    air.run_until(10.0, |_| {});
    let (rounds, mut delivered) = (air.stations[3].rounds, 0);
    air.run_until(70.0, |event| delivered += u64::from(matches!(event, RadioEvent::Delivered { .. })));
    let measured = (air.stations[3].rounds - rounds) as f64 / 60.0;
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
        let mut air = RadioAir::all_on(RadioSwarmConfig::new(kind, &needs, BENCH));
        air.pass(40.0);
        assert!(air.is_synchronised(), "{kind}");
        let (rounds, began) = (air.stations[3].rounds, air.seconds());
        pass_without_collision(&mut air, 500.0);
        let measured = (air.stations[3].rounds - rounds) as f64 / (air.seconds() - began);
        assert!((measured / plan.rounds_per_second - 1.0).abs() < 0.05, "{kind}: {measured} of {plan:?}");
        assert_eq!(air.counts().over_duty, 0, "{kind}: {:?}", air.counts());
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
    let mut air = RadioAir::all_on(settings);
    air.run_until(3600.0, |_| {});
    assert!(air.counts().over_duty > 100, "{:?}", air.counts());
}

#[test]
fn late_joiners_and_leavers_are_absorbed() {
    let mut air = RadioAir::new(boards(10, BENCH));
    // The root itself comes late, and finds a swarm that keeps the time of agent 3.
    (3..9).for_each(|agent| air.switch_on(agent, 0));
    air.pass(110.0);
    assert!(air.is_synchronised());
    let jumps = |air: &RadioAir| air.stations[3..9].iter().map(|station| station.jumps).sum::<u64>();
    let before = jumps(&air);
    for (agent, superframes) in [(9, 20.0), (0, 20.0), (1, 50.0)] {
        air.switch_on(agent, 0);
        pass_without_collision(&mut air, superframes);
    }
    assert!(air.is_synchronised());
    assert_eq!(jumps(&air), before, "the newcomers took over the time as it was");
    air.switch_off(4);
    air.switch_off(9);
    pass_without_collision(&mut air, 100.0);
    assert!(air.is_synchronised());
}

#[test]
fn a_root_that_dies_is_replaced_without_a_collision() {
    let mut air = RadioAir::all_on(RadioSwarmConfig { loss: 0.2, ..boards(20, FOUR_HOPS) });
    superframes_to_synchronise(&mut air, 120);
    air.pass(50.0);
    let before = air.counts();
    air.switch_off(0);
    air.pass(20.0);
    assert!(!air.is_synchronised(), "its news are still believed");
    let took = 20 + superframes_to_synchronise(&mut air, 100);
    eprintln!("agent 1 keeps the time {took} superframes after the root died");
    air.pass(1000.0);
    // It comes back, finds its place and takes over again.
    air.switch_on(0, 0);
    superframes_to_synchronise(&mut air, 60);
    assert_eq!(air.counts().collisions, before.collisions);
}

#[test]
fn clocks_that_swing_are_followed() {
    let mut air = RadioAir::all_on(RadioSwarmConfig { swing_ppm: 20.0, ..boards(20, BENCH) });
    superframes_to_synchronise(&mut air, 40);
    air.pass(10.0);
    pass_without_collision(&mut air, 2000.0);
}

/// The test of the tests.
#[test]
fn clocks_that_are_worse_than_planned_for_run_out_of_their_guard_times() {
    let mut air = RadioAir::all_on(RadioSwarmConfig { ppm: 3000.0, ..boards(20, BENCH) });
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
