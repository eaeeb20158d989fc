//! How epochs are numbered.

use crate::fnv;

/// The number of an epoch after the first, modulo this, is the agent that opened it, so that no two agents open the same one.
pub(crate) const OPENERS: u32 = 1024;

/// Changes of members that an agent may have missed before a single frame is not enough to believe them.
const CHANGES_AHEAD: u32 = 8;

/// No epoch of a founding has a higher number.
const LAST_NUMBER: u32 = u32::MAX - (1 << 20);

/// An epoch of a swarm: who founded the swarm, and a number that grows with every change of its members.
///
/// A founding is named by the founder and its boot, which never repeat, so that no epoch of an earlier life of the swarm comes
/// again. Of two foundings the one with the higher boot, then with the higher founder, is the higher one.
///
/// ```
/// use fabswarm_shared::wire::frame::Epoch;
///
/// let change = Epoch::FIRST.next(3).unwrap();
/// assert!(Epoch::NONE < Epoch::FIRST && Epoch::FIRST < change && change.opener() == 3);
/// let founded = Epoch::founding(2, 7).next(7).unwrap();
/// assert!(change < founded && !founded.is_of_founding(change));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Epoch {
    /// The founder's boot at that time; 0 where the swarm began as configured.
    pub boot: u32,
    /// The founder; 0 where the swarm began as configured.
    pub founder: u16,
    /// The number of the epoch since then.
    pub number: u32,
}

/// A hash of an epoch that takes one byte for the first epoch and three bytes for any other. One epoch in two million has the tag of
/// another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EpochTag(pub u32);

impl EpochTag {
    const LOWEST: u32 = 1 << 14;
    /// Above the highest tag.
    const LIMIT: u32 = 1 << 21;
}

impl core::fmt::Display for Epoch {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Self { boot, founder, number } = self;
        match boot {
            0 => write!(out, "{number}"),
            _ => write!(out, "{number} (founded by agent {founder} in boot {boot})"),
        }
    }
}

impl Epoch {
    /// The epoch of an agent without a ledger.
    pub const NONE: Self = Self { boot: 0, founder: 0, number: 0 };

    /// The epoch in which a swarm begins as configured.
    pub const FIRST: Self = Self { number: 1, ..Self::NONE };

    /// The epoch before the first one of a swarm that `founder` founds in its boot `boot`.
    pub const fn founding(boot: u32, founder: u16) -> Self {
        Self { boot, founder, number: 0 }
    }

    /// Whether both are epochs of one founding.
    pub fn is_of_founding(self, other: Self) -> bool {
        (self.boot, self.founder) == (other.boot, other.founder)
    }

    /// Whether it is of a higher founding than `other`.
    pub fn is_of_higher_founding(self, other: Self) -> bool {
        (self.boot, self.founder) > (other.boot, other.founder)
    }

    /// The epoch that `opener` opens after this one, unless they are spent.
    pub fn next(self, opener: u16) -> Option<Self> {
        let change = self.number / OPENERS + 1;
        let number = change.checked_mul(OPENERS)?.checked_add(opener.into())?;
        (number <= LAST_NUMBER).then_some(Self { number, ..self })
    }

    /// The agent that opened it.
    pub const fn opener(self) -> u16 {
        (self.number % OPENERS) as u16
    }

    /// Whether it can be opened at all.
    pub const fn is_valid(self) -> bool {
        self.number <= LAST_NUMBER
    }

    /// Whether it is further ahead of `known`, an epoch of the same founding, than a few changes of members make it.
    pub const fn is_far_ahead_of(self, known: Self) -> bool {
        self.number / OPENERS > known.number / OPENERS + CHANGES_AHEAD
    }

    /// Its short form in data frames, where every byte counts.
    pub fn tag(self) -> EpochTag {
        if self == Self::FIRST {
            return EpochTag(1);
        }
        let hash = self.to_words().into_iter().fold(fnv::BASIS, fnv::add);
        EpochTag(EpochTag::LOWEST + hash % (EpochTag::LIMIT - EpochTag::LOWEST))
    }

    /// As words of a saved state.
    pub(crate) const fn to_words(self) -> [u32; 3] {
        [self.boot, self.founder as u32, self.number]
    }

    /// From words of a saved state; `None` where the founder is none.
    pub(crate) fn from_words([boot, founder, number]: [u32; 3]) -> Option<Self> {
        Some(Self { boot, founder: u16::try_from(founder).ok()?, number })
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;

    #[test]
    fn foundings_never_repeat() {
        let boots = [1, 8191, 8192, 8193, (1 << 20) + 1, (1 << 20) + 2, u32::MAX];
        let epochs: Vec<Epoch> = boots
            .into_iter()
            .flat_map(|boot| [3, 9].map(|founder| Epoch::founding(boot, founder)))
            .flat_map(|founding| {
                let last = Epoch { number: LAST_NUMBER - OPENERS, ..founding };
                [founding.next(founding.founder), last.next(0)].map(Option::unwrap)
            })
            .collect();
        assert!(epochs.is_sorted_by(|one, other| one < other), "{epochs:?}");
        assert!(epochs.iter().all(|epoch| *epoch > Epoch::FIRST));
    }

    #[test]
    fn tags_take_three_bytes_and_tell_epochs_apart() {
        let founded = (0..40).map(|boot| Epoch::founding(boot, 3).next(2).unwrap());
        let changed = (1..40).map(|change| Epoch { number: change * OPENERS, ..Epoch::NONE });
        let tags: std::collections::BTreeSet<u32> =
            founded.chain(changed).map(|epoch| epoch.tag().0).collect();
        assert_eq!(tags.len(), 79);
        assert!(tags.iter().all(|tag| (1 << 14..1 << 21).contains(tag)));
        assert_eq!(Epoch::FIRST.tag(), EpochTag(1));
    }
}
