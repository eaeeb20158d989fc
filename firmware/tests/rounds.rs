//! A board as its host sees it: what it says to what it hears.

use core::cell::RefCell;
use core::convert::Infallible;
use embassy_futures::{block_on, select::select, yield_now};
use embedded_storage::nor_flash::{ErrorType, NorFlash, ReadNorFlash};
use fabswarm_firmware::{
    Memory, Parts,
    health::Health,
    link::{Link, Pair},
    run,
    storage::Storage,
};
use fabswarm_shared::{
    agent::{Config, Mode},
    fab::Steps,
    packet::{Packet, Telemetry},
    problem::{AnyProblem, Penalty, PolicyEvaluation},
    provisioning::{self, Pace, Page},
    wire::payload::Width,
};
use std::collections::VecDeque;

/// A host that says one thing after the other and keeps what it hears.
struct Host<'a> {
    words: VecDeque<Packet<'static>>,
    heard: &'a RefCell<Vec<Vec<u8>>>,
}

impl Link for Host<'_> {
    async fn send(&mut self, packet: &[u8]) {
        self.heard.borrow_mut().push(packet.to_vec());
    }

    async fn receive(&mut self, packet: &mut [u8]) -> usize {
        match self.words.pop_front() {
            Some(word) => word.encode(packet).unwrap(),
            None => core::future::pending().await,
        }
    }
}

struct Flash<'a>(&'a mut Vec<u8>);

impl ErrorType for Flash<'_> {
    type Error = Infallible;
}

impl ReadNorFlash for Flash<'_> {
    const READ_SIZE: usize = 1;

    fn read(&mut self, offset: u32, out: &mut [u8]) -> Result<(), Infallible> {
        out.copy_from_slice(&self.0[offset as usize..][..out.len()]);
        Ok(())
    }

    fn capacity(&self) -> usize {
        self.0.len()
    }
}

impl NorFlash for Flash<'_> {
    const WRITE_SIZE: usize = 4;
    const ERASE_SIZE: usize = 4096;

    fn erase(&mut self, from: u32, to: u32) -> Result<(), Infallible> {
        self.0[from as usize..to as usize].fill(0xFF);
        Ok(())
    }

    fn write(&mut self, offset: u32, bytes: &[u8]) -> Result<(), Infallible> {
        self.0[offset as usize..][..bytes.len()].copy_from_slice(bytes);
        Ok(())
    }
}

struct Nobody;

impl Health for Nobody {
    fn feed_watchdog(&mut self) {}
}

fn page() -> Vec<u32> {
    page_of(5, Pace::Air)
}

/// A page of a problem drawn from `seed`.
fn page_of(seed: u64, pace: Pace) -> Vec<u32> {
    let features = [1.0, 0.5, 0.25, -0.5, 0.75, 1.0];
    let page = Page {
        board: "testing",
        key: None,
        agent: Config {
            id: 0,
            founders: 3,
            mode: Mode::LockStep,
            steps: Steps { x: 0.8, y: 0.08, z: 0.08 },
            penalty: Penalty { lambda: 60.0, normalise: true },
            self_weight: 0.98,
            audience: 0,
            width: Width::Full,
            give_up_after: 0,
            late_rounds: 0,
            boot: 1,
            build: 0,
        },
        pace,
        rounds: 10,
        saves_state: true,
        start: &[0.0; 8],
        problem: AnyProblem::PolicyEvaluation(PolicyEvaluation {
            features: &features,
            successors: &features,
            rewards: &[0.5, 0.25, -1.0],
            upper_weight: 1.0,
            lower_weight: 1.0,
            regularisation: 0.1,
            reward_noise: 0.0,
            seed,
        }),
    };
    let mut words = vec![0; 256];
    page.write(bytemuck::cast_slice_mut(&mut words)).unwrap();
    words
}

/// Long enough for everything a board does without its clock.
async fn a_while() {
    for _ in 0..1000 {
        yield_now().await;
    }
}

/// What a board with this page and blank flash says to a host that says this.
fn said(page: &[u32], words: impl IntoIterator<Item = Packet<'static>>) -> Vec<Vec<u8>> {
    said_with(&mut vec![0xFF; 64 * 1024], page, words)
}

/// The same with this flash.
fn said_with(
    flash: &mut Vec<u8>,
    page: &[u32],
    words: impl IntoIterator<Item = Packet<'static>>,
) -> Vec<Vec<u8>> {
    let heard = RefCell::new(Vec::new());
    let parts = Parts {
        board: "testing",
        page: bytemuck::cast_slice(page),
        memory: &mut Memory::new(),
        link: Host { words: words.into_iter().collect(), heard: &heard },
        storage: Storage::new(Flash(flash)),
        health: Nobody,
    };
    block_on(select(run(parts), a_while()));
    heard.into_inner()
}

fn telemetry(said: &[Vec<u8>]) -> Vec<Telemetry> {
    let telemetry = |packet: &Vec<u8>| match Packet::decode(packet) {
        Ok(Packet::Telemetry(telemetry, _)) => Some(telemetry),
        _ => None,
    };
    said.iter().filter_map(telemetry).collect()
}

/// It once told it under the number of the round that had begun meanwhile, and the host waited for ever.
#[test]
fn telemetry_that_was_missed_is_told_again_under_the_round_it_is_of() {
    let over = |air_round| Packet::RoundOver { air_round };
    let said = said(&page(), [Packet::Start { air_round: 7 }, over(7), over(7), over(8)]);
    let rounds: Vec<_> = telemetry(&said).iter().map(|told| (told.air_round, told.round)).collect();
    assert_eq!(rounds, [(7, 0), (7, 0), (8, 1)]);
    let told = telemetry(&said);
    assert_eq!(told[0], told[1]);
}

/// The round a board says it would go on with.
fn first_round(said: &[Vec<u8>]) -> u32 {
    let boot = said.iter().find_map(|packet| match Packet::decode(packet) {
        Ok(Packet::Boot(boot)) => Some(boot.page),
        _ => None,
    });
    boot.unwrap().unwrap().round
}

/// Another page once left a board that refused its own flash for ever.
#[test]
fn a_state_counts_under_the_page_it_was_saved_under() {
    let mut flash = vec![0xFF; 64 * 1024];
    let over = |air_round| Packet::RoundOver { air_round };
    let three_rounds = [Packet::Start { air_round: 0 }, over(0), over(1), over(2)];
    assert_eq!(telemetry(&said_with(&mut flash, &page(), three_rounds)).len(), 3);
    assert_eq!(first_round(&said_with(&mut flash.clone(), &page(), [])), 3);
    let other = page_of(6, Pace::Air);
    assert_eq!(first_round(&said_with(&mut flash.clone(), &other, [])), 0);
    // Bytes that count under this page and are no state of this firmware.
    let page = page();
    let mut storage = Storage::new(Flash(&mut flash));
    let mut draft = storage.draft();
    draft.write(&[provisioning::page_crc(bytemuck::cast_slice(&page)), 7, 7]).unwrap();
    draft.commit().unwrap();
    assert_eq!(first_round(&said_with(&mut flash, &page, [])), 0);
}

#[test]
fn who_keeps_its_own_time_takes_no_orders() {
    let page = page_of(5, Pace::Period { us: u32::MAX });
    let said = said(&page, (0..5).map(|air_round| Packet::RoundOver { air_round }));
    assert_eq!(telemetry(&said), []);
}

/// A radio that hears one packet after the other.
struct Radio(VecDeque<Vec<u8>>);

impl Link for Radio {
    async fn send(&mut self, _: &[u8]) {}

    async fn receive(&mut self, packet: &mut [u8]) -> usize {
        let Some(heard) = self.0.pop_front() else { core::future::pending().await };
        packet[..heard.len()].copy_from_slice(&heard);
        heard.len()
    }
}

#[test]
fn only_frames_come_by_radio() {
    let packet = |packet: Packet<'_>| {
        let mut bytes = vec![0; 64];
        let length = packet.encode(&mut bytes).unwrap();
        bytes.truncate(length);
        bytes
    };
    let (frame, over) = (packet(Packet::Frame(&[1, 2, 3])), packet(Packet::RoundOver { air_round: 0 }));
    let radio = Radio(VecDeque::from([over.clone(), frame.clone()]));
    let mut pair = Pair::new(radio, Radio(VecDeque::new()));
    let mut heard = [0; 64];
    let length = block_on(pair.receive(&mut heard));
    assert_eq!(heard[..length], frame);
    let mut by_cable = Pair::new(Radio(VecDeque::new()), Radio(VecDeque::from([over.clone()])));
    let length = block_on(by_cable.receive(&mut heard));
    assert_eq!(heard[..length], over);
}

#[test]
fn a_board_without_a_page_says_so_and_nothing_else() {
    let said = said(&[u32::MAX; 64], [Packet::Start { air_round: 0 }, Packet::RoundOver { air_round: 0 }]);
    assert!(!said.is_empty());
    for packet in said {
        let Ok(Packet::Boot(boot)) = Packet::decode(&packet) else { panic!("{packet:?} is no boot") };
        assert_eq!(boot.page, Err(provisioning::Error::Missing));
    }
}

#[test]
fn a_board_tells_its_state_piece_by_piece() {
    let said = said(
        &page(),
        [
            Packet::Start { air_round: 0 },
            Packet::Tell { from: 0 },
            Packet::Tell { from: 90 },
            Packet::Tell { from: 9000 },
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
