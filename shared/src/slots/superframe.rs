//! The layout of a superframe.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Why slots cannot be laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Nobody would have a slot.
    #[error("a superframe needs at least one agent and a frame")]
    Empty,
    /// Clocks drift further in a superframe than slots can be apart.
    #[error("clocks of ±{ppm} ppm drift apart by more than a slot before they meet again")]
    Drift {
        /// Error of each clock.
        ppm: u32,
    },
    /// The superframe is longer than its clock counts.
    #[error("the superframe is longer than {} s", Superframe::LONGEST_US / 1_000_000)]
    TooLong,
}

/// Requirements on the slots of a swarm, and the quality of its clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotConfig {
    /// Agents with a slot.
    pub agents: u16,
    /// Time on the air of the packets of a round's frame, gaps between them included.
    pub frame_us: u32,
    /// Time on the air of what a turn of a shared slot holds; 0 for none.
    pub shared_us: u32,
    /// Superframes from one turn of an agent to its next; the agents beyond share further slots.
    pub turn: u16,
    /// Time behind all slots, in which agents end their round.
    pub tail_us: u32,
    /// Error of each clock, at most.
    pub ppm: u32,
    /// Hops from the root to the farthest agent.
    pub hops: u8,
    /// Resolution of the clocks and jitter of a time stamp, per hop.
    pub tick_us: u32,
    /// Delay of the signal over the longest link.
    pub propagation_us: u32,
    /// Superframes for which an agent must do without news of the root before its drift is known.
    pub resync: u8,
    /// Superframes without news after which a root is given up, up to 63.
    pub give_up_after: u8,
    /// Mean number of superframes from one silent superframe to the next; 0 for no silent one.
    pub quiet_every: u8,
}

impl Default for SlotConfig {
    fn default() -> Self {
        Self {
            agents: 10,
            frame_us: 4256,
            shared_us: 0,
            turn: 16,
            tail_us: 2000,
            ppm: 40,
            hops: 4,
            tick_us: 2,
            propagation_us: 2,
            resync: 8,
            give_up_after: 32,
            quiet_every: 32,
        }
    }
}

/// How a superframe is divided: the same for all agents of a swarm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Superframe {
    /// Agents with a slot.
    pub agents: u16,
    /// Length of a slot with its guard time.
    pub slot_us: u32,
    /// Length of a shared slot with its guard time; 0 for none.
    pub shared_us: u32,
    /// Superframes from one turn of an agent to its next.
    pub turn: u16,
    /// Time behind all slots.
    pub tail_us: u32,
    /// Time in each slot in which nothing is sent, half of it at either end.
    pub guard_us: u32,
    /// Superframes for which an agent whose drift is not known yet may send without news of the root.
    pub resync: u8,
    /// Superframes without news after which a root is given up.
    pub give_up_after: u8,
    /// Mean number of superframes from one silent superframe to the next; 0 for no silent one.
    pub quiet_every: u8,
}

impl Superframe {
    /// Longest superframe: an hour and some.
    pub const LONGEST_US: u64 = 1 << 32;

    /// Lays out slots for `needs`.
    ///
    /// The guard time is twice what an agent's clock can be off: what two clocks drift apart until news of the root comes,
    /// half a tick and a jitter of a tick per hop, and the propagation.
    ///
    /// # Errors
    /// Where no layout does.
    pub fn plan(needs: &SlotConfig) -> Result<Self, Error> {
        if needs.agents == 0 || needs.frame_us == 0 {
            return Err(Error::Empty);
        }
        // Each slot has twice the drift of a whole superframe as its guard.
        let slots = u64::from(Self::with_guard(needs, 0).shared_slots()) + u64::from(needs.agents);
        if 4 * u64::from(needs.ppm) * u64::from(needs.resync) * slots >= 1_000_000 {
            return Err(Error::Drift { ppm: needs.ppm });
        }
        let mut guard_us = 0;
        // The guard follows from the length and the length from the guard; the drift of a superframe is a small part of it.
        loop {
            let superframe = Self::with_guard(needs, guard_us);
            let length_us = superframe.checked_length_us().ok_or(Error::TooLong)?;
            let drift_us =
                (length_us * u64::from(needs.resync) * 2 * u64::from(needs.ppm)).div_ceil(1_000_000);
            let ticks_us = u64::from(needs.tick_us) * 2 * (u64::from(needs.hops) + 1);
            let wanted_us = 2 * (drift_us + ticks_us + u64::from(needs.propagation_us));
            if wanted_us <= u64::from(guard_us) {
                return Ok(superframe);
            }
            guard_us = u32::try_from(wanted_us).map_err(|_| Error::TooLong)?;
        }
    }

    fn with_guard(needs: &SlotConfig, guard_us: u32) -> Self {
        let slot = |airtime_us: u32| if airtime_us == 0 { 0 } else { airtime_us.saturating_add(guard_us) };
        Self {
            agents: needs.agents,
            slot_us: slot(needs.frame_us),
            shared_us: slot(needs.shared_us),
            turn: needs.turn.max(1),
            tail_us: needs.tail_us,
            guard_us,
            resync: needs.resync,
            give_up_after: needs.give_up_after,
            quiet_every: needs.quiet_every,
        }
    }

    /// Shared slots of a superframe.
    pub const fn shared_slots(&self) -> u16 {
        if self.shared_us == 0 { 0 } else { self.agents.div_ceil(self.turn) }
    }

    /// Length of a superframe.
    pub fn length_us(&self) -> u64 {
        u64::from(self.agents) * u64::from(self.slot_us)
            + u64::from(self.shared_slots()) * u64::from(self.shared_us)
            + u64::from(self.tail_us)
    }

    /// When all slots are over, from the start of the superframe.
    pub fn tail_at_us(&self) -> u64 {
        self.length_us() - u64::from(self.tail_us)
    }

    fn checked_length_us(&self) -> Option<u64> {
        Some(self.length_us()).filter(|&length| length < Self::LONGEST_US)
    }

    /// Whether an agent can keep these slots: a page may hold anything.
    pub fn is_sound(&self) -> bool {
        self.agents > 0
            && self.turn > 0
            && self.guard_us < self.slot_us
            && (self.shared_us == 0 || self.guard_us < self.shared_us)
            && self.checked_length_us().is_some()
    }

    /// When `agent` begins to send in its slot, from the start of the superframe.
    pub fn slot_at_us(&self, agent: u16) -> u64 {
        u64::from(agent) * u64::from(self.slot_us) + u64::from(self.guard_us / 2)
    }

    /// How long it may send there.
    pub const fn slot_room_us(&self) -> u32 {
        self.slot_us.saturating_sub(self.guard_us)
    }

    /// When `agent` may send in a shared slot of superframe `number`, if it is its turn.
    pub fn shared_at_us(&self, agent: u16, number: u32) -> Option<u64> {
        let turn = u32::from(self.turn);
        // As in the encoders' turns for full payloads, which these slots are for.
        let is_turn = number.wrapping_add(u32::from(agent)).is_multiple_of(turn);
        (self.shared_us > 0 && is_turn).then(|| {
            u64::from(self.agents) * u64::from(self.slot_us)
                + u64::from(agent / self.turn) * u64::from(self.shared_us)
                + u64::from(self.guard_us / 2)
        })
    }

    /// When `agent` sends in superframe `number`: in the shared slot if it is its turn, else in its own.
    pub fn sends_at_us(&self, agent: u16, number: u32) -> u64 {
        self.shared_at_us(agent, number).unwrap_or_else(|| self.slot_at_us(agent))
    }

    /// How long it may send in a shared slot.
    pub const fn shared_room_us(&self) -> u32 {
        self.shared_us.saturating_sub(self.guard_us)
    }
}

/// As words: boards read it with a kilobyte of flash less than field by field.
impl Serialize for Superframe {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let counts = u32::from(self.agents) << 16 | u32::from(self.turn);
        let rest = u32::from_le_bytes([self.resync, self.give_up_after, self.quiet_every, 0]);
        let words = [counts, self.slot_us, self.shared_us, self.tail_us, self.guard_us, rest];
        serializer.serialize_bytes(words.map(u32::to_le_bytes).as_flattened())
    }
}

impl<'de> Deserialize<'de> for Superframe {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let bytes = <&[u8]>::deserialize(deserializer)?;
        let (words, []) = bytes.as_chunks() else { return Err(D::Error::custom("not a superframe")) };
        let &[counts, slot_us, shared_us, tail_us, guard_us, rest] = words else {
            return Err(D::Error::custom("not a superframe"));
        };
        let [turn_low, turn_high, agents_low, agents_high] = counts;
        let [resync, give_up_after, quiet_every, 0] = rest else {
            return Err(D::Error::custom("not a superframe"));
        };
        Ok(Self {
            agents: u16::from_le_bytes([agents_low, agents_high]),
            slot_us: u32::from_le_bytes(slot_us),
            shared_us: u32::from_le_bytes(shared_us),
            turn: u16::from_le_bytes([turn_low, turn_high]),
            tail_us: u32::from_le_bytes(tail_us),
            guard_us: u32::from_le_bytes(guard_us),
            resync,
            give_up_after,
            quiet_every,
        })
    }
}
