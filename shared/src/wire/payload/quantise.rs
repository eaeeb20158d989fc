//! Differences as i8 with one power of two for each block.

/// Range of exponents that travel: 2^e and its inverse are normal, and 127·2^e stays far from overflow.
pub(super) const EXPONENTS: core::ops::RangeInclusive<i8> = -126..=114;

/// Words and differences below this can be told as a difference: it fits the largest exponent.
pub(super) const LIMIT: f32 = f32::from_bits((120 + 127) << 23);

/// 2^e, for an e in [`EXPONENTS`] or its negative.
pub(super) fn power(e: i8) -> f32 {
    f32::from_bits(((i32::from(e) + 127) as u32) << 23)
}

/// The smallest exponent with which differences up to `largest` in magnitude fit an i8.
pub(super) fn exponent(largest: f32) -> i8 {
    let unit = largest / 127.0;
    let bits = unit.to_bits();
    let above = i32::from(bits & 0x007F_FFFF != 0);
    let e = (bits >> 23) as i32 - 127 + above;
    e.clamp(i32::from(*EXPONENTS.start()), i32::from(*EXPONENTS.end())) as i8
}

/// The multiple of 2^e nearest to a difference.
pub(super) fn quantise(difference: f32, e: i8) -> i8 {
    libm::rintf(difference * power(-e)) as i8
}

/// What a receiver sees.
pub(super) fn shown(key: f32, quantised: i8, e: i8) -> f32 {
    key + f32::from(quantised) * power(e)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_largest_difference_fits_and_uses_the_range(largest in 1e-30_f32..1e30) {
            let e = exponent(largest);
            let quantised = quantise(largest, e);
            prop_assert!((63..=127).contains(&quantised), "{quantised}");
            prop_assert!((f32::from(quantised) * power(e) - largest).abs() <= power(e) * 0.5);
        }
    }

    #[test]
    fn nothing_is_zero() {
        assert_eq!(quantise(0.0, exponent(0.0)), 0);
        assert_eq!(shown(1.5, 0, exponent(0.0)), 1.5);
    }
}
