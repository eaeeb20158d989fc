//! Gradients against finite differences.

use super::{NoiseKey, Penalty, PenaltyForm, Problem};
use crate::scalar::Scalar;

/// A gradient of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GradientKind {
    /// [`Problem::upper_gradient`].
    Upper,
    /// [`Problem::lower_gradient`].
    Lower,
    /// [`Problem::penalty_gradient`].
    Penalty,
}

impl core::fmt::Display for GradientKind {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.write_str(match self {
            Self::Upper => "upper_gradient",
            Self::Lower => "lower_gradient",
            Self::Penalty => "penalty_gradient",
        })
    }
}

/// A fault of a problem or of its gradients.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum GradientCheckError {
    /// A gradient is not that of its value.
    #[error("scalar {word} of {oracle} is {found:e}, and {expected:e} by finite differences of its values")]
    Gradient {
        /// The gradient.
        oracle: GradientKind,
        /// Which of its words: those of x come first, then y, then z.
        word: usize,
        /// The number that the problem computes.
        found: f64,
        /// The number that follows from its values.
        expected: f64,
    },
    /// The problem does not hold together.
    #[error(transparent)]
    Problem(#[from] super::Mismatch),
    /// The point is no decision of the problem.
    #[error(
        "the point to check at has {found} scalars, and a decision of this problem [x | y | z] has {words}"
    )]
    Point {
        /// Words of a decision.
        words: usize,
        /// Words of the point.
        found: usize,
    },
    /// There is too little working memory.
    #[error("checking this problem takes {words} scalars of memory: give at least as many as ROOM")]
    Room {
        /// How many it takes.
        words: usize,
    },
}

/// Compares the gradients of `problem` at the packed decision `at` = `[x | y | z]` with central differences of its values.
///
/// `ROOM` is the number of words of working memory: as many as the decision or [`Problem::scratch_words`], whichever is more. In
/// f64 seven digits must agree, in f32 three to four. Noise must be off.
///
/// # Errors
/// The first thing that is wrong.
///
/// ```
/// use fabswarm_shared::problem::{Classes, HyperTuning, Samples, check_gradients};
///
/// let problem = HyperTuning {
///     train: Samples { features: &[1.0, 0.5, -1.0, 2.0], labels: &[0, 1] },
///     validation: Samples { features: &[0.3, 1.0], labels: &[1] },
///     classes: Classes(2),
/// };
/// let point = [0.1, 1.0, -1.0, 0.5, 0.2, 0.3, -0.3, 0.7, 0.1];
/// check_gradients::<f64, 32>(&problem, &point)?;
/// # Ok::<(), fabswarm_shared::problem::GradientCheckError>(())
/// ```
pub fn check_gradients<S: Scalar, const ROOM: usize>(
    problem: &impl Problem<S>,
    at: &[S],
) -> Result<(), GradientCheckError> {
    problem.check()?;
    let shape = problem.shape();
    if at.len() != shape.words() {
        return Err(GradientCheckError::Point { words: shape.words(), found: at.len() });
    }
    let words = shape.words().max(problem.scratch_words());
    if words > ROOM {
        return Err(GradientCheckError::Room { words });
    }
    let mut memory = [[S::ZERO; ROOM]; 3];
    let [point, gradient, scratch] = &mut memory;
    let (point, gradient) = (&mut point[..shape.words()], &mut gradient[..shape.words()]);
    let moment = NoiseKey { agent: 0, round: 0 };
    let (one_sided, symmetric) = (PenaltyForm::OneSided, PenaltyForm::Symmetric);
    let oracles = [(GradientKind::Upper, one_sided), (GradientKind::Lower, one_sided)];
    let penalties = [(GradientKind::Penalty, one_sided), (GradientKind::Penalty, symmetric)];
    for (oracle, form) in oracles.into_iter().chain(penalties) {
        let penalty = Penalty { lambda: S::from_f64(3.0), normalise: true, form };
        let (x, y, _) = shape.split(at);
        let (dx, dy, _) = shape.split_mut(gradient);
        match oracle {
            GradientKind::Upper => problem.upper_gradient(x, y, dx, dy, scratch),
            GradientKind::Lower => problem.lower_gradient(moment, x, y, dx, dy, scratch),
            GradientKind::Penalty => problem.penalty_gradient(&penalty, moment, at, gradient, scratch),
        }
        let mut value = |v: &[S]| {
            let (x, y, z) = shape.split(v);
            match oracle {
                GradientKind::Upper => problem.upper_value(x, y, scratch),
                GradientKind::Lower => problem.lower_value(x, y, scratch),
                GradientKind::Penalty => {
                    let gap = problem.lower_value(x, y, scratch) - problem.lower_value(x, z, scratch);
                    let upper = problem.upper_value(x, y, scratch) * penalty.scale();
                    match form {
                        PenaltyForm::OneSided => upper + gap,
                        PenaltyForm::Symmetric => {
                            let twin = problem.upper_value(x, z, scratch) * penalty.scale();
                            S::from_f64(0.5) * (upper + twin + gap)
                        }
                    }
                }
            }
            .to_f64()
        };
        let checked = if oracle == GradientKind::Penalty { shape.words() } else { shape.x + shape.y };
        for word in 0..checked {
            point.copy_from_slice(at);
            let step = relative_step::<S>() * at[word].to_f64().abs().max(1.0);
            // The step after rounding.
            let (after, before) = (at[word] + S::from_f64(step), at[word] - S::from_f64(step));
            point[word] = after;
            let above = value(point);
            point[word] = before;
            let below = value(point);
            let slope = (above - below) / (after.to_f64() - before.to_f64());
            // y and z count half in the symmetric L; z ascends: its part of d is minus the derivative.
            let share = if form == symmetric { 2.0 } else { 1.0 };
            let expected = match word {
                word if word < shape.x => slope,
                word if word < shape.x + shape.y => share * slope,
                _ => -share * slope,
            };
            let found = gradient[word].to_f64();
            let tolerance = 0.02 * relative_step::<S>() * expected.abs().max(above.abs()).max(1.0);
            let is_near = (found - expected).abs() < tolerance;
            // NaN is near to nothing.
            if !is_near {
                return Err(GradientCheckError::Gradient { oracle, word, found, expected });
            }
        }
    }
    Ok(())
}

/// The cube root of the distance from 1 to the next number, where the errors of rounding and of truncation are about the same.
fn relative_step<S: Scalar>() -> f64 {
    let is_single = S::from_f64(1.0 + f64::EPSILON).to_f64() == 1.0;
    libm::cbrt(if is_single { f32::EPSILON.into() } else { f64::EPSILON })
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::problem::{Mismatch, Shape};
    use std::string::ToString;

    /// f = (x − y)²/2, g = (y − 1)²/2, with a gradient of f that can be wrong.
    struct Tilted(f32);

    impl Problem<f32> for Tilted {
        fn shape(&self) -> Shape {
            Shape { x: 1, y: 1, x_is_local: false }
        }
        fn check(&self) -> Result<(), Mismatch> {
            if self.0.is_nan() { Err(Mismatch::Empty) } else { Ok(()) }
        }
        fn oracle_words(&self) -> usize {
            0
        }
        fn upper_value(&self, x: &[f32], y: &[f32], _: &mut [f32]) -> f32 {
            0.5 * (x[0] - y[0]) * (x[0] - y[0])
        }
        fn lower_value(&self, _: &[f32], y: &[f32], _: &mut [f32]) -> f32 {
            0.5 * (y[0] - 1.0) * (y[0] - 1.0)
        }
        fn upper_gradient(&self, x: &[f32], y: &[f32], dx: &mut [f32], dy: &mut [f32], _: &mut [f32]) {
            (dx[0], dy[0]) = (x[0] - y[0], (y[0] - x[0]) * self.0);
        }
        fn lower_gradient(
            &self,
            _: NoiseKey,
            _: &[f32],
            y: &[f32],
            dx: &mut [f32],
            dy: &mut [f32],
            _: &mut [f32],
        ) {
            (dx[0], dy[0]) = (0.0, y[0] - 1.0);
        }
    }

    #[test]
    fn a_wrong_gradient_is_named() {
        let at = [0.3, -1.5, 0.7];
        assert_eq!(check_gradients::<_, 3>(&Tilted(1.0), &at), Ok(()));
        for wrong in [1.01, -1.0, f32::INFINITY] {
            let refused = check_gradients::<_, 3>(&Tilted(wrong), &at).unwrap_err();
            assert!(
                matches!(refused, GradientCheckError::Gradient { oracle: GradientKind::Upper, word: 1, .. }),
                "{refused}"
            );
        }
        let message = check_gradients::<_, 3>(&Tilted(-1.0), &at).unwrap_err().to_string();
        assert!(message.starts_with("scalar 1 of upper_gradient is 1.7999"), "{message}");
    }

    #[test]
    fn what_cannot_be_checked_is_told() {
        let room = check_gradients::<_, 2>(&Tilted(1.0), &[0.0; 3]);
        assert_eq!(room, Err(GradientCheckError::Room { words: 3 }));
        let point = check_gradients::<_, 8>(&Tilted(1.0), &[0.0; 2]);
        assert_eq!(point, Err(GradientCheckError::Point { words: 3, found: 2 }));
        let mismatch = check_gradients::<_, 8>(&Tilted(f32::NAN), &[0.0; 3]);
        assert_eq!(mismatch, Err(GradientCheckError::Problem(Mismatch::Empty)));
    }
}
