//! Loops compiled for the vectors of the processor they run on.

use pulp::{Arch, Simd, WithSimd};

/// Runs `work` in the form compiled for the widest vectors of this processor, where it and what it calls are `#[inline(always)]`.
pub(super) fn on_vectors(work: impl FnMut()) {
    Arch::new().dispatch(VectorKernel(work));
}

/// A loop. [`Arch`] takes closures too, but through a shim that LLVM may leave out of line, compiled for any processor.
struct VectorKernel<F>(F);

impl<F: FnMut()> WithSimd for VectorKernel<F> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, _: S) {
        (self.0)();
    }
}
