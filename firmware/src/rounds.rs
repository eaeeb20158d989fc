//! The agent's rounds: say, hear, compute.

use crate::{
    BOOT_EVERY, PACKET,
    health::Health,
    link::{PacketReceiver, PacketSender},
    sealed_agent::SealedAgent,
    storage::BoardStorage,
};
use embassy_time::{Duration, Instant, with_deadline};
use embedded_storage::nor_flash::NorFlash;
use fabswarm_shared::{
    BUILD_ID,
    agent::Mode,
    packet::{self, BoardIdentity, Boot, FRAME_OFFSET, Packet, RoundOver, Telemetry},
    provisioning::{Pace, Page},
};

/// How long the firmware may wait before it feeds the watchdog again.
const WATCH_EVERY: Duration = Duration::from_secs(1);
/// Packets after which the clock is looked at though others wait: a link that is never quiet must not stop it.
const PACKETS_PER_LOOK: u32 = 32;
/// Walking the stack takes longer than a round: it is done now and then.
const ROUNDS_PER_STACK_CHECK: u32 = 64;

/// Drives one agent.
pub(crate) struct RoundDriver<'a, F, H> {
    page: &'a Page<'a>,
    page_crc: u32,
    agent: SealedAgent<'a, 'a>,
    storage: &'a mut BoardStorage<F>,
    health: &'a mut H,
    /// When the watchdog is due.
    feed_at: Instant,
    /// The round the air is in.
    air_round: u32,
    /// What became of the round before it.
    telemetry: Telemetry,
    /// Whether the agent came to another state than the host expects: it then stays in it.
    is_held: bool,
    inbox: PacketReceiver<'a, PACKET>,
    outbox: PacketSender<'a, PACKET>,
}

/// What the agent waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Event {
    /// The round is over, with this digest if the host knows it.
    Over(Option<u32>),
    /// The air is in this round.
    Start(u32),
    /// The host has missed what was said last.
    Missed,
    /// The host wants to know the agent's state from this word on.
    Tell(u32),
    /// The host wants to hear this number when all before it is done.
    Mark(u32),
    /// Nothing in time.
    Late,
}

impl<'a, F: NorFlash, H: Health> RoundDriver<'a, F, H> {
    pub(crate) fn new(
        page: &'a Page<'a>,
        page_crc: u32,
        agent: SealedAgent<'a, 'a>,
        storage: &'a mut BoardStorage<F>,
        health: &'a mut H,
        inbox: PacketReceiver<'a, PACKET>,
        outbox: PacketSender<'a, PACKET>,
    ) -> Self {
        let telemetry = Telemetry { agent: page.agent.id, ..Telemetry::default() };
        let feed_at = Instant::MIN;
        Self {
            page,
            page_crc,
            agent,
            storage,
            health,
            feed_at,
            air_round: 0,
            telemetry,
            is_held: false,
            inbox,
            outbox,
        }
    }

    pub(crate) async fn run(&mut self) -> ! {
        self.wait_for_the_host().await;
        let mut round_ends = Instant::now();
        while self.agent.round() < self.page.rounds && !self.is_held {
            round_ends = match self.page.pace {
                Pace::Air => Instant::MAX,
                Pace::Deadline { us, .. } => Instant::now() + Duration::from_micros(us.into()),
                // From the end of the round before: a late round does not shift the others.
                Pace::Period { us } => round_ends + Duration::from_micros(us.into()),
            };
            self.broadcast().await;
            let digest = self.hear_until(round_ends).await;
            self.end_round(digest);
        }
        if !self.is_held {
            info!("done after {} rounds", self.page.rounds);
        }
        self.report().await;
        loop {
            match self.next_event(Instant::MAX).await {
                Event::Missed => self.report().await,
                Event::Tell(from) => self.tell(from).await,
                Event::Mark(number) => self.say_back(number).await,
                Event::Over(_) | Event::Start(_) | Event::Late => {}
            }
        }
    }

    /// Says that the board is there until the air says which round it is in. Without a host that plays the air it says
    /// so once, to whoever listens.
    async fn wait_for_the_host(&mut self) {
        loop {
            let identity = BoardIdentity {
                agent: self.page.agent.id,
                page_crc: self.page_crc,
                round: self.agent.round(),
            };
            let boot =
                Boot { board: self.page.board, schema: packet::SCHEMA, build: BUILD_ID, page: Ok(identity) };
            self.outbox.post(|out| Packet::Boot(boot).encode(out).ok()).await;
            if self.page.pace != Pace::Air {
                return;
            }
            if let Event::Start(air_round) = self.next_event(Instant::now() + BOOT_EVERY).await {
                self.air_round = air_round;
                return;
            }
        }
    }

    /// Says all the agent has to say in this round, and how the one before it went.
    async fn broadcast(&mut self) {
        let mut is_more = true;
        while is_more {
            let agent = &mut self.agent;
            let write = |out: &mut [u8]| {
                packet::write_frame_header(out).ok()?;
                Some(FRAME_OFFSET + agent.poll_frame(out.get_mut(FRAME_OFFSET..)?)?)
            };
            is_more = self.outbox.post(write).await;
        }
        self.report().await;
    }

    /// Hears what comes until the round is over, and answers the digest that the agent must come to with it, if the host knows.
    async fn hear_until(&mut self, deadline: Instant) -> Option<u32> {
        let schedule = match &self.page.pace {
            Pace::Deadline { schedule, .. } => Some(schedule),
            Pace::Air | Pace::Period { .. } => None,
        };
        while !schedule.is_some_and(|schedule| self.agent.is_complete(schedule)) {
            match self.next_event(deadline).await {
                Event::Over(digest) => return digest,
                Event::Late => {
                    self.telemetry.late += u32::from(schedule.is_some());
                    return None;
                }
                Event::Start(air_round) => {
                    self.air_round = air_round;
                    self.broadcast().await;
                }
                Event::Missed => self.broadcast().await,
                Event::Tell(from) => self.tell(from).await,
                Event::Mark(number) => self.say_back(number).await,
            }
        }
        None
    }

    /// Feeds the agent with frames until something else happens.
    async fn next_event(&mut self, deadline: Instant) -> Event {
        let mut packets = 0_u32;
        loop {
            packets = packets.wrapping_add(1);
            let packet = if packets.is_multiple_of(PACKETS_PER_LOOK) {
                None
            } else {
                with_deadline(deadline.min(self.feed_at), self.inbox.packet()).await.ok()
            };
            let Some(bytes) = packet else {
                let now = Instant::now();
                if now >= self.feed_at {
                    self.health.feed_watchdog();
                    self.feed_at = now + WATCH_EVERY;
                }
                if now >= deadline {
                    return Event::Late;
                }
                continue;
            };
            let now = self.air_round;
            // Only a host that plays the air may end rounds.
            let is_air = self.page.pace == Pace::Air;
            let event = match Packet::decode(bytes) {
                Ok(Packet::Frame(_)) if self.is_held => None,
                Ok(Packet::Frame(sealed)) => {
                    self.telemetry.refused += u32::from(!self.agent.receive(sealed));
                    None
                }
                Ok(Packet::RoundOver(RoundOver { air_round, digest })) if is_air && air_round == now => {
                    Some(Event::Over(digest))
                }
                Ok(Packet::RoundOver(over)) if is_air && over.air_round.wrapping_add(1) == now => {
                    Some(Event::Missed)
                }
                Ok(Packet::Start { air_round }) if is_air => Some(Event::Start(air_round)),
                Ok(Packet::StateRequest { from }) => Some(Event::Tell(from)),
                Ok(Packet::Mark { number }) => Some(Event::Mark(number)),
                // Another board's words on a shared link, or noise.
                Ok(_) | Err(_) => None,
            };
            self.inbox.done();
            if let Some(event) = event {
                return event;
            }
        }
    }

    fn end_round(&mut self, expected: Option<u32>) {
        let is_on_beat = self.page.pace == Pace::Air && self.page.agent.mode == Mode::LockStep;
        let report = self.agent.end_round(is_on_beat);
        self.telemetry.round = report.round;
        self.telemetry.epoch = report.epoch;
        self.telemetry.digest = self.agent.digest();
        self.telemetry.heard = report.heard;
        if expected.is_some_and(|digest| digest != self.telemetry.digest) {
            error!("held after round {}: the host came to another state", report.round);
            self.is_held = true;
        }
        if let Some(fault) = report.fault.filter(|_| !self.telemetry.is_stopped) {
            error!("stopped in round {}: word {}: {}", report.round, fault.word, fault.cause);
            self.telemetry.is_stopped = true;
        }
        if report.round.is_multiple_of(ROUNDS_PER_STACK_CHECK) {
            self.telemetry.deepest_stack_bytes = self.health.deepest_stack_bytes();
        }
        self.save();
        self.air_round = self.air_round.wrapping_add(1);
    }

    /// Remembers the agent's state before anybody hears of it: an older one would be of no use.
    fn save(&mut self) {
        if self.page.saves_state && !self.agent.save(self.storage, self.page_crc) {
            self.storage.forget();
            warn!("the state of round {} could not be saved", self.agent.round());
        }
    }

    async fn tell(&mut self, from: u32) {
        let agent = &self.agent;
        self.outbox.post(|out| agent.tell(from, out)).await;
    }

    async fn say_back(&mut self, number: u32) {
        self.outbox.post(|out| Packet::Mark { number }.encode(out).ok()).await;
    }

    async fn report(&mut self) {
        let telemetry = Telemetry { air_round: self.air_round, ..self.telemetry };
        let x = self.agent.x(self.page);
        self.outbox.post(|out| packet::write_telemetry(telemetry, x.iter().copied(), out).ok()).await;
    }
}
