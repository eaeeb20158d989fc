//! Whole lives of swarms, recorded: frames lost, late, doubled, damaged and forged; agents that join, leave, fall silent, stop
//! and come back, with and without their memory. What each agent answers, sends and saves is held against a digest, so that
//! nothing that agents do changes unnoticed, on no machine and by no refactoring.

use super::*;
use crate::fnv;
use crate::wire::frame::{Admission, Challenge};
use std::format;
use std::string::String;

const ROUNDS: u32 = 150;

/// Under what circumstances a swarm lives.
#[derive(Clone, Copy)]
struct Life {
    width: Width,
    mode: Mode,
    momentum: f32,
    /// Directed ring instead of everybody.
    is_ring: bool,
    is_sealed: bool,
    late_rounds: u32,
    loss: f64,
    /// Forged frames, in per cent.
    forged: u32,
    /// Rounds with a restart, in per cent.
    restarts: u32,
}

const CALM: Life = Life {
    width: Width::Full,
    mode: Mode::LockStep,
    momentum: 0.7,
    is_ring: false,
    is_sealed: false,
    late_rounds: 0,
    loss: 0.2,
    forged: 0,
    restarts: 0,
};

/// A life with the digest of all that happened in it. A change that is meant to change what agents do brings new ones: the
/// failing test prints them.
const LIVES: [(Life, u32); 12] = [
    (CALM, 0x20a4_1986),
    (Life { width: Width::Half, ..CALM }, 0xd071_2fe3),
    (Life { width: Width::Byte, momentum: 0.0, ..CALM }, 0x6128_5879),
    (Life { width: Width::Half, restarts: 4, late_rounds: 2, ..CALM }, 0x3ff2_728c),
    (Life { width: Width::Byte, restarts: 4, forged: 5, loss: 0.5, ..CALM }, 0x859f_34c0),
    (Life { is_ring: true, late_rounds: 3, forged: 10, ..CALM }, 0x32aa_288b),
    (Life { is_ring: true, is_sealed: true, restarts: 3, ..CALM }, 0x5acd_a65d),
    (Life { is_sealed: true, restarts: 5, forged: 20, late_rounds: 1, ..CALM }, 0x2f0f_9a60),
    (Life { forged: 40, loss: 0.0, ..CALM }, 0xfe5a_b233),
    (Life { mode: Mode::FreeRunning, ..CALM }, 0xec01_fc2e),
    (Life { mode: Mode::FreeRunning, restarts: 4, forged: 10, width: Width::Half, ..CALM }, 0x298b_4b41),
    (
        Life { mode: Mode::FreeRunning, is_sealed: true, is_ring: true, restarts: 4, forged: 10, ..CALM },
        0x3127_9c13,
    ),
];

/// Agents that may ever be there; the last one comes later.
const ALL: usize = AGENTS + 1;

/// A swarm, its air and a record of everything.
struct World {
    life: Life,
    stream: Stream,
    agents: Vec<Small>,
    boots: [u32; ALL],
    late: Vec<(u32, usize, usize, Vec<u8>)>,
    /// Everything that was ever sent.
    past: Vec<(usize, Vec<u8>)>,
    hash: u32,
    /// Answers of agents, in the order of first appearance.
    answers: Vec<String>,
}

impl World {
    fn new(life: Life, seed: u64) -> Self {
        let agents = (0..AGENTS).map(|id| agent(life.config(id, 1))).collect();
        let stream = Stream::new(seed, 0, 0, Purpose::Air);
        Self {
            life,
            stream,
            agents,
            boots: [1; ALL],
            late: Vec::new(),
            past: Vec::new(),
            hash: fnv::BASIS,
            answers: Vec::new(),
        }
    }

    fn happens(&mut self, percent: u32) -> bool {
        self.stream.below(100) < percent
    }

    fn any_agent(&mut self) -> usize {
        self.stream.below(self.agents.len() as u32) as usize
    }

    fn record(&mut self, words: &[u32]) {
        self.hash = words.iter().fold(self.hash, |hash, &word| fnv::add(hash, word).rotate_left(5));
    }

    fn record_bytes(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.record(&[byte.into()]));
    }

    fn give(&mut self, receiver: usize, sender: usize, frame: &[u8]) {
        let origin = match self.life.is_sealed {
            // A frame of the intruder is now and then not sealed by the agent that it names.
            true => Origin::Sealed { sender: sender as u16, boot: self.boots[sender] },
            false => Origin::Clear,
        };
        let answer = format!("{:?}", self.agents[receiver].receive(origin, frame));
        self.hash = fnv::add_text(self.hash, &answer);
        if !self.answers.contains(&answer) {
            self.answers.push(answer);
        }
    }

    /// Everybody speaks, and the air does what it likes.
    fn exchange(&mut self, now: u32) {
        let mut arriving = Vec::new();
        for (sender, frame) in frames(&mut self.agents) {
            self.record_bytes(&frame);
            for receiver in (0..self.agents.len()).filter(|&receiver| receiver != sender) {
                if self.stream.uniform_f64() < self.life.loss || self.is_out_of_reach(now, receiver, sender) {
                    continue;
                }
                match self.stream.below(16) {
                    0 => self.late.push((now + 1 + self.stream.below(4), receiver, sender, frame.clone())),
                    1 => arriving
                        .extend([(receiver, sender, frame.clone()), (receiver, sender, frame.clone())]),
                    _ => arriving.push((receiver, sender, frame.clone())),
                }
                if self.happens(self.life.forged) {
                    let (sender, forged) = self.forge(receiver, sender, &frame);
                    arriving.push((receiver, sender, forged));
                }
            }
            self.past.push((sender, frame));
        }
        let due = self.late.extract_if(.., |(due, ..)| *due <= now);
        arriving.extend(due.map(|(_, receiver, sender, frame)| (receiver, sender, frame)));
        while !arriving.is_empty() {
            let next = self.stream.below(arriving.len() as u32) as usize;
            let (receiver, sender, frame) = arriving.swap_remove(next);
            self.give(receiver, sender, &frame);
        }
    }

    /// Agent 2 is behind a hill for a while, longer than the others wait.
    fn is_out_of_reach(&self, now: u32, receiver: usize, sender: usize) -> bool {
        let is_hidden = (60..95).contains(&now) && (receiver == 2) != (sender == 2);
        is_hidden
            || (self.life.is_ring && (sender + 1) % AGENTS != receiver % AGENTS && !now.is_multiple_of(7))
    }

    /// A frame as an intruder, or a member that went mad, changes it.
    fn forge(&mut self, receiver: usize, sender: usize, frame: &[u8]) -> (usize, Vec<u8>) {
        let (round, epoch) = (self.agents[receiver].round(), self.agents[receiver].epoch());
        let Epoch { boot, founder, number } = epoch;
        let near = |stream: &mut Stream, value: u32| match stream.below(10) {
            0 => u32::MAX - stream.below(3),
            1 => value.saturating_add(60 + stream.below(8)),
            2 => value.saturating_add(1024 * stream.below(10)),
            3..6 => value.saturating_add(stream.below(6)).saturating_sub(3),
            _ => value,
        };
        let (number, round) = (near(&mut self.stream, number), near(&mut self.stream, round));
        let epoch = Epoch { boot, founder, number };
        let named = self.stream.below(7) as u16;
        let boot = self.stream.below(4);
        let other = self.stream.below(6) as u16;
        let challenge = Challenge { challenger: other, boot: 1, round: near(&mut self.stream, round) };
        let forged = match self.stream.below(8) {
            0 => {
                let echo = self.happens(50).then_some(challenge);
                let x = if self.happens(90) { 2 } else { 3 };
                encoded(Frame::Hello(Hello { x, echo, ..hello(named, boot, epoch, round) }))
            }
            1 => {
                let mut members = MemberSet::first(AGENTS as u16).unwrap();
                members.insert(other);
                let header = MembersHeader { sender: named, epoch, round, rounds_left: 9 };
                encoded(Frame::Members(header, members.as_bytes()))
            }
            2 => {
                let hops = self.stream.below(5) as u8;
                encoded(Frame::Admission(Admission {
                    sender: named,
                    epoch,
                    round,
                    challenge,
                    joiner: other,
                    joiner_boot: boot,
                    hops,
                }))
            }
            3 | 4 => {
                let Ok(Frame::Data(_, payload)) = Frame::decode(frame) else { return (sender, frame.into()) };
                let mut out = [0; 256];
                let start =
                    DataHeader { sender: named, epoch: epoch.tag(), round }.encode_header(&mut out).unwrap();
                let mut forged = [&out[..start], payload].concat();
                if payload.len() == Width::Full.payload_bytes(WORDS) && self.happens(50) {
                    let size = [1.0f32, 1e8, 3e38][self.stream.below(3) as usize];
                    forged[start + 1..start + 5].copy_from_slice(&size.to_le_bytes());
                }
                forged
            }
            5 => {
                let mut damaged = frame.to_vec();
                let byte = self.stream.below(frame.len() as u32) as usize;
                damaged[byte] ^= 1 << self.stream.below(8);
                damaged
            }
            6 => frame[..self.stream.below(frame.len() as u32) as usize].to_vec(),
            _ => {
                let old = self.stream.below(self.past.len().max(1) as u32) as usize;
                return self.past.get(old).cloned().unwrap_or((sender, frame.into()));
            }
        };
        (if self.happens(50) { sender } else { usize::from(named) % self.agents.len() }, forged)
    }

    /// Agents join, leave, stop and start again.
    fn apply_events(&mut self, now: u32) {
        match now {
            20 => self.agents.push(agent(self.life.config(AGENTS, 1))),
            120 => self.agents[1].leave(),
            _ => {}
        }
        if !self.happens(self.life.restarts) {
            return;
        }
        let chosen = self.any_agent();
        let saved = saved(&self.agents[chosen]);
        self.boots[chosen] += 1;
        self.agents[chosen] = agent(self.life.config(chosen, self.boots[chosen]));
        if self.happens(60) {
            self.agents[chosen].restore(read_from(&saved)).unwrap();
        }
    }

    fn end_rounds(&mut self) {
        for index in 0..self.agents.len() {
            let report = match self.life.mode {
                Mode::LockStep => self.agents[index].end_on_beat(),
                Mode::FreeRunning if self.stream.below(5) == 0 => continue,
                Mode::FreeRunning => self.agents[index].end_round(),
            };
            self.hash = fnv::add_text(self.hash, &format!("{report:?}"));
            let agent = &self.agents[index];
            let words =
                [agent.digest(), agent.audience(), agent.members().len(), u32::from(agent.is_behind())];
            let state = saved(agent);
            self.record(&words);
            self.record(&state);
        }
        check_invariant(&self.agents);
    }
}

impl Life {
    fn config(self, id: usize, boot: u32) -> Config {
        let Self { width, mode, momentum, is_ring, late_rounds, .. } = self;
        let links = if is_ring { ring_links(id) } else { Links::Everybody };
        let steps = Steps { x: 0.2, y: 0.05, z: 0.06, momentum };
        let order = if is_ring { Order::CombineFirst } else { Order::AdaptFirst };
        let give_up_after = NonZeroU32::new(25);
        Config { width, mode, steps, order, links, late_rounds, give_up_after, boot, ..config(id) }
    }

    /// All that happens in it, as a digest, and the answers that agents gave.
    fn live(self, seed: u64) -> (u32, Vec<String>) {
        let mut world = World::new(self, seed);
        for now in 0..ROUNDS {
            world.apply_events(now);
            world.exchange(now);
            world.end_rounds();
        }
        (world.hash, world.answers)
    }
}

#[test]
fn no_life_loses_or_makes_mass() {
    for (seed, (life, _)) in (0..).zip([LIVES, LIVES].concat()) {
        // A forged frame may end the life of an agent.
        Life { forged: 0, ..life }.live(seed);
    }
}

#[test]
fn lives_are_as_recorded() {
    let mut answers = Vec::new();
    let mut digests = Vec::new();
    for ((life, _), seed) in LIVES.iter().zip(501..) {
        let (digest, given) = life.live(seed);
        digests.push(digest);
        answers.extend(given);
    }
    // A record of lives in which little happens would hold little.
    for expected in ["Taken", "Early", "Stale", "OtherEpoch", "NewEpoch", "Unchanged"] {
        assert!(answers.iter().any(|answer| answer == expected), "{expected}");
    }
    for refusal in ["Wire", "Own", "NotMember", "Schema", "Shape", "Impostor", "Jump", "Magnitude"] {
        let start = format!("Refused({refusal}");
        assert!(answers.iter().any(|answer| answer.starts_with(&start)), "{refusal}: {answers:?}");
    }
    assert_eq!(digests, LIVES.map(|(_, digest)| digest), "now: {digests:#010x?}");
}
