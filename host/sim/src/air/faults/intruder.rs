//! An intruder on the air, which receives every frame and is received by all agents.

use fabswarm_shared::rng::{Purpose, Stream};
use fabswarm_shared::wire::Frame;
use fabswarm_shared::wire::frame::{DATA_HEADER_MAX, DataHeader, Epoch};
use fabswarm_shared::wire::seal::{Key, OVERHEAD_MAX, Sealer, VolatileBoots};

use crate::scenario::IntruderSection;

/// Rounds for which it lies in wait for an agent that has restarted.
const AMBUSH_ROUNDS: u32 = 50;

/// The intruder's number in random streams: no agent has these.
const REPLAY: u32 = u32::MAX;
const FORGERY: u32 = u32::MAX - 1;
const MEMORY: u32 = u32::MAX - 2;
const KEY: u32 = u32::MAX - 3;
/// Above all seeds that people choose, so that relays are drawn apart from everything else of a receiver.
const RELAY_SEED: u64 = 1 << 63;

/// An intruder without the swarm's key.
#[derive(Clone, Debug)]
pub struct Intruder {
    settings: IntruderSection,
    seed: u64,
    agents: usize,
    /// The newest frames, in a ring whose oldest is at `oldest`.
    newest: Vec<RecordedFrame>,
    oldest: usize,
    /// A uniform selection of all frames so far, and how many those are.
    selection: Vec<RecordedFrame>,
    heard: u64,
    /// The last slot in which it lies in wait for each agent.
    ambush_until: Vec<Option<u32>>,
}

/// The sender of a frame, and its bytes.
type RecordedFrame = (usize, Vec<u8>);

/// A recorded frame that is sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replay<'a> {
    /// The only one who hears it, if it is aimed at somebody.
    pub victim: Option<usize>,
    /// The original sender.
    pub sender: usize,
    /// The frame.
    pub bytes: &'a [u8],
}

impl Intruder {
    /// The intruder that `settings` ask for, if it sends anything.
    pub fn new(settings: &IntruderSection, agents: usize, seed: u64) -> Option<Self> {
        settings.is_on_air().then(|| Self {
            settings: settings.clone(),
            seed,
            agents,
            newest: Vec::new(),
            oldest: 0,
            selection: Vec::new(),
            heard: 0,
            ambush_until: vec![None; agents],
        })
    }

    /// Records the frames of `slot`.
    pub fn overhear<'a>(&mut self, slot: u32, frames: impl Iterator<Item = (usize, &'a [u8])>) {
        let room = self.settings.memory_frames / 2;
        let mut stream = Stream::new(self.seed, MEMORY, slot, Purpose::Air);
        for (sender, bytes) in frames {
            if self.newest.len() < room {
                self.newest.push((sender, bytes.to_vec()));
            } else {
                self.newest[self.oldest] = (sender, bytes.to_vec());
                self.oldest = (self.oldest + 1) % room;
            }
            self.heard += 1;
            // Reservoir sampling: each frame so far is kept with the same chance.
            if self.selection.len() < room {
                self.selection.push((sender, bytes.to_vec()));
            } else if let Some(place) = self.selection.get_mut((stream.next_u64() % self.heard) as usize) {
                *place = (sender, bytes.to_vec());
            }
        }
    }

    /// Lies in wait for an agent that restarts in `slot`.
    pub(in super::super) fn ambush(&mut self, agent: usize, slot: u32) {
        self.ambush_until[agent] = Some(slot.saturating_add(AMBUSH_ROUNDS));
    }

    /// Frames that it replays in `slot`.
    pub fn replays(&self, slot: u32) -> Vec<Replay<'_>> {
        let mut stream = Stream::new(self.seed, REPLAY, slot, Purpose::Air);
        let is_on = stream.uniform_f64() < self.settings.replay;
        let to_all = if is_on { self.settings.frames_per_round } else { 0 };
        let ambushed = self.ambush_until.iter().enumerate();
        let ambushed = ambushed.filter(|(_, until)| until.is_some_and(|until| slot <= until));
        let aimed =
            ambushed.flat_map(|(agent, _)| (0..self.settings.ambush_frames).map(move |_| Some(agent)));
        let mut replay = |victim| {
            let frames = if stream.below(2) == 0 { &self.newest } else { &self.selection };
            let (sender, bytes) = frames.get(stream.below(frames.len() as u32) as usize)?;
            Some(Replay { victim, sender: *sender, bytes })
        };
        (0..to_all).map(|_| None).chain(aimed).filter_map(&mut replay).collect()
    }

    /// Frames that it forges in `slot`: alleged senders, and frames as long as the last it recorded, sealed with a key of its own.
    pub fn forges(&self, slot: u32) -> Vec<(usize, Vec<u8>)> {
        let mut stream = Stream::new(self.seed, FORGERY, slot, Purpose::Air);
        if stream.uniform_f64() >= self.settings.wrong_key {
            return Vec::new();
        }
        (0..self.settings.frames_per_round).filter_map(|_| self.forge(slot, &mut stream)).collect()
    }

    /// Its key in `slot`: another in each, as one in 256 has the check byte of the swarm's key and is refused after decryption.
    fn key(&self, slot: u32) -> Key {
        let mut stream = Stream::new(self.seed, KEY, slot, Purpose::Air);
        Key::new(&std::array::from_fn(|_| stream.next_u32() as u8))
    }

    fn forge(&self, slot: u32, stream: &mut Stream) -> Option<(usize, Vec<u8>)> {
        let sender = stream.below(self.agents as u32);
        let length = self.newest.last()?.1.len();
        let payload: Vec<u8> = (0..length).map(|_| stream.next_u32() as u8).collect();
        let data = DataHeader { sender: sender as u16, epoch: Epoch::FIRST.tag(), round: slot };
        let mut frame = vec![0; DATA_HEADER_MAX + length];
        let frame_length = Frame::Data(data, &payload).encode(&mut frame).ok()?;
        // An intruder need not count its boots: any number will do.
        let mut sealer =
            Sealer::start(sender as u16, 1, &mut VolatileBoots::after(stream.next_u32() >> 12)).ok()?;
        let mut sealed = vec![0; frame_length + OVERHEAD_MAX];
        let sealed_length = sealer.seal(&self.key(slot), &frame[..frame_length], &mut sealed).ok()?;
        sealed.truncate(sealed_length);
        Some((sender as usize, sealed))
    }

    /// For each agent, whether its frames of `slot` are relayed to `receiver`; empty where there are no relays.
    pub(in super::super) fn relays(&self, receiver: usize, slot: u32) -> Vec<bool> {
        if self.settings.relay == 0.0 {
            return Vec::new();
        }
        let mut stream = Stream::new(self.seed ^ RELAY_SEED, receiver as u32, slot, Purpose::Air);
        (0..self.agents).map(|_| stream.uniform_f64() < self.settings.relay).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;
    use fabswarm_shared::wire;
    use fabswarm_shared::wire::seal::Opener;

    fn intruder(change: impl FnOnce(&mut IntruderSection)) -> Intruder {
        let mut settings = Scenario::default().intruder;
        change(&mut settings);
        Intruder::new(&settings, 10, 3).unwrap()
    }

    #[test]
    fn what_it_forges_looks_like_a_frame_and_opens_for_nobody() {
        let mut intruder = intruder(|settings| (settings.wrong_key, settings.frames_per_round) = (1.0, 3));
        assert!(intruder.forges(0).is_empty(), "it has no frame to go by yet");
        intruder.overhear(0, [(4, &[0; 100][..])].into_iter());
        let key = Key::new(&[9; 32]);
        for slot in 1..50 {
            let forged = intruder.forges(slot);
            assert_eq!(forged.len(), 3);
            for (sender, bytes) in forged {
                let mut opener = Opener::<10>::new();
                assert!(sender < 10 && (100..150).contains(&bytes.len()));
                let refused = opener.open(&key, &bytes, &mut [0; 200]).unwrap_err();
                assert!(matches!(refused, wire::Error::ForeignKey | wire::Error::Tampered));
                assert!(opener.open(&intruder.key(slot), &bytes, &mut [0; 200]).is_ok(), "it is sealed well");
            }
        }
    }

    #[test]
    fn it_replays_frames_of_the_whole_run_and_the_newest_more_often() {
        let mut intruder = intruder(|settings| {
            (settings.replay, settings.frames_per_round, settings.memory_frames) = (1.0, 20, 200);
        });
        assert!(intruder.replays(0).is_empty());
        for number in 0..2000_u32 {
            intruder.overhear(number, [(number as usize % 10, &number.to_le_bytes()[..])].into_iter());
        }
        assert_eq!((intruder.newest.len(), intruder.selection.len()), (100, 100));
        let replays: Vec<_> = (0..200).flat_map(|slot| intruder.replays(slot)).collect();
        assert_eq!(replays.len(), 4000);
        let number = |replay: &Replay<'_>| u32::from_le_bytes(replay.bytes.try_into().unwrap());
        assert!(replays.iter().all(|replay| number(replay) % 10 == replay.sender as u32));
        assert!(replays.iter().all(|replay| replay.victim.is_none()));
        let count = |range: std::ops::Range<u32>| {
            replays.iter().filter(|replay| range.contains(&number(replay))).count()
        };
        assert!(count(1900..2000) > 1900, "half of them are of the newest");
        assert!(count(0..1000) > 600, "and a quarter of the first half of the run");
    }

    #[test]
    fn it_lies_in_wait_for_who_restarts() {
        let mut intruder = intruder(|settings| settings.ambush_frames = 7);
        intruder.overhear(0, [(4, &[1; 9][..])].into_iter());
        assert!(intruder.replays(1).is_empty());
        intruder.ambush(3, 20);
        for slot in [20, 20 + AMBUSH_ROUNDS] {
            let replays = intruder.replays(slot);
            assert!(replays.len() == 7 && replays.iter().all(|replay| replay.victim == Some(3)));
        }
        assert!(intruder.replays(21 + AMBUSH_ROUNDS).is_empty());
    }
}
