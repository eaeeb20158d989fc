//! Frames on the air in one slot.

use std::ops::Range;

/// The frames of one slot, one after the other in one buffer. Each is named by its number among all that are kept.
#[derive(Clone, Debug)]
pub(super) struct Transmissions {
    bytes: Vec<u8>,
    /// Where each frame that is kept ends, in the order in which they were kept.
    ends: Vec<u32>,
    /// Sender and number of each broadcast.
    frames: Vec<(u32, u32)>,
    /// The first frame of each sender once they are sorted, and the number of frames at the end.
    starts: Vec<u32>,
}

impl Transmissions {
    pub(super) fn new(agents: usize) -> Self {
        Self { bytes: Vec::new(), ends: Vec::new(), frames: Vec::new(), starts: vec![0; agents + 1] }
    }

    /// Adds a broadcast of `sender`.
    pub(super) fn push(&mut self, sender: usize, frame: &[u8]) {
        let index = self.keep(frame);
        self.frames.push((sender as u32, index));
    }

    /// Keeps bytes that no agent of the swarm broadcasts.
    pub(super) fn keep(&mut self, bytes: &[u8]) -> u32 {
        self.bytes.extend_from_slice(bytes);
        self.end_frame()
    }

    /// Keeps another copy of a frame and returns it for changes.
    pub(super) fn copy(&mut self, index: u32) -> (u32, &mut [u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_within(self.range(index));
        (self.end_frame(), &mut self.bytes[start..])
    }

    fn end_frame(&mut self) -> u32 {
        self.ends.push(self.bytes.len() as u32);
        self.ends.len() as u32 - 1
    }

    fn range(&self, index: u32) -> Range<usize> {
        let index = index as usize;
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        start as usize..self.ends[index] as usize
    }

    /// Sorts the broadcasts by sender, each sender's in the order they were sent.
    pub(super) fn sort(&mut self) {
        if !self.frames.is_sorted_by_key(|&(sender, _)| sender) {
            self.frames.sort_by_key(|&(sender, _)| sender);
        }
        let mut frame = 0;
        for (sender, start) in self.starts.iter_mut().enumerate() {
            while self.frames.get(frame).is_some_and(|&(other, _)| (other as usize) < sender) {
                frame += 1;
            }
            *start = frame as u32;
        }
    }

    /// All broadcasts.
    pub(super) fn all(&self) -> impl Iterator<Item = (usize, &[u8])> {
        self.frames.iter().map(|&(sender, index)| (sender as usize, self.bytes(index)))
    }

    /// The broadcasts of `sender`, once they are sorted.
    #[inline]
    pub(super) fn of(&self, sender: usize) -> Range<usize> {
        self.starts[sender] as usize..self.starts[sender + 1] as usize
    }

    /// A broadcast's number among all frames that are kept.
    #[inline]
    pub(super) fn index_of(&self, broadcast: usize) -> u32 {
        self.frames[broadcast].1
    }

    #[inline]
    pub(super) fn bytes(&self, index: u32) -> &[u8] {
        &self.bytes[self.range(index)]
    }

    /// How many frames are kept.
    pub(super) fn kept(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.frames.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broadcasts_are_found_by_sender_in_the_order_they_were_sent() {
        let mut transmissions = Transmissions::new(4);
        for (sender, frame) in [(2, "a"), (0, "bb"), (2, "c")] {
            transmissions.push(sender, frame.as_bytes());
        }
        transmissions.sort();
        let of = |sender| -> Vec<&[u8]> {
            transmissions.of(sender).map(|index| transmissions.bytes(transmissions.index_of(index))).collect()
        };
        assert_eq!(of(0), [b"bb"]);
        assert_eq!(of(2), [b"a", b"c"]);
        assert!(of(1).is_empty() && of(3).is_empty());
    }
}
