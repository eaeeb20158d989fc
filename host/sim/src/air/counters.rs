//! Outcomes of all frames, by cause.

use serde::Serialize;
use std::collections::BTreeMap;

/// The outcome of a frame at a receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameVerdict {
    /// It counts.
    Taken,
    /// It is genuine but contains nothing new.
    Useless,
    /// It was rejected, with the cause.
    Refused(&'static str),
}

/// How a copy of a frame came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CopyOrigin {
    /// As it was sent, for the first or a second time.
    Genuine,
    /// With damaged bits.
    Damaged,
    /// Broadcast again by an intruder.
    Replayed,
    /// Made by an intruder.
    Forged,
    /// Passed on by an intruder, in the round it was sent in.
    Relayed,
}

/// Why a copy was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LossCause {
    Margin,
    Iid,
    Burst,
    Outages,
}

/// Copies that were lost on their way, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Losses {
    /// The signal was too weak.
    pub margin: u64,
    /// Lost by itself.
    pub iid: u64,
    /// Lost in a burst.
    pub burst: u64,
    /// The receiver's radio was off, or the receiver was down.
    pub away: u64,
}

impl Losses {
    /// All causes together.
    pub const fn total(&self) -> u64 {
        self.margin + self.iid + self.burst + self.away
    }
}

/// Frames that a swarm sent, and copies of them that never counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameCounts {
    /// Frames sent; each may be heard by many.
    pub sent: u64,
    /// Copies that were lost on their way to a receiver.
    pub lost: u64,
    /// Copies that were heard and refused.
    pub refused: u64,
}

impl From<&Counters> for FrameCounts {
    fn from(counters: &Counters) -> Self {
        Self { sent: counters.frames, lost: counters.lost.total(), refused: counters.refused() }
    }
}

/// Frames and copies so far. A frame is broadcast once; each link that exists then carries a copy of it.
///
/// Nothing goes unaccounted for: `copies + duplicated + replayed + forged + relayed = heard() + lost.total() + waiting`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// Frames that were broadcast.
    pub frames: u64,
    /// Frames that never left their sender, whose radio was off or which was down.
    pub unsent: u64,
    /// Copies of frames on links.
    pub copies: u64,
    /// Copies that a fault made of a copy.
    pub duplicated: u64,
    /// Copies of old frames that an intruder broadcast again.
    pub replayed: u64,
    /// Copies of frames that an intruder sealed with a key of its own.
    pub forged: u64,
    /// Copies that an intruder passed on at once to receivers out of reach.
    pub relayed: u64,
    /// Forged fragments that an intruder sent among those of frames.
    pub forged_fragments: u64,
    /// Copies that did not come through.
    pub lost: Losses,
    /// Copies on their way to a later slot.
    pub waiting: u64,
    /// Copies that came late, or will.
    pub delayed: u64,
    /// Copies that changed places with another.
    pub reordered: u64,
    /// Copies whose bits were damaged.
    pub damaged: u64,
    /// Copies that were heard and counted.
    pub taken: u64,
    /// Copies that were received but contained nothing new.
    pub useless: u64,
    /// Copies that were heard and refused, by cause.
    pub refused: BTreeMap<&'static str, u64>,
    /// Damaged copies that were taken all the same: 0 wherever frames are sealed.
    pub damaged_taken: u64,
    /// Forged copies that were taken all the same: 0 wherever frames are sealed.
    pub forged_taken: u64,
    /// Replayed copies that were taken: the receiver had missed the frame and everything since, so to it the frame is late.
    pub replayed_taken: u64,
    #[serde(skip)]
    links: Vec<LinkCount>,
    #[serde(skip)]
    agents: usize,
}

/// A link carries a few copies in each slot at most, and slots are counted with as many bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LinkCount {
    pub(super) copies: u32,
    pub(super) lost: u32,
}

/// One directed link, as the counters saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct LinkReport {
    /// The sender.
    pub sender: usize,
    /// The receiver.
    pub receiver: usize,
    /// Copies it carried.
    pub copies: u64,
    /// Those it lost.
    pub lost: u64,
}

impl LinkReport {
    /// The share of its copies that the link lost.
    pub fn loss(&self) -> f64 {
        self.lost as f64 / self.copies as f64
    }
}

impl Counters {
    pub(super) fn new(agents: usize) -> Self {
        Self { links: vec![LinkCount::default(); agents * agents], agents, ..Self::default() }
    }

    /// Copies that arrived, whatever became of them.
    pub fn heard(&self) -> u64 {
        self.taken + self.useless + self.refused()
    }

    /// Copies that were heard and refused, for whatever cause.
    pub fn refused(&self) -> u64 {
        self.refused.values().sum()
    }

    /// The links that lost the largest share of their copies, worst first; links that lost nothing are left out.
    pub fn worst_links(&self, count: usize) -> Vec<LinkReport> {
        let report = |(index, link): (usize, &LinkCount)| LinkReport {
            sender: index % self.agents,
            receiver: index / self.agents,
            copies: link.copies.into(),
            lost: link.lost.into(),
        };
        let mut links: Vec<_> =
            self.links.iter().enumerate().filter(|(_, link)| link.lost > 0).map(report).collect();
        links.sort_by(|left, right| right.loss().total_cmp(&left.loss()));
        links.truncate(count);
        links
    }

    /// Copies that the link from `sender` to `receiver` carried, and those of them that it lost.
    pub fn link(&self, receiver: usize, sender: usize) -> (u64, u64) {
        let link = self.links[receiver * self.agents + sender];
        (link.copies.into(), link.lost.into())
    }

    /// Each thing that can become of a frame or a copy, and how often it did.
    pub fn outcomes(&self) -> [(&'static str, u64); 14] {
        [
            ("sent", self.frames),
            ("unsent", self.unsent),
            ("copies", self.copies),
            ("taken", self.taken),
            ("useless", self.useless),
            ("refused", self.refused()),
            ("lost: out of range", self.lost.margin),
            ("lost: one by one", self.lost.iid),
            ("lost: in bursts", self.lost.burst),
            ("lost: receiver away", self.lost.away),
            ("delayed", self.delayed),
            ("damaged", self.damaged),
            ("replayed", self.replayed),
            ("forged", self.forged),
        ]
    }

    /// The links to each `receivers` receivers, by receiver and sender.
    pub(super) fn rows_mut(&mut self, receivers: usize) -> impl ExactSizeIterator<Item = &mut [LinkCount]> {
        self.links.chunks_mut((receivers * self.agents).max(1))
    }

    #[inline]
    pub(super) fn copy(&mut self, link: usize) {
        self.copies += 1;
        self.links[link].copies += 1;
    }

    /// Counts a lost copy; one of an intruder goes over no link.
    pub(super) fn lose(&mut self, link: Option<usize>, loss: LossCause) {
        match loss {
            LossCause::Margin => self.lost.margin += 1,
            LossCause::Iid => self.lost.iid += 1,
            LossCause::Burst => self.lost.burst += 1,
            LossCause::Outages => self.lost.away += 1,
        }
        if let Some(link) = link {
            self.links[link].lost += 1;
        }
    }

    #[inline]
    pub(super) fn hear(&mut self, verdict: FrameVerdict, origin: CopyOrigin) {
        match (verdict, origin) {
            (FrameVerdict::Taken, origin) => {
                self.taken += 1;
                match origin {
                    CopyOrigin::Genuine | CopyOrigin::Relayed => {}
                    CopyOrigin::Damaged => self.damaged_taken += 1,
                    CopyOrigin::Replayed => self.replayed_taken += 1,
                    CopyOrigin::Forged => self.forged_taken += 1,
                }
            }
            (FrameVerdict::Useless, _) => self.useless += 1,
            (FrameVerdict::Refused(cause), _) => *self.refused.entry(cause).or_default() += 1,
        }
    }
}
