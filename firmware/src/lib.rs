//! Drives a fabswarm agent on a microcontroller. Knows no chip.
//!
//! A board brings its [`Parts`] and calls [`run`], which never returns. Two tasks share one executor:
//!
//! ```text
//!   link ◀──▶ [link::queue] ◀──▶ [rounds] ──▶ storage
//!              a few packets         agent
//!              each way              telemetry
//! ```
//!
//! 1. **Nothing waits for ever.** Mailboxes are bounded, a link that does not take a packet loses it, and the watchdog
//!    restarts a board whose firmware hangs all the same.
//! 2. **What was said is remembered.** With storage on, an agent's state is in flash before the frame that tells of it
//!    leaves, so a restart at any time goes on where the swarm believes it is.
//! 3. **A board that does not know who it is stays silent** in the swarm, and says so to whoever listens on its link.
#![no_std]
#![forbid(unsafe_code)]

#[macro_use]
mod fmt;
pub mod health;
pub mod link;
mod rounds;
mod sealed_agent;
mod sizes;
pub mod storage;

pub use fabswarm_shared::{packet, provisioning};
pub use sizes::{LINE, MEMBERS, PACKET, WORDS};

use embassy_futures::join::join;
use embassy_time::{Duration, Timer};
use embedded_storage::nor_flash::NorFlash;
use fabswarm_shared::{
    BUILD_ID,
    packet::{Boot, Packet},
    provisioning::Page,
    wire::seal::Sealer,
};
use health::Health;
use link::{Link, PacketQueue, PacketReceiver, PacketSender};
use rounds::RoundDriver;
use sealed_agent::{BoardAgent, PeerList, SealedAgent};
use storage::BoardStorage;

/// How often a board that waits for its host says that it is there.
const BOOT_EVERY: Duration = Duration::from_millis(50);

/// The firmware's large buffers. A board keeps them in a `static`: inside a task they would be built on the stack first.
pub struct Buffers {
    peers: PeerList,
    incoming: PacketQueue<PACKET>,
    outgoing: PacketQueue<PACKET>,
}

impl Buffers {
    /// Empty buffers.
    #[must_use]
    pub const fn new() -> Self {
        Self { peers: PeerList::new(), incoming: PacketQueue::new(), outgoing: PacketQueue::new() }
    }
}

impl Default for Buffers {
    fn default() -> Self {
        Self::new()
    }
}

impl core::fmt::Debug for Buffers {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.debug_struct("Buffers").finish_non_exhaustive()
    }
}

/// What a board must bring.
#[derive(Debug)]
pub struct Parts<'a, L, F, H> {
    /// The name in its `board.toml`.
    pub board: &'a str,
    /// Where its provisioning page is.
    pub page: &'a [u8],
    /// Where the firmware works.
    pub buffers: &'a mut Buffers,
    /// How it is heard.
    pub link: L,
    /// What outlives a restart.
    pub storage: BoardStorage<F>,
    /// What watches over the firmware.
    pub health: H,
}

/// Is the agent that the board's page describes.
pub async fn run<L: Link, F: NorFlash, H: Health>(parts: Parts<'_, L, F, H>) -> ! {
    let Parts { board, page: bytes, buffers, mut link, mut storage, mut health } = parts;
    let Buffers { peers, incoming, outgoing } = buffers;
    let mut place = None;
    let (page, agent) = match awake(bytes, board, &mut storage, peers, &mut place) {
        Ok(awake) => awake,
        Err(error) => complain(board, error, &mut link, &mut health).await,
    };
    let (mut incoming, mut outgoing) = (incoming.channel(), outgoing.channel());
    let (to_agent, inbox) = incoming.split();
    let (outbox, from_agent) = outgoing.split();
    let mut rounds = RoundDriver::new(
        &page,
        provisioning::page_crc(bytes),
        agent,
        &mut storage,
        &mut health,
        PacketReceiver::new(inbox),
        PacketSender::new(outbox),
    );
    join(link::serve(&mut link, to_agent, from_agent), rounds.run()).await.0
}

/// Finds out who the board is, and puts its agent into `place`.
fn awake<'a, 'p, F: NorFlash>(
    bytes: &'a [u8],
    board: &str,
    storage: &mut BoardStorage<F>,
    peers: &'a mut PeerList,
    place: &'p mut Option<BoardAgent<'a>>,
) -> Result<(Page<'a>, SealedAgent<'p, 'a>), provisioning::Error> {
    let page = Page::read(bytes, board)?;
    let sealer = Sealer::start(page.agent.id, storage).map_err(|_| provisioning::Error::Storage)?;
    let mut agent = SealedAgent::make(place, &page, sealer, peers)?;
    agent.restore(storage, &page, provisioning::page_crc(bytes))?;
    Ok((page, agent))
}

/// Says again and again what is wrong with the board's page.
async fn complain<L: Link, H: Health>(
    board: &str,
    error: provisioning::Error,
    link: &mut L,
    health: &mut H,
) -> ! {
    error!("no agent: {}", error);
    let boot = Packet::Boot(Boot { board, schema: packet::SCHEMA, build: BUILD_ID, page: Err(error) });
    let mut packet = [0; 64];
    let length = boot.encode(&mut packet).unwrap_or_default();
    loop {
        link.send(&packet[..length]).await;
        health.feed_watchdog();
        Timer::after(BOOT_EVERY).await;
    }
}
