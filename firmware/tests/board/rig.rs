//! A board in this process, with a host at its link.

use core::cell::RefCell;
use core::convert::Infallible;
use embassy_futures::{block_on, select::select, yield_now};
use embassy_time::{Duration, Instant, Timer, with_timeout};
use embedded_storage::nor_flash::{ErrorType, NorFlash, ReadNorFlash};
use fabswarm_firmware::{
    Buffers, Parts,
    health::Health,
    link::Link,
    run,
    storage::{BoardStorage, PageFlash},
};
use fabswarm_shared::{
    agent::Config,
    packet::{Packet, RoundOver, Telemetry},
    problem::{AnyProblem, PolicyEvaluation},
    provisioning::{Pace, Page},
    slots::{SlotConfig, Superframe},
};

/// A host that says one thing after the other and keeps what it hears.
pub(crate) struct FakeHost<'a, W> {
    pub(crate) words: W,
    pub(crate) heard: &'a RefCell<Vec<Vec<u8>>>,
}

impl<W: Iterator<Item = Packet<'static>>> Link for FakeHost<'_, W> {
    async fn send(&mut self, packet: &[u8]) {
        self.heard.borrow_mut().push(packet.to_vec());
    }

    async fn receive(&mut self, packet: &mut [u8]) -> (usize, Instant) {
        match self.words.next() {
            Some(word) => (word.encode(packet).unwrap(), Instant::now()),
            None => core::future::pending().await,
        }
    }
}

pub(crate) struct RamFlash<'a>(pub(crate) &'a mut Vec<u8>);

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

pub(crate) fn blank_flash() -> Vec<u8> {
    vec![0xFF; 64 * 1024]
}

/// The offset of the page in the flash.
pub(crate) const PAGE_AT: usize = 60 * 1024;
pub(crate) const CHIP: u64 = 0xE661_0000_0000_0001;

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

pub(crate) struct NoWatchdog;

impl Health for NoWatchdog {
    fn feed_watchdog(&mut self) {}
}

/// The pace of a board that keeps its own time, with slots for so many agents.
pub(crate) fn slots(agents: u16) -> Pace {
    let config = SlotConfig { agents, frame_us: 4000, tick_us: 200, ..SlotConfig::default() };
    Pace::Slots { superframe: Superframe::plan(&config).unwrap(), slot_bytes: 500, shared_bytes: 0 }
}

/// The page of a board whose rounds end as `pace` says.
pub(crate) fn page(pace: Pace) -> Vec<u32> {
    page_with(5, pace, |_| {})
}

/// The page of a board whose problem is drawn from `seed`, after `change`.
pub(crate) fn page_with(seed: u64, pace: Pace, change: impl FnOnce(&mut Page<'_>)) -> Vec<u32> {
    let features = [1.0, 0.5, 0.25, -0.5, 0.75, 1.0];
    let mut page = Page {
        board: "testing",
        key: None,
        key_number: 1,
        chip: None,
        boot_floor: 1,
        agent: Config::founder(0, 3),
        pace,
        rounds: 10,
        save_every: 1,
        start: &[0.0; 8],
        problem: AnyProblem::PolicyEvaluation(PolicyEvaluation {
            regularisation: 0.1,
            seed,
            ..PolicyEvaluation::new(&features, &features, &[0.5, 0.25, -1.0])
        }),
    };
    change(&mut page);
    let mut words = vec![0; 256];
    page.write(bytemuck::cast_slice_mut(&mut words)).unwrap();
    words
}

/// Longer than a board that works takes on any machine.
pub(crate) const A_MINUTE: Duration = Duration::from_secs(60);

/// Long enough for everything a board does without its clock.
pub(crate) async fn a_while() {
    for _ in 0..1000 {
        yield_now().await;
    }
}

/// Waits until telemetry is as it should be, which takes a busy machine a while.
pub(crate) async fn until_told(heard: &RefCell<Vec<Vec<u8>>>, is_enough: impl Fn(&[Telemetry]) -> bool) {
    let told = async {
        while !is_enough(&telemetry(&heard.borrow())) {
            Timer::after_millis(10).await;
        }
    };
    let _ = with_timeout(A_MINUTE, told).await;
}

/// The packets that a board with blank flash sends to a host that sends `words`.
pub(crate) fn said(page: &[u32], words: impl IntoIterator<Item = Packet<'static>>) -> Vec<Vec<u8>> {
    said_with(&mut blank_flash(), page, words)
}

/// The packets that a board with this flash sends.
pub(crate) fn said_with(
    flash: &mut Vec<u8>,
    page: &[u32],
    words: impl IntoIterator<Item = Packet<'static>>,
) -> Vec<Vec<u8>> {
    said_by(flash, page, words, async |_| a_while().await, async |parts| run(parts).await)
}

/// The packets that a board which `start` runs sends until `then`, which sees them, is ready.
pub(crate) fn said_by<W: Iterator<Item = Packet<'static>>>(
    flash: &mut Vec<u8>,
    page: &[u32],
    words: impl IntoIterator<IntoIter = W>,
    then: impl for<'a> AsyncFnOnce(&'a RefCell<Vec<Vec<u8>>>),
    start: impl for<'a> AsyncFnOnce(Parts<'a, FakeHost<'a, W>, RamFlash<'a>, NoWatchdog>),
) -> Vec<Vec<u8>> {
    let heard = RefCell::new(Vec::new());
    let buffers = &mut Buffers::new();
    let parts = Parts {
        board: "testing",
        chip: Some(CHIP),
        window: 1024,
        page: bytemuck::cast_slice(page),
        buffers,
        link: FakeHost { words: words.into_iter(), heard: &heard },
        storage: BoardStorage::new(RamFlash(flash)),
        health: NoWatchdog,
        marks: None,
    };
    block_on(select(start(parts), then(&heard)));
    heard.into_inner()
}

pub(crate) fn telemetry(said: &[Vec<u8>]) -> Vec<Telemetry> {
    let telemetry = |packet: &Vec<u8>| match Packet::decode(packet) {
        Ok(Packet::Telemetry(telemetry, _)) => Some(telemetry),
        _ => None,
    };
    said.iter().filter_map(telemetry).collect()
}

/// The end of a round, by a host that does not know what the board must come to.
pub(crate) fn over(air_round: u32) -> Packet<'static> {
    Packet::RoundOver(RoundOver { air_round, frames: 0, digest: None })
}

/// The round a board says it would go on with.
pub(crate) fn first_round(said: &[Vec<u8>]) -> u32 {
    let boot = said.iter().find_map(|packet| match Packet::decode(packet) {
        Ok(Packet::Boot(boot)) => Some(boot.page),
        _ => None,
    });
    boot.unwrap().unwrap().round
}
