//! A time that one frame is not enough to believe.

use super::Superframe;

/// Another time than this agent's: whose it is, and where its superframes lie against this agent's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TimeClaim {
    root: u16,
    /// How much higher its numbers are, modulo 2³².
    lead: u32,
    /// How much later its superframes begin, modulo their length.
    late_us: i64,
    /// This agent's superframe when it was last heard.
    at: u32,
    /// Superframes in which it was heard.
    support: u8,
}

impl TimeClaim {
    /// Superframes in which a time must be heard before it is believed.
    const ENOUGH: u8 = 3;
    /// Superframes of silence after which a claim makes room for one of a higher root.
    const PATIENCE: u32 = 8;

    /// The claim of one frame that was heard in this agent's superframe `at`.
    pub(super) const fn new(root: u16, lead: u32, late_us: i64, at: u32) -> Self {
        Self { root, lead, late_us, at, support: 1 }
    }

    /// Notes a claim and returns whether it is believed. Of several, that of the lowest root is pursued.
    pub(super) fn is_borne_out(&mut self, heard: Self, superframe: &Superframe) -> bool {
        let is_over = self.support == 0 || heard.at.wrapping_sub(self.at) > Self::PATIENCE;
        if !is_over && self.is_continued_by(&heard, superframe) {
            let support = self.support + u8::from(heard.at != self.at);
            *self = Self { support, ..heard };
        } else if is_over || heard.root <= self.root {
            *self = heard;
        }
        let is_believed = self.support >= Self::ENOUGH;
        if is_believed {
            *self = Self::default();
        }
        is_believed
    }

    /// Whether `heard` is the same time of the same root, but for drift and the borders of superframes.
    fn is_continued_by(&self, heard: &Self, superframe: &Superframe) -> bool {
        let apart_us = self.late_us.abs_diff(heard.late_us);
        let apart_us = apart_us.min(superframe.length_us().abs_diff(apart_us));
        let leads_apart = heard.lead.wrapping_sub(self.lead).wrapping_add(1);
        self.root == heard.root && leads_apart <= 2 && apart_us <= superframe.guard_us.into()
    }
}
