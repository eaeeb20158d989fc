//! Drives a fabswarm agent on a microcontroller. Knows no chip.
//!
//! A board passes its [`Parts`] to [`run`], which never returns. Two tasks share one executor:
//!
//! ```text
//!   link ◀──▶ [link::queue] ◀──▶ [rounds] ──▶ storage
//!              a few packets         agent
//!              each way              telemetry
//! ```
//!
//! 1. **Nothing blocks forever.** Queues are bounded, a packet that the link does not accept in time is dropped, and the
//!    watchdog resets a board whose firmware hangs.
//! 2. **State is saved before it is sent.** If the page asks for it, an agent's state is in flash before the frame that
//!    depends on it is sent, so a restart at any time resumes where the swarm believes the agent is.
//! 3. **A board without a valid page sends no frames.** It repeats the error on its link instead.
#![no_std]
#![forbid(unsafe_code)]

#[macro_use]
mod fmt;
mod flight_log;
pub mod health;
pub mod link;
pub mod marks;
mod mavlink;
mod round_log;
mod rounds;
mod sealed_agent;
pub mod sensor;
mod sizes;
mod slot_rounds;
pub mod storage;

// The problem that firmware is built for: that of the file which FABSWARM_PROBLEM names, or any of ours.
include!(concat!(env!("OUT_DIR"), "/board_problem.rs"));

pub use fabswarm_shared::{packet, provisioning};
pub use sizes::{LINE, MEMBERS, PACKET, WORDS};

use core::{cell::Cell, pin::pin};
use embassy_futures::select::{Either, select};
use embassy_time::{Duration, Instant, Timer, with_timeout};
use embedded_storage::nor_flash::NorFlash;
use fabswarm_shared::{
    BUILD_ID,
    packet::{BoardIdentity, Boot, Packet},
    problem::SensedProblem,
    provisioning::{Pace, Page, PageProblem},
    wire::seal::{Opener, Sealer},
};
use health::Health;
use link::{Link, PacketQueue, PacketReceiver, PacketSender};
use marks::Mark;
use rounds::RoundDriver;
use sealed_agent::{BoardAgent, PeerList, SealedAgent};
use sensor::{Outlet, ReadingExchange, Sensor, Unconnected};
use storage::{BoardStorage, PageFlash};

/// Interval between the boot packets of a board that waits for its host.
const BOOT_EVERY: Duration = Duration::from_millis(50);

/// The firmware's large buffers. A board keeps them in a `static`: a task would build them on the stack first.
#[derive(Debug)]
pub struct Buffers {
    peers: PeerList,
    opener: Opener<MEMBERS>,
    incoming: PacketQueue,
    outgoing: PacketQueue,
}

impl Buffers {
    /// Creates empty buffers.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            peers: PeerList::new(),
            opener: Opener::new(),
            incoming: PacketQueue::new(),
            outgoing: PacketQueue::new(),
        }
    }
}

impl Default for Buffers {
    fn default() -> Self {
        Self::new()
    }
}

/// The parts of a board that it passes to [`run`].
#[allow(missing_debug_implementations, reason = "pins have nothing to show")]
pub struct Parts<'a, L, F, H> {
    /// `name` in its `board.toml`.
    pub board: &'a str,
    /// The number that its maker gave its chip, if it has one.
    pub chip: Option<u64>,
    /// Bytes that its link's receiver buffers while the firmware is busy.
    pub window: u16,
    /// Its provisioning record, which may be followed by other bytes.
    pub page: &'a [u8],
    /// The firmware's large buffers.
    pub buffers: &'a mut Buffers,
    /// Its link to the swarm and the host.
    pub link: L,
    /// Its storage across restarts.
    pub storage: BoardStorage<F>,
    /// Its watchdog and stack gauge.
    pub health: H,
    /// Its pins for a logic analyser, if it has some.
    pub marks: Option<&'a dyn Fn(Mark)>,
}

/// Runs the agent that the board's page describes, on the problem that the firmware was built for.
pub async fn run<L: Link, F: NorFlash + PageFlash, H: Health>(parts: Parts<'_, L, F, H>) -> ! {
    run_between::<BoardProblem<'_>>(parts, Unconnected, Unconnected).await
}

/// Runs the agent that the board's page describes, on a problem of this type.
pub async fn run_problem<'a, P: PageProblem<'a> + Copy>(
    parts: Parts<'a, impl Link, impl NorFlash + PageFlash, impl Health>,
) -> ! {
    run_between::<P>(parts, Unconnected, Unconnected).await
}

/// Runs the agent that the board's page describes, on fresh readings of a sensor, and passes on its decisions. Only sensor trust
/// has readings.
pub async fn run_sensed(
    parts: Parts<'_, impl Link, impl NorFlash + PageFlash, impl Health>,
    sensor: impl Sensor,
    outlet: impl Outlet,
) -> ! {
    run_between::<SensedProblem<'_>>(parts, sensor, outlet).await
}

async fn run_between<'a, P: PageProblem<'a> + Copy>(
    parts: Parts<'a, impl Link, impl NorFlash + PageFlash, impl Health>,
    sensor: impl Sensor,
    outlet: impl Outlet,
) -> ! {
    let Parts { board, chip, window, page: bytes, buffers, mut link, mut storage, mut health, marks } = parts;
    let (cause, panic) = (health.reset_cause(), health.last_panic());
    // The panic handler restarted the board, whatever cause the chip reports.
    let reset = if panic.is_some() { packet::ResetCause::Software } else { cause };
    let boot =
        |page| Boot { board, schema: packet::SCHEMA, build: BUILD_ID, chip, window, reset, panic, page };
    info!("started {}", reset);
    if let Some(message) = panic {
        error!("the last run ended in a panic: {}", message);
    }
    let Buffers { peers, opener, incoming, outgoing } = buffers;
    let mut place: Option<BoardAgent<'_, P>> = None;
    let (error, is_trial_over) =
        match start_agent(bytes, board, chip, &mut storage, (peers, opener), &mut place) {
            Ok((page, sealed)) => {
                link.start(page.agent.id, sealed.boot(), page.pace.into());
                let (mut incoming, mut outgoing) = (incoming.channel(), outgoing.channel());
                let (to_agent, receiver) = incoming.split();
                let (sender, from_agent) = outgoing.split();
                let identity = BoardIdentity {
                    agent: page.agent.id,
                    page_crc: provisioning::page_crc(bytes),
                    round: sealed.agent.round(),
                    boot: sealed.boot(),
                };
                let (radio, readings) = (Cell::new(None), ReadingExchange::new());
                let mut rounds = RoundDriver::new(
                    &page,
                    boot(Ok(identity)),
                    sealed,
                    &mut storage,
                    (&mut health, marks),
                    (PacketReceiver { queue: receiver, radio: &radio }, PacketSender(sender)),
                    (&readings, outlet),
                );
                let serve = link::serve(&mut link, to_agent, from_agent, &radio);
                let (sensor, rounds) = (pin!(readings.serve(sensor)), pin!(rounds.run()));
                select(serve, readings.beside(sensor, rounds)).await;
                (provisioning::Error::InService, matches!(page.pace, Pace::Slots { .. }))
            }
            Err(error) => (error, false),
        };
    // Otherwise the board would fly this trial again, and alone, when it next gets power.
    if is_trial_over && !storage.erase_page() {
        error!("the record of the trial could not be erased");
    }
    error!("no agent runs: {}", error);
    serve_without_agent(boot(Err(error)), &mut link, &mut storage, &mut health, incoming.scratch()).await
}

/// Reads the page and constructs its agent in `place`.
fn start_agent<'a, 's, 'p, P: PageProblem<'a> + Copy, F: NorFlash>(
    bytes: &'a [u8],
    board: &str,
    chip: Option<u64>,
    storage: &mut BoardStorage<F>,
    (peers, opener): (&'s mut PeerList, &'s mut Opener<MEMBERS>),
    place: &'p mut Option<BoardAgent<'s, P>>,
) -> Result<(Page<'a, P>, SealedAgent<'p, 's, P>), provisioning::Error> {
    let page = Page::read_as(bytes, board)?;
    if page.chip.is_some() && page.chip != chip {
        return Err(provisioning::Error::OtherChip);
    }
    let mut boots = storage.boots(page.key_number, page.boot_floor)?;
    let sealer = Sealer::start(page.agent.id, page.boot_floor, &mut boots)
        .map_err(|_| provisioning::Error::Storage)?;
    let mut sealed = SealedAgent::new_in(place, &page, sealer, (peers, opener))?;
    sealed.restore(storage, &page, provisioning::page_crc(bytes))?;
    Ok((page, sealed))
}

/// Repeats why the board runs no agent, and takes a new page where the board can write it.
async fn serve_without_agent<L: Link, F: PageFlash, H: Health>(
    boot: Boot<'_>,
    link: &mut L,
    storage: &mut BoardStorage<F>,
    health: &mut H,
    packet: &mut [u8],
) -> ! {
    let mut boot_at = Instant::MIN;
    // Up to which byte of a page the last bytes were written.
    let mut written = 0;
    loop {
        if Instant::now() >= boot_at {
            let length = Packet::Boot(boot).encode(packet).unwrap_or_default();
            // A cable without a host may never take it.
            let _ = with_timeout(BOOT_EVERY, link.send(&packet[..length])).await;
            health.feed_watchdog();
            boot_at = Instant::now() + BOOT_EVERY;
        }
        if !F::CAN_WRITE {
            Timer::at(boot_at).await;
            continue;
        }
        let Either::First((length, _)) = select(link.receive(packet), Timer::at(boot_at)).await else {
            continue;
        };
        let bytes = &packet[..length];
        match Packet::decode_service(bytes).or_else(|_| Packet::decode_for_board(bytes)) {
            Ok(Packet::PageBytes { offset, bytes }) => {
                let end = offset.wrapping_add(bytes.len() as u32);
                // What was written already is not written again: some flash takes it only once.
                if offset == 0 || written != end {
                    let is_written = storage.write_page(offset, bytes);
                    if !is_written {
                        error!("the record could not be written at {}", offset);
                    }
                    written = if is_written { end } else { 0 };
                }
            }
            // Returned as it came, unless it tells of bytes that are not written.
            Ok(Packet::Mark { number }) if number == 0 || number == written => {
                let _ = with_timeout(BOOT_EVERY, link.send(bytes)).await;
            }
            Ok(Packet::Reset) => health.reset(),
            Ok(Packet::Identify) => health.set_light(true),
            _ => {}
        }
    }
}
