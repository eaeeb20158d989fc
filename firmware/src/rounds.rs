//! The loop of a board: broadcast, receive, end the round.

use crate::{
    BOOT_EVERY,
    flight_log::FlightLog,
    health::Health,
    link::{PacketReceiver, PacketSender},
    marks::Mark,
    mavlink::named_value,
    round_log::RoundLog,
    sealed_agent::{EVERY_ROUND, SealedAgent},
    sensor::{Outlet, ReadingExchange, Sensor},
    storage::{BoardStorage, PageFlash},
};
use core::ops::ControlFlow;
use embassy_time::{Duration, Instant, with_deadline};
use embedded_storage::nor_flash::NorFlash;
use fabswarm_shared::{
    agent::Mode,
    packet::{self, Boot, FRAME_OFFSET, Packet, RoundOver, Telemetry, WordBytes},
    problem::Problem,
    provisioning::{Pace, Page},
    slots::{Hearing, SlotSchedule},
};

/// Interval at which the firmware feeds the watchdog.
const WATCH_EVERY: Duration = Duration::from_secs(1);
/// The clock is read after this many packets even if more are waiting: a link that is never idle must not stop it.
const PACKETS_PER_LOOK: u32 = 32;
/// Scanning the stack takes longer than a round, so it is done once in this many rounds.
const ROUNDS_PER_STACK_CHECK: u32 = 64;
/// How long a board waits for the reading that it requested, where its host waits for the board.
const READ_WITHIN: Duration = Duration::from_millis(200);

/// Relayed frames that come before the host has started the board are left of an earlier boot. No frame has this number.
const NOT_STARTED: u16 = u16::MAX;

pub(crate) struct RoundDriver<'a, P, F, H, S, O> {
    pub(crate) page: &'a Page<'a, P>,
    /// The board's boot packet.
    boot: Boot<'a>,
    pub(crate) sealed: SealedAgent<'a, 'a, P>,
    storage: &'a mut BoardStorage<F>,
    pub(crate) health: &'a mut H,
    feed_at: Instant,
    pub(crate) air_round: u32,
    /// Frames of the air's round that were taken.
    relayed: u16,
    /// Where the board was when it last asked for what it lacks.
    asked: Option<(u32, u16)>,
    /// Telemetry of the last round.
    pub(crate) telemetry: Telemetry,
    /// Whether the agent's state differs from the one the host expects: it then stays in that state.
    is_held: bool,
    /// The slots of all agents, if the swarm keeps its own time.
    pub(crate) slots: Option<SlotSchedule>,
    /// The senders whose frames were taken.
    pub(crate) log: FlightLog,
    round_log: RoundLog,
    receiver: PacketReceiver<'a>,
    pub(crate) sender: PacketSender<'a>,
    pub(crate) readings: &'a ReadingExchange<S>,
    outlet: O,
    /// Messages that the outlet was given.
    messages: u8,
    marks: Option<&'a dyn Fn(Mark)>,
}

/// An event other than a frame.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum RoundEvent {
    /// The round is over; the expected digest, if the host knows it.
    Over(Option<u32>),
    /// The air is in this round.
    Start(u32),
    /// The host missed the last broadcast.
    Missed,
    /// The cable has lost frames of the round, or its end.
    Short,
    /// The host requests the agent's state from this word on.
    StateRequest(u32),
    /// The host wants this number back once everything before it is processed.
    Mark(u32),
    /// The host wants the board to wait for a new page.
    Service,
    /// The host wants to see which board it is.
    Identify,
    /// The deadline passed.
    Late,
    /// A frame changed when something is due.
    Retimed,
}

impl<'a, P: Problem<f32> + Copy, F: NorFlash + PageFlash, H: Health, S: Sensor, O: Outlet>
    RoundDriver<'a, P, F, H, S, O>
{
    pub(crate) fn new(
        page: &'a Page<'a, P>,
        boot: Boot<'a>,
        sealed: SealedAgent<'a, 'a, P>,
        storage: &'a mut BoardStorage<F>,
        (health, marks): (&'a mut H, Option<&'a dyn Fn(Mark)>),
        (receiver, sender): (PacketReceiver<'a>, PacketSender<'a>),
        (readings, outlet): (&'a ReadingExchange<S>, O),
    ) -> Self {
        let telemetry = Telemetry { agent: page.agent.id, ..Telemetry::default() };
        Self {
            page,
            boot,
            sealed,
            storage,
            health,
            feed_at: Instant::MIN,
            air_round: 0,
            relayed: NOT_STARTED,
            asked: None,
            telemetry,
            is_held: false,
            slots: None,
            log: FlightLog::default(),
            round_log: RoundLog::default(),
            receiver,
            sender,
            readings,
            outlet,
            messages: 0,
            marks,
        }
    }

    /// Goes through all rounds and then answers the host, forever. Returns when the host wants to replace the page before that.
    pub(crate) async fn run(&mut self) {
        if self.wait_for_the_host().await.is_break() || self.run_in_slots().await.is_break() {
            return;
        }
        while self.sealed.agent.round() < self.page.rounds && !self.is_held {
            if S::IS_THERE {
                self.readings.request(self.sealed.agent.round());
                // The host must know the reading before it ends the round.
                let reading = self.readings.wait(READ_WITHIN).await;
                self.note_reading(reading);
            }
            self.broadcast().await;
            let digest = self.hear_round().await;
            self.end_round(digest);
        }
        if !self.is_held {
            info!("done after {} rounds", self.page.rounds);
        }
        self.report().await;
        loop {
            match self.next_event(Instant::MAX).await {
                RoundEvent::Missed => self.report().await,
                RoundEvent::Service if F::CAN_WRITE => return,
                event => self.answer(event).await,
            }
        }
    }

    /// Answers what the host may ask for at any time.
    pub(crate) async fn answer(&mut self, event: RoundEvent) {
        match event {
            RoundEvent::StateRequest(from) => {
                let sealed = &self.sealed;
                self.sender.post(|out| sealed.write_state(from, out)).await;
            }
            RoundEvent::Mark(number) => {
                self.sender.post(|out| Packet::Mark { number }.encode(out).ok()).await;
            }
            RoundEvent::Identify if F::CAN_WRITE => self.health.set_light(true),
            _ => {}
        }
    }

    /// Sends boot packets until the host starts the board; breaks if it wants to replace the page. Where no host simulates the
    /// air, sends one.
    async fn wait_for_the_host(&mut self) -> ControlFlow<()> {
        loop {
            self.send_boot().await;
            if self.page.pace != Pace::Air {
                return ControlFlow::Continue(());
            }
            match self.next_event(Instant::now() + BOOT_EVERY).await {
                RoundEvent::Start(air_round) => {
                    (self.air_round, self.relayed) = (air_round, 0);
                    return ControlFlow::Continue(());
                }
                RoundEvent::Service => return ControlFlow::Break(()),
                RoundEvent::Identify => self.health.set_light(true),
                _ => {}
            }
        }
    }

    pub(crate) async fn send_boot(&mut self) {
        let boot = self.boot;
        self.sender.post(|out| Packet::Boot(boot).encode(out).ok()).await;
    }

    /// Sends the agent's frames of this round, then the telemetry of the last one.
    async fn broadcast(&mut self) {
        let mut is_more = true;
        while is_more {
            let sealed = &mut self.sealed;
            let write = |out: &mut [u8]| {
                packet::write_frame_header(out).ok()?;
                Some(FRAME_OFFSET + sealed.poll_frame(None, out.get_mut(FRAME_OFFSET..)?)?)
            };
            is_more = self.sender.post(write).await;
        }
        self.report().await;
    }

    /// Receives until the host ends the round and returns the digest that it expects, if it knows one.
    async fn hear_round(&mut self) -> Option<u32> {
        loop {
            match self.next_event(Instant::MAX).await {
                RoundEvent::Over(digest) => return digest,
                // An await in one place takes less flash than in two.
                event @ (RoundEvent::Start(_) | RoundEvent::Missed) => {
                    if let RoundEvent::Start(air_round) = event {
                        self.air_round = air_round;
                    }
                    self.broadcast().await;
                }
                RoundEvent::Short => {
                    let (air_round, from) = (self.air_round, self.relayed);
                    self.asked = Some((air_round, from));
                    self.sender.post(|out| Packet::Again { air_round, from }.encode(out).ok()).await;
                }
                // A page is not replaced while a trial runs.
                event => self.answer(event).await,
            }
        }
    }

    /// Passes frames to the agent until another event occurs.
    pub(crate) async fn next_event(&mut self, deadline: Instant) -> RoundEvent {
        let mut packets = 0_u32;
        loop {
            packets = packets.wrapping_add(1);
            let packet = if packets.is_multiple_of(PACKETS_PER_LOOK) {
                None
            } else {
                with_deadline(deadline.min(self.feed_at), self.receiver.packet()).await.ok()
            };
            let Some((bytes, arrived)) = packet else {
                let now = Instant::now();
                if now >= self.feed_at {
                    self.health.feed_watchdog();
                    self.feed_at = now + WATCH_EVERY;
                }
                if now >= deadline {
                    return RoundEvent::Late;
                }
                continue;
            };
            let now = self.air_round;
            // Only a host that simulates the air may end rounds.
            let is_air = self.page.pace == Pace::Air;
            let decoded = match Packet::decode_for_board(bytes) {
                // In order: what the cable has lost comes again, with all behind it.
                Ok(Packet::Relayed { air_round, number, frame }) => {
                    let is_next = is_air && air_round == now as u8 && number == self.relayed;
                    self.relayed = self.relayed.wrapping_add(is_next.into());
                    is_next.then_some(Packet::Frame(frame))
                }
                Ok(Packet::Frame(_)) if is_air => None,
                decoded => decoded.ok(),
            };
            let event = match decoded {
                Some(Packet::Frame(_)) if self.is_held => None,
                Some(Packet::Frame(sealed)) => {
                    let was_waiting = self.sealed.agent.is_waiting();
                    let report = self.sealed.receive(sealed);
                    if let Some(refusal) = report.refusal() {
                        self.telemetry.refused += 1;
                        self.round_log.refuse(self.sealed.agent.round(), refusal);
                    }
                    self.slots.as_mut().and_then(|slots| {
                        let has_left =
                            self.log.note(report.sender, report.received, self.sealed.agent.round());
                        if was_waiting && !self.sealed.agent.is_waiting() {
                            slots.doubt(self.sealed.agent.round());
                        }
                        let hear = |stamp| slots.hear(arrived.as_micros(), report.sender, &stamp);
                        let hearing = report.stamp.map_or(Hearing::Nothing, hear);
                        (has_left || hearing != Hearing::Nothing).then_some(RoundEvent::Retimed)
                    })
                }
                Some(Packet::RoundOver(RoundOver { air_round, frames, digest })) if is_air => {
                    match air_round.wrapping_sub(now) as i32 {
                        0 if frames == self.relayed => Some(RoundEvent::Over(digest)),
                        0 => Some(RoundEvent::Short),
                        // The ends of many rounds may follow one that was lost: it asks once.
                        1.. => (self.asked != Some((now, self.relayed))).then_some(RoundEvent::Short),
                        ..0 => Some(RoundEvent::Missed),
                    }
                }
                Some(Packet::Start { air_round }) if is_air => Some(RoundEvent::Start(air_round)),
                Some(Packet::StateRequest { from }) => Some(RoundEvent::StateRequest(from)),
                Some(Packet::Mark { number }) => Some(RoundEvent::Mark(number)),
                // Otherwise a packet of another board on a shared link, or noise.
                _ if !F::CAN_WRITE => None,
                _ => match Packet::decode_service(bytes) {
                    Ok(Packet::Reset) => {
                        self.health.reset();
                        None
                    }
                    Ok(Packet::Service) => Some(RoundEvent::Service),
                    Ok(Packet::Identify) => Some(RoundEvent::Identify),
                    Ok(_) | Err(_) => None,
                },
            };
            self.receiver.done();
            if let Some(event) = event {
                return event;
            }
        }
    }

    fn mark_end(&self) {
        if let Some(marks) = self.marks {
            marks(Mark::RoundEnd);
        }
    }

    pub(crate) fn end_round(&mut self, expected: Option<u32>) {
        self.mark_end();
        let is_on_beat = self.page.pace == Pace::Air && self.page.agent.mode == Mode::LockStep;
        if S::IS_THERE {
            self.use_reading();
        }
        let report = self.sealed.end_round(is_on_beat);
        self.telemetry.round = report.round;
        self.telemetry.epoch = report.epoch.number;
        self.telemetry.digest = self.sealed.agent.digest();
        self.telemetry.heard = report.heard;
        let agent = &self.sealed.agent;
        self.round_log.end_round(&report, agent.epoch(), agent.members());
        if expected.is_some_and(|digest| digest != self.telemetry.digest) {
            error!("held after round {}: the host computed another state", report.round);
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
        if O::IS_THERE && !self.sealed.agent.is_waiting() && !self.telemetry.is_stopped && !self.is_held {
            self.pass_on_decision();
        }
        self.air_round = self.air_round.wrapping_add(1);
        self.relayed = 0;
        self.mark_end();
    }

    /// Passes the reading of the round that ends to the agent.
    fn use_reading(&mut self) {
        if self.page.pace != Pace::Air {
            self.note_reading(self.readings.take());
        }
        if let Some(bits) = self.telemetry.sensor.and_then(|sensor| sensor.reading) {
            self.sealed.agent.take_reading(f32::from_bits(bits));
        }
    }

    /// Notes the reading of this round. Without one, its problem keeps the last.
    fn note_reading(&mut self, reading: Option<f32>) {
        let state = self.telemetry.sensor.get_or_insert_default();
        state.reading = reading.map(f32::to_bits);
        state.silent = state.silent.saturating_add(reading.is_none().into());
        state.refused = self.readings.refused();
    }

    /// Passes on x and y, each number as a message of its own.
    fn pass_on_decision(&mut self) {
        let shape = self.page.problem.shape();
        let (system, at_ms) = (self.page.agent.id, Instant::now().as_millis() as u32);
        let numbers = self.sealed.agent.decision().iter().take(shape.x + shape.y).enumerate();
        for (number, &value) in numbers {
            let name = if number < shape.x { ('x', number) } else { ('y', number - shape.x) };
            self.outlet.write(&named_value(self.messages, system, at_ms, name, value));
            self.messages = self.messages.wrapping_add(1);
        }
    }

    /// Saves the agent's state before the frames that depend on it are sent. If that fails, the older state must not be used.
    fn save(&mut self) {
        let every = self.page.save_every;
        let is_due = every > 0 && self.sealed.agent.round().is_multiple_of(every);
        let page_crc = self.boot.page.map_or(0, |identity| identity.page_crc);
        if is_due && !self.sealed.save(self.storage, page_crc, every == EVERY_ROUND) {
            self.storage.invalidate();
            warn!("the state of round {} could not be saved", self.sealed.agent.round());
        }
    }

    pub(crate) async fn report(&mut self) {
        let telemetry = Telemetry {
            air_round: self.air_round,
            slot_error_us: self.slots.as_ref().map(SlotSchedule::error_us),
            radio: self.receiver.radio.get(),
            ..self.telemetry
        };
        let x = WordBytes::from(&self.sealed.agent.decision()[..self.page.problem.shape().x]);
        let write = |out: &mut [u8]| match S::IS_THERE {
            true => packet::write_sensed_telemetry(telemetry, x, out).ok(),
            false => Packet::Telemetry(telemetry, x).encode(out).ok(),
        };
        self.sender.post(write).await;
    }
}
