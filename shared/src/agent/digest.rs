//! The digest of a state.

use crate::fnv;

/// FNV-1a over words, each followed by a rotation so that high bits reach low ones, with a final mix: two states that differ in
/// one bit differ in their digests.
#[inline]
pub(super) fn of(words: impl Iterator<Item = u32>) -> u32 {
    let hash = words.fold(fnv::BASIS, |hash, word| fnv::add(hash, word).rotate_left(5));
    (hash ^ (hash >> 16)).wrapping_mul(0x85eb_ca6b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_single_bit_counts() {
        let words = [7u32, 0, 0xffff_ffff, 42];
        let whole = of(words.into_iter());
        for bit in 0..128 {
            let mut other = words;
            other[bit / 32] ^= 1 << (bit % 32);
            assert_ne!(of(other.into_iter()), whole, "bit {bit}");
        }
    }
}
