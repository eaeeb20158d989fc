//! The number type of an agent: `f32` on a microcontroller, `f64` for reference runs.

use core::fmt::{Debug, Display};
use core::ops::{Add, AddAssign, Div, Mul, MulAssign, Neg, Sub, SubAssign};

/// A real number whose arithmetic gives the same bits on every machine we run on.
///
/// Transcendental functions come from `libm`, never from the platform: a host's `exp` and a
/// Cortex-M's differ in the last bit, and one bit is enough to break a shadow's digest.
pub trait Scalar:
    Copy
    + Debug
    + Default
    + Display
    + PartialOrd
    + Add<Output = Self>
    + AddAssign
    + Sub<Output = Self>
    + SubAssign
    + Mul<Output = Self>
    + MulAssign
    + Div<Output = Self>
    + Neg<Output = Self>
    + Send
    + Sync
    + 'static
{
    /// The number 0.
    const ZERO: Self;
    /// The number 1.
    const ONE: Self;
    /// The nearest representable value to a count.
    fn from_count(count: usize) -> Self;
    /// The nearest representable value.
    fn from_f64(value: f64) -> Self;
    /// The value in double precision (exact).
    fn to_f64(self) -> f64;
    /// `e^self`.
    fn exp(self) -> Self;
    /// Natural logarithm.
    fn ln(self) -> Self;
    /// Square root.
    fn sqrt(self) -> Self;
    /// Whether the value is neither infinite nor NaN.
    fn is_finite(self) -> bool;

    /// The larger of two values; the other one where one is NaN.
    fn larger(self, other: Self) -> Self {
        if self > other || other.to_f64().is_nan() { self } else { other }
    }

    /// The logistic function `1 / (1 + e^-self)`.
    fn sigmoid(self) -> Self {
        Self::ONE / (Self::ONE + (-self).exp())
    }
}

macro_rules! scalar {
    ($float:ty, $exp:ident, $ln:ident, $sqrt:ident) => {
        impl Scalar for $float {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            fn from_count(count: usize) -> Self {
                count as Self
            }
            fn from_f64(value: f64) -> Self {
                value as Self
            }
            fn to_f64(self) -> f64 {
                f64::from(self)
            }
            fn exp(self) -> Self {
                libm::$exp(self)
            }
            fn ln(self) -> Self {
                libm::$ln(self)
            }
            fn sqrt(self) -> Self {
                libm::$sqrt(self)
            }
            fn is_finite(self) -> bool {
                self.is_finite()
            }
        }
    };
}

scalar!(f32, expf, logf, sqrtf);
scalar!(f64, exp, log, sqrt);
