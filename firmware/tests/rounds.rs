//! A board as its host sees it: what it says to what it hears.

use core::cell::RefCell;
use core::convert::Infallible;
use embassy_futures::{
    block_on,
    select::{select, select3},
    yield_now,
};
use embassy_time::{Duration, Timer};
use embedded_storage::nor_flash::{ErrorType, NorFlash, ReadNorFlash};
use fabswarm_firmware::{
    Buffers, Parts,
    health::Health,
    link::{Link, SplitLink},
    run,
    storage::{BoardStorage, PageFlash},
};
use fabswarm_shared::{
    agent::{Config, Mode},
    graph::{Graph, Topology},
    packet::{Boot, Packet, RoundOver, Telemetry},
    problem::{AnyProblem, PolicyEvaluation},
    provisioning::{self, Pace, Page},
    slots::{SlotNeeds, Superframe},
};
use std::collections::VecDeque;
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

struct RamFlash<'a>(&'a mut Vec<u8>);

impl ErrorType for RamFlash<'_> {
    type Error = Infallible;
}

impl ReadNorFlash for RamFlash<'_> {
    const READ_SIZE: usize = 1;

    fn read(&mut self, offset: u32, out: &mut [u8]) -> Result<(), Infallible> {
        out.copy_from_slice(&self.0[offset as usize..][..out.len()]);
        Ok(())
    }

    fn capacity(&self) -> usize {
        self.0.len()
    }
}

impl NorFlash for RamFlash<'_> {
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

/// Where the page of a board is that can write it.
const PAGE_AT: usize = 60 * 1024;
const CHIP: u64 = 0xE661_0000_0000_0001;

impl PageFlash for RamFlash<'_> {
    const CAN_WRITE: bool = true;

    fn erase_page(&mut self) -> bool {
        self.0[PAGE_AT..].fill(0xFF);
        true
    }

    fn write_page(&mut self, offset: u32, bytes: &[u8]) -> bool {
        self.0[PAGE_AT + offset as usize..][..bytes.len()].copy_from_slice(bytes);
        true
    }
}

struct NoWatchdog;

impl Health for NoWatchdog {
    fn feed_watchdog(&mut self) {}
}

/// The page of a board whose rounds end as `pace` says.
fn page(pace: Pace) -> Vec<u32> {
    page_of(5, pace)
}

/// The same with a problem drawn from `seed`.
fn page_of(seed: u64, pace: Pace) -> Vec<u32> {
    page_with(seed, pace, |_| {})
}

/// The same after a change.
fn page_with(seed: u64, pace: Pace, change: impl FnOnce(&mut Page<'_>)) -> Vec<u32> {
    let features = [1.0, 0.5, 0.25, -0.5, 0.75, 1.0];
    let mut page = Page {
        board: "testing",
        key: None,
        key_number: 1,
        chip: None,
        boot_floor: 1,
        agent: Config::founder(0, 3).with_mode(if let Pace::Period { .. } = pace {
            Mode::FreeRunning
        } else {
            Mode::LockStep
        }),
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
    change(&mut page);
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
    said_with(&mut vec![0xFF; 64 * 1024], page, words, a_while())
}

/// The same with this flash, until then.
fn said_with(
    flash: &mut Vec<u8>,
    page: &[u32],
    words: impl IntoIterator<Item = Packet<'static>>,
    then: impl Future<Output = ()>,
) -> Vec<Vec<u8>> {
    let heard = RefCell::new(Vec::new());
    let parts = Parts {
        board: "testing",
        chip: Some(CHIP),
        window: 1024,
        page: bytemuck::cast_slice(page),
        buffers: &mut Buffers::new(),
        link: Host { words: words.into_iter(), heard: &heard },
        storage: BoardStorage::new(RamFlash(flash)),
        health: NoWatchdog,
    };
    block_on(select(run(parts), then));
    heard.into_inner()
}

fn telemetry(said: &[Vec<u8>]) -> Vec<Telemetry> {
    let telemetry = |packet: &Vec<u8>| match Packet::decode(packet) {
        Ok(Packet::Telemetry(telemetry, _)) => Some(telemetry),
        _ => None,
    };
    said.iter().filter_map(telemetry).collect()
}

/// The end of a round, by a host that does not know what the board must come to.
fn over(air_round: u32) -> Packet<'static> {
    Packet::RoundOver(RoundOver { air_round, digest: None })
}

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

/// The state in which a board first differs would be gone a round later.
#[test]
fn a_board_that_comes_to_another_state_than_expected_stays_in_it() {
    let right = telemetry(&said(&page(Pace::Air), [Packet::Start { air_round: 0 }, over(0), over(1)]));
    let digests = right.iter().map(|told| told.digest).skip(1).collect::<Vec<_>>();
    let expecting = |air_round, digest| Packet::RoundOver(RoundOver { air_round, digest: Some(digest) });
    let after = |second: u32| {
        let rounds = [expecting(0, digests[0]), expecting(1, second), Packet::Frame(&[1; 40]), over(2)];
        let words = [Packet::Start { air_round: 0 }].into_iter().chain(rounds);
        telemetry(&said(&page(Pace::Air), words.chain([Packet::StateRequest { from: 0 }])))
    };
    assert_eq!(after(digests[1]).last().map(|told| told.air_round), Some(3));
    let held = after(!digests[1]);
    assert_eq!(held.last().map(|told| (told.air_round, told.digest, told.refused)), Some((2, digests[1], 0)));
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

/// Returns how many rounds a board ended on its own while it received `packets`, and how many of them late.
fn alone(pace: Pace, us: u64, words: impl IntoIterator<Item = Packet<'static>>) -> (u32, u32) {
    let begun = Instant::now();
    let time = Timer::after(Duration::from_millis(500));
    let told = telemetry(&said_with(&mut vec![0xFF; 64 * 1024], &page(pace), words, time));
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

#[test]
fn who_keeps_its_own_time_takes_no_orders() {
    let page = page_of(5, Pace::Period { us: u32::MAX });
    let said = said(&page, (0..5).map(over));
    assert!(telemetry(&said).iter().all(|told| (told.air_round, told.round) == (0, 0)));
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
fn whatever_comes_by_radio_is_a_frame() {
    let mut over_bytes = [0; 8];
    let length = over(0).encode(&mut over_bytes).unwrap();
    let over_bytes = &over_bytes[..length];
    let mut heard = [0; 64];
    let mut by_radio = SplitLink::new(Radio(VecDeque::from([over_bytes.to_vec()])), Radio(VecDeque::new()));
    let length = block_on(by_radio.receive(&mut heard));
    assert_eq!(Packet::decode(&heard[..length]), Ok(Packet::Frame(over_bytes)));
    let mut by_cable = SplitLink::new(Radio(VecDeque::new()), Radio(VecDeque::from([over_bytes.to_vec()])));
    let length = block_on(by_cable.receive(&mut heard));
    assert_eq!(Packet::decode(&heard[..length]), Ok(over(0)));
}

/// Boards that hear each other, on one clock.
#[derive(Default)]
struct Ether {
    /// What waits for each board, with when it was sent.
    waiting: [VecDeque<(Vec<u8>, embassy_time::Instant)>; 3],
    /// What each board said to the host.
    said: [Vec<Vec<u8>>; 3],
}

struct EtherLink<'a> {
    board: usize,
    ether: &'a RefCell<Ether>,
    arrived: Option<embassy_time::Instant>,
}

impl Link for EtherLink<'_> {
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
        Superframe::plan(&SlotNeeds { agents: 3, frame_us: 4000, tick_us: 200, ..SlotNeeds::default() })
            .unwrap();
    let pace = Pace::Slots { superframe, slot_bytes: 500, shared_bytes: 0 };
    let pages: Vec<_> = (0..3)
        .map(|id| {
            page_with(5, pace, |page| {
                page.agent = page.agent.with_id(id);
                page.rounds = u32::MAX;
            })
        })
        .collect();
    let ether = RefCell::new(Ether::default());
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
            link: EtherLink { board, ether: &ether, arrived: None },
            storage: BoardStorage::new(RamFlash(flash)),
            health: NoWatchdog,
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

/// Checks that a board with this flash and page says this error and nothing else.
fn assert_refused(flash: &mut Vec<u8>, page: &[u32], error: provisioning::Error) {
    let said = said_with(flash, page, [Packet::Start { air_round: 0 }, over(0)], a_while());
    assert!(!said.is_empty());
    for packet in said {
        let Ok(Packet::Boot(boot)) = Packet::decode(&packet) else { panic!("{packet:?} is no boot") };
        assert_eq!(boot.page, Err(error));
    }
}

#[test]
fn a_board_without_a_page_says_so_and_nothing_else() {
    assert_refused(&mut vec![0xFF; 64 * 1024], &[u32::MAX; 64], provisioning::Error::Missing);
}

/// The last boot packet of a board, and whatever else it sent.
fn last_boot(said: &[Vec<u8>]) -> (Boot<'_>, Vec<Packet<'_>>) {
    let packets = said.iter().map(|packet| Packet::decode(packet).unwrap());
    let (boots, others): (Vec<_>, Vec<_>) = packets.partition(|packet| matches!(packet, Packet::Boot(_)));
    let Some(&Packet::Boot(last)) = boots.last() else { panic!("no boot packet") };
    (last, others)
}

#[test]
fn a_board_without_an_agent_takes_a_page() {
    let commands = [
        Packet::PageBytes { offset: 0, bytes: &[1, 2, 3, 4] },
        Packet::PageBytes { offset: 4, bytes: &[5, 6, 7, 8] },
        Packet::Mark { number: 7 },
    ];
    let mut flash = vec![0xFF; 64 * 1024];
    flash[PAGE_AT..].fill(0);
    let said = said_with(&mut flash, &[u32::MAX; 64], commands, a_while());
    assert_eq!(flash[PAGE_AT..PAGE_AT + 9], [1, 2, 3, 4, 5, 6, 7, 8, 0xFF]);
    let (boot, others) = last_boot(&said);
    assert_eq!(boot.page, Err(provisioning::Error::Missing));
    assert_eq!(others, [Packet::Mark { number: 7 }]);
}

#[test]
fn a_board_that_waits_leaves_its_agent_for_service() {
    let waiting = said(&page(Pace::Air), []);
    let (boot, _) = last_boot(&waiting);
    assert_eq!((boot.chip, boot.window, boot.page.unwrap().boot), (Some(CHIP), 1024, 1));
    let in_service = said(&page(Pace::Air), [Packet::Service]);
    assert_eq!(last_boot(&in_service).0.page, Err(provisioning::Error::InService));
}

#[test]
fn a_board_that_runs_keeps_its_page() {
    let page_bytes = Packet::PageBytes { offset: 0, bytes: &[1, 2, 3, 4] };
    let commands = [Packet::Start { air_round: 0 }, Packet::Service, page_bytes, over(0)];
    let mut flash = vec![0xFF; 64 * 1024];
    let said = said_with(&mut flash, &page(Pace::Air), commands, a_while());
    assert_eq!(flash[PAGE_AT], 0xFF);
    assert_eq!(telemetry(&said).len(), 2);
}

#[test]
fn a_page_for_another_chip_is_refused() {
    let page = page_with(5, Pace::Air, |page| page.chip = Some(7));
    assert_refused(&mut vec![0xFF; 64 * 1024], &page, provisioning::Error::OtherChip);
}

#[test]
fn a_page_with_an_old_key_is_refused() {
    let mut flash = vec![0xFF; 64 * 1024];
    let new = page_with(5, Pace::Air, |page| page.key_number = 2);
    assert_eq!(first_round(&said_with(&mut flash, &new, [], a_while())), 0);
    let old = provisioning::Error::OldKey { page: 1, used: 2 };
    assert_refused(&mut flash, &page(Pace::Air), old);
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
