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
    /// When part 0 came, in local µs.
    arrival_us: u64,
    /// Whether the frame is complete and was returned; its last part is then behind the others.
    is_returned: bool,
}

/// A packet's header and part.
#[derive(Clone, Copy)]
struct Fragment<'a> {
    count: u8,
    index: u8,
    sender: u16,
    number: u16,
    bytes: &'a [u8],
    arrival_us: u64,
}

impl Fragment<'_> {
    fn is_last(&self) -> bool {
        self.index == self.count - 1
    }
}

/// How a part relates to a slot of the same frame.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Relation {
    /// It is there already.
    Repeated,
    /// It is one of those missing.
    Missing,
    /// Another part is in its place, or its length does not go with the others.
    Conflicting,
}

/// Puts frames of up to `FRAME` bytes together, `SLOTS` at a time.
///
/// Nothing here is authenticated: anyone can send parts under any sender and number. A part that conflicts with those of its frame
/// therefore begins another candidate, which shares the parts that do not conflict, and all complete candidates are returned: the
/// seal decides which one is genuine. Forged parts double the candidates, up to a sender's share of the slots.
///
/// A sender has at most half of the slots. A frame keeps its slots until another one needs them, so that late duplicates of its
/// packets are known: first one of the same sender, then one of the sender with the most. Allow four slots for each sender that
/// may be heard at once; with eight for one sender, no two forged parts stop a frame of four.
#[derive(Clone, Debug)]
pub struct Reassembler<const FRAME: usize, const SLOTS: usize> {
    slots: [PartialFrame<FRAME>; SLOTS],
    begun: u32,
    /// When the frame that was returned last began to arrive.
    arrival_us: u64,
}

impl<const FRAME: usize, const SLOTS: usize> Default for Reassembler<FRAME, SLOTS> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const FRAME: usize, const SLOTS: usize> Reassembler<FRAME, SLOTS> {
    /// Slots that one sender may have: an intruder that claims its id takes no more.
    const SLOTS_PER_SENDER: usize = SLOTS / 2;

    /// Starts with nothing received.
    pub const fn new() -> Self {
        const { assert!(SLOTS > 0, "a reassembler needs at least one slot") };
        Self { slots: [PartialFrame::EMPTY; SLOTS], begun: 0, arrival_us: 0 }
    }

    /// Takes one packet and returns a frame that it completes, if it does. Call [`next_frame`](Self::next_frame) for others.
    ///
    /// # Errors
    /// [`Error::Malformed`] for a packet no [`Fragmenter`] makes, [`Error::FrameTooLong`] for one whose frame is beyond `FRAME`.
    pub fn receive<'a>(&'a mut self, packet: &'a [u8]) -> Result<Option<&'a [u8]>, Error> {
        self.receive_at(0, packet)
    }

    /// The same for a packet whose first bit arrived at the local time `arrival_us`: see [`arrival_us`](Self::arrival_us).
    ///
    /// # Errors
    /// As [`receive`](Self::receive).
    pub fn receive_at<'a>(
        &'a mut self,
        arrival_us: u64,
        packet: &'a [u8],
    ) -> Result<Option<&'a [u8]>, Error> {
        let part = match *packet {
            [1, ref frame @ ..] if !frame.is_empty() => {
                self.arrival_us = arrival_us;
                return if frame.len() <= FRAME { Ok(Some(frame)) } else { Err(Error::FrameTooLong) };
            }
            [count, index, s0, s1, n0, n1, ref bytes @ ..] if index < count && !bytes.is_empty() => {
                Fragment {
                    count,
                    index,
                    sender: u16::from_le_bytes([s0, s1]),
                    number: u16::from_le_bytes([n0, n1]),
                    bytes,
                    arrival_us,
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
        self.take(&part);
        Ok(self.next_frame())
    }

    /// Returns a frame that is complete and was not returned yet. There are several if parts conflicted.
    pub fn next_frame(&mut self) -> Option<&[u8]> {
        let Self { slots, arrival_us, .. } = self;
        slots.iter_mut().find_map(|slot| {
            let at_us = slot.arrival_us;
            let frame = slot.complete()?;
            *arrival_us = at_us;
            Some(frame)
        })
    }

    /// When the first part of the frame that was returned last arrived. Packets that are no part of that frame do not change it.
    pub const fn arrival_us(&self) -> u64 {
        self.arrival_us
    }

    /// Adds the part to every candidate of its frame in which it is missing, and begins another one for each with which it
    /// conflicts.
    fn take(&mut self, part: &Fragment) {
        let (mut is_known, mut is_taken) = (false, false);
        for slot in self.slots.iter_mut().filter(|slot| slot.is_of(part)) {
            match slot.relation_to(part) {
                Relation::Repeated => is_known = true,
                Relation::Missing => {
                    slot.add(part);
                    is_taken = true;
                }
                Relation::Conflicting => {}
            }
        }
        if is_known {
            return;
        }
        // A frame begun on the way has the part, and does not conflict.
        for from in 0..SLOTS {
            let slot = &self.slots[from];
            if slot.is_of(part)
                && slot.relation_to(part) == Relation::Conflicting
                && (slot.goes_with(part) || !is_taken)
            {
                let to = self.begin(part);
                if from != to {
                    self.slots[to] = self.slots[from].clone();
                }
                self.slots[to].drop_conflicts_with(part);
                self.slots[to].begun = self.begun;
                self.slots[to].add(part);
                is_taken = true;
            }
        }
        if !is_taken {
            let to = self.begin(part);
            self.slots[to].begin(part);
            self.slots[to].begun = self.begun;
            self.slots[to].add(part);
        }
    }

    /// Finds a slot for another candidate of the part's frame.
    fn begin(&mut self, part: &Fragment) -> usize {
        let to = self.slot_to_begin(part);
        self.begun = self.begun.wrapping_add(1);
        to
    }

    /// A slot that was never used, the oldest one of an earlier frame of the same sender, or the oldest one of the sender with the
    /// most; one of the same frame only where there is no other, and then the one with the most parts missing.
    fn slot_to_begin(&self, part: &Fragment) -> usize {
        let count = |sender| self.slots.iter().filter(|slot| slot.count > 0 && slot.sender == sender).count();
        let is_at_share = count(part.sender) >= Self::SLOTS_PER_SENDER;
        let rank = |slot: &PartialFrame<FRAME>| {
            let is_own = slot.count > 0 && slot.sender == part.sender;
            let slots = match slot.count {
                _ if is_own && slot.number != part.number => SLOTS + 2,
                _ if is_own => 1,
                _ if is_at_share => 0,
                0 => usize::MAX,
                _ => 1 + count(slot.sender),
            };
            (slots, if slots == 1 { slot.missing } else { 0 }, self.begun.wrapping_sub(slot.begun))
        };
        (0..SLOTS).max_by_key(|&i| rank(&self.slots[i])).unwrap_or(0)
    }
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
        arrival_us: 0,
        is_returned: false,
    };

    fn is_of(&self, part: &Fragment) -> bool {
        (self.sender, self.number, self.count) == (part.sender, part.number, part.count)
    }

    fn has_seen(&self, index: u8) -> bool {
        self.seen[usize::from(index / 32)] & 1 << (index % 32) != 0
    }

    /// Whether a frame can have parts of length `front`, or 0 if unknown, and a last one of length `last`, or 0 if unknown.
    fn fits(&self, front: usize, last: usize) -> bool {
        front == 0 || last <= front && usize::from(self.count - 1) * front + last <= FRAME
    }

    fn relation_to(&self, part: &Fragment) -> Relation {
        let length = part.bytes.len();
        let (front, last) = if part.is_last() { (self.part, length) } else { (length, self.last) };
        if self.has_seen(part.index) {
            let is_same =
                self.buffer.get(self.place(part)..).is_some_and(|rest| rest.starts_with(part.bytes));
            let is_same = is_same && (front, last) == (self.part, self.last);
            return if is_same { Relation::Repeated } else { Relation::Conflicting };
        }
        let is_as_long = part.is_last() || self.part == 0 || self.part == length;
        if is_as_long && self.fits(front, last) { Relation::Missing } else { Relation::Conflicting }
    }

    /// Where in the buffer the part is or goes. The last one's place in the frame depends on the others' length: until the frame is
    /// returned it waits at the end of the buffer, where it cannot be overwritten since the whole frame fits.
    fn place(&self, part: &Fragment) -> usize {
        match part.is_last() {
            true if self.is_returned => usize::from(self.count - 1) * self.part,
            true => FRAME - part.bytes.len(),
            false => usize::from(part.index) * part.bytes.len(),
        }
    }

    fn begin(&mut self, part: &Fragment) {
        (self.sender, self.number) = (part.sender, part.number);
        (self.count, self.missing) = (part.count, part.count);
        (self.part, self.last) = (0, 0);
        self.seen = [0; 8];
        self.is_returned = false;
    }

    /// Whether another part than the same one can be in one frame with a part that conflicts.
    fn goes_with(&self, part: &Fragment) -> bool {
        let length = part.bytes.len();
        let front_parts = self.count - self.missing - u8::from(self.last > 0);
        if part.is_last() {
            return front_parts > 0 && self.fits(self.part, length);
        }
        let has_others = front_parts > u8::from(self.has_seen(part.index));
        (self.part == length && has_others) || (self.last > 0 && self.fits(length, self.last))
    }

    /// Keeps the parts of a copied frame that can be in one frame with this one.
    fn drop_conflicts_with(&mut self, part: &Fragment) {
        let (length, last_index) = (part.bytes.len(), self.count - 1);
        if self.is_returned {
            let start = usize::from(last_index) * self.part;
            self.buffer.copy_within(start..start + self.last, FRAME - self.last);
            self.is_returned = false;
        }
        if part.is_last() {
            self.forget(last_index);
            if !self.fits(self.part, length) {
                self.begin(part);
            }
            return;
        }
        if self.part == length {
            self.forget(part.index);
        } else {
            (0..last_index).for_each(|index| self.forget(index));
            self.part = 0;
        }
        if !self.fits(length, self.last) {
            self.forget(last_index);
        }
    }

    fn forget(&mut self, index: u8) {
        if self.has_seen(index) {
            self.seen[usize::from(index / 32)] &= !(1 << (index % 32));
            self.missing += 1;
        }
        if index == self.count - 1 {
            self.last = 0;
        }
    }

    /// Adds a part that is missing and fits.
    fn add(&mut self, part: &Fragment) {
        let start = self.place(part);
        let Some(place) = self.buffer.get_mut(start..start + part.bytes.len()) else {
            return;
        };
        place.copy_from_slice(part.bytes);
        self.seen[usize::from(part.index / 32)] |= 1 << (part.index % 32);
        self.missing -= 1;
        if part.index == 0 {
            self.arrival_us = part.arrival_us;
        }
        *(if part.is_last() { &mut self.last } else { &mut self.part }) = part.bytes.len();
    }

    /// The frame, if it is complete and was not returned yet.
    fn complete(&mut self) -> Option<&[u8]> {
        if self.count == 0 || self.missing > 0 || self.is_returned {
            return None;
        }
        self.is_returned = true;
        let start = usize::from(self.count - 1) * self.part;
        self.buffer.copy_within(FRAME - self.last.., start);
        self.buffer.get(..start + self.last)
    }
}

#[cfg(test)]
mod tests;
