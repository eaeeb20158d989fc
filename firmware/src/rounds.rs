//! The agent's rounds: say, hear, compute.

use crate::{
    BOOT_EVERY, MEMBERS, PACKET, WORDS,
    health::Health,
    link::{Inbox, Outbox},
    sizes::{FRAME, STATE},
    storage::Storage,
    voice::Voice,
};
use embassy_time::{Duration, Instant, with_deadline};
use embedded_storage::nor_flash::NorFlash;
use fabswarm_shared::{
    agent::{Agent, Config, Error, Peer, Received},
    ledger::Exact,
    packet::{self, Boot, FRAME_OFFSET, Identity, Packet, Telemetry},
    problem::{AnyProblem, Problem},
    provisioning::{self, Pace, Page},
    wire,
};

/// How long the firmware may wait before it feeds the watchdog again.
const WATCH_EVERY: Duration = Duration::from_secs(1);
/// Walking the stack takes longer than a round: it is done now and then.
const ROUNDS_PER_STACK_CHECK: u32 = 64;

/// Room for everybody an agent may hear. It takes most of a board's memory, so it is made where it stays.
pub(crate) type Peers = heapless::Vec<Peer<Exact, WORDS>, MEMBERS>;

type BoardAgent<'a> = Agent<AnyProblem<'a, f32>, Exact, &'a mut Peers, WORDS>;

/// Drives one agent.
pub(crate) struct Rounds<'a, F, H> {
    page: &'a Page<'a>,
    page_crc: u32,
    agent: BoardAgent<'a>,
    voice: Voice,
    storage: Storage<F>,
    health: &'a mut H,
    telemetry: Telemetry,
    inbox: Inbox<'a, PACKET>,
    outbox: Outbox<'a, PACKET>,
}

/// What the agent waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Event {
    /// The round is over.
    Over,
    /// The air is in this round.
    Start(u32),
    /// The host has missed what was said last.
    Missed,
    /// Nothing in time.
    Late,
}

impl<'a, F: NorFlash, H: Health> Rounds<'a, F, H> {
    /// Makes the agent that `page` describes, with what its storage remembers.
    pub(crate) fn new(
        page: &'a Page<'a>,
        page_crc: u32,
        mut storage: Storage<F>,
        health: &'a mut H,
        peers: &'a mut Peers,
        inbox: Inbox<'a, PACKET>,
        outbox: Outbox<'a, PACKET>,
    ) -> Result<Self, provisioning::Error> {
        let voice = Voice::start(page.agent.id, &page.key, &mut storage).map_err(|error| {
            error!("nothing can be sealed: {}", error);
            provisioning::Error::Storage
        })?;
        let config = Config { boot: voice.boot(), ..page.agent };
        let mut agent = Agent::new(config, page.problem, page.start, peers).map_err(refuse)?;
        remember(&mut agent, &mut storage)?;
        info!("agent {} starts for the {}. time, in round {}", page.agent.id, voice.boot(), agent.round());
        let telemetry = Telemetry { agent: page.agent.id, ..Telemetry::default() };
        Ok(Self { page, page_crc, agent, voice, storage, health, telemetry, inbox, outbox })
    }

    pub(crate) async fn run(&mut self) -> ! {
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

    /// Says that the board is there until the air says which round it is in. Without a host that plays the air it says
    /// so once, to whoever listens.
    async fn wait_for_the_host(&mut self) {
        loop {
            let identity =
                Identity { agent: self.page.agent.id, page_crc: self.page_crc, round: self.agent.round() };
            let boot = Boot { board: self.page.board, schema: wire::SCHEMA, page: Ok(identity) };
            self.outbox.post(|out| Packet::Boot(boot).encode(out).ok()).await;
            if self.page.pace != Pace::Air {
                return;
            }
            if let Event::Start(air_round) = self.next_event(Instant::now() + BOOT_EVERY).await {
                self.telemetry.air_round = air_round;
                return;
            }
        }
    }

    /// Says all the agent has to say in this round.
    async fn broadcast(&mut self) {
        let mut frame = [0; FRAME];
        // A frame that cannot be written is as good as lost: the buffers were made for the longest.
        while let Ok(Some(length)) = self.agent.poll_frame(&mut frame) {
            let voice = &mut self.voice;
            let seal = |out: &mut [u8]| {
                packet::write_frame_header(out).ok()?;
                let sealed = voice.seal(&frame[..length], out.get_mut(FRAME_OFFSET..)?).ok()?;
                Some(FRAME_OFFSET + sealed)
            };
            self.outbox.post(seal).await;
        }
        if self.page.pace == Pace::Air {
            let air_round = self.telemetry.air_round;
            self.outbox.post(|out| Packet::Ready { air_round }.encode(out).ok()).await;
        }
    }

    /// Hears what comes until the round is over.
    async fn hear_until(&mut self, deadline: Instant) {
        let ends_when_complete = matches!(self.page.pace, Pace::Deadline { .. });
        while !(ends_when_complete && self.agent.is_complete(&self.page.schedule)) {
            match self.next_event(deadline).await {
                Event::Over => return,
                Event::Late => {
                    self.telemetry.late += u32::from(ends_when_complete);
                    return;
                }
                Event::Start(air_round) => {
                    self.telemetry.air_round = air_round;
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
            let now = self.telemetry.air_round;
            let event = match Packet::decode(bytes) {
                Ok(Packet::Frame(sealed)) => {
                    if !hear(&mut self.agent, &mut self.voice, sealed) {
                        self.telemetry.refused += 1;
                    }
                    None
                }
                Ok(Packet::RoundOver { air_round }) if air_round == now => Some(Event::Over),
                Ok(Packet::RoundOver { air_round }) if air_round.wrapping_add(1) == now => Some(Event::Missed),
                Ok(Packet::Start { air_round }) => Some(Event::Start(air_round)),
                // Another board's words on a shared link, or noise.
                Ok(_) | Err(_) => None,
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
        self.telemetry.epoch = report.epoch;
        self.telemetry.digest = report.digest;
        self.telemetry.heard = report.heard;
        if let Some(fault) = report.fault.filter(|_| !self.telemetry.is_stopped) {
            error!("stopped in round {}: word {} is no longer a number", report.round, fault.word);
            self.telemetry.is_stopped = true;
        }
        if report.round.is_multiple_of(ROUNDS_PER_STACK_CHECK) {
            self.telemetry.deepest_stack_bytes = self.health.deepest_stack_bytes();
        }
        self.save();
        self.report().await;
        self.telemetry.air_round = self.telemetry.air_round.wrapping_add(1);
    }

    /// Remembers the agent's state before anybody hears of it: an older one would be of no use.
    fn save(&mut self) {
        if !self.page.saves_state {
            return;
        }
        let mut state = [0; STATE];
        let is_saved = match self.agent.save(&mut state) {
            Ok(length) => self.storage.save(&state[..length]).is_ok(),
            Err(_) => false,
        };
        if !is_saved {
            warn!("the state of round {} could not be saved", self.agent.round());
        }
    }

    async fn report(&mut self) {
        let telemetry = self.telemetry;
        let x = &self.agent.decision()[..self.page.problem.shape().x];
        self.outbox.post(|out| packet::write_telemetry(telemetry, x.iter().copied(), out).ok()).await;
    }
}

/// Gives the agent back what it knew before a restart, if anything is stored.
fn remember<F: NorFlash>(agent: &mut BoardAgent, storage: &mut Storage<F>) -> Result<(), provisioning::Error> {
    let mut state = [0; STATE];
    match storage.load(&mut state) {
        Some(length) => agent.restore(&state[..length]).map_err(refuse),
        None => Ok(()),
    }
}

/// Hands a frame to the agent; `false` where it was not taken.
fn hear(agent: &mut BoardAgent, voice: &mut Voice, sealed: &[u8]) -> bool {
    let mut frame = [0; FRAME];
    let Ok(frame) = voice.open(sealed, &mut frame) else { return false };
    !matches!(agent.receive(frame), Received::Refused(_))
}

/// What is wrong with a page whose agent cannot be made.
fn refuse(error: Error) -> provisioning::Error {
    error!("the agent cannot be made: {}", error);
    match error {
        Error::TooLarge { .. } | Error::Identity => provisioning::Error::TooLarge,
        Error::Memory => provisioning::Error::Storage,
        _ => provisioning::Error::Malformed,
    }
}
