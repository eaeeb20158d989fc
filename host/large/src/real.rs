//! The scalar of the CPU device: `f32` to train, `f64` to check derivatives and conformance.

use std::iter::Sum;
use std::ops::DivAssign;

use fabswarm_shared::scalar::Scalar;
use gemm_common::Parallelism;

/// `(m, n, k, c, c_column, c_row, read_c, a, a_column, a_row, b, b_column, b_row, beta, alpha, three conjugations, threads)`:
/// `c = beta · c + alpha · a b` on pointers and strides.
pub(crate) type GemmKernel<S> = unsafe fn(
    usize,
    usize,
    usize,
    *mut S,
    isize,
    isize,
    bool,
    *const S,
    isize,
    isize,
    *const S,
    isize,
    isize,
    S,
    S,
    bool,
    bool,
    bool,
    Parallelism,
);

/// Operations that layers of large agents need, beyond those of problems of small ones.
pub trait Real: Scalar + Sum + DivAssign {
    /// The hyperbolic tangent.
    fn tanh(self) -> Self;
    /// The error function, of which GELU is made.
    fn erf(self) -> Self;
    /// Returns the fastest matrix product of this processor.
    #[doc(hidden)]
    fn gemm_kernel() -> GemmKernel<Self>;
}

macro_rules! real {
    ($float:ty, $tanh:path, $erf:path, $gemm:path) => {
        impl Real for $float {
            fn tanh(self) -> Self {
                $tanh(self)
            }
            fn erf(self) -> Self {
                $erf(self)
            }
            fn gemm_kernel() -> GemmKernel<Self> {
                $gemm()
            }
        }
    };
}

real!(f32, libm::tanhf, libm::erff, gemm_f32::gemm::f32::get_gemm_fn);
real!(f64, libm::tanh, libm::erf, gemm_f64::gemm::f64::get_gemm_fn);
