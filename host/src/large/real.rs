//! The scalar of the CPU device: `f32` to train, `f64` to check derivatives and conformance.
//!
//! Small agents have `fabswarm_shared::scalar::Scalar`, whose functions give the same bits on every machine. Large agents are
//! compared within a tolerance, and take the platform's, which are faster.

use std::fmt::Debug;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, DivAssign, Mul, MulAssign, Neg, Sub, SubAssign};

/// A floating-point number the batched engine can compute with.
pub trait Real:
    Copy
    + Debug
    + Default
    + PartialOrd
    + Send
    + Sync
    + Sum
    + Add<Output = Self>
    + AddAssign
    + Sub<Output = Self>
    + SubAssign
    + Mul<Output = Self>
    + MulAssign
    + Div<Output = Self>
    + DivAssign
    + Neg<Output = Self>
    + 'static
{
    const ZERO: Self;
    const ONE: Self;
    fn from_f64(value: f64) -> Self;
    fn to_f64(self) -> f64;
    fn exp(self) -> Self;
    fn ln(self) -> Self;
    fn sqrt(self) -> Self;
    fn tanh(self) -> Self;
    fn erf(self) -> Self;
    fn max(self, other: Self) -> Self;
}

macro_rules! real {
    ($type:ty, $erf:path) => {
        impl Real for $type {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            #[inline(always)]
            fn from_f64(value: f64) -> Self {
                value as $type
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                f64::from(self)
            }
            #[inline(always)]
            fn exp(self) -> Self {
                <$type>::exp(self)
            }
            #[inline(always)]
            fn ln(self) -> Self {
                <$type>::ln(self)
            }
            #[inline(always)]
            fn sqrt(self) -> Self {
                <$type>::sqrt(self)
            }
            #[inline(always)]
            fn tanh(self) -> Self {
                <$type>::tanh(self)
            }
            #[inline(always)]
            fn erf(self) -> Self {
                $erf(self)
            }
            #[inline(always)]
            fn max(self, other: Self) -> Self {
                <$type>::max(self, other)
            }
        }
    };
}

real!(f32, libm::erff);
real!(f64, libm::erf);

/// Logistic function, in the form that does not overflow for either sign.
#[inline(always)]
pub fn sigmoid<S: Real>(value: S) -> S {
    if value >= S::ZERO {
        S::ONE / (S::ONE + (-value).exp())
    } else {
        let e = value.exp();
        e / (S::ONE + e)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sigmoid_is_finite_at_both_ends() {
        assert_eq!(sigmoid(1000.0_f32), 1.0);
        assert_eq!(sigmoid(-1000.0_f32), 0.0);
        assert!((sigmoid(0.3_f64) + sigmoid(-0.3_f64) - 1.0).abs() < 1e-15);
    }
}
