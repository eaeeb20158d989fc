//! Rounds, and what a board tells of them.

use crate::rig::*;
use core::cell::RefCell;
use fabswarm_firmware::{Parts, marks::Mark, run, storage::BoardStorage};
use fabswarm_shared::{
    packet::{Packet, RoundOver},
    provisioning::{self, Pace},
};
use std::time::Instant;

#[test]
fn a_mark_is_said_back_behind_all_that_came_before_it() {
    let words = [Packet::Start { air_round: 0 }, over(0), Packet::Mark { number: 9 }, over(1)];
    let said = said(&page(Pace::Air), words);
    let mark = said.iter().position(|packet| Packet::decode(packet) == Ok(Packet::Mark { number: 9 }));
    assert_eq!(telemetry(&said[..mark.unwrap()]).len(), 2);
    assert_eq!(telemetry(&said).len(), 3);
}

/// Its first steps lead to where nothing can be computed.
#[test]
fn a_board_that_cannot_compute_on_stops_and_says_so() {
    let page = page_with(5, Pace::Air, |page| page.agent.steps.x = 1e30);
    let told = telemetry(&said(&page, [Packet::Start { air_round: 0 }, over(0), over(1), over(2)]));
    assert!(!told[0].is_stopped && told.last().unwrap().is_stopped, "{told:?}");
}

/// The state in which a board first differs would be gone a round later.
#[test]
fn a_board_that_comes_to_another_state_than_expected_stays_in_it() {
    let right = telemetry(&said(&page(Pace::Air), [Packet::Start { air_round: 0 }, over(0), over(1)]));
    let digests = right.iter().map(|told| told.digest).skip(1).collect::<Vec<_>>();
    let expecting =
        |air_round, digest| Packet::RoundOver(RoundOver { air_round, frames: 0, digest: Some(digest) });
    let after = |second: u32| {
        let frame = Packet::Relayed { air_round: 2, number: 0, frame: &[1; 40] };
        let last = Packet::RoundOver(RoundOver { air_round: 2, frames: 1, digest: None });
        let rounds = [expecting(0, digests[0]), expecting(1, second), frame, last];
        let words = [Packet::Start { air_round: 0 }].into_iter().chain(rounds);
        telemetry(&said(&page(Pace::Air), words.chain([Packet::StateRequest { from: 0 }])))
    };
    assert_eq!(after(digests[1]).last().map(|told| told.air_round), Some(3));
    let held = after(!digests[1]);
    assert_eq!(held.last().map(|told| (told.air_round, told.digest, told.refused)), Some((2, digests[1], 0)));
}

#[test]
fn the_end_of_each_round_is_marked() {
    let seen = RefCell::new(Vec::new());
    let marks = |mark| seen.borrow_mut().push(mark);
    let words = [Packet::Start { air_round: 0 }, over(0), over(1)];
    let (mut flash, page) = (blank_flash(), page(Pace::Air));
    said_by(
        &mut flash,
        &page,
        words,
        async |_| a_while().await,
        async |parts| run(Parts { marks: Some(&marks), ..parts }).await,
    );
    assert_eq!(*seen.borrow(), [Mark::RoundEnd; 4]);
}

/// Regression: a frame that the cable had lost was a frame that the board never took, and the end of a round that was lost a host that waited.
#[test]
fn a_round_that_the_cable_cut_short_is_asked_for_again() {
    let relayed = |air_round, number| Packet::Relayed { air_round, number, frame: &[0xEE; 40] };
    let over = |air_round, frames| Packet::RoundOver(RoundOver { air_round, frames, digest: None });
    let words = [
        // Left on the line since before its reset.
        relayed(0, 0),
        Packet::Start { air_round: 5 },
        relayed(5, 0),
        // The next frame is lost.
        relayed(5, 2),
        over(5, 3),
        relayed(5, 1),
        relayed(5, 2),
        relayed(5, 2),
        over(5, 3),
        // Of this round only the frame came, and then the next one.
        relayed(6, 0),
        relayed(7, 0),
        over(7, 1),
        over(8, 1),
        over(6, 1),
        // The host has missed that it ended.
        over(5, 3),
    ];
    let said = said(&page(Pace::Air), words);
    let asked = said.iter().filter_map(|packet| match Packet::decode(packet) {
        Ok(Packet::Again { air_round, from }) => Some((air_round, from)),
        _ => None,
    });
    assert_eq!(asked.collect::<Vec<_>>(), [(5, 1), (6, 1)]);
    let told: Vec<_> =
        telemetry(&said).iter().map(|told| (told.air_round, told.round, told.refused)).collect();
    // No frame of ours is valid: each that was taken is refused, once.
    assert_eq!(told, [(5, 0, 0), (6, 0, 3), (7, 1, 4), (7, 1, 4)]);
}

/// Also where its link is never quiet.
#[test]
fn a_board_ends_rounds_by_its_own_clock() {
    for noise in [0, usize::MAX] {
        let words = std::iter::repeat_n(Packet::Frame(&[0xEE]), noise);
        let begun = Instant::now();
        let a_few_rounds =
            async |heard: &RefCell<Vec<Vec<u8>>>| until_told(heard, |told| told.len() > 3).await;
        let flash = &mut blank_flash();
        let told =
            telemetry(&said_by(flash, &page(slots(3)), words, a_few_rounds, async |parts| run(parts).await));
        let [first, .., last] = &told[..] else { panic!("{told:?}") };
        assert!(told.iter().map(|told| told.air_round).eq(first.air_round..=last.air_round), "{told:?}");
        // Each has three slots of 4 ms and more.
        assert!(begun.elapsed().as_millis() >= u128::from(12 * (last.air_round - first.air_round)));
    }
}

/// Another page once left a board that refused its own flash for ever.
#[test]
fn a_state_counts_under_the_page_it_was_saved_under() {
    let mut flash = blank_flash();
    let three_rounds = [Packet::Start { air_round: 0 }, over(0), over(1), over(2)];
    assert_eq!(telemetry(&said_with(&mut flash, &page(Pace::Air), three_rounds)).len(), 4);
    assert_eq!(first_round(&said_with(&mut flash.clone(), &page(Pace::Air), [])), 3);
    let other = page_with(6, Pace::Air, |_| {});
    assert_eq!(first_round(&said_with(&mut flash.clone(), &other, [])), 0);
    // Bytes that count under this page and are no state of this firmware.
    let page = page(Pace::Air);
    let mut storage = BoardStorage::new(RamFlash(&mut flash));
    let mut draft = storage.draft(3);
    draft.write(&[provisioning::page_crc(bytemuck::cast_slice(&page)), 7, 7]).unwrap();
    draft.commit().unwrap();
    assert_eq!(first_round(&said_with(&mut flash, &page, [])), 0);
}

/// Where a state is saved only now and then, a restart keeps the decision and nothing that others count on.
#[test]
fn a_decision_that_was_saved_outlasts_a_restart() {
    let mut flash = blank_flash();
    let page = page_with(5, Pace::Air, |page| page.save_every = 2);
    let x_told = |said: &[Vec<u8>]| -> Vec<Vec<f32>> {
        let x = |packet: &Vec<u8>| match Packet::decode(packet) {
            Ok(Packet::Telemetry(_, x)) => Some(x.iter().collect()),
            _ => None,
        };
        said.iter().filter_map(x).collect()
    };
    let three_rounds = [Packet::Start { air_round: 0 }, over(0), over(1), over(2)];
    let before = x_told(&said_with(&mut flash, &page, three_rounds));
    assert!(before.len() == 4 && before[2] != before[1] && before[2] != before[3], "{before:?}");
    let restarted = said_with(&mut flash, &page, [Packet::Start { air_round: 3 }]);
    assert_eq!(first_round(&restarted), 0);
    assert_eq!(x_told(&restarted)[0], before[2]);
    assert_eq!(telemetry(&restarted)[0].epoch, 0, "it joins");
}

#[test]
fn who_keeps_its_own_time_takes_no_orders() {
    let said = said(&page(slots(3)), (0..5).map(over).chain([Packet::Mark { number: 1 }]));
    let told = telemetry(&said)[0];
    assert_eq!((told.air_round, told.round), (0, 0));
}
