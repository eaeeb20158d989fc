//! Distributed policy evaluation: the paper's reinforcement-learning task.
//!
//! All agents know the features Φ and the transition matrix P of a Markov chain; each sees only its own
//! rewards r. With `N = γPΦ`,
//!
//! $$f_i(x,y) = \tfrac{c_f}{2}\lVert\Phi x - y\rVert^2 + \tfrac{\tau}{2}\lVert x\rVert^2,\qquad
//!   g_i(x,y) = \tfrac{c_g}{2}\lVert y - r_i - N x\rVert^2$$
//!
//! (the paper's eqs. (17) and (18), with their factors as parameters).

use super::{Mismatch, NoiseKey, Penalty, PenaltyForm, Problem, Shape};
use crate::linear::{mat_transposed_vec, mat_vec, mats_transposed_vecs, squared_norm, zip_map_in_place};
use crate::rng::{Purpose, Stream};
use crate::scalar::Scalar;

/// One agent's policy-evaluation problem.
#[derive(Clone, Copy, Debug)]
pub struct PolicyEvaluation<'a, S> {
    /// Φ, states × features, column-major: the states of a feature are contiguous.
    pub features: &'a [S],
    /// N = γPΦ, states × features, column-major.
    pub successors: &'a [S],
    /// r_i, the expected reward of each state.
    pub rewards: &'a [S],
    /// c_f, the weight of the fit.
    pub upper_weight: S,
    /// c_g, the weight of the Bellman residual.
    pub lower_weight: S,
    /// τ.
    pub regularisation: S,
    /// ω, the standard deviation of the noise on every observed reward; fresh each round.
    pub reward_noise: S,
    /// Names the noise.
    pub seed: u64,
}

impl<'a, S: Scalar> PolicyEvaluation<'a, S> {
    /// The problem of these features, successors and rewards: weights of 1, no regularisation and no noise.
    pub const fn new(features: &'a [S], successors: &'a [S], rewards: &'a [S]) -> Self {
        Self {
            features,
            successors,
            rewards,
            upper_weight: S::ONE,
            lower_weight: S::ONE,
            regularisation: S::ZERO,
            reward_noise: S::ZERO,
            seed: 0,
        }
    }

    fn states(&self) -> usize {
        self.rewards.len()
    }

    /// `N·x + ωξ` into `out`: what y should be, without the reward.
    #[inline(always)]
    fn returns(&self, at: NoiseKey, x: &[S], out: &mut [S]) {
        mat_vec(self.successors, x, out);
        if self.reward_noise > S::ZERO {
            self.add_noise(at, out);
        }
    }

    /// Kept out of the way of the loops that are compiled around a host's gradient.
    #[cfg_attr(not(microcontroller), cold)]
    #[cfg_attr(microcontroller, inline(always))]
    fn add_noise(&self, at: NoiseKey, out: &mut [S]) {
        let mut noise = Stream::new(self.seed, at.agent, at.round, Purpose::Noise);
        for out in out {
            *out += self.reward_noise * S::from_f64(noise.gaussian_f64());
        }
    }

    /// `c_f(Φx − y)` into `out`.
    #[inline(always)]
    fn misfit(&self, x: &[S], y: &[S], out: &mut [S]) {
        mat_vec(self.features, x, out);
        for (out, &y) in out.iter_mut().zip(y) {
            *out = self.upper_weight * (*out - y);
        }
    }
}

impl<S: Scalar> Problem<S> for PolicyEvaluation<'_, S> {
    fn shape(&self) -> Shape {
        Shape { x: self.features.len() / self.states().max(1), y: self.states(), x_is_local: false }
    }

    fn check(&self) -> Result<(), Mismatch> {
        if self.rewards.is_empty() || self.features.is_empty() {
            return Err(Mismatch::Empty);
        }
        let whole = self.features.len().is_multiple_of(self.states());
        if whole && self.features.len() == self.successors.len() { Ok(()) } else { Err(Mismatch::Length) }
    }

    fn oracle_words(&self) -> usize {
        2 * self.states()
    }

    /// The gradients of f and g share what they compute.
    fn scratch_words(&self) -> usize {
        self.oracle_words()
    }

    fn upper_value(&self, x: &[S], y: &[S], scratch: &mut [S]) -> S {
        let misfit = &mut scratch[..self.states()];
        mat_vec(self.features, x, misfit);
        for (misfit, &y) in misfit.iter_mut().zip(y) {
            *misfit -= y;
        }
        let half = S::from_f64(0.5);
        half * (self.upper_weight * squared_norm(misfit) + self.regularisation * squared_norm(x))
    }

    fn lower_value(&self, x: &[S], y: &[S], scratch: &mut [S]) -> S {
        let residual = &mut scratch[..self.states()];
        mat_vec(self.successors, x, residual);
        for ((residual, &y), &reward) in residual.iter_mut().zip(y).zip(self.rewards) {
            *residual = y - reward - *residual;
        }
        S::from_f64(0.5) * self.lower_weight * squared_norm(residual)
    }

    fn upper_gradient(&self, x: &[S], y: &[S], dx: &mut [S], dy: &mut [S], _: &mut [S]) {
        self.misfit(x, y, dy);
        mat_transposed_vec(self.features, dy, dx);
        for (dx, &x) in dx.iter_mut().zip(x) {
            *dx += self.regularisation * x;
        }
        for dy in dy {
            *dy = -*dy;
        }
    }

    fn lower_gradient(&self, at: NoiseKey, x: &[S], y: &[S], dx: &mut [S], dy: &mut [S], _: &mut [S]) {
        self.returns(at, x, dy);
        for ((dy, &y), &reward) in dy.iter_mut().zip(y).zip(self.rewards) {
            *dy = self.lower_weight * (y - (*dy + reward));
        }
        mat_transposed_vec(self.successors, dy, dx);
        for dx in dx {
            *dx = -*dx;
        }
    }

    /// The same numbers as the default, to rounding, with two products fewer: y and z share their targets, and Nᵀ is applied
    /// once to the difference of both residuals, from which the targets cancel and with them their rounding.
    #[inline(always)]
    fn penalty_gradient(&self, penalty: &Penalty<S>, at: NoiseKey, v: &[S], d: &mut [S], scratch: &mut [S]) {
        let shape = self.shape();
        let scale = penalty.scale();
        let bound = scale * penalty.lambda * self.lower_weight;
        let (x, y, z) = shape.split(v);
        let (dx, dy, dz) = shape.split_mut(d);
        let (misfit, gap) = scratch.split_at_mut(shape.y);
        let gap = &mut gap[..shape.y];

        mat_vec(self.features, x, misfit);
        self.returns(at, x, dz);
        let is_symmetric = penalty.form == PenaltyForm::Symmetric;
        let half = S::from_f64(0.5);
        let turn = |[y, z, reward]: [S; 3], [fit, _, _, returns]: [S; 4]| {
            let target = returns + reward;
            let misfit = scale * (self.upper_weight * (fit - y));
            let (gap, dy, dz) = (bound * (z - y), bound * (y - target) - misfit, bound * (z - target));
            if !is_symmetric {
                return [misfit, gap, dy, dz];
            }
            let twin_misfit = scale * (self.upper_weight * (fit - z));
            [half * (misfit + twin_misfit), half * gap, dy, dz + twin_misfit]
        };
        // As long as the loop is, so that nothing in it need be checked.
        let (y, z, rewards) = (&y[..shape.y], &z[..shape.y], &self.rewards[..shape.y]);
        let (misfit, gap) = (&mut misfit[..shape.y], &mut gap[..shape.y]);
        let (dy, dz) = (&mut dy[..shape.y], &mut dz[..shape.y]);
        if cfg!(microcontroller) {
            // By name: a small image has no room for loops over which slice, and takes twice as long with them.
            for state in 0..shape.y {
                let given = [y[state], z[state], rewards[state]];
                [misfit[state], gap[state], dy[state], dz[state]] =
                    turn(given, [misfit[state], gap[state], dy[state], dz[state]]);
            }
        } else {
            zip_map_in_place([y, z, rewards], [misfit, gap, dy, dz], turn);
        }
        let (misfit, gap) = scratch.split_at(shape.y);
        mats_transposed_vecs([(self.features, misfit), (self.successors, &gap[..shape.y])], dx);
        for (dx, &x) in dx.iter_mut().zip(x) {
            *dx += scale * (self.regularisation * x);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::testing::{OraclesOnly, random};

    #[test]
    fn fused_penalty_gradient_equals_the_default() {
        let numbers: [f64; 30] = random(1);
        let problem = PolicyEvaluation {
            upper_weight: 0.7,
            lower_weight: 1.3,
            regularisation: 0.1,
            reward_noise: 0.5,
            ..PolicyEvaluation::new(&numbers[..12], &numbers[12..24], &numbers[24..])
        };
        let v: [f64; 14] = random(4);
        let at = NoiseKey { agent: 3, round: 8 };
        for form in [PenaltyForm::OneSided, PenaltyForm::Symmetric] {
            let penalty = Penalty { lambda: 60.0, normalise: true, form };
            let ([mut fused, mut plain], mut scratch) = ([[0.0; 14]; 2], [0.0; 32]);
            problem.penalty_gradient(&penalty, at, &v, &mut fused, &mut scratch);
            OraclesOnly(&problem).penalty_gradient(&penalty, at, &v, &mut plain, &mut scratch);
            for (fused, plain) in fused.iter().zip(plain) {
                assert!((fused - plain).abs() < 1e-12 * plain.abs().max(1.0));
            }
        }
    }
}
