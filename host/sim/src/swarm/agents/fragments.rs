//! Frames in fragments, among which an intruder sends forged ones.

use crate::air::FrameVerdict;
use fabswarm_shared::rng::{Purpose, Stream};
use fabswarm_shared::wire::fragment::{Fragmenter, PART_HEADER, Reassembler, packets};

/// Bytes of a packet, as on 802.15.4.
const MTU: usize = 125;
/// The longest frame that is cut into fragments.
const LONGEST_FRAME: usize = 2048;
/// Frames that a receiver puts together at a time: several candidates of one, where fragments conflict.
const SLOTS: usize = 16;
/// Above all seeds that people choose.
const SEED: u64 = 1 << 62;

/// Cuts the frames for one receiver into fragments and puts them together again.
#[derive(Debug)]
pub(super) struct FragmentPath {
    reassembler: Box<Reassembler<LONGEST_FRAME, SLOTS>>,
    forged_per_frame: u32,
    stream: Stream,
    /// The number of the next frame.
    number: u16,
    /// Fragments forged since they were last counted.
    forged: u64,
}

impl FragmentPath {
    /// The path to `receiver`, where an intruder adds fragments to each frame.
    pub(super) fn new(receiver: usize, forged_per_frame: u32, seed: u64) -> Self {
        Self {
            reassembler: Box::default(),
            forged_per_frame,
            stream: Stream::new(seed ^ SEED, receiver as u32, 0, Purpose::Air),
            number: 0,
            forged: 0,
        }
    }

    /// Carries a frame to the receiver, which passes all that it puts together to `hear`: the seal tells what is genuine.
    pub(super) fn carry(
        &mut self,
        sender: usize,
        frame: &[u8],
        mut hear: impl FnMut(&[u8]) -> FrameVerdict,
    ) -> FrameVerdict {
        let number = self.number;
        self.number = number.wrapping_add(1);
        let count = packets(frame.len(), MTU).unwrap_or(0);
        let fragmenter = Fragmenter::new(frame, sender as u16, number, MTU);
        let (Ok(mut fragmenter), true) = (fragmenter, frame.len() <= LONGEST_FRAME && count > 1) else {
            return hear(frame);
        };
        let mut verdict = None;
        let mut receive = |packet: &[u8]| {
            let reassembler = &mut self.reassembler;
            let mut next = reassembler.receive(packet).ok().flatten();
            while let Some(whole) = next {
                let heard = hear(whole);
                if verdict.is_none_or(|verdict| rank(heard) > rank(verdict)) {
                    verdict = Some(heard);
                }
                next = reassembler.next_frame();
            }
        };
        let mut forged_before: Vec<u32> =
            (0..self.forged_per_frame).map(|_| self.stream.below(count as u32)).collect();
        forged_before.sort_unstable();
        for index in 0..count as u32 {
            for _ in forged_before.iter().filter(|&&place| place == index) {
                let mut packet = [0; MTU];
                let header = [count as u8, self.stream.below(count as u32) as u8];
                packet[..2].copy_from_slice(&header);
                packet[2..4].copy_from_slice(&(sender as u16).to_le_bytes());
                packet[4..6].copy_from_slice(&number.to_le_bytes());
                packet[PART_HEADER..].fill_with(|| self.stream.next_u32() as u8);
                // As long as a genuine one, or as short as can be.
                let length = if self.stream.below(2) == 0 { MTU } else { PART_HEADER + 1 };
                receive(&packet[..length]);
                self.forged += 1;
            }
            if let Ok(Some(packet)) = fragmenter.next_packet(&mut [0; MTU]) {
                receive(packet);
            }
        }
        verdict.unwrap_or(FrameVerdict::Refused("fragments in conflict"))
    }

    /// Fragments forged since the last call.
    pub(super) fn take_forged(&mut self) -> u64 {
        std::mem::take(&mut self.forged)
    }
}

/// The weight of an outcome among those of several candidates.
const fn rank(verdict: FrameVerdict) -> u8 {
    match verdict {
        FrameVerdict::Taken => 2,
        FrameVerdict::Useless => 1,
        FrameVerdict::Refused(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_genuine_frame_always_comes_through() {
        for forged_per_frame in 0..=2 {
            let mut path = FragmentPath::new(2, forged_per_frame, 7);
            for number in 0..500_u32 {
                let frame: Vec<u8> = (0..383 + number % 200).map(|byte| (byte + number) as u8).collect();
                let mut others = 0;
                let verdict = path.carry(number as usize % 5, &frame, |whole| {
                    others += u32::from(whole != frame);
                    if whole == frame { FrameVerdict::Taken } else { FrameVerdict::Refused("tampered") }
                });
                assert_eq!(verdict, FrameVerdict::Taken, "{forged_per_frame} forged, frame {number}");
                assert!(forged_per_frame > 0 || others == 0);
            }
            assert_eq!(path.take_forged(), 500 * u64::from(forged_per_frame));
            assert_eq!(path.take_forged(), 0);
        }
    }
}
