//! The scalar of the CPU device: `f32` to train, `f64` to check derivatives and conformance.

use std::iter::Sum;
use std::ops::DivAssign;

use fabswarm_shared::scalar::Scalar;

/// What layers of large agents ask of a number, beyond what problems of small ones do.
pub trait Real: Scalar + Sum + DivAssign {
    fn tanh(self) -> Self;
    /// The error function, of which GELU is made.
    fn erf(self) -> Self;
}

macro_rules! real {
    ($float:ty, $tanh:path, $erf:path) => {
        impl Real for $float {
            fn tanh(self) -> Self {
                $tanh(self)
            }
            fn erf(self) -> Self {
                $erf(self)
            }
        }
    };
}

real!(f32, libm::tanhf, libm::erff);
real!(f64, libm::tanh, libm::erf);
