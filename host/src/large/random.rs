//! A counter-based generator small enough to be the same function in Rust and in a CUDA kernel.
//!
//! Every draw is a pure function of its key and its counter, so a dropout mask is never stored: the backward pass draws it
//! again, and a resumed run draws what the interrupted one would have drawn.

const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// SplitMix64's finaliser: every bit of the result depends on every bit of `word`.
#[inline(always)]
pub fn scramble(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    word ^ (word >> 31)
}

/// A key made of several numbers; `kernels/dropout.cu` builds the same one.
#[inline(always)]
pub fn key(parts: [u64; 4]) -> u64 {
    parts.into_iter().fold(0, |key, part| scramble(key.wrapping_add(GOLDEN).wrapping_add(part)))
}

/// Draw number `counter` of the stream `key`.
#[inline(always)]
pub fn draw(key: u64, counter: u64) -> u64 {
    scramble(key.wrapping_add(GOLDEN.wrapping_mul(counter.wrapping_add(1))))
}

/// Draw number `counter` as a number in `[0, 1)`.
#[inline(always)]
pub fn uniform(key: u64, counter: u64) -> f64 {
    (draw(key, counter) >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_are_spread_evenly() {
        let stream = key([1, 2, 3, 4]);
        let mean = (0..10_000).map(|i| uniform(stream, i)).sum::<f64>() / 10_000.0;
        assert!((mean - 0.5).abs() < 0.01, "{mean}");
    }

    #[test]
    fn every_part_of_the_key_counts() {
        let keys = [key([1, 0, 0, 0]), key([0, 1, 0, 0]), key([0, 0, 1, 0]), key([0, 0, 0, 1]), key([0, 0, 0, 0])];
        for (i, a) in keys.iter().enumerate() {
            assert!(keys[i + 1..].iter().all(|b| a != b));
        }
    }
}
