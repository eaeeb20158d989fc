//! Puts the parts of frames together.

use super::super::Error;
#[cfg(doc)]
use super::Fragmenter;

/// One frame on its way in.
#[derive(Clone, Debug)]
struct PartialFrame<const FRAME: usize> {
    buffer: [u8; FRAME],
    seen: [u32; 8],
    sender: u16,
    number: u16,
    /// Parts of the frame; 0 marks a slot that was never used.
    count: u8,
    missing: u8,
    /// Length of all parts but the last; 0 until one came.
    part: usize,
    /// Length of the last part, which waits at the end of the buffer; 0 until it came.
    last: usize,
    /// When the first part came, in frames begun.
    begun: u32,
}

impl<const FRAME: usize> PartialFrame<FRAME> {
    const EMPTY: Self = Self {
        buffer: [0; FRAME],
        seen: [0; 8],
        sender: 0,
        number: 0,
        count: 0,
        missing: 0,
        part: 0,
        last: 0,
        begun: 0,
    };
}

/// A packet's header and part.
#[derive(Clone, Copy)]
struct Fragment<'a> {
    count: u8,
    index: u8,
    sender: u16,
    number: u16,
    bytes: &'a [u8],
}

impl Fragment<'_> {
    fn is_last(&self) -> bool {
        self.index == self.count - 1
    }
}

/// Puts frames of up to `FRAME` bytes together, `SLOTS` at a time.
///
/// When all slots are taken, the frame begun first is given up for a new one. Allow two slots for each sender that may
/// be heard at once. A finished frame keeps its slot until then, so that late duplicates of its packets are known.
#[derive(Clone, Debug)]
pub struct Reassembler<const FRAME: usize, const SLOTS: usize> {
    slots: [PartialFrame<FRAME>; SLOTS],
    begun: u32,
}

impl<const FRAME: usize, const SLOTS: usize> Default for Reassembler<FRAME, SLOTS> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const FRAME: usize, const SLOTS: usize> Reassembler<FRAME, SLOTS> {
    /// Starts with nothing received.
    #[must_use]
    pub const fn new() -> Self {
        const { assert!(SLOTS > 0, "a reassembler needs at least one slot") };
        Self { slots: [PartialFrame::EMPTY; SLOTS], begun: 0 }
    }

    /// Takes one packet and returns the frame it completes, if it does.
    ///
    /// # Errors
    /// [`Error::Malformed`] for a packet no [`Fragmenter`] makes, [`Error::FrameTooLong`] for a frame beyond `FRAME`.
    pub fn receive<'a>(&'a mut self, packet: &'a [u8]) -> Result<Option<&'a [u8]>, Error> {
        let part = match *packet {
            [1, ref frame @ ..] if !frame.is_empty() => {
                return if frame.len() <= FRAME { Ok(Some(frame)) } else { Err(Error::FrameTooLong) };
            }
            [count, index, s0, s1, n0, n1, ref bytes @ ..] if index < count && !bytes.is_empty() => {
                Fragment {
                    count,
                    index,
                    sender: u16::from_le_bytes([s0, s1]),
                    number: u16::from_le_bytes([n0, n1]),
                    bytes,
                }
            }
            _ => return Err(Error::Malformed),
        };
        // A part in front needs at least one byte behind the others.
        let others = usize::from(part.count - 1);
        if (part.is_last() && others + part.bytes.len() > FRAME)
            || (!part.is_last() && others * part.bytes.len() >= FRAME)
        {
            return Err(Error::FrameTooLong);
        }
        self.slot_for(&part).take(&part)
    }

    /// The slot of the part's frame, or the best one to begin it in.
    fn slot_for(&mut self, part: &Fragment) -> &mut PartialFrame<FRAME> {
        let mut chosen = 0;
        let mut chosen_rank = 0;
        for (i, slot) in self.slots.iter().enumerate() {
            let rank = if slot.count == 0 {
                u64::MAX - 1
            } else if slot.is_of(part) {
                u64::MAX
            } else {
                u64::from(self.begun.wrapping_sub(slot.begun))
            };
            if rank >= chosen_rank {
                (chosen, chosen_rank) = (i, rank);
            }
        }
        let slot = &mut self.slots[chosen];
        if chosen_rank != u64::MAX || !slot.agrees_with(part) {
            self.begun = self.begun.wrapping_add(1);
            slot.begin(part, self.begun);
        }
        slot
    }
}

impl<const FRAME: usize> PartialFrame<FRAME> {
    fn is_of(&self, part: &Fragment) -> bool {
        (self.sender, self.number) == (part.sender, part.number)
    }

    /// Whether the part can belong to what is there. If not, the sender restarted and counts anew.
    fn agrees_with(&self, part: &Fragment) -> bool {
        let length = part.bytes.len();
        self.count == part.count
            && if part.is_last() {
                (self.last == 0 || self.last == length) && (self.part == 0 || length <= self.part)
            } else {
                (self.part == 0 || self.part == length) && self.last <= length
            }
    }

    fn begin(&mut self, part: &Fragment, begun: u32) {
        self.seen = [0; 8];
        (self.sender, self.number) = (part.sender, part.number);
        (self.count, self.missing) = (part.count, part.count);
        (self.part, self.last) = (0, 0);
        self.begun = begun;
    }

    /// Takes a part that agrees with the slot.
    fn take(&mut self, part: &Fragment) -> Result<Option<&[u8]>, Error> {
        let (word, bit) = (usize::from(part.index / 32), 1 << (part.index % 32));
        if self.seen[word] & bit != 0 {
            return Ok(None);
        }
        let length = part.bytes.len();
        let (front, last) = if part.is_last() { (self.part, length) } else { (length, self.last) };
        let total = usize::from(self.count - 1) * front + last;
        if total > FRAME {
            return Err(Error::FrameTooLong);
        }
        // The last part's place depends on the others' length: it waits at the end of the buffer, where it cannot be
        // overwritten since the whole frame fits.
        let start = if part.is_last() { FRAME - length } else { usize::from(part.index) * length };
        self.buffer.get_mut(start..start + length).ok_or(Error::FrameTooLong)?.copy_from_slice(part.bytes);
        self.seen[word] |= bit;
        (self.part, self.last) = (front, last);
        self.missing -= 1;
        if self.missing > 0 {
            return Ok(None);
        }
        self.buffer.copy_within(FRAME - last.., total - last);
        Ok(self.buffer.get(..total))
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::super::{Fragmenter, MIN_MTU};
    use super::*;

    extern crate std;
    use std::vec::Vec;

    fn cut(frame: &[u8], sender: u16, number: u16, mtu: usize) -> Vec<Vec<u8>> {
        let mut fragmenter = Fragmenter::new(frame, sender, number, mtu).unwrap();
        let mut out = std::vec![0; mtu];
        let mut packets = Vec::new();
        while let Some(packet) = fragmenter.next_packet(&mut out).unwrap() {
            packets.push(packet.to_vec());
        }
        packets
    }

    fn frame() -> impl Strategy<Value = Vec<u8>> {
        vec(any::<u8>(), 1..400)
    }

    proptest! {
        /// Whatever is lost, doubled and reordered: a frame comes whole and once if all its packets came, else
        /// never.
        #[test]
        fn whole_frames_or_none(
            frames in vec(frame(), 1..5),
            mtu in MIN_MTU..140,
            order in vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..80),
            lost in vec(any::<prop::sample::Index>(), 0..3),
        ) {
            let mut air: Vec<(usize, Vec<u8>)> = Vec::new();
            for (i, frame) in frames.iter().enumerate() {
                air.extend(cut(frame, i as u16 % 3, i as u16, mtu).into_iter().map(|packet| (i, packet)));
            }
            let mut complete = std::vec![true; frames.len()];
            for index in lost {
                if !air.is_empty() {
                    let (frame, _) = air.remove(index.index(air.len()));
                    complete[frame] = false;
                }
            }
            for (a, b) in order {
                if !air.is_empty() {
                    let (a, b) = (a.index(air.len()), b.index(air.len()));
                    air.swap(a, b);
                    if a % 3 == 0 {
                        let copy = air[a].clone();
                        // A whole frame has no number: doubling it is the replay window's matter.
                        if copy.1[0] != 1 {
                            air.insert(b, copy);
                        }
                    }
                }
            }
            let mut reassembler = Reassembler::<400, 5>::new();
            let mut got = std::vec![0; frames.len()];
            for (i, packet) in &air {
                if let Some(frame) = reassembler.receive(packet).unwrap() {
                    prop_assert_eq!(frame, &frames[*i][..]);
                    got[*i] += 1;
                }
            }
            for (got, complete) in got.into_iter().zip(complete) {
                prop_assert_eq!(got, usize::from(complete));
            }
        }
    }

    #[test]
    fn the_frame_begun_first_makes_room() {
        let mut reassembler = Reassembler::<100, 2>::new();
        let first = cut(&[1; 60], 1, 0, 31);
        for sender in 1..=3 {
            assert_eq!(reassembler.receive(&cut(&[1; 60], sender, 0, 31)[0]), Ok(None));
        }
        assert_eq!(reassembler.receive(&first[1]), Ok(None));
        assert_eq!(reassembler.receive(&first[2]), Ok(None), "its first part was given up");
    }

    #[test]
    fn a_restarted_sender_that_counts_anew_is_not_mixed_up() {
        let mut reassembler = Reassembler::<100, 2>::new();
        assert_eq!(reassembler.receive(&cut(&[1; 60], 1, 0, 31)[0]), Ok(None));
        let again = cut(&[2; 90], 1, 0, 31);
        let (last, others) = again.split_last().unwrap();
        for packet in others {
            assert_eq!(reassembler.receive(packet), Ok(None));
        }
        assert_eq!(reassembler.receive(last), Ok(Some(&[2; 90][..])));
    }

    #[test]
    fn long_frames_and_bad_packets_are_refused() {
        let mut reassembler = Reassembler::<50, 2>::new();
        for packet in cut(&[1; 51], 1, 0, 31).iter().chain(&cut(&[1; 51], 1, 0, 60)) {
            let taken = reassembler.receive(packet);
            assert!(matches!(taken, Ok(None) | Err(Error::FrameTooLong)), "{taken:?}");
        }
        for packet in [&[][..], &[1], &[0; 9], &[2, 2, 0, 0, 0, 0, 1], &[2, 0, 0, 0, 0, 0]] {
            assert_eq!(reassembler.receive(packet), Err(Error::Malformed), "{packet:?}");
        }
    }
}
