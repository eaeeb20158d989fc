//! The agent's rounds: say, hear, compute.

use crate::{
    BOOT_EVERY, MEMBERS, PACKET, WORDS,
    health::Health,
    link::{Inbox, Outbox},
    storage::Storage,
};
use embassy_time::{Duration, Instant, with_deadline};
use embedded_storage::nor_flash::NorFlash;
use fabswarm_shared::{
    agent::{Agent, Received},
    packet::{self, Boot, FRAME_OFFSET, Identity, Packet, Telemetry},
    problem::AnyProblem,
    provisioning::{Pace, Page},
    wire,
};

/// How long the firmware may wait before it feeds the watchdog again.
const WATCH_EVERY: Duration = Duration::from_secs(1);
/// Walking the stack takes longer than a round: it is done now and then.
const ROUNDS_PER_STACK_CHECK: u32 = 64;
/// A saved state: most of it is what the agent remembers of each member.
const STATE_BYTES: usize = 64;

/// Drives one agent.
pub(crate) struct Rounds<'a, F, H> {
    page: &'a Page<'a>,
    page_crc: u32,
    agent: Agent<AnyProblem<'a, f32>, WORDS, MEMBERS>,
    storage: Storage<F>,
    health: H,
    telemetry: Telemetry,
    inbox: Inbox<'a, PACKET>,
    outbox: Outbox<'a, PACKET>,
}

/// What the agent waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Event {
    /// The round is over.
    Over,
    /// The swarm is in this round.
    Start(u32),
    /// The host has missed what was said last.
    Missed,
    /// Nothing in time.
    Late,
}

impl<'a, F: NorFlash, H: Health> Rounds<'a, F, H> {
    pub(crate) async fn run(mut self) -> ! {
        self.wait_for_the_host().await;
        let mut round_ends = Instant::now();
        while self.agent.round() < self.page.rounds {
            round_ends = match self.page.pace {
                Pace::Air => Instant::MAX,
                Pace::Deadline { us } => Instant::now() + Duration::from_micros(us.into()),
                // From the end of the round before: a late round does not shift the others.
                Pace::Period { us } => round_ends + Duration::from_micros(us.into()),
            };
            self.broadcast().await;
            self.hear_until(round_ends).await;
            self.end_round().await;
        }
        info!("done after {} rounds", self.page.rounds);
        loop {
            if self.next_event(Instant::MAX).await == Event::Missed {
                self.report().await;
            }
        }
    }

    /// Says that the board is there until somebody says which round the swarm is in. Without a host that plays the air
    /// it says so once, to whoever listens.
    async fn wait_for_the_host(&mut self) {
        loop {
            let identity =
                Identity { agent: self.page.agent.id, page_crc: self.page_crc, round: self.agent.round() };
            let boot = Boot { board: self.page.board, schema: wire::SCHEMA, page: Ok(identity) };
            self.outbox.post(|out| Packet::Boot(boot).encode(out).ok()).await;
            if self.page.pace != Pace::Air {
                return;
            }
            if let Event::Start(round) = self.next_event(Instant::now() + BOOT_EVERY).await {
                self.agent.skip_to(round);
                return;
            }
        }
    }

    async fn broadcast(&mut self) {
        let agent = &mut self.agent;
        let write = |out: &mut [u8]| {
            packet::write_frame_header(out).ok()?;
            let length = agent.frame(out.get_mut(FRAME_OFFSET..)?).ok()?;
            Some(FRAME_OFFSET + length)
        };
        self.outbox.post(write).await;
    }

    /// Hears what comes until the round is over.
    async fn hear_until(&mut self, deadline: Instant) {
        let ends_when_complete = matches!(self.page.pace, Pace::Deadline { .. });
        while !(ends_when_complete && self.agent.is_complete()) {
            match self.next_event(deadline).await {
                Event::Over => return,
                Event::Late => {
                    self.telemetry.incomplete += u32::from(ends_when_complete);
                    return;
                }
                Event::Start(round) => {
                    self.agent.skip_to(round);
                    self.broadcast().await;
                }
                Event::Missed => {
                    self.report().await;
                    self.broadcast().await;
                }
            }
        }
    }

    /// Feeds the agent with frames until something else happens.
    async fn next_event(&mut self, deadline: Instant) -> Event {
        loop {
            self.health.feed_watchdog();
            let watch = Instant::now() + WATCH_EVERY;
            let Ok(bytes) = with_deadline(deadline.min(watch), self.inbox.packet()).await else {
                if Instant::now() >= deadline {
                    return Event::Late;
                }
                continue;
            };
            let round = self.agent.round();
            let event = match Packet::decode(bytes) {
                Ok(Packet::Frame(frame)) => {
                    match self.agent.receive(frame) {
                        Received::Taken => self.telemetry.taken += 1,
                        Received::Stale => self.telemetry.refused += 1,
                    }
                    None
                }
                Ok(Packet::RoundOver { round: over }) if over == round => Some(Event::Over),
                Ok(Packet::RoundOver { round: over }) if over + 1 == round => Some(Event::Missed),
                Ok(Packet::Start { round }) => Some(Event::Start(round)),
                // Another board's boot or telemetry on a shared link, or noise.
                Ok(Packet::RoundOver { .. } | Packet::Boot(_) | Packet::Telemetry(..)) | Err(_) => None,
            };
            self.inbox.done();
            if let Some(event) = event {
                return event;
            }
        }
    }

    async fn end_round(&mut self) {
        let report = self.agent.end_round();
        self.telemetry.round = report.round;
        self.telemetry.digest = report.digest;
        if report.round.is_multiple_of(ROUNDS_PER_STACK_CHECK) {
            self.telemetry.deepest_stack_bytes = self.health.deepest_stack_bytes();
        }
        self.save();
        self.report().await;
    }

    /// Remembers the agent's state before anybody hears of it.
    fn save(&mut self) {
        let period = self.page.rounds_per_save;
        if period > 0 && self.agent.round().is_multiple_of(period) {
            let mut state = [0; STATE_BYTES];
            let length = self.agent.save(&mut state);
            if self.storage.save(&state[..length]).is_err() {
                warn!("the state of round {} could not be saved", self.agent.round());
            }
        }
    }

    async fn report(&mut self) {
        let (telemetry, x) = (self.telemetry, self.agent.x());
        self.outbox.post(|out| packet::write_telemetry(telemetry, x.iter().copied(), out).ok()).await;
    }

    pub(crate) fn new(
        page: &'a Page<'a>,
        page_crc: u32,
        mut storage: Storage<F>,
        health: H,
        inbox: Inbox<'a, PACKET>,
        outbox: Outbox<'a, PACKET>,
    ) -> Option<Self> {
        let mut agent = Agent::new(page.agent, page.problem).ok()?;
        let mut state = [0; STATE_BYTES];
        if let Some(length) = storage.load(&mut state) {
            agent.restore(&state[..length]).ok()?;
        }
        let telemetry = Telemetry { agent: page.agent.id, ..Telemetry::default() };
        Some(Self { page, page_crc, agent, storage, health, telemetry, inbox, outbox })
    }
}
