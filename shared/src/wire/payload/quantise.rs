//! v as multiples of a power of two, of which 16 bits or only the low 8 travel.

/// The range of exponents on the wire: 2^e and its inverse are normal numbers.
pub(super) const EXPONENTS: core::ops::RangeInclusive<i8> = -126..=114;

/// Words below this can be represented with an exponent in range.
pub(super) const LIMIT: f32 = power(120);

/// 2^e for |e| ≤ 126.
const fn power(e: i8) -> f32 {
    f32::from_bits(((e as i32 + 127) as u32) << 23)
}

/// The smallest exponent with which words up to `magnitude` fit 16 bits.
pub(super) fn exponent_of_words(magnitude: f32) -> i8 {
    in_range(exponent_of(magnitude / 32_767.0))
}

/// The smallest exponent with which words up to `magnitude`, and up to `reach` from what receivers hold, are determined by
/// their low 8 bits: multiples differ by at most 127, rounding included, and are exact in an f32.
pub(super) fn exponent_of_changes(magnitude: f32, reach: f32) -> i8 {
    in_range(exponent_of(reach / 126.0).max(exponent_of(magnitude) - 22))
}

fn in_range(e: i32) -> i8 {
    e.clamp(i32::from(*EXPONENTS.start()), i32::from(*EXPONENTS.end())) as i8
}

/// The smallest e with 2^e ≥ `value`.
fn exponent_of(value: f32) -> i32 {
    let bits = value.to_bits();
    (bits >> 23) as i32 - 127 + i32::from(bits & 0x007F_FFFF != 0)
}

/// The multiple of 2^e nearest to `v`.
pub(super) fn multiple(v: f32, e: i8) -> i32 {
    libm::rintf(v * power(-e)) as i32
}

/// The multiple with these low bits that is nearest to the one of `base`.
pub(super) fn restore(base: f32, low: u8, e: i8) -> i32 {
    let base = multiple(base, e);
    let difference = low.wrapping_sub(base as u8) as i8;
    base.wrapping_add(i32::from(difference))
}

/// The value that a receiver reconstructs.
pub(super) fn dequantise(multiple: i32, e: i8) -> f32 {
    multiple as f32 * power(e)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn whoever_is_near_enough_sees_the_same(v in -1e3..1e3_f32, bits in 0..30_i32, side in -1.0..1.0_f32) {
            let reach = 1e3 * libm::ldexpf(1.0, -bits);
            let base = v + side * reach;
            let e = exponent_of_changes(v.abs(), (v - base).abs());
            let sent = multiple(v, e);
            prop_assert_eq!(restore(base, sent as u8, e), sent);
            prop_assert!((dequantise(sent, e) - v).abs() <= power(e) * 0.5);
            prop_assert_eq!(multiple(dequantise(sent, e), e), sent);
        }

        #[test]
        fn sixteen_bits_hold_the_largest_word(v in 1e-30_f32..1e35) {
            let multiple = multiple(v, exponent_of_words(v));
            prop_assert!((16_383..=32_767).contains(&multiple), "{multiple}");
        }

        #[test]
        fn nothing_overflows(base: f32, low: u8, e in EXPONENTS) {
            let _ = dequantise(restore(base, low, e), e);
        }
    }

    #[test]
    fn unchanged_words_are_exact() {
        let e = exponent_of_changes(1.5, 0.0);
        assert_eq!(dequantise(restore(1.5, multiple(1.5, e) as u8, e), e), 1.5);
        assert_eq!(dequantise(restore(0.0, 0, *EXPONENTS.start()), *EXPONENTS.start()), 0.0);
        assert_eq!(exponent_of_changes(0.0, 0.0), *EXPONENTS.start());
    }

    #[test]
    fn exponents_are_the_smallest_that_reach() {
        for (value, e) in
            [(1.0, 0), (1.000_000_1, 1), (1.5, 1), (2.0, 1), (2.000_000_2, 2), (0.75, 0), (0.5, -1)]
        {
            assert_eq!(exponent_of(value), e, "{value}");
        }
    }
}
