//! Drives a fabswarm agent on a microcontroller. Knows no chip.
//!
//! A board brings its [`Parts`] and calls [`run`], which never returns. Two tasks share one executor:
//!
//! ```text
//!   link ◀──▶ [link::mailbox] ◀──▶ [rounds] ──▶ storage
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
mod sizes;
mod speaker;
pub mod storage;

pub use fabswarm_shared::{packet, provisioning};
pub use sizes::{LINE, MEMBERS, PACKET, WORDS};

use embassy_futures::join::join;
use embassy_time::{Duration, Timer};
use embedded_storage::nor_flash::NorFlash;
use fabswarm_shared::{
    packet::{Boot, Packet},
    provisioning::Page,
    wire::seal::Sealer,
};
use health::Health;
use link::{Inbox, Link, Mailbox, Outbox};
use rounds::Rounds;
use speaker::{BoardAgent, Peers, Speaker};
use storage::Storage;

/// How often a board that waits for its host says that it is there.
const BOOT_EVERY: Duration = Duration::from_millis(50);

/// The firmware's large buffers. A board keeps them in a `static`: inside a task they would be built on the stack first.
pub struct Memory {
    peers: Peers,
    incoming: Mailbox<PACKET>,
    outgoing: Mailbox<PACKET>,
}

impl Memory {
    /// Empty buffers.
    #[must_use]
    pub const fn new() -> Self {
        Self { peers: Peers::new(), incoming: Mailbox::new(), outgoing: Mailbox::new() }
    }
}

impl Default for Memory {
    fn default() -> Self {
        Self::new()
    }
}

impl core::fmt::Debug for Memory {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.debug_struct("Memory").finish_non_exhaustive()
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
    pub memory: &'a mut Memory,
    /// How it is heard.
    pub link: L,
    /// What outlives a restart.
    pub storage: Storage<F>,
    /// What watches over the firmware.
    pub health: H,
}

/// Is the agent that the board's page describes.
pub async fn run<L: Link, F: NorFlash, H: Health>(parts: Parts<'_, L, F, H>) -> ! {
    let Parts { board, page: bytes, memory, mut link, mut storage, mut health } = parts;
    let Memory { peers, incoming, outgoing } = memory;
    let mut place = None;
    let (page, agent) = match awake(bytes, board, &mut storage, peers, &mut place) {
        Ok(awake) => awake,
        Err(error) => complain(board, error, &mut link, &mut health).await,
    };
    let (mut incoming, mut outgoing) = (incoming.channel(), outgoing.channel());
    let (to_agent, inbox) = incoming.split();
    let (outbox, from_agent) = outgoing.split();
    let mut rounds = Rounds::new(
        &page,
        provisioning::page_crc(bytes),
        agent,
        &mut storage,
        &mut health,
        Inbox::new(inbox),
        Outbox::new(outbox),
    );
    join(link::serve(&mut link, to_agent, from_agent), rounds.run()).await.0
}

/// Finds out who the board is, and puts its agent into `place`.
fn awake<'a, 'p, F: NorFlash>(
    bytes: &'a [u8],
    board: &str,
    storage: &mut Storage<F>,
    peers: &'a mut Peers,
    place: &'p mut Option<BoardAgent<'a>>,
) -> Result<(Page<'a>, Speaker<'p, 'a>), provisioning::Error> {
    let page = Page::read(bytes, board)?;
    let sealer = Sealer::start(page.agent.id, storage).map_err(|_| provisioning::Error::Storage)?;
    let mut agent = Speaker::make(place, &page, sealer, peers)?;
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
    let boot = Packet::Boot(Boot { board, schema: packet::SCHEMA, page: Err(error) });
    let mut packet = [0; 64];
    let length = boot.encode(&mut packet).unwrap_or_default();
    loop {
        link.send(&packet[..length]).await;
        health.feed_watchdog();
        Timer::after(BOOT_EVERY).await;
    }
}
