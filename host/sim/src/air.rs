//! The air: it delivers frames between agents and applies the faults of the scenario.
//!
//! ```text
//!             ┌──────── for each link that exists in this slot ────────┐
//!   transmit ─┼─▶ signal margin ─▶ loss ─▶ duplication ─▶ damage ─▶ delay ─▶ reordering ─▶ deliver
//!    (unless  │   (motion only)                              │ waits for later slots ▲
//!   the agent │                                              └───────────────────────┘
//!    is away) └─▶ intruder: replays and forgeries, received by all agents before anything else, and relays
//! ```
//!
//! Time goes in slots: a round where agents keep step, a tick of the simulation where each has its own clock. Every random
//! number comes from a stream named by link and slot: the same scenario gives the same bytes, and no link depends on another.

mod blocks;
mod clear_sky;
mod connectivity;
mod counters;
mod delivery;
mod edges;
mod faults;
pub mod masks;
mod motion;
pub mod radio;
mod recording;
mod source;
mod transmissions;

use clear_sky::ClearBlock;
use counters::{CopyOrigin, LossCause};
pub use counters::{Counters, FrameCounts, FrameVerdict, LinkReport, Losses};
use delivery::Delivery;
pub(crate) use delivery::{Listener, ReceivedFrame};
use fabswarm_diagnostic::Diagnostic;
use fabswarm_shared::rng::{Purpose, Stream};
use fabswarm_shared::wire::seal::Key;
use faults::{CopyTransit, LinkFaults};
pub use faults::{Intruder, Outages};
use motion::Motion;
use recording::Recording;
pub use source::LinkSource;
use std::collections::BTreeMap;
use transmissions::Transmissions;

use crate::scenario::Scenario;

/// Most agents for which every link can be counted.
const MOST_AGENTS: usize = 4096;

/// Carries frames from agent to agent.
#[derive(Clone, Debug)]
pub struct Air {
    seed: u64,
    agents: usize,
    source: LinkSource,
    faults: LinkFaults,
    outages: Outages,
    intruder: Option<Intruder>,
    /// Whether nothing but the signal decides what arrives.
    is_clear: bool,
    transmissions: Transmissions,
    /// Whether what is in `transmissions` has been delivered.
    is_delivered: bool,
    /// Copies on their way, by the slot they arrive in.
    waiting: BTreeMap<u32, Vec<DelayedCopy>>,
    arrivals: Vec<Arrival>,
    delivery: Delivery,
    /// Buffers for what arrives where nothing but the signal decides.
    clear_blocks: Vec<ClearBlock>,
    counters: Counters,
}

/// A copy that arrives in this slot.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    sender: u32,
    frame: u32,
    origin: CopyOrigin,
}

/// A frame of an intruder, to one agent only or to all.
type InjectedCopy = (Option<usize>, Arrival);

/// A copy that arrives in a later slot.
#[derive(Clone, Debug)]
struct DelayedCopy {
    sender: u32,
    receiver: u32,
    origin: CopyOrigin,
    bytes: Box<[u8]>,
}

impl Air {
    /// The air that `scenario` describes.
    ///
    /// # Errors
    /// When its graphs cannot be had, or its faults do not fit the swarm.
    pub fn new(scenario: &Scenario) -> Result<Self, Diagnostic> {
        let (agents, seed) = (scenario.swarm.agents, scenario.network_seed());
        if agents > MOST_AGENTS {
            return Err(too_many(agents));
        }
        let faults = LinkFaults::new(&scenario.faults, agents)?;
        let outages = Outages::new(&scenario.faults, agents)?;
        Ok(Self {
            seed,
            agents,
            source: LinkSource::new(scenario)?,
            is_clear: scenario.faults.are_none() && !scenario.intruder.is_on_air(),
            faults,
            outages,
            intruder: Intruder::new(&scenario.intruder, agents, seed),
            transmissions: Transmissions::new(agents),
            is_delivered: false,
            waiting: BTreeMap::new(),
            arrivals: Vec::new(),
            delivery: Delivery::default(),
            clear_blocks: Vec::new(),
            counters: Counters::new(agents),
        })
    }

    /// `sender` broadcasts `frame` in `slot`. A slot is over with [`Air::deliver`]; slots come in ascending order.
    pub fn transmit(&mut self, slot: u32, sender: usize, frame: &[u8]) {
        self.begin_slot();
        if self.outages.is_away(sender, slot) {
            self.counters.unsent += 1;
        } else {
            self.counters.frames += 1;
            self.transmissions.push(sender, frame);
        }
    }

    /// Passes everything that arrives in `slot` to `hear(receiver, sender, bytes)` and counts its verdicts. Receivers come in
    /// ascending order, and so do senders for each of them unless the air reorders what they send.
    pub fn deliver(&mut self, slot: u32, mut hear: impl FnMut(usize, usize, &[u8]) -> FrameVerdict) {
        self.gather(slot);
        let Self { delivery, transmissions, counters, .. } = self;
        for (receiver, arrival) in delivery.each() {
            let verdict = hear(receiver, arrival.sender as usize, transmissions.bytes(arrival.frame));
            counters.hear(verdict, arrival.origin);
        }
        self.is_delivered = true;
    }

    /// As [`Air::deliver`], to listeners that hear independently of each other and so on all cores. Before them `witness`, if there
    /// is one, sees every arrival. Where frames are sealed with a `key`, each is opened once, however many receive it.
    pub(crate) fn deliver_to<R: Listener>(
        &mut self,
        slot: u32,
        listeners: &mut [R],
        witness: Option<impl FnMut(usize, usize, &[u8])>,
        key: Option<&Key>,
    ) {
        self.gather(slot);
        let Self { delivery, transmissions, counters, .. } = self;
        if let Some(mut witness) = witness {
            for (receiver, arrival) in delivery.each() {
                witness(receiver, arrival.sender as usize, transmissions.bytes(arrival.frame));
            }
        }
        delivery.hear(transmissions, listeners, key);
        delivery.count(counters);
        self.is_delivered = true;
    }

    /// Forgets what was on the air in the slot before.
    fn begin_slot(&mut self) {
        if std::mem::take(&mut self.is_delivered) {
            self.transmissions.clear();
        }
    }

    /// Sender and bytes of each frame that was on the air in the last slot, in ascending order of senders.
    pub fn broadcasts(&self) -> impl Iterator<Item = (usize, &[u8])> {
        self.transmissions.all()
    }

    /// Finds out what arrives in `slot`.
    fn gather(&mut self, slot: u32) {
        self.begin_slot();
        self.source.look_at(slot);
        self.transmissions.sort();
        self.delivery.clear();
        if self.is_clear {
            self.gather_clear(slot);
            return;
        }
        let strangers = self.strangers(slot);
        let late = self.late(slot);
        for receiver in 0..self.agents {
            self.collect(slot, receiver, &strangers, &late);
            self.delivery.append(&self.arrivals, &[self.arrivals.len()]);
        }
    }

    /// Frames that an intruder sends in `slot`, based on those it recorded in earlier slots.
    fn strangers(&mut self, slot: u32) -> Vec<InjectedCopy> {
        let Self { intruder: Some(intruder), outages, transmissions, .. } = self else {
            return Vec::new();
        };
        for crash in outages.restarts(slot) {
            intruder.ambush(crash.agent, slot);
        }
        let mut strangers = Vec::new();
        for replay in intruder.replays(slot) {
            let frame = transmissions.keep(replay.bytes);
            let arrival = Arrival { sender: replay.sender as u32, frame, origin: CopyOrigin::Replayed };
            strangers.push((replay.victim, arrival));
        }
        for (sender, bytes) in intruder.forges(slot) {
            let frame = transmissions.keep(&bytes);
            strangers.push((None, Arrival { sender: sender as u32, frame, origin: CopyOrigin::Forged }));
        }
        intruder.overhear(slot, transmissions.all());
        strangers
    }

    /// The copies that were to arrive by `slot`: for each receiver, in the order they were sent.
    fn late(&mut self, slot: u32) -> Vec<(u32, Arrival)> {
        let mut late = Vec::new();
        while let Some(due) = self.waiting.first_entry().filter(|due| *due.key() <= slot) {
            for copy in due.remove() {
                let frame = self.transmissions.keep(&copy.bytes);
                self.counters.waiting -= 1;
                late.push((copy.receiver, Arrival { sender: copy.sender, frame, origin: copy.origin }));
            }
        }
        late.sort_by_key(|&(receiver, _)| receiver);
        late
    }

    /// Fills `arrivals` with what arrives at `receiver`.
    fn collect(&mut self, slot: u32, receiver: usize, strangers: &[InjectedCopy], late: &[(u32, Arrival)]) {
        self.arrivals.clear();
        let first = late.partition_point(|&(other, _)| (other as usize) < receiver);
        let late = late[first..].iter().take_while(|late| late.0 as usize == receiver);
        self.arrivals.extend(late.map(|late| late.1));
        let mut relays =
            self.intruder.as_ref().map(|intruder| intruder.relays(receiver, slot)).unwrap_or_default();
        self.receive_over_links(slot, receiver, &mut relays);

        self.arrivals.sort_by_key(|arrival| arrival.sender);
        let mut stream = Stream::new(self.seed, receiver as u32, slot, Purpose::Air);
        let reordered = self.faults.reorder(&mut self.arrivals, &mut stream);
        self.receive_of_intruder(receiver, strangers, &relays);
        if !self.outages.is_away(receiver, slot) {
            self.counters.reordered += reordered;
            return;
        }
        for arrival in self.arrivals.drain(..) {
            let is_own = matches!(arrival.origin, CopyOrigin::Genuine | CopyOrigin::Damaged);
            let link = is_own.then_some(receiver * self.agents + arrival.sender as usize);
            self.counters.lose(link, LossCause::Outages);
        }
    }

    /// Adds what comes over the links to `receiver`, unless it is lost or delayed, and takes senders in reach from `relays`.
    fn receive_over_links(&mut self, slot: u32, receiver: usize, relays: &mut [bool]) {
        let Self { seed, agents, source, faults, transmissions, waiting, arrivals, counters, .. } = self;
        source.each_link(receiver, slot, |sender, is_received| {
            let link = receiver * *agents + sender;
            if let Some(is_relayed) = relays.get_mut(sender) {
                *is_relayed = false;
            }
            let mut stream = link_stream(*seed, sender, receiver, slot, Purpose::Air);
            // The first number of the stream was for the signal.
            stream.next_u64();
            for broadcast in transmissions.of(sender) {
                counters.copy(link);
                let outcome =
                    if is_received { faults.pass(link, slot, &mut stream) } else { Err(LossCause::Margin) };
                let (first, second) = match outcome {
                    Ok(copies) => copies,
                    Err(loss) => {
                        counters.lose(Some(link), loss);
                        continue;
                    }
                };
                counters.duplicated += u64::from(second.is_some());
                for CopyTransit { delay, is_damaged } in [Some(first), second].into_iter().flatten() {
                    let (mut frame, mut origin) = (transmissions.index_of(broadcast), CopyOrigin::Genuine);
                    if is_damaged {
                        let (copy, bytes) = transmissions.copy(frame);
                        faults::damage(bytes, &mut stream);
                        (frame, origin) = (copy, CopyOrigin::Damaged);
                        counters.damaged += 1;
                    }
                    let sender = sender as u32;
                    if delay == 0 {
                        arrivals.push(Arrival { sender, frame, origin });
                        continue;
                    }
                    counters.delayed += 1;
                    counters.waiting += 1;
                    let bytes = transmissions.bytes(frame).into();
                    let late = DelayedCopy { sender, receiver: receiver as u32, origin, bytes };
                    waiting.entry(slot.saturating_add(delay)).or_default().push(late);
                }
            }
        });
    }

    /// Adds what an intruder sends. It leaves all that the swarm sends as it is, and comes before it where that may do harm.
    fn receive_of_intruder(&mut self, receiver: usize, strangers: &[InjectedCopy], relays: &[bool]) {
        let Self { transmissions, arrivals, counters, .. } = self;
        let genuine = arrivals.len();
        for &(victim, stranger) in strangers {
            if victim.is_none_or(|victim| victim == receiver) {
                match stranger.origin {
                    CopyOrigin::Forged => counters.forged += 1,
                    _ => counters.replayed += 1,
                }
                arrivals.push(stranger);
            }
        }
        arrivals.rotate_left(genuine);
        for sender in (0..relays.len()).filter(|&sender| relays[sender] && sender != receiver) {
            for broadcast in transmissions.of(sender) {
                let frame = transmissions.index_of(broadcast);
                arrivals.push(Arrival { sender: sender as u32, frame, origin: CopyOrigin::Relayed });
                counters.relayed += 1;
            }
        }
    }

    /// Counts fragments that an intruder forged.
    pub(crate) fn count_forged_fragments(&mut self, count: u64) {
        self.counters.forged_fragments += count;
    }

    /// Notes that `agent` is down from now on, outside of what the scenario plans, or that it is back.
    pub(crate) fn set_lost(&mut self, agent: usize, is_lost: bool) {
        self.outages.set_lost(agent, is_lost);
        self.is_clear = false;
    }

    /// The agents that are away, slot by slot.
    pub const fn outages(&self) -> &Outages {
        &self.outages
    }

    /// How many agents there are.
    pub const fn agents(&self) -> usize {
        self.agents
    }

    /// Where `agent` is in `slot`, in m from a corner of the area, if agents fly.
    pub fn position(&self, agent: usize, slot: u32) -> Option<[f32; 3]> {
        let place = self.source.motion()?.position(agent, slot);
        Some([place.x as f32, place.y as f32, place.z as f32])
    }

    /// Receiver and sender of each copy that arrived over a link in the last slot, in ascending order of receivers.
    pub fn arrivals(&self) -> impl Iterator<Item = (usize, usize)> {
        let own = |arrival: &Arrival| matches!(arrival.origin, CopyOrigin::Genuine | CopyOrigin::Damaged);
        let arrivals = self.delivery.each().filter(move |(_, arrival)| own(arrival));
        arrivals.map(|(receiver, arrival)| (receiver, arrival.sender as usize))
    }

    /// The graph, before faults.
    pub const fn source(&self) -> &LinkSource {
        &self.source
    }

    /// Frames and copies so far, by outcome.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }
}

fn too_many(agents: usize) -> Diagnostic {
    let what = format!("swarm.agents = {agents} is too many to carry every frame");
    Diagnostic::new(what, format!("take at most {MOST_AGENTS} agents"))
}

/// The random numbers of a directed link in a slot.
fn link_stream(seed: u64, sender: usize, receiver: usize, slot: u32, purpose: Purpose) -> Stream {
    // A sender's number above all seeds that people choose keeps links apart from agents and from each other.
    Stream::new(seed ^ ((sender as u64 + 1) << 40), receiver as u32, slot, purpose)
}

#[cfg(test)]
mod tests;
