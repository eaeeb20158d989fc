//! What is on the air in one slot.

use std::ops::Range;

/// Where the bytes of a frame lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FrameRange {
    start: u32,
    end: u32,
}

/// The frames of one slot, one after the other in one buffer.
#[derive(Clone, Debug)]
pub(super) struct Transmissions {
    bytes: Vec<u8>,
    frames: Vec<(u32, FrameRange)>,
    /// The first frame of each sender once they are sorted, and the number of frames at the end.
    starts: Vec<u32>,
}

impl Transmissions {
    pub(super) fn new(agents: usize) -> Self {
        Self { bytes: Vec::new(), frames: Vec::new(), starts: vec![0; agents + 1] }
    }

    /// Adds a broadcast of `sender`.
    pub(super) fn push(&mut self, sender: usize, frame: &[u8]) {
        let span = self.keep(frame);
        self.frames.push((sender as u32, span));
    }

    /// Keeps bytes that no agent of the swarm broadcasts.
    pub(super) fn keep(&mut self, bytes: &[u8]) -> FrameRange {
        let start = self.bytes.len() as u32;
        self.bytes.extend_from_slice(bytes);
        FrameRange { start, end: self.bytes.len() as u32 }
    }

    /// Keeps another copy of bytes and hands it out for changes.
    pub(super) fn copy(&mut self, span: FrameRange) -> (FrameRange, &mut [u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_within(span.range());
        (FrameRange { start: start as u32, end: self.bytes.len() as u32 }, &mut self.bytes[start..])
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
        self.frames.iter().map(|&(sender, span)| (sender as usize, self.bytes(span)))
    }

    /// The broadcasts of `sender`, once they are sorted.
    #[inline]
    pub(super) fn of(&self, sender: usize) -> Range<usize> {
        self.starts[sender] as usize..self.starts[sender + 1] as usize
    }

    /// Where a broadcast lies.
    #[inline]
    pub(super) fn span(&self, index: usize) -> FrameRange {
        self.frames[index].1
    }

    #[inline]
    pub(super) fn bytes(&self, span: FrameRange) -> &[u8] {
        &self.bytes[span.range()]
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.frames.clear();
    }
}

impl FrameRange {
    #[inline]
    fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
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
            transmissions.of(sender).map(|index| transmissions.bytes(transmissions.span(index))).collect()
        };
        assert_eq!(of(0), [b"bb"]);
        assert_eq!(of(2), [b"a", b"c"]);
        assert!(of(1).is_empty() && of(3).is_empty());
    }
}
