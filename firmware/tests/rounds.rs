//! A board as its host sees it: what it says to what it hears.

use core::cell::RefCell;
use core::convert::Infallible;
use embassy_futures::{block_on, select::select};
use embassy_time::{Duration, Timer};
use embedded_storage::nor_flash::{ErrorType, NorFlash, ReadNorFlash};
use fabswarm_firmware::{Memory, Parts, health::Health, link::Link, run, storage::Storage};
use fabswarm_shared::{
    agent::{Config, Mode},
    graph::{Graph, Topology},
    packet::{Packet, Telemetry},
    problem::{AnyProblem, PolicyEvaluation},
    provisioning::{self, Pace, Page},
};
use std::time::Instant;

/// A host that says one thing after the other and keeps what it hears.
struct Host<'a, W> {
    words: W,
    heard: &'a RefCell<Vec<Vec<u8>>>,
}

impl<W: Iterator<Item = Packet<'static>>> Link for Host<'_, W> {
    async fn send(&mut self, packet: &[u8]) {
        self.heard.borrow_mut().push(packet.to_vec());
    }

    async fn receive(&mut self, packet: &mut [u8]) -> usize {
        match self.words.next() {
            Some(word) => word.encode(packet).unwrap(),
            None => core::future::pending().await,
        }
    }
}

struct Flash(Vec<u8>);

impl ErrorType for Flash {
    type Error = Infallible;
}

impl ReadNorFlash for Flash {
    const READ_SIZE: usize = 1;

    fn read(&mut self, offset: u32, out: &mut [u8]) -> Result<(), Infallible> {
        out.copy_from_slice(&self.0[offset as usize..][..out.len()]);
        Ok(())
    }

    fn capacity(&self) -> usize {
        self.0.len()
    }
}

impl NorFlash for Flash {
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

/// The page of a board whose rounds end as `pace` says.
fn page(pace: Pace) -> Vec<u32> {
    let features = [1.0, 0.5, 0.25, -0.5, 0.75, 1.0];
    let page = Page {
        board: "testing",
        key: None,
        agent: Config {
            mode: if let Pace::Period { .. } = pace { Mode::FreeRunning } else { Mode::LockStep },
            ..Config::founder(0, 3)
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
            seed: 5,
        }),
    };
    let mut words = vec![0; 256];
    page.write(bytemuck::cast_slice_mut(&mut words)).unwrap();
    words
}

/// What a board with this page says to a host that says this.
fn said(page: &[u32], words: impl IntoIterator<Item = Packet<'static>>) -> Vec<Vec<u8>> {
    let heard = RefCell::new(Vec::new());
    let parts = Parts {
        board: "testing",
        page: bytemuck::cast_slice(page),
        memory: &mut Memory::new(),
        link: Host { words: words.into_iter(), heard: &heard },
        storage: Storage::new(Flash(vec![0xFF; 64 * 1024])),
        health: Nobody,
    };
    block_on(select(run(parts), Timer::after(Duration::from_millis(120))));
    heard.into_inner()
}

fn telemetry(said: &[Vec<u8>]) -> Vec<Telemetry> {
    let telemetry = |packet: &Vec<u8>| match Packet::decode(packet) {
        Ok(Packet::Telemetry(telemetry, _)) => Some(telemetry),
        _ => None,
    };
    said.iter().filter_map(telemetry).collect()
}

#[test]
fn telemetry_that_was_missed_is_told_again() {
    let over = |air_round| Packet::RoundOver { air_round };
    let said = said(&page(Pace::Air), [Packet::Start { air_round: 7 }, over(7), over(7), over(8)]);
    let rounds: Vec<_> = telemetry(&said).iter().map(|told| (told.air_round, told.round)).collect();
    assert_eq!(rounds, [(7, 0), (8, 0), (8, 0), (9, 1)]);
    let told = telemetry(&said);
    assert_eq!(told[1], told[2]);
}

/// The host takes telemetry for the end of what a board says in a round.
#[test]
fn frames_of_a_round_come_before_its_telemetry() {
    let said = said(&page(Pace::Air), [Packet::Start { air_round: 0 }, Packet::RoundOver { air_round: 0 }]);
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

/// Rounds that a board ended by itself while it heard this, and how many of them late; none may end before its time.
fn alone(pace: Pace, us: u64, words: impl IntoIterator<Item = Packet<'static>>) -> (u32, u32) {
    let begun = Instant::now();
    let told = telemetry(&said(&page(pace), words));
    let [first, .., last] = &told[..] else { panic!("{told:?}") };
    assert!(told.iter().map(|told| told.air_round).eq(first.air_round..=last.air_round));
    let ended = last.air_round - first.air_round;
    assert!(begun.elapsed().as_micros() >= u128::from(u64::from(ended) * us));
    (ended, last.late)
}

#[test]
fn a_board_ends_rounds_by_its_own_clock() {
    // It ends the ten rounds of its page, or as many as a busy machine lets it.
    let (ended, late) = alone(Pace::Period { us: 5000 }, 5000, []);
    assert!((1..=10).contains(&ended) && late == 0, "{ended} rounds, {late} late");
}

#[test]
fn a_link_that_is_never_quiet_does_not_stop_the_clock() {
    let (ended, _) = alone(Pace::Period { us: 5000 }, 5000, std::iter::repeat(Packet::Frame(&[0xEE])));
    assert!((1..=10).contains(&ended), "{ended} rounds");
}

#[test]
fn a_board_that_hears_nobody_ends_its_rounds_at_the_deadline() {
    let schedule = Graph { topology: Topology::Ring, agents: 3, seed: 1 };
    let (ended, late) = alone(Pace::Deadline { us: 5000, schedule }, 5000, []);
    assert!((1..=10).contains(&ended) && late == ended, "{ended} rounds, {late} late");
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
        &page(Pace::Air),
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
