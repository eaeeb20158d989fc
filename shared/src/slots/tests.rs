extern crate std;

mod attacks;

use super::*;
use crate::rng::{Purpose, Stream};
use crate::wire::Error as WireError;
use crate::wire::frame::{DataHeader, Epoch, Frame};
use proptest::prelude::*;
use std::boxed::Box;
use std::vec::Vec;

/// An agent with a clock of its own in an air without collisions.
struct Node {
    schedule: SlotSchedule,
    /// Local time is this much ahead.
    ahead_us: f64,
    /// Local time per true time.
    rate: f64,
    is_on: bool,
    rounds: Vec<u32>,
}

impl Node {
    fn local(&self, true_us: f64) -> u64 {
        (true_us * self.rate + self.ahead_us) as u64
    }

    /// The true time at which a task of this node is due.
    fn due_true(&self, schedule: &SlotSchedule) -> f64 {
        (schedule.due().at_us as f64 - self.ahead_us) / self.rate
    }

    /// The true time at which its present superframe began, modulo the nominal length.
    fn phase(&self, length_us: f64) -> f64 {
        let offset = self.schedule.superframe.tail_at_us() as f64;
        let mut probe = self.schedule.clone();
        complete_slots(&mut probe);
        (self.due_true(&probe) - offset).rem_euclid(length_us)
    }
}

/// Goes to the end of the superframe. Returns whether something is sent before.
fn complete_slots(schedule: &mut SlotSchedule) -> bool {
    let mut sends = false;
    while schedule.due().task != SlotTask::EndRound {
        schedule.complete();
        sends = true;
    }
    sends
}

struct Nodes {
    nodes: Vec<Node>,
    hears: Box<dyn Fn(usize, usize) -> bool>,
    loss: f64,
    sent: u32,
    now_us: f64,
    /// All frames so far: sender, stamp and when it was sent.
    tape: Vec<(u16, Stamp, f64)>,
}

impl Nodes {
    fn new(starts_us: &[f64], ppm: f64, seed: u64) -> Self {
        let superframe = superframe(starts_us.len() as u16);
        let mut draw = Stream::new(seed, 0, 0, Purpose::Clock);
        let nodes = starts_us
            .iter()
            .enumerate()
            .map(|(id, &start)| {
                let rate = 1.0 + ppm * 1e-6 * (2.0 * draw.uniform_f64() - 1.0);
                let ahead_us = 1e7 * draw.uniform_f64();
                let now = (start * rate + ahead_us) as u64;
                let schedule = SlotSchedule::new(superframe, id as u16, 0, now);
                Node { schedule, ahead_us, rate, is_on: true, rounds: Vec::new() }
            })
            .collect();
        Self { nodes, hears: Box::new(|_, _| true), loss: 0.0, sent: 0, now_us: 0.0, tape: Vec::new() }
    }

    fn run_until(&mut self, until_us: f64) {
        loop {
            let due = (0..self.nodes.len())
                .filter(|&node| self.nodes[node].is_on)
                .map(|node| (node, self.nodes[node].due_true(&self.nodes[node].schedule)))
                .min_by(|a, b| a.1.total_cmp(&b.1));
            let Some((sender, at)) = due.filter(|&(_, at)| at < until_us) else {
                self.now_us = until_us;
                return;
            };
            self.now_us = self.now_us.max(at);
            let stamp = self.nodes[sender].schedule.stamp();
            let task = self.nodes[sender].schedule.due().task;
            if task == SlotTask::EndRound {
                let round = self.nodes[sender].schedule.number();
                self.nodes[sender].rounds.push(round);
            }
            self.nodes[sender].schedule.complete();
            if let SlotTask::Transmit { .. } = task {
                self.sent += 1;
                self.tape.push((sender as u16, stamp, self.now_us));
                for receiver in 0..self.nodes.len() {
                    let mut air = Stream::new(sender as u64, receiver as u32, self.sent, Purpose::Air);
                    let is_lost = air.uniform_f64() < self.loss;
                    if receiver != sender
                        && self.nodes[receiver].is_on
                        && (self.hears)(receiver, sender)
                        && !is_lost
                    {
                        let arrival = self.nodes[receiver].local(self.now_us + 2.0 * air.uniform_f64());
                        self.nodes[receiver].schedule.hear(arrival, sender as u16, &stamp);
                    }
                }
            }
        }
    }

    /// Asserts that the starts of agents' superframes differ by less than a share of the guard time.
    fn assert_within(&self, share: f64, what: &str) {
        let (spread, guard) = (self.spread_us(), self.nodes[0].schedule.superframe.guard_us);
        assert!(spread < share * f64::from(guard), "{what}: {spread} µs of {guard}, {:?}", self.roots());
    }

    /// The nominal length of a superframe.
    fn length_us(&self) -> f64 {
        self.nodes[0].schedule.superframe.length_us() as f64
    }

    fn on(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter().filter(|node| node.is_on)
    }

    /// The largest difference between the starts of two agents' superframes.
    fn spread_us(&self) -> f64 {
        let length = self.length_us();
        let on: Vec<_> = self.on().map(|node| node.phase(length)).collect();
        let apart = |a: &f64, b: &f64| {
            let apart = (a - b).rem_euclid(length);
            apart.min(length - apart)
        };
        on.iter().flat_map(|a| on.iter().map(move |b| apart(a, b))).fold(0.0, f64::max)
    }

    fn roots(&self) -> Vec<u16> {
        self.on().map(|node| node.schedule.stamp().root).collect()
    }

    fn numbers_agree(&self) -> bool {
        let numbers: Vec<_> = self.on().map(|node| node.schedule.number()).collect();
        numbers.iter().all(|&number| number.abs_diff(numbers[0]) <= 1)
    }
}

fn superframe(agents: u16) -> Superframe {
    Superframe::plan(&SlotConfig { agents, shared_us: 9000, ..SlotConfig::default() }).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn agents_with_poor_clocks_synchronise(
        agents in 2usize..12,
        seed: u64,
        starts in proptest::collection::vec(0.0..2e6f64, 12),
        loss in 0.0..0.3f64,
        reach in 1usize..12,
    ) {
        let mut nodes = Nodes::new(&starts[..agents], 40.0, seed);
        let length = nodes.length_us();
        nodes.loss = loss;
        nodes.hears = Box::new(move |receiver, sender| receiver.abs_diff(sender) <= reach);
        nodes.run_until(2e6 + 150.0 * length);
        prop_assert!(nodes.roots().iter().all(|&root| root == 0), "{:?}", nodes.roots());
        prop_assert!(nodes.numbers_agree());
        for _ in 0..20 {
            nodes.run_until(nodes.now_us + 10.37 * length);
            nodes.assert_within(0.5, "half of the guard time");
        }
        for node in &nodes.nodes {
            prop_assert!(node.rounds.is_sorted_by(|a, b| a < b), "rounds only go forward");
        }
    }

    #[test]
    fn a_dead_root_is_given_up_without_a_jump(agents in 3usize..12, seed: u64, loss in 0.0..0.3f64) {
        let mut nodes = Nodes::new(&[0.0; 12][..agents], 40.0, seed);
        let length = nodes.length_us();
        nodes.loss = loss;
        nodes.run_until(100.0 * length);
        nodes.nodes[0].is_on = false;
        for _ in 0..120 {
            nodes.run_until(nodes.now_us + 1.13 * length);
            nodes.assert_within(0.5, "half of the guard time");
        }
        prop_assert!(nodes.roots().iter().all(|&root| root == 1), "{:?}", nodes.roots());
        prop_assert!(nodes.numbers_agree());
    }

    #[test]
    fn two_halves_that_meet_merge(seed: u64, apart in 0.0..1.0f64, lead in 0u32..500) {
        let length = superframe(8).length_us() as f64;
        let later = (f64::from(lead) + apart) * length;
        let mut nodes = Nodes::new(&[[later; 4], [0.0; 4]].concat(), 40.0, seed);
        nodes.hears = Box::new(|receiver, sender| (receiver < 4) == (sender < 4));
        nodes.run_until(later + 50.0 * length);
        prop_assert_eq!(nodes.roots(), [0, 0, 0, 0, 4, 4, 4, 4]);
        let ahead = nodes.nodes[7].schedule.number();
        prop_assert!(ahead >= lead);
        nodes.hears = Box::new(|_, _| true);
        nodes.run_until(nodes.now_us + 20.0 * length);
        prop_assert_eq!(nodes.roots(), [0; 8]);
        prop_assert!(nodes.numbers_agree());
        prop_assert!(nodes.nodes[0].schedule.number() >= ahead, "the higher number wins");
        nodes.assert_within(0.5, "half of the guard time");
        for node in &nodes.nodes {
            prop_assert!(node.rounds.is_sorted_by(|a, b| a < b));
        }
    }

    #[test]
    fn stamped_frames_come_back(
        root: u16, hops in 0u8..8, age in 0u8..64, is_timed: bool, superframe: u32, round: u32, sender: u16,
    ) {
        let stamp = Stamp { root, hops, age, is_timed, superframe };
        for (round, is_sealed) in [(round, false), (superframe, false), (round, true), (superframe, true)] {
            let mut frame = [0; 64];
            let header = DataHeader { sender, epoch: Epoch::FIRST.tag(), round };
            let length = Frame::Data(header, b"payload").encode(&mut frame).unwrap();
            let frame = &frame[..length];
            let mut out = [0; 96];
            let end = STAMP_ROOM + stamp.join(frame, is_sealed, &mut out[STAMP_ROOM..]).unwrap();
            prop_assert!(end - STAMP_ROOM <= length + STAMP_MAX);
            for room in 0..end - STAMP_ROOM {
                prop_assert_eq!(stamp.join(frame, is_sealed, &mut [0; 96][..room]), Err(WireError::BufferTooSmall));
            }
            let sealed_by = is_sealed.then_some(sender);
            prop_assert_eq!(Stamp::split(&mut out[..end], sealed_by), Ok((stamp, frame)));
        }
    }

    #[test]
    fn no_bytes_and_no_times_make_it_panic(
        mut bytes: Vec<u8>,
        sealed_by: Option<u16>,
        heard in proptest::collection::vec(any::<(u64, u16, u16, u8, u8, bool, u32)>(), 0..40),
        now: u64,
        layout: (u16, u32, u32, u16, u32, u32),
        rest: (u8, u8, u8),
    ) {
        let _ = Stamp::split(&mut bytes, sealed_by);
        let (agents, slot_us, shared_us, turn, tail_us, guard_us) = layout;
        let (resync, give_up_after, quiet_every) = rest;
        let odd = Superframe { agents, slot_us, shared_us, turn, tail_us, guard_us, resync, give_up_after, quiet_every };
        for superframe in [odd, superframe(7)] {
            if !superframe.is_sound() {
                continue;
            }
            let mut schedule = SlotSchedule::new(superframe, heard.len() as u16, 3, now);
            for &(at, sender, root, hops, age, is_timed, superframe) in &heard {
                schedule.hear(at, sender, &Stamp { root, hops, age, is_timed, superframe });
                let _ = schedule.due();
                schedule.complete();
            }
        }
    }
}

#[test]
fn frame_with_zeros_before_its_sender_keeps_its_superframe() {
    let mut frame = [0; 64];
    let header = DataHeader { sender: 9, epoch: Epoch::FIRST.tag(), round: 20 };
    let length = Frame::Data(header, b"payload").encode(&mut frame).unwrap();
    // Sender 9 as a varint of two bytes.
    let long = [&[0, 0x89, 0], &frame[2..length]].concat();
    let stamp = Stamp { root: 1, hops: 2, age: 3, is_timed: true, superframe: 20 };
    let mut out = [0; 96];
    let end = STAMP_ROOM + stamp.join(&long, true, &mut out[STAMP_ROOM..]).unwrap();
    assert_eq!(Stamp::split(&mut out[..end], Some(9)), Ok((stamp, &long[..])));
}

#[test]
fn guard_time_covers_the_drift() {
    let needs = SlotConfig { agents: 20, ..SlotConfig::default() };
    let superframe = Superframe::plan(&needs).unwrap();
    let drift_us = superframe.length_us() * 8 * 80 / 1_000_000;
    assert!(u64::from(superframe.guard_us) >= 2 * drift_us);
    assert!(u64::from(superframe.guard_us) <= 2 * (drift_us + 2 * 2 * 5 + 4), "{superframe:?}");
    assert_eq!(Superframe::plan(&SlotConfig { ppm: 50_000, ..needs }), Err(Error::Drift { ppm: 50_000 }));
    assert_eq!(Superframe::plan(&SlotConfig { agents: 0, ..needs }), Err(Error::Empty));
}

#[test]
fn slots_do_not_overlap_and_turns_are_unique() {
    for agents in [1, 10, 16, 17, 20, 40] {
        let superframe = superframe(agents);
        for number in 0..64 {
            let mut used: Vec<(u64, u64)> = Vec::new();
            for agent in 0..agents {
                let at = superframe.slot_at_us(agent);
                used.push((at, at + u64::from(superframe.slot_room_us())));
                if let Some(at) = superframe.shared_at_us(agent, number) {
                    used.push((at, at + u64::from(superframe.shared_room_us())));
                }
            }
            used.sort_unstable();
            let guard = u64::from(superframe.guard_us / 2 * 2);
            assert!(used.windows(2).all(|pair| pair[0].1 + guard <= pair[1].0));
            assert!(used.last().unwrap().1 <= superframe.length_us());
        }
    }
}

#[test]
fn agents_that_start_together_and_send_at_once_hear_each_other() {
    // Both believe to be alone, with superframes that lie so that each sends while the other does.
    let superframe = superframe(2);
    let slot = f64::from(superframe.slot_us);
    let length = superframe.length_us() as f64;
    let mut nodes = Nodes::new(&[slot + length, 0.0], 0.0, 1);
    nodes.hears = Box::new(|_, _| false);
    nodes.run_until(40.0 * length);
    let [one, other] = [0, 1].map(|id| {
        let mut schedule = nodes.nodes[id].schedule.clone();
        complete_slots(&mut schedule);
        [(); 64].map(|()| {
            schedule.complete();
            complete_slots(&mut schedule)
        })
    });
    let heard = one.into_iter().zip(other).filter(|(one, other)| *one && !*other).count();
    assert!((8..=30).contains(&heard), "{heard} of 64 superframes");
}
