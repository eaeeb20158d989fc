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
pub mod storage;
mod voice;

pub use fabswarm_shared::{packet, provisioning};
pub use sizes::{MEMBERS, PACKET, WORDS};

use embassy_futures::join::join;
use embassy_time::{Duration, Timer};
use embedded_storage::nor_flash::NorFlash;
use fabswarm_shared::{
    packet::{Boot, Packet},
    provisioning::Page,
    wire,
};
use health::Health;
use link::{Inbox, Link, Mailbox, Outbox};
use rounds::{Peers, Rounds};
use storage::Storage;

/// How often a board that waits for its host says that it is there.
const BOOT_EVERY: Duration = Duration::from_millis(50);

/// What a board must bring.
#[derive(Debug)]
pub struct Parts<'a, L, F, H> {
    /// The name in its `board.toml`.
    pub board: &'a str,
    /// Where its provisioning page is.
    pub page: &'a [u8],
    /// How it is heard.
    pub link: L,
    /// What outlives a restart.
    pub storage: Storage<F>,
    /// What watches over the firmware.
    pub health: H,
}

/// Is the agent that the board's page describes.
pub async fn run<L: Link, F: NorFlash, H: Health>(parts: Parts<'_, L, F, H>) -> ! {
    let Parts { board, page: bytes, mut link, storage, mut health } = parts;
    let error = match Page::read(bytes, board) {
        Ok(page) => {
            let (mut incoming, mut outgoing) = (Mailbox::<PACKET>::new(), Mailbox::<PACKET>::new());
            let (mut incoming, mut outgoing) = (incoming.channel(), outgoing.channel());
            let (to_agent, inbox) = incoming.split();
            let (outbox, from_agent) = outgoing.split();
            let (inbox, outbox) = (Inbox::new(inbox), Outbox::new(outbox));
            let mut peers = Peers::new();
            let crc = provisioning::page_crc(bytes);
            match Rounds::new(&page, crc, storage, &mut health, &mut peers, inbox, outbox) {
                Ok(mut rounds) => join(link::serve(&mut link, to_agent, from_agent), rounds.run()).await.0,
                Err(error) => error,
            }
        }
        Err(error) => error,
    };
    error!("no agent: {}", error);
    complain(board, error, &mut link, &mut health).await
}

/// Says again and again what is wrong with the board's page.
async fn complain<L: Link, H: Health>(
    board: &str,
    error: provisioning::Error,
    link: &mut L,
    health: &mut H,
) -> ! {
    let boot = Packet::Boot(Boot { board, schema: wire::SCHEMA, page: Err(error) });
    let mut packet = [0; 64];
    let length = boot.encode(&mut packet).unwrap_or_default();
    loop {
        link.send(&packet[..length]).await;
        health.feed_watchdog();
        Timer::after(BOOT_EVERY).await;
    }
}
