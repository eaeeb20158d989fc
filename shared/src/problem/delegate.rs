//! Problems that are one of several.

/// The functions of a [`Problem`](crate::problem::Problem) that is one of several, each passed on to the one that is there.
///
/// `$each!(self, problem => call)` evaluates `call` with that one as `problem`; `$scalar` is the precision.
#[macro_export]
macro_rules! delegate_problem {
    ($each:ident, $scalar:ident) => {
        fn shape(&self) -> $crate::problem::Shape {
            $each!(self, problem => $crate::problem::Problem::<$scalar>::shape(problem))
        }
        fn check(&self) -> Result<(), $crate::problem::Mismatch> {
            $each!(self, problem => $crate::problem::Problem::<$scalar>::check(problem))
        }
        fn oracle_words(&self) -> usize {
            $each!(self, problem => $crate::problem::Problem::<$scalar>::oracle_words(problem))
        }
        fn scratch_words(&self) -> usize {
            $each!(self, problem => $crate::problem::Problem::<$scalar>::scratch_words(problem))
        }
        fn upper_value(&self, x: &[$scalar], y: &[$scalar], scratch: &mut [$scalar]) -> $scalar {
            $each!(self, problem => problem.upper_value(x, y, scratch))
        }
        fn lower_value(&self, x: &[$scalar], y: &[$scalar], scratch: &mut [$scalar]) -> $scalar {
            $each!(self, problem => problem.lower_value(x, y, scratch))
        }
        fn upper_gradient(
            &self,
            x: &[$scalar],
            y: &[$scalar],
            dx: &mut [$scalar],
            dy: &mut [$scalar],
            scratch: &mut [$scalar],
        ) {
            $each!(self, problem => problem.upper_gradient(x, y, dx, dy, scratch))
        }
        fn lower_gradient(
            &self,
            at: $crate::problem::NoiseKey,
            x: &[$scalar],
            y: &[$scalar],
            dx: &mut [$scalar],
            dy: &mut [$scalar],
            scratch: &mut [$scalar],
        ) {
            $each!(self, problem => problem.lower_gradient(at, x, y, dx, dy, scratch))
        }
        fn project(&self, x: &mut [$scalar]) {
            $each!(self, problem => problem.project(x))
        }
        #[inline(always)]
        fn penalty_gradient(
            &self,
            penalty: &$crate::problem::Penalty<$scalar>,
            at: $crate::problem::NoiseKey,
            v: &[$scalar],
            d: &mut [$scalar],
            scratch: &mut [$scalar],
        ) {
            $each!(self, problem => problem.penalty_gradient(penalty, at, v, d, scratch))
        }
    };
}
