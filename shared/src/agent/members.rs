//! Sets of agents.

use crate::wire::frame::OPENERS;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The agents that belong to an epoch, as bits.
///
/// ```
/// use fabswarm_shared::agent::MemberSet;
///
/// let mut members = MemberSet::first(10).unwrap();
/// members.remove(3);
/// assert_eq!((members.len(), members.contains(3), members.contains(9)), (9, false, true));
/// assert_eq!(members.as_bytes(), [0b1111_0111, 0b11]);
/// assert_eq!(MemberSet::from_bytes(members.as_bytes()), Some(members));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemberSet {
    bits: [u8; Self::BYTES],
}

const _: () = assert!(MemberSet::CAPACITY == OPENERS as usize, "every member may open epochs");

impl Default for MemberSet {
    fn default() -> Self {
        Self::NOBODY
    }
}

impl MemberSet {
    /// The empty set.
    pub(crate) const NOBODY: Self = Self { bits: [0; Self::BYTES] };

    /// Bytes of a full set.
    pub const BYTES: usize = 128;
    /// Words of a full set.
    pub(super) const WORDS: usize = Self::BYTES / 4;
    /// How many agents a set can tell apart.
    pub const CAPACITY: usize = 8 * Self::BYTES;

    /// The agents with numbers below `count`; `None` where that is more than a set holds.
    pub fn first(count: u16) -> Option<Self> {
        let mut set = Self::default();
        for id in 0..count {
            if !set.insert(id) {
                return None;
            }
        }
        Some(set)
    }

    /// Reads little-endian bits; `None` where they name agents beyond the capacity.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut set = Self::default();
        let (held, beyond) = bytes.split_at(bytes.len().min(Self::BYTES));
        set.bits[..held.len()].copy_from_slice(held);
        beyond.iter().all(|&byte| byte == 0).then_some(set)
    }

    /// Little-endian bits without trailing zero bytes, at least one byte.
    pub fn as_bytes(&self) -> &[u8] {
        let used = self.bits.iter().rposition(|&byte| byte != 0).map_or(1, |last| last + 1);
        &self.bits[..used]
    }

    /// All bits, as words.
    pub(super) fn to_words(self) -> [u32; Self::WORDS] {
        bytemuck::cast(self.bits)
    }

    /// The set that [`MemberSet::to_words`] makes these words of.
    pub(super) fn from_words(words: [u32; Self::WORDS]) -> Self {
        Self { bits: bytemuck::cast(words) }
    }

    /// Whether `id` belongs to it.
    pub fn contains(&self, id: u16) -> bool {
        self.bits.get(usize::from(id / 8)).is_some_and(|byte| byte >> (id % 8) & 1 == 1)
    }

    /// Adds `id`; `false` where it is beyond the capacity.
    pub fn insert(&mut self, id: u16) -> bool {
        self.bits.get_mut(usize::from(id / 8)).map(|byte| *byte |= 1 << (id % 8)).is_some()
    }

    /// Takes `id` out.
    pub fn remove(&mut self, id: u16) {
        if let Some(byte) = self.bits.get_mut(usize::from(id / 8)) {
            *byte &= !(1 << (id % 8));
        }
    }

    /// How many belong to it.
    pub fn len(&self) -> u32 {
        self.bits.iter().map(|byte| byte.count_ones()).sum()
    }

    /// Those that belong to both.
    pub fn common(&self, other: &Self) -> Self {
        Self { bits: core::array::from_fn(|byte| self.bits[byte] & other.bits[byte]) }
    }

    /// Whether nobody does.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// As [`MemberSet::as_bytes`].
impl Serialize for MemberSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(self.as_bytes())
    }
}

impl<'de> Deserialize<'de> for MemberSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let bytes = <&[u8]>::deserialize(deserializer)?;
        Self::from_bytes(bytes).ok_or_else(|| D::Error::custom("agents beyond the capacity of a member set"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_come_back_from_their_bytes() {
        let mut set = MemberSet::first(10).unwrap();
        set.remove(3);
        assert!(set.insert(70) && !set.insert(MemberSet::CAPACITY as u16));
        assert_eq!(set.len(), 10);
        assert_eq!(MemberSet::from_bytes(set.as_bytes()), Some(set));
        assert_eq!(set.as_bytes().len(), 9);
        let mut stored = [0; 16];
        postcard::to_slice(&set, &mut stored).unwrap();
        assert_eq!(postcard::from_bytes(&stored), Ok(set));
        assert_eq!(MemberSet::from_bytes(&[1; 129]), None);
        assert!(MemberSet::first(1025).is_none());
        assert!(!set.is_empty() && MemberSet::default().is_empty());
        // Bytes without a member beyond the capacity are padding.
        assert_eq!(MemberSet::from_bytes(&[[1; 128], [0; 128]].concat()), MemberSet::from_bytes(&[1; 128]));
    }

    #[test]
    fn common_members_are_in_both() {
        let mut some = MemberSet::first(9).unwrap();
        some.remove(2);
        let mut others = MemberSet::default();
        assert!([2, 3, 8, 9].into_iter().all(|id| others.insert(id)));
        let common = some.common(&others);
        assert_eq!((common.len(), common.contains(3), common.contains(8)), (2, true, true));
    }
}
