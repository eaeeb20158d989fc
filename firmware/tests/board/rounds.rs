//! Rounds, and what a board tells of them.

use crate::rig::*;
use core::cell::RefCell;
use embassy_futures::{
    block_on,
    select::{select, select3},
    yield_now,
};
use fabswarm_firmware::{
    Buffers, Parts,
    link::{AirKind, Link, SplitLink},
    marks::Mark,
    run,
    storage::BoardStorage,
};
use fabswarm_shared::{
    packet::{Packet, RoundOver, Telemetry},
    provisioning::{self, Pace},
    slots::{SlotConfig, Superframe},
};
use std::collections::VecDeque;
use std::time::Instant;

#[test]
fn telemetry_that_was_missed_is_told_again() {
    let said = said(&page(Pace::Air), [Packet::Start { air_round: 7 }, over(7), over(7), over(8)]);
    let rounds: Vec<_> = telemetry(&said).iter().map(|told| (told.air_round, told.round)).collect();
    assert_eq!(rounds, [(7, 0), (8, 0), (8, 0), (9, 1)]);
    let told = telemetry(&said);
    assert_eq!(told[1], told[2]);
}

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
    let marks = RefCell::new(|mark| seen.borrow_mut().push(mark));
    let words = [Packet::Start { air_round: 0 }, over(0), over(1)];
    let (mut flash, page) = (vec![0xFF; 64 * 1024], page(Pace::Air));
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
    let told: Vec<_> = telemetry(&said).iter().map(|told| (told.air_round, told.refused)).collect();
    // No frame of ours is valid: each that was taken is refused, once.
    assert_eq!(told, [(5, 0), (6, 3), (7, 4), (7, 4)]);
}

/// The host takes telemetry for the end of what a board says in a round.
#[test]
fn frames_of_a_round_come_before_its_telemetry() {
    let said = said(&page(Pace::Air), [Packet::Start { air_round: 0 }, over(0)]);
    let kinds: Vec<_> = said.iter().map(|packet| Packet::decode(packet).unwrap()).collect();
    assert!(
        matches!(
            kinds[..],
            [
                Packet::Boot(_),
                Packet::Frame(_),
                Packet::Telemetry(Telemetry { air_round: 0, .. }, _),
                Packet::Frame(_),
                Packet::Telemetry(Telemetry { air_round: 1, .. }, _)
            ]
        ),
        "{kinds:?}"
    );
}

/// Returns how many rounds of 5 ms a board ended on its own while it received `packets`.
fn alone(words: impl IntoIterator<Item = Packet<'static>>) -> u32 {
    let us = 5000;
    let begun = Instant::now();
    let a_few_rounds = async |heard: &RefCell<Vec<Vec<u8>>>| until_told(heard, |told| told.len() > 3).await;
    let flash = &mut vec![0xFF; 64 * 1024];
    let told = telemetry(&said_by(flash, &page(Pace::Period { us }), words, a_few_rounds, async |parts| {
        run(parts).await
    }));
    let [first, .., last] = &told[..] else { panic!("{told:?}") };
    assert!(told.iter().map(|told| told.air_round).eq(first.air_round..=last.air_round));
    let ended = last.air_round - first.air_round;
    assert!(begun.elapsed().as_micros() >= u128::from(ended * us));
    ended
}

#[test]
fn a_board_ends_rounds_by_its_own_clock() {
    // It ends the ten rounds of its page, or as many as a busy machine lets it.
    let ended = alone([]);
    assert!((1..=10).contains(&ended), "{ended} rounds");
}

#[test]
fn a_link_that_is_never_quiet_does_not_stop_the_clock() {
    let ended = alone(std::iter::repeat(Packet::Frame(&[0xEE])));
    assert!((1..=10).contains(&ended), "{ended} rounds");
}

/// Another page once left a board that refused its own flash for ever.
#[test]
fn a_state_counts_under_the_page_it_was_saved_under() {
    let mut flash = vec![0xFF; 64 * 1024];
    let three_rounds = [Packet::Start { air_round: 0 }, over(0), over(1), over(2)];
    assert_eq!(telemetry(&said_with(&mut flash, &page(Pace::Air), three_rounds, a_while())).len(), 4);
    assert_eq!(first_round(&said_with(&mut flash.clone(), &page(Pace::Air), [], a_while())), 3);
    let other = page_of(6, Pace::Air);
    assert_eq!(first_round(&said_with(&mut flash.clone(), &other, [], a_while())), 0);
    // Bytes that count under this page and are no state of this firmware.
    let page = page(Pace::Air);
    let mut storage = BoardStorage::new(RamFlash(&mut flash));
    let mut draft = storage.draft(3);
    draft.write(&[provisioning::page_crc(bytemuck::cast_slice(&page)), 7, 7]).unwrap();
    draft.commit().unwrap();
    assert_eq!(first_round(&said_with(&mut flash, &page, [], a_while())), 0);
}

/// Where a state is saved only now and then, a restart keeps the decision and nothing that others count on.
#[test]
fn a_decision_that_was_saved_outlasts_a_restart() {
    let mut flash = vec![0xFF; 64 * 1024];
    let page = page_with(5, Pace::Air, |page| page.save_every = 2);
    let x_told = |said: &[Vec<u8>]| -> Vec<Vec<f32>> {
        let x = |packet: &Vec<u8>| match Packet::decode(packet) {
            Ok(Packet::Telemetry(_, x)) => Some(x.iter().collect()),
            _ => None,
        };
        said.iter().filter_map(x).collect()
    };
    let three_rounds = [Packet::Start { air_round: 0 }, over(0), over(1), over(2)];
    let before = x_told(&said_with(&mut flash, &page, three_rounds, a_while()));
    assert!(before.len() == 4 && before[2] != before[1] && before[2] != before[3], "{before:?}");
    let restarted = said_with(&mut flash, &page, [Packet::Start { air_round: 3 }], a_while());
    assert_eq!(first_round(&restarted), 0);
    assert_eq!(x_told(&restarted)[0], before[2]);
    assert_eq!(telemetry(&restarted)[0].epoch, 0, "it joins");
}

#[test]
fn who_keeps_its_own_time_takes_no_orders() {
    let page = page_of(5, Pace::Period { us: u32::MAX });
    let said = said(&page, (0..5).map(over));
    assert!(telemetry(&said).iter().all(|told| (told.air_round, told.round) == (0, 0)));
}

/// A radio that hears one packet after the other.
struct FakeRadio(VecDeque<Vec<u8>>);

impl Link for FakeRadio {
    async fn send(&mut self, _: &[u8]) {}

    async fn receive(&mut self, packet: &mut [u8]) -> usize {
        let Some(heard) = self.0.pop_front() else { core::future::pending().await };
        packet[..heard.len()].copy_from_slice(&heard);
        heard.len()
    }
}

#[test]
fn whatever_comes_by_radio_is_a_frame() {
    let mut over_bytes = [0; 8];
    let length = over(0).encode(&mut over_bytes).unwrap();
    let over_bytes = &over_bytes[..length];
    let mut heard = [0; 64];
    let mut by_radio = SplitLink::<_, _, 64>::new(
        FakeRadio(VecDeque::from([over_bytes.to_vec()])),
        FakeRadio(VecDeque::new()),
    );
    by_radio.start(0, 1, AirKind::Slots { late: embassy_time::Duration::from_millis(1) });
    let length = block_on(by_radio.receive(&mut heard));
    assert_eq!(Packet::decode(&heard[..length]), Ok(Packet::Frame(over_bytes)));
    let mut by_cable = SplitLink::<_, _, 64>::new(
        FakeRadio(VecDeque::new()),
        FakeRadio(VecDeque::from([over_bytes.to_vec()])),
    );
    let length = block_on(by_cable.receive(&mut heard));
    assert_eq!(Packet::decode(&heard[..length]), Ok(over(0)));
}

/// Boards that hear each other, on one clock.
#[derive(Default)]
struct SharedMedium {
    /// Packets that wait for each board, with the time at which they were sent.
    waiting: [VecDeque<(Vec<u8>, embassy_time::Instant)>; 3],
    /// Packets of each board to the host.
    said: [Vec<Vec<u8>>; 3],
}

struct MediumLink<'a> {
    board: usize,
    ether: &'a RefCell<SharedMedium>,
    arrived: Option<embassy_time::Instant>,
}

impl Link for MediumLink<'_> {
    async fn send(&mut self, packet: &[u8]) {
        let mut ether = self.ether.borrow_mut();
        if let Ok(Packet::Frame(_)) = Packet::decode(packet) {
            for board in (0..3).filter(|&board| board != self.board) {
                ether.waiting[board].push_back((packet.to_vec(), embassy_time::Instant::now()));
            }
        } else {
            ether.said[self.board].push(packet.to_vec());
        }
    }

    async fn receive(&mut self, packet: &mut [u8]) -> usize {
        loop {
            let heard = self.ether.borrow_mut().waiting[self.board].pop_front();
            if let Some((heard, at)) = heard {
                self.arrived = Some(at);
                packet[..heard.len()].copy_from_slice(&heard);
                return heard.len();
            }
            yield_now().await;
        }
    }

    fn arrived(&self) -> Option<embassy_time::Instant> {
        self.arrived
    }
}

/// Without a host: three boards find a common time, and each takes the frames of both others.
#[test]
fn boards_in_slots_hear_each_other() {
    let superframe =
        Superframe::plan(&SlotConfig { agents: 3, frame_us: 4000, tick_us: 200, ..SlotConfig::default() })
            .unwrap();
    let pace = Pace::Slots { superframe, slot_bytes: 500, shared_bytes: 0 };
    let pages: Vec<_> = (0..3)
        .map(|id| {
            page_with(5, pace, |page| {
                page.agent.id = id;
                page.rounds = u32::MAX;
            })
        })
        .collect();
    let ether = RefCell::new(SharedMedium::default());
    let mut flashes = [(); 3].map(|()| vec![0xFF; 64 * 1024]);
    let mut buffers = [(); 3].map(|()| Buffers::new());
    let mut boards = flashes.iter_mut().zip(&mut buffers).zip(&pages).enumerate();
    let mut board = || {
        let (board, ((flash, buffers), page)) = boards.next().unwrap();
        run(Parts {
            board: "testing",
            chip: None,
            window: 1024,
            page: bytemuck::cast_slice(page),
            buffers,
            link: MediumLink { board, ether: &ether, arrived: None },
            storage: BoardStorage::new(RamFlash(flash)),
            health: NoWatchdog,
            marks: None,
        })
    };
    let all_heard = async {
        loop {
            let heard = |said: &Vec<Vec<u8>>, others: u8| {
                said.iter().any(|packet| {
                    matches!(Packet::decode(packet), Ok(Packet::Taken { senders: [set, ..], .. }) if *set == others)
                })
            };
            let is_heard = ether
                .borrow()
                .said
                .iter()
                .zip([0b110, 0b101, 0b011])
                .all(|(said, others)| heard(said, others));
            if is_heard {
                return;
            }
            yield_now().await;
        }
    };
    block_on(select(select3(board(), board(), board()), all_heard));
}

/// A host that resets a board can end its trial.
#[test]
fn a_board_in_slots_takes_a_page_at_its_start() {
    let superframe =
        Superframe::plan(&SlotConfig { agents: 3, frame_us: 4000, ..SlotConfig::default() }).unwrap();
    let pace = Pace::Slots { superframe, slot_bytes: 500, shared_bytes: 0 };
    let in_service = |packets: &[Vec<u8>]| {
        let waits = |packet: &Vec<u8>| matches!(Packet::decode(packet), Ok(Packet::Boot(boot)) if boot.page == Err(provisioning::Error::InService));
        packets.iter().any(waits)
    };
    assert!(in_service(&said(&page(pace), [Packet::Service])));
    assert!(!in_service(&said(&page(pace), [Packet::Mark { number: 1 }])));
}

#[test]
fn a_board_tells_its_state_piece_by_piece() {
    let said = said(
        &page(Pace::Air),
        [
            Packet::Start { air_round: 0 },
            Packet::StateRequest { from: 0 },
            Packet::StateRequest { from: 90 },
            Packet::StateRequest { from: 9000 },
        ],
    );
    let pieces: Vec<_> = said
        .iter()
        .filter_map(|packet| match Packet::decode(packet) {
            Ok(Packet::State { from, words }) => Some((from, words.bits().len())),
            _ => None,
        })
        .collect();
    let [(0, first), (90, second), (9000, 0)] = pieces[..] else { panic!("{pieces:?}") };
    // The whole state takes less than two packets here.
    assert!(first >= 90 && second > 0 && second <= first, "{pieces:?}");
}
