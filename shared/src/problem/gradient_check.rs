//! Gradients against finite differences.

use super::{NoiseKey, Penalty, PenaltyForm, Problem};
use crate::scalar::Scalar;

/// A gradient of a problem, by the function that computes it.
#[derive(Clone, Copy)]
enum CheckedOracle {
    Upper,
    Lower,
    Penalty(PenaltyForm),
}

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
    let mut memory = [[S::ZERO; ROOM]; 3];
    let [point, gradient, scratch] = &mut memory;
    let (point, gradient) = (&mut point[..shape.words()], &mut gradient[..shape.words()]);
    let moment = NoiseKey { agent: 0, round: 0 };
    let (one_sided, symmetric) = (PenaltyForm::OneSided, PenaltyForm::Symmetric);
    for (name, oracle) in [
        ("upper_gradient", CheckedOracle::Upper),
        ("lower_gradient", CheckedOracle::Lower),
        ("penalty_gradient", CheckedOracle::Penalty(one_sided)),
        ("penalty_gradient", CheckedOracle::Penalty(symmetric)),
    ] {
        let penalty = |form| Penalty { lambda: S::from_f64(3.0), normalise: true, form };
        let (x, y, _) = shape.split(at);
        let (dx, dy, _) = shape.split_mut(gradient);
        match oracle {
            CheckedOracle::Upper => problem.upper_gradient(x, y, dx, dy, scratch),
            CheckedOracle::Lower => problem.lower_gradient(moment, x, y, dx, dy, scratch),
            CheckedOracle::Penalty(form) => {
                problem.penalty_gradient(&penalty(form), moment, at, gradient, scratch);
            }
        }
        let mut value = |v: &[S]| {
            let (x, y, z) = shape.split(v);
            match oracle {
                CheckedOracle::Upper => problem.upper_value(x, y, scratch),
                CheckedOracle::Lower => problem.lower_value(x, y, scratch),
                CheckedOracle::Penalty(form) => {
                    let scale = penalty(form).scale();
                    let gap = problem.lower_value(x, y, scratch) - problem.lower_value(x, z, scratch);
                    let upper = problem.upper_value(x, y, scratch) * scale;
                    match form {
                        PenaltyForm::OneSided => upper + gap,
                        PenaltyForm::Symmetric => {
                            let twin = problem.upper_value(x, z, scratch) * scale;
                            S::from_f64(0.5) * (upper + twin + gap)
                        }
                    }
                }
            }
            .to_f64()
        };
        let checked =
            if matches!(oracle, CheckedOracle::Penalty(_)) { shape.words() } else { shape.x + shape.y };
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
            let is_symmetric = matches!(oracle, CheckedOracle::Penalty(PenaltyForm::Symmetric));
            let share = if is_symmetric { 2.0 } else { 1.0 };
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
                return Err(GradientCheckError::Gradient { oracle: name, word, found, expected });
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
