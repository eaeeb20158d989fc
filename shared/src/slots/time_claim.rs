//! A time that one frame is not enough to believe.

use super::Superframe;
use crate::corroboration::Corroboration;

/// Another time than this agent's: whose it is, and where its superframes lie against this agent's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TimeLead {
    pub(super) root: u16,
    /// How much higher its numbers are, modulo 2³².
    pub(super) lead: u32,
    /// How much later its superframes begin, modulo their length.
    pub(super) late_us: i64,
}

/// Such a time, and in how many superframes of this agent it was heard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TimeClaim {
    time: TimeLead,
    support: Corroboration,
}

impl TimeClaim {
    /// Superframes of silence after which a claim makes room for one of a higher root.
    const EXPIRY_ROUNDS: u32 = 8;

    /// Notes a time that was heard in this agent's superframe `now` and returns whether it is believed. Of several, that of the
    /// lowest root is pursued.
    pub(super) fn observe(&mut self, heard: TimeLead, now: u32, superframe: &Superframe) -> bool {
        let is_over = self.support.is_over(now, Self::EXPIRY_ROUNDS);
        if !is_over && self.time.is_continued_by(&heard, superframe) {
            self.support.repeat(now);
            self.time = heard;
        } else if is_over || heard.root <= self.time.root {
            *self = Self { time: heard, support: Corroboration::begun(now) };
        }
        let is_believed = self.support.is_enough();
        if is_believed {
            *self = Self::default();
        }
        is_believed
    }
}

impl TimeLead {
    /// Whether `heard` is the same time of the same root, but for drift and the borders of superframes.
    fn is_continued_by(&self, heard: &Self, superframe: &Superframe) -> bool {
        let apart_us = self.late_us.abs_diff(heard.late_us);
        let apart_us = apart_us.min(superframe.length_us().abs_diff(apart_us));
        let leads_apart = heard.lead.wrapping_sub(self.lead).wrapping_add(1);
        self.root == heard.root && leads_apart <= 2 && apart_us <= superframe.guard_us.into()
    }
}
