//! An intruder on the air, which receives every frame and is received by all agents.

use fabswarm_shared::rng::{Purpose, Stream};
use fabswarm_shared::wire::Frame;
use fabswarm_shared::wire::frame::{DATA_HEADER_MAX, DataHeader};
use fabswarm_shared::wire::seal::{Key, OVERHEAD_MAX, Sealer, VolatileBoots};

use crate::scenario::FaultsSection;

/// Frames that the intruder keeps.
const MEMORY: usize = 256;
/// What it takes for an agent's number in its random stream: no agent has it.
const NAME: u32 = u32::MAX;

/// An intruder without the swarm's key.
#[derive(Clone, Debug)]
pub(in super::super) struct Intruder {
    replay: f64,
    wrong_key: f64,
    seed: u64,
    agents: usize,
    key: Key,
    memory: Vec<RecordedFrame>,
    /// The oldest of a full memory.
    oldest: usize,
}

#[derive(Clone, Debug)]
struct RecordedFrame {
    sender: usize,
    bytes: Vec<u8>,
}

impl Intruder {
    /// The intruder that `faults` ask for, if they ask for one.
    pub(in super::super) fn new(faults: &FaultsSection, agents: usize, seed: u64) -> Option<Self> {
        let mut stream = Stream::new(seed, NAME, u32::MAX, Purpose::Air);
        let key = Key::new(&std::array::from_fn(|_| stream.next_u32() as u8));
        (faults.replay > 0.0 || faults.wrong_key > 0.0).then_some(Self {
            replay: faults.replay,
            wrong_key: faults.wrong_key,
            seed,
            agents,
            key,
            memory: Vec::new(),
            oldest: 0,
        })
    }

    /// Records a frame.
    pub(in super::super) fn overhear(&mut self, sender: usize, bytes: &[u8]) {
        if self.memory.len() < MEMORY {
            self.memory.push(RecordedFrame { sender, bytes: bytes.to_vec() });
            return;
        }
        let place = &mut self.memory[self.oldest];
        place.sender = sender;
        place.bytes.clear();
        place.bytes.extend_from_slice(bytes);
        self.oldest = (self.oldest + 1) % MEMORY;
    }

    /// What it replays in `slot`: the original sender, and the bytes.
    pub(in super::super) fn replays(&self, slot: u32) -> Option<(usize, &[u8])> {
        let mut stream = Stream::new(self.seed, NAME, slot, Purpose::Air);
        let is_on = stream.uniform_f64() < self.replay;
        let old = self.memory.get(stream.below(self.memory.len() as u32) as usize)?;
        is_on.then_some((old.sender, &old.bytes))
    }

    /// What it forges in `slot`: the alleged sender, and a frame as long as the last it recorded, sealed with its own
    /// key.
    pub(in super::super) fn forges(&self, slot: u32) -> Option<(usize, Vec<u8>)> {
        let mut stream = Stream::new(self.seed, NAME - 1, slot, Purpose::Air);
        if stream.uniform_f64() >= self.wrong_key {
            return None;
        }
        let sender = stream.below(self.agents as u32);
        let length = self.memory.last()?.bytes.len();
        let payload: Vec<u8> = (0..length).map(|_| stream.next_u32() as u8).collect();
        let data = DataHeader { sender: sender as u16, epoch: 1, round: slot };
        let mut frame = vec![0; DATA_HEADER_MAX + length];
        let frame_length = Frame::Data(data, &payload).encode(&mut frame).ok()?;
        // An intruder need not count its boots: any number will do.
        let mut sealer =
            Sealer::start(sender as u16, 1, &mut VolatileBoots::after(stream.next_u32() >> 12)).ok()?;
        let mut sealed = vec![0; frame_length + OVERHEAD_MAX];
        let sealed_length = sealer.seal(&self.key, &frame[..frame_length], &mut sealed).ok()?;
        sealed.truncate(sealed_length);
        Some((sender as usize, sealed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;
    use fabswarm_shared::wire;
    use fabswarm_shared::wire::seal::Opener;

    #[test]
    fn what_it_forges_looks_like_a_frame_and_opens_for_nobody() {
        let faults = FaultsSection { wrong_key: 1.0, ..Scenario::default().faults };
        let mut intruder = Intruder::new(&faults, 10, 3).unwrap();
        assert_eq!(intruder.forges(0), None, "it has no frame to go by yet");
        intruder.overhear(4, &[0; 100]);
        let key = Key::new(&[9; 32]);
        for slot in 1..50 {
            let mut opener = Opener::<10>::new();
            let (sender, bytes) = intruder.forges(slot).unwrap();
            assert!(sender < 10 && (100..150).contains(&bytes.len()));
            let refused = opener.open(&key, &bytes, &mut [0; 200]).unwrap_err();
            assert!(matches!(refused, wire::Error::ForeignKey | wire::Error::Tampered));
            assert!(opener.open(&intruder.key, &bytes, &mut [0; 200]).is_ok(), "it is sealed well");
        }
    }

    #[test]
    fn it_replays_what_it_overheard_and_forgets_the_oldest() {
        let faults = FaultsSection { replay: 1.0, ..Scenario::default().faults };
        let mut intruder = Intruder::new(&faults, 10, 3).unwrap();
        assert_eq!(intruder.replays(0), None);
        for number in 0..2 * MEMORY as u32 {
            intruder.overhear(number as usize % 10, &number.to_le_bytes());
        }
        for slot in 0..100 {
            let (sender, bytes) = intruder.replays(slot).unwrap();
            let number = u32::from_le_bytes(bytes.try_into().unwrap());
            assert!(number >= MEMORY as u32 && number % 10 == sender as u32);
        }
    }
}
