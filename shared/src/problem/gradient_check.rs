//! Gradients against finite differences.

use super::{NoiseKey, Penalty, PenaltyForm, Problem};
use crate::scalar::Scalar;

/// A fault of a problem or of its gradients.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum GradientCheckError {
    /// A gradient is not that of its value.
    #[error("scalar {word} of {oracle} is {found:e}, and {expected:e} by finite differences of its values")]
    Gradient {
        /// The function that computes the gradient.
        oracle: &'static str,
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
    let [mut point, mut gradient, mut scratch] = [[S::ZERO; ROOM]; 3];
    let (point, gradient) = (&mut point[..shape.words()], &mut gradient[..shape.words()]);
    let (scratch, both, moment) = (&mut scratch, shape.x + shape.y, NoiseKey { agent: 0, round: 0 });
    let (x, y, _) = shape.split(at);

    let (dx, dy, _) = shape.split_mut(gradient);
    problem.upper_gradient(x, y, dx, dy, scratch);
    compare(
        "upper_gradient",
        (at, point),
        &gradient[..both],
        |_| 1.0,
        |v| problem.upper_value(&v[..shape.x], &v[shape.x..both], scratch),
    )?;
    let (dx, dy, _) = shape.split_mut(gradient);
    problem.lower_gradient(moment, x, y, dx, dy, scratch);
    compare(
        "lower_gradient",
        (at, point),
        &gradient[..both],
        |_| 1.0,
        |v| problem.lower_value(&v[..shape.x], &v[shape.x..both], scratch),
    )?;
    for form in [PenaltyForm::OneSided, PenaltyForm::Symmetric] {
        let penalty = Penalty { lambda: S::from_f64(3.0), normalise: true, form };
        problem.penalty_gradient(&penalty, moment, at, gradient, scratch);
        // y and z count half in the symmetric L; z ascends: its part of d is minus the derivative.
        let share = if form == PenaltyForm::Symmetric { 2.0 } else { 1.0 };
        let factor = |word| match word {
            word if word < shape.x => 1.0,
            word if word < both => share,
            _ => -share,
        };
        compare("penalty_gradient", (at, point), gradient, factor, |v| {
            let (x, y, z) = shape.split(v);
            let gap = problem.lower_value(x, y, scratch) - problem.lower_value(x, z, scratch);
            let one_sided = problem.upper_value(x, y, scratch) * penalty.scale() + gap;
            match form {
                PenaltyForm::OneSided => one_sided,
                PenaltyForm::Symmetric => {
                    S::from_f64(0.5) * (one_sided + problem.upper_value(x, z, scratch) * penalty.scale())
                }
            }
        })?;
    }
    Ok(())
}

/// Compares a gradient at `at` with central differences of `value`, each times the `factor` of its word.
fn compare<S: Scalar>(
    oracle: &'static str,
    (at, point): (&[S], &mut [S]),
    gradient: &[S],
    factor: impl Fn(usize) -> f64,
    mut value: impl FnMut(&[S]) -> S,
) -> Result<(), GradientCheckError> {
    for (word, found) in gradient.iter().enumerate() {
        point.copy_from_slice(at);
        let step = relative_step::<S>() * at[word].to_f64().abs().max(1.0);
        // The step after rounding.
        let (after, before) = (at[word] + S::from_f64(step), at[word] - S::from_f64(step));
        point[word] = after;
        let above = value(point).to_f64();
        point[word] = before;
        let below = value(point).to_f64();
        let expected = factor(word) * (above - below) / (after.to_f64() - before.to_f64());
        let found = found.to_f64();
        let tolerance = 0.02 * relative_step::<S>() * expected.abs().max(above.abs()).max(1.0);
        let is_near = (found - expected).abs() < tolerance;
        // NaN is near to nothing.
        if !is_near {
            return Err(GradientCheckError::Gradient { oracle, word, found, expected });
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
    use crate::problem::testing::{examples, random};
    use crate::problem::{Mismatch, PolicyEvaluation};
    use std::string::ToString;

    /// One state. With noise its gradient of g is not that of its value.
    fn noisy(rewards: &[f32], reward_noise: f32) -> PolicyEvaluation<'_, f32> {
        PolicyEvaluation {
            regularisation: 0.1,
            reward_noise,
            ..PolicyEvaluation::new(&[1.0], &[0.5], rewards)
        }
    }

    #[test]
    fn gradients_of_all_problems_match_finite_differences() {
        for problem in examples::<f64>(&random(1)) {
            let at: [f64; 32] = random(99);
            let checked = check_gradients::<_, 64>(&problem, &at[..problem.shape().words()]);
            assert_eq!(checked, Ok(()), "{problem:?}");
        }
    }

    #[test]
    fn a_wrong_gradient_is_named() {
        let at = [0.3, -1.5, 0.7];
        assert_eq!(check_gradients::<_, 3>(&noisy(&[1.0], 0.0), &at), Ok(()));
        for reward_noise in [0.02, f32::INFINITY] {
            let wrong = check_gradients::<_, 3>(&noisy(&[1.0], reward_noise), &at).unwrap_err().to_string();
            assert!(wrong.starts_with("scalar 0 of lower_gradient is "), "{wrong}");
        }
    }

    #[test]
    fn what_cannot_be_checked_is_told() {
        let room = check_gradients::<_, 2>(&noisy(&[1.0], 0.0), &[0.0; 3]);
        assert_eq!(room, Err(GradientCheckError::Room { words: 3 }));
        let point = check_gradients::<_, 8>(&noisy(&[1.0], 0.0), &[0.0; 2]);
        assert_eq!(point, Err(GradientCheckError::Point { words: 3, found: 2 }));
        let mismatch = check_gradients::<_, 8>(&noisy(&[], 0.0), &[0.0; 3]);
        assert_eq!(mismatch, Err(GradientCheckError::Problem(Mismatch::Empty)));
    }
}
