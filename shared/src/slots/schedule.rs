//! The timetable of an agent in slots.

use super::clock::SlotClock;
use super::time_claim::{TimeClaim, TimeLead};
use super::{Stamp, Superframe};
use crate::fnv;

/// Superframes for which an agent listens before it assumes that nobody is there; agent i for i more, so that the lowest of
/// those that start together is heard by the others before they begin.
const LISTEN: u32 = 2;
/// Superframes of silence around it after which an agent assumes that nobody is in reach.
const ALONE: u8 = 16;
/// Superframes from one in which it is then silent to the next: two such agents that always send at once would never hear each other.
const QUIET_ALONE: u32 = 2;

/// The next task, and its time by the local clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotDue {
    /// Local time.
    pub at_us: u64,
    /// The task.
    pub task: SlotTask,
}

/// A task of a driver at a given time; until then it listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotTask {
    /// Nobody was heard: the agent begins to keep time by itself.
    Found,
    /// Its slot begins: it sends, for at most `room_us`. Where others use the channel too, it listens before, and leaves the
    /// slot out if the channel is busy; so it does if it is late by more than half the guard time.
    Transmit {
        /// How long it may send.
        room_us: u32,
        /// Whether it is a turn of a shared slot.
        is_shared: bool,
    },
    /// All slots are over: in the tail of the superframe the agent ends its round and begins the next.
    EndRound,
}

/// The outcome of a frame for the agent's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Hearing {
    /// Nothing new.
    Nothing,
    /// Its sender's time was followed by a small correction.
    Corrected,
    /// The superframe begins at another time from now on.
    Jumped,
}

/// Where in a superframe an agent is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Position {
    /// Before all superframes: it listens until this local time.
    Listening {
        until_us: u64,
    },
    Own,
    Shared,
    End,
}

/// The slots of one agent: takes what it hears and when, and says what is due.
///
/// The driver looks at [`due`](Self::due), listens until then, does what is due and calls [`complete`](Self::complete). Each
/// frame that arrives meanwhile goes through [`hear`](Self::hear), which may change what is due.
#[derive(Clone, Debug)]
pub struct SlotSchedule {
    pub(super) superframe: Superframe,
    id: u16,
    /// The present superframe.
    number: u32,
    clock: SlotClock,
    position: Position,
    /// The agent whose time it keeps: itself or a lower one.
    root: u16,
    hops: u8,
    /// Superframes since the root sent what this agent knows of it.
    age: u8,
    /// Superframes since anybody was heard.
    unheard: u8,
    /// Superframes in which it does without shared slots: after its number jumped, others may count differently yet.
    hold: u8,
    /// Another time than its own that others keep.
    claim: TimeClaim,
    /// Superframes for which it follows whomever it hears, since it does not trust its own time.
    doubt: u32,
    /// By how much the last frame in its slot was late.
    error_us: i32,
}

impl SlotSchedule {
    /// The slots of agent `id`, whose next round is `number`, from the local time `now_us` on.
    pub fn new(superframe: Superframe, id: u16, number: u32, now_us: u64) -> Self {
        let length_us = superframe.length_us();
        let until_us = now_us.saturating_add(length_us.saturating_mul(u64::from(LISTEN + u32::from(id))));
        Self {
            superframe,
            id,
            number,
            clock: SlotClock::new(now_us, length_us),
            position: Position::Listening { until_us },
            root: id,
            hops: 0,
            age: 0,
            unheard: 0,
            hold: 0,
            claim: TimeClaim::default(),
            doubt: 0,
            error_us: 0,
        }
    }

    /// Forgets whose time it keeps, and goes on with superframe `number`. What an agent followed before it found its round may have
    /// been recorded: the next frame is followed as by an agent that starts, and until then it tells nobody the time.
    pub fn doubt(&mut self, number: u32) {
        self.number = number;
        (self.root, self.hops, self.age) = (self.id, 0, 0);
        self.doubt = LISTEN + u32::from(self.id);
    }

    /// The next task.
    pub fn due(&self) -> SlotDue {
        let superframe = &self.superframe;
        let (at_us, task) = match self.position {
            Position::Listening { until_us } => (until_us, SlotTask::Found),
            Position::Own => {
                let task = SlotTask::Transmit { room_us: superframe.slot_room_us(), is_shared: false };
                (self.clock.at_us(superframe.slot_at_us(self.id)), task)
            }
            Position::Shared => {
                let task = SlotTask::Transmit { room_us: superframe.shared_room_us(), is_shared: true };
                (self.clock.at_us(superframe.sends_at_us(self.id, self.number)), task)
            }
            Position::End => (self.clock.at_us(superframe.tail_at_us()), SlotTask::EndRound),
        };
        SlotDue { at_us, task }
    }

    /// Marks the due task as done or left out.
    pub fn complete(&mut self) {
        match self.position {
            Position::Listening { until_us } => {
                self.clock.jump(until_us, 0);
                self.position = self.start_of_superframe();
            }
            Position::Own | Position::Shared => self.position = Position::End,
            Position::End => self.advance(),
        }
    }

    /// A frame of `sender` arrived, whose first bit reached this agent at the local time `arrival_us`.
    ///
    /// An agent that keeps a time follows small corrections at once. Another time, or a higher number, is followed after three
    /// superframes in which it was heard, and a lower number never: frames that were recorded have lower numbers, as long
    /// as the caller passes on only frames of this agent's epoch.
    // On its own: what calls it is large enough.
    #[inline(never)]
    pub fn hear(&mut self, arrival_us: u64, sender: u16, stamp: &Stamp) -> Hearing {
        if sender == self.id || sender >= self.superframe.agents {
            return Hearing::Nothing;
        }
        let offset_us = self.superframe.sends_at_us(sender, stamp.superframe);
        let sample = self.clock.compare(arrival_us, offset_us);
        let is_open = !self.is_synchronised() || self.doubt > 0;
        let is_aligned = stamp.is_timed
            && self.is_synchronised()
            && sample.error_us() <= u64::from(self.superframe.guard_us);
        if is_aligned {
            self.error_us = sample.late_us() as i32;
        }

        // Counted in this agent's superframe: at a border the sender may be in the one before or behind.
        let behind = if is_aligned { sample.superframes } else { 0 };
        let age = stamp.age.saturating_add_signed(-behind);
        let number = stamp.superframe.saturating_add_signed(i32::from(-behind));
        // Superframes that are not aligned overlap with two others.
        let overlap = u32::from(!is_aligned);
        if !is_open && number.saturating_add(overlap) < self.number {
            return Hearing::Nothing;
        }
        self.unheard = 0;
        let is_ahead = number > self.number.saturating_add(overlap);
        let is_fresher = self.root != self.id && stamp.root == self.root && age < self.age;
        let is_better = is_open || is_ahead || stamp.root < self.root || is_fresher;
        if !stamp.is_timed || age >= self.superframe.give_up_after || !is_better {
            return Hearing::Nothing;
        }
        if !is_open && (is_ahead || !is_aligned) {
            let heard = TimeLead {
                root: stamp.root,
                lead: number.wrapping_sub(self.number),
                late_us: sample.late_us(),
            };
            if !self.claim.observe(heard, self.number, &self.superframe) {
                return Hearing::Nothing;
            }
        }
        let hearing = if is_aligned {
            self.clock.correct(arrival_us, sample);
            Hearing::Corrected
        } else {
            self.clock.jump(arrival_us, offset_us);
            Hearing::Jumped
        };
        if stamp.root < self.id {
            (self.root, self.hops, self.age) = (stamp.root, stamp.hops.saturating_add(1), age);
        } else {
            // It keeps the swarm's time on from here, and the others follow it.
            (self.root, self.hops, self.age) = (self.id, 0, 0);
        }
        if number > self.number {
            if !is_open {
                self.hold = self.superframe.resync;
            }
            self.number = number;
        }
        self.doubt = 0;
        if hearing == Hearing::Jumped {
            self.position = self.position_at(arrival_us);
        }
        hearing
    }

    /// The stamp of the frame that begins the present slot. Others in the same slot are not timed.
    pub fn stamp(&self) -> Stamp {
        Stamp {
            root: self.root,
            hops: self.hops,
            age: self.age,
            // Receivers take a frame of its turn for one in the shared slot.
            is_timed: match self.position {
                _ if self.doubt > 0 => false,
                Position::Own => !self.is_turn(),
                Position::Shared => true,
                Position::Listening { .. } | Position::End => false,
            },
            superframe: self.number,
        }
    }

    /// The present superframe.
    pub const fn number(&self) -> u32 {
        self.number
    }

    /// Whether it keeps a time at all, rather than listen for one.
    pub const fn is_synchronised(&self) -> bool {
        !matches!(self.position, Position::Listening { .. })
    }

    /// By how much the last frame that was heard in its slot came later than expected.
    pub const fn error_us(&self) -> i32 {
        self.error_us
    }

    fn advance(&mut self) {
        self.clock.advance();
        self.number = self.number.saturating_add(1);
        self.unheard = self.unheard.saturating_add(1);
        self.hold = self.hold.saturating_sub(1);
        self.doubt = self.doubt.saturating_sub(1);
        if self.root != self.id {
            self.age = self.age.saturating_add(1);
            if self.age >= self.superframe.give_up_after {
                // All that kept the root's time go on from it, at the root's pace, and follow the lowest of themselves.
                (self.root, self.hops, self.age) = (self.id, 0, 0);
            }
        }
        self.position = self.start_of_superframe();
    }

    /// In its turn an agent sends in the shared slot instead of its own.
    fn start_of_superframe(&self) -> Position {
        match (self.may_transmit(), self.is_turn() && self.hold == 0) {
            (false, _) => Position::End,
            (true, true) => Position::Shared,
            (true, false) => Position::Own,
        }
    }

    fn is_turn(&self) -> bool {
        self.superframe.shared_at_us(self.id, self.number).is_some()
    }

    /// Where it is after its superframe moved: a slot that has begun already is left out.
    fn position_at(&self, now_us: u64) -> Position {
        let offset_us = match self.start_of_superframe() {
            Position::Own => self.superframe.slot_at_us(self.id),
            Position::Shared => self.superframe.sends_at_us(self.id, self.number),
            position => return position,
        };
        if self.clock.at_us(offset_us) > now_us { self.start_of_superframe() } else { Position::End }
    }

    /// Whether it knows the time well enough, and the superframe is not a silent one.
    fn may_transmit(&self) -> bool {
        let knows_time =
            self.root == self.id || self.age <= self.superframe.resync || self.clock.is_settled();
        let every = if self.unheard >= ALONE { QUIET_ALONE } else { u32::from(self.superframe.quiet_every) };
        knows_time && !is_quiet(self.root, self.number, every)
    }
}

/// Whether superframe `number` of `root` is one of those in which all its agents only listen.
fn is_quiet(root: u16, number: u32, every: u32) -> bool {
    // FNV leaves the low bits of a number almost as they are; the high ones depend on all.
    let hash = fnv::add(fnv::add(fnv::add(fnv::BASIS, root.into()), number), 0);
    every > 0 && (hash >> 12).is_multiple_of(every)
}
