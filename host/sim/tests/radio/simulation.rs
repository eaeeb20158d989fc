//! Agents with clocks of their own on one channel.

use super::channel::{Channel, ChannelCounts, PacketOnAir};
use super::clock::ClockError;
use super::places::{Places, RadioPath};
use fabswarm_shared::rng::{Purpose, Stream};
use fabswarm_shared::slots::{Hearing, SlotSchedule, SlotTask, Stamp, Superframe};
use fabswarm_sim::air::radio::{DUTY_WINDOW_US, RadioConfig, RadioKind, RadioPlan, RadioTiming};
use std::collections::{BTreeMap, VecDeque};

/// Standard deviation of transmit powers, in dB, about 0 dBm: differences make links one-way.
const POWER_SPREAD_DB: f64 = 1.0;

/// Settings of a simulated radio swarm.
#[derive(Clone, Debug)]
pub(crate) struct RadioSwarmConfig {
    /// Seed of clocks, powers and losses.
    pub(crate) seed: u64,
    /// The radio.
    pub(crate) radio: RadioTiming,
    /// The slots.
    pub(crate) superframe: Superframe,
    /// Bytes of the frame that an agent sends in its slot.
    pub(crate) frame_bytes: usize,
    /// Bytes of what it sends in a shared slot; 0 for nothing.
    pub(crate) shared_bytes: usize,
    /// Errors of the clocks are drawn from plus or minus this.
    pub(crate) ppm: f64,
    /// How far each clock's error swings besides.
    pub(crate) swing_ppm: f64,
    /// Share of packets that each link loses.
    pub(crate) loss: f64,
    /// Where agents are.
    pub(crate) places: Places,
}

impl RadioSwarmConfig {
    /// A swarm with the slots that are planned for `needs`, which loses no packet.
    pub(crate) fn new(radio: RadioKind, needs: &RadioConfig, places: Places) -> Self {
        let radio = RadioTiming::new(radio);
        Self {
            seed: 7,
            radio,
            superframe: RadioPlan::new(&radio, needs).unwrap().superframe,
            frame_bytes: needs.frame_bytes,
            shared_bytes: needs.shared_bytes,
            ppm: needs.ppm.into(),
            swing_ppm: 2.0,
            loss: 0.0,
            places,
        }
    }

    /// Seconds of a superframe.
    pub(crate) fn period_s(&self) -> f64 {
        self.superframe.length_us() as f64 / 1e6
    }
}

/// An event of a simulated radio swarm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RadioEvent {
    /// An agent sends its frame, which says this about time.
    Sent { agent: usize, stamp: Stamp },
    /// A whole frame arrived.
    Delivered { sender: usize, receiver: usize },
    /// A superframe of an agent is over.
    RoundEnded { agent: usize },
}

/// The simulation.
#[derive(Debug)]
pub(crate) struct RadioAir {
    settings: RadioSwarmConfig,
    pub(crate) stations: Vec<Station>,
    channel: Channel,
    /// By the bits of their times, none of which is negative; what was pushed first of two at once comes first.
    queue: BTreeMap<(u64, u64), Occurrence>,
    pushed: u64,
    now_us: f64,
    frames: Vec<FrameOnAir>,
    longest_packet_us: f64,
}

#[derive(Debug)]
pub(crate) struct Station {
    schedule: SlotSchedule,
    clock: ClockError,
    power_dbm: f64,
    is_on: bool,
    /// Counts changes of what is due: older entries of the queue are void.
    version: u64,
    /// Its transmissions of the last hour, where the law counts them: start and airtime.
    sent: VecDeque<(f64, f64)>,
    /// Superframes that it has ended.
    pub(crate) rounds: u64,
    /// How often its time jumped.
    pub(crate) jumps: u64,
}

/// A frame whose packets are being sent.
#[derive(Debug)]
struct FrameOnAir {
    sender: usize,
    stamp: Stamp,
    asked_us: f64,
    start_us: f64,
    /// Packets still to come.
    left: usize,
    count: usize,
    received: Vec<usize>,
    delays_us: Vec<f64>,
}

#[derive(Debug)]
enum Occurrence {
    Due { agent: usize, version: u64 },
    PacketStart { packet: usize, frame: usize, length_us: f64 },
    PacketEnd { packet: PacketOnAir, frame: usize },
}

/// Gets an event with its time and the slots of its agent, and says whether a delivered frame may tell it the time.
type Report<'a> = dyn FnMut(RadioEvent, f64, &mut SlotSchedule) -> bool + 'a;

impl RadioAir {
    /// A swarm whose agents are all switched off.
    pub(crate) fn new(settings: RadioSwarmConfig) -> Self {
        let station = |agent: u16| {
            let mut draw = Stream::new(settings.seed, agent.into(), 0, Purpose::Clock);
            let clock = ClockError {
                start_us: 1e9 * draw.uniform_f64(),
                ppm: settings.ppm * (2.0 * draw.uniform_f64() - 1.0),
                swing_ppm: settings.swing_ppm,
                swing_s: 60.0 + 60.0 * draw.uniform_f64(),
                tick_us: settings.radio.clock_tick_us,
            };
            Station {
                schedule: SlotSchedule::new(settings.superframe, agent, 0, 0),
                clock,
                power_dbm: POWER_SPREAD_DB * draw.gaussian_f64(),
                is_on: false,
                version: 0,
                sent: VecDeque::new(),
                rounds: 0,
                jumps: 0,
            }
        };
        let longest = settings.radio.packet_us(settings.radio.mtu);
        Self {
            stations: (0..settings.superframe.agents).map(station).collect(),
            channel: Channel::new(settings.seed, settings.loss),
            queue: BTreeMap::new(),
            pushed: 0,
            now_us: 0.0,
            frames: Vec::new(),
            longest_packet_us: f64::from(longest),
            settings,
        }
    }

    /// A swarm whose agents are switched on all at once.
    pub(crate) fn all_on(settings: RadioSwarmConfig) -> Self {
        let mut air = Self::new(settings);
        (0..air.stations.len()).for_each(|agent| air.switch_on(agent, 0));
        air
    }

    /// Switches an agent on, which goes on with round `round`.
    pub(crate) fn switch_on(&mut self, agent: usize, round: u32) {
        let station = &mut self.stations[agent];
        let now = station.clock.local_us(self.now_us);
        station.schedule = SlotSchedule::new(self.settings.superframe, agent as u16, round, now);
        station.is_on = true;
        self.look(agent);
    }

    /// Switches an agent off.
    pub(crate) fn switch_off(&mut self, agent: usize) {
        self.stations[agent].is_on = false;
        self.stations[agent].version += 1;
    }

    /// Goes on until a true time, in s.
    pub(crate) fn run_until(&mut self, seconds: f64, mut report: impl FnMut(RadioEvent)) {
        self.run_boards(seconds, &mut |event, _, _| {
            report(event);
            true
        });
    }

    /// Goes on for a number of superframes.
    pub(crate) fn pass(&mut self, superframes: f64) {
        self.run_until(self.seconds() + superframes * self.settings.period_s(), |_| {});
    }

    /// Goes on until a true time, in s.
    pub(crate) fn run_boards(&mut self, seconds: f64, report: &mut Report<'_>) {
        let is_over = |at_us: u64| f64::from_bits(at_us) > seconds * 1e6;
        while let Some(next) = self.queue.first_entry().filter(|next| !is_over(next.key().0)) {
            let ((at_us, _), what) = next.remove_entry();
            self.now_us = f64::from_bits(at_us);
            match what {
                Occurrence::Due { agent, version } if self.stations[agent].version == version => {
                    self.do_what_is_due(agent, report);
                }
                Occurrence::Due { .. } => {}
                Occurrence::PacketStart { packet, frame, length_us } => {
                    self.start_packet(packet, frame, length_us);
                }
                Occurrence::PacketEnd { packet, frame } => self.end_packet(&packet, frame, report),
            }
        }
        self.now_us = seconds * 1e6;
    }

    /// True time, in s.
    pub(crate) fn seconds(&self) -> f64 {
        self.now_us / 1e6
    }

    /// Counts of the channel so far.
    pub(crate) const fn counts(&self) -> ChannelCounts {
        self.channel.counts
    }

    /// The schedules of the agents that are on.
    pub(crate) fn schedules(&self) -> impl Iterator<Item = &SlotSchedule> {
        self.stations.iter().filter(|station| station.is_on).map(|station| &station.schedule)
    }

    /// Whether all agents that are on keep the time of the lowest of them, in the same superframe but for its borders.
    pub(crate) fn is_synchronised(&self) -> bool {
        let lowest = self.stations.iter().position(|station| station.is_on).unwrap_or_default();
        let number = self.stations[lowest].schedule.number();
        self.schedules().all(|schedule| {
            schedule.is_synchronised()
                && usize::from(schedule.stamp().root) == lowest
                && schedule.number().abs_diff(number) <= 1
        })
    }

    fn push(&mut self, at_us: f64, what: Occurrence) {
        self.pushed += 1;
        self.queue.insert((at_us.to_bits(), self.pushed), what);
    }

    /// Puts what is due at an agent into the queue, in place of what was.
    fn look(&mut self, agent: usize) {
        let station = &mut self.stations[agent];
        station.version += 1;
        let version = station.version;
        let at_us = station.clock.true_us(station.schedule.due().at_us).max(self.now_us);
        self.push(at_us, Occurrence::Due { agent, version });
    }

    fn do_what_is_due(&mut self, agent: usize, report: &mut Report<'_>) {
        let station = &mut self.stations[agent];
        let due = station.schedule.due();
        let late_us = station.clock.local_us(self.now_us).saturating_sub(due.at_us);
        match due.task {
            SlotTask::Found => {}
            SlotTask::Transmit { .. } if late_us > u64::from(self.settings.superframe.guard_us / 2) => {
                self.channel.counts.late += 1;
            }
            SlotTask::EndRound => {
                station.rounds += 1;
                report(RadioEvent::RoundEnded { agent }, self.now_us / 1e6, &mut station.schedule);
            }
            SlotTask::Transmit { room_us, is_shared } => self.transmit(agent, room_us, is_shared, report),
        }
        self.stations[agent].schedule.complete();
        self.look(agent);
    }

    fn transmit(&mut self, agent: usize, room_us: u32, is_shared: bool, report: &mut Report<'_>) {
        let radio = self.settings.radio;
        let bytes = if is_shared { self.settings.shared_bytes } else { self.settings.frame_bytes };
        if bytes == 0 {
            return;
        }
        if radio.frame_us(bytes) > room_us {
            self.channel.counts.too_long += 1;
            return;
        }
        if !self.stations[agent].spend(radio.duty_limit, f64::from(radio.airtime_us(bytes)), self.now_us) {
            self.channel.counts.over_duty += 1;
            return;
        }
        let agents = self.stations.len();
        let lengths: Vec<usize> = radio.packets(bytes).collect();
        let mut draw = Stream::new(self.settings.seed, agent as u32, self.pushed as u32, Purpose::Clock);
        let mut at_us = self.now_us;
        let frame = self.frames.iter().position(|frame| frame.left == 0).unwrap_or(self.frames.len());
        let stamp = self.stations[agent].schedule.stamp();
        let new = FrameOnAir {
            sender: agent,
            stamp,
            asked_us: at_us,
            start_us: at_us,
            left: lengths.len(),
            count: lengths.len(),
            received: vec![0; agents],
            delays_us: vec![0.0; agents],
        };
        match self.frames.get_mut(frame) {
            Some(place) => *place = new,
            None => self.frames.push(new),
        }
        for (packet, length) in lengths.into_iter().enumerate() {
            at_us += f64::from(radio.access_us) * draw.uniform_f64();
            if packet == 0 {
                self.frames[frame].start_us = at_us;
            }
            at_us += f64::from(radio.delay_us);
            let length_us = f64::from(radio.packet_us(length));
            self.push(at_us, Occurrence::PacketStart { packet, frame, length_us });
            at_us += length_us + f64::from(radio.gap_us);
        }
        if !is_shared {
            let schedule = &mut self.stations[agent].schedule;
            report(RadioEvent::Sent { agent, stamp }, self.now_us / 1e6, schedule);
        }
    }

    fn start_packet(&mut self, packet: usize, frame: usize, length_us: f64) {
        let sender = self.frames[frame].sender;
        let agents = self.stations.len();
        let place = |agent| self.settings.places.position(agent, agents, self.now_us / 1e6);
        let here = place(sender);
        let power = self.stations[sender].power_dbm;
        let paths: Vec<_> = (0..agents).map(|agent| RadioPath::between(here, place(agent), power)).collect();
        if packet == 0 {
            for (delay, path) in self.frames[frame].delays_us.iter_mut().zip(&paths) {
                *delay = path.delay_us;
            }
        }
        let end_us = self.now_us + length_us;
        let deaf_us = self.frames[frame].asked_us - f64::from(self.settings.radio.lead_us);
        let packet = PacketOnAir { sender, deaf_us, start_us: self.now_us, end_us, paths };
        self.channel.send(packet.clone(), self.now_us - 2.0 * self.longest_packet_us);
        // Late enough that its end has reached everybody.
        self.push(end_us + 1.0, Occurrence::PacketEnd { packet, frame });
    }

    fn end_packet(&mut self, packet: &PacketOnAir, frame: usize, report: &mut Report<'_>) {
        for receiver in 0..self.stations.len() {
            if receiver == packet.sender || !self.stations[receiver].is_on {
                continue;
            }
            let is_received = self.channel.is_received(packet, receiver);
            self.frames[frame].received[receiver] += usize::from(is_received);
        }
        let on_air = &mut self.frames[frame];
        on_air.left -= 1;
        if on_air.left > 0 {
            return;
        }
        let (sender, stamp, start_us) = (on_air.sender, on_air.stamp, on_air.start_us);
        for receiver in 0..self.stations.len() {
            let on_air = &self.frames[frame];
            if on_air.received[receiver] < on_air.count {
                continue;
            }
            let arrival_us = start_us + on_air.delays_us[receiver];
            let now_s = self.now_us / 1e6;
            let is_open =
                |slots: &mut SlotSchedule| report(RadioEvent::Delivered { sender, receiver }, now_s, slots);
            self.hear(sender, receiver, arrival_us, &stamp, is_open);
        }
    }

    /// A frame of `sender` that an intruder plays arrives at `receiver`, unless it is off. `may_tell` says whether it may tell the time.
    pub(crate) fn inject(
        &mut self,
        sender: usize,
        receiver: usize,
        stamp: &Stamp,
        may_tell: impl FnOnce(&mut SlotSchedule) -> bool,
    ) {
        if self.stations[receiver].is_on {
            self.hear(sender, receiver, self.now_us, stamp, may_tell);
        }
    }

    fn hear(
        &mut self,
        sender: usize,
        receiver: usize,
        arrival_us: f64,
        stamp: &Stamp,
        may_tell: impl FnOnce(&mut SlotSchedule) -> bool,
    ) {
        let station = &mut self.stations[receiver];
        let local_us = station.clock.local_us(arrival_us);
        if !may_tell(&mut station.schedule) {
            return;
        }
        let hearing = station.schedule.hear(local_us, sender as u16, stamp);
        station.jumps += u64::from(hearing == Hearing::Jumped);
        if hearing != Hearing::Nothing {
            self.look(receiver);
        }
    }
}

impl Station {
    /// Notes airtime that the law allows; `false` where it is too much.
    fn spend(&mut self, limit: Option<f64>, airtime_us: f64, now_us: f64) -> bool {
        let Some(limit) = limit else { return true };
        while self.sent.front().is_some_and(|&(at_us, _)| at_us < now_us - DUTY_WINDOW_US) {
            self.sent.pop_front();
        }
        let used_us: f64 = self.sent.iter().map(|&(_, airtime_us)| airtime_us).sum();
        let is_allowed = used_us + airtime_us <= limit * DUTY_WINDOW_US;
        if is_allowed {
            self.sent.push_back((now_us, airtime_us));
        }
        is_allowed
    }
}
