//! Bilevel problems as first-order oracles.
//!
//! An agent's share of a bilevel problem is an upper function `f_i(x, y)` and a lower function
//! `g_i(x, y)`:
//!
//! $$\min_x \tfrac1n \sum_i f_i(x, y^*(x)) \quad\text{s.t.}\quad y^*(x) = \arg\min_y \tfrac1n \sum_i g_i(x, y)$$
//!
//! FAB needs only their gradients. It works on the penalty function (the paper's `L_i`)
//!
//! $$L_i(x, y, z) = f_i(x, y) + \lambda\,(g_i(x, y) - g_i(x, z))$$
//!
//! descending in x and y and ascending in z; [`Problem::penalty_gradient`] is the paper's eq. (7).
//!
//! A difference on both sides, in which z descends `g − f/λ`, is exact to O(1/λ²) instead of O(1/λ): [`PenaltyForm::Symmetric`].
//! Relatives are F²SA-p (Chen, Li, Chayti and Zhang, arXiv 2509.02937, here p = 2 without a centre), Chayti and Jaggi (2024), and
//! symmetric nudging in equilibrium propagation (Laborieux et al. 2021).
//!
//! | paper | here |
//! |---|---|
//! | `x`, `y`, `z` | parts of one packed vector `v = [x \| y \| z]`, laid out by [`Shape`] |
//! | `d_i` | the packed gradient, z's part already signed so that every part is subtracted |
//! | `λ` | [`Penalty::lambda`] |
//!
//! Matrices are slices; the docs of each field state the layout. Φ and N are column-major, since a product with a column adds whole
//! columns; samples and readings are row-major, since their gradients are taken one row at a time. They are not matrices of a
//! linear algebra crate: a board reads them in place from flash, and the order of operations is fixed in this crate.

mod delegate;
mod fresh;
mod gradient_check;
mod hyper_cleaning;
mod hyper_tuning;
mod policy_evaluation;
mod sensor_trust;
mod softmax;

pub use fresh::{FRESH_READINGS, SensedProblem, refresh};
pub use gradient_check::{GradientCheckError, check_gradients};
pub use hyper_cleaning::HyperCleaning;
pub use hyper_tuning::HyperTuning;
pub use policy_evaluation::PolicyEvaluation;
pub use sensor_trust::{Readings, SensorTrust};
pub use softmax::{Classes, Samples};

use crate::scalar::Scalar;
use core::ops::Range;
use serde::{Deserialize, Serialize};

/// The sizes of one agent's decision, in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Words of the upper variable x.
    pub x: usize,
    /// Words of the lower variable y, and of its twin z.
    pub y: usize,
    /// Whether x belongs to this agent alone and never travels.
    pub x_is_local: bool,
}

impl Shape {
    /// Words of the packed decision `[x | y | z]`.
    #[inline(always)]
    pub const fn words(&self) -> usize {
        self.x + 2 * self.y
    }

    /// The part of the packed decision that neighbours exchange.
    #[inline(always)]
    pub const fn exchanged(&self) -> Range<usize> {
        if self.x_is_local { self.x..self.words() } else { 0..self.words() }
    }

    /// Splits a packed vector into its x, y and z parts.
    ///
    /// # Panics
    /// Where `packed` is shorter than [`Shape::words`].
    #[cfg_attr(not(microcontroller), inline(always))]
    pub fn split<'v, S>(&self, packed: &'v [S]) -> (&'v [S], &'v [S], &'v [S]) {
        let (x, yz) = packed.split_at(self.x);
        let (y, z) = yz.split_at(self.y);
        (x, y, z)
    }

    /// Splits a packed vector into its x, y and z parts, for writing.
    ///
    /// # Panics
    /// Where `packed` is shorter than [`Shape::words`].
    #[cfg_attr(not(microcontroller), inline(always))]
    pub fn split_mut<'v, S>(&self, packed: &'v mut [S]) -> (&'v mut [S], &'v mut [S], &'v mut [S]) {
        let (x, yz) = packed.split_at_mut(self.x);
        let (y, z) = yz.split_at_mut(self.y);
        (x, y, z)
    }
}

/// The agent and the round of a gradient, which name the noise that belongs to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoiseKey {
    /// The agent that takes the gradient.
    pub agent: u32,
    /// The round it is taken in.
    pub round: u32,
}

/// How strongly the lower level binds: the λ of the local penalty $L_i = f_i(x, y) + \lambda (g_i(x, y) - g_i(x, z))$, eq. (5).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Penalty<S> {
    /// The penalty parameter λ.
    pub lambda: S,
    /// Divides every gradient by λ. The paper's step sizes only make sense with it.
    pub normalise: bool,
    /// Which difference of lower functions stands for the lower level.
    pub form: PenaltyForm,
}

/// Which difference of lower functions stands for the lower level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PenaltyForm {
    /// y minimises `g + f/λ` and z minimises `g`, as published: off by O(1/λ).
    OneSided,
    /// y minimises `g + f/λ` and z minimises `g − f/λ`: off by O(1/λ²).
    Symmetric,
}

impl<S: Scalar> Penalty<S> {
    /// The factor of every gradient: `1/λ` or 1.
    pub fn scale(&self) -> S {
        if self.normalise { S::ONE / self.lambda } else { S::ONE }
    }
}

/// Why a problem's data do not fit together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Mismatch {
    /// The number of entries of a matrix or list does not follow from its sizes.
    #[error("a matrix or list of the problem has the wrong length")]
    Length,
    /// A label or sensor number is not below the number of classes or sensors.
    #[error("a label or sensor number is out of range")]
    Index,
    /// There is no state, class, sample or sensor.
    #[error("the problem has no state, class, sample or sensor")]
    Empty,
}

/// One agent's share of a bilevel problem.
///
/// Problems are plain data; [`Problem::check`] tests whether they fit together, and the other methods
/// may panic if they do not. Slices passed in have the lengths that [`Problem::shape`] and [`Problem::scratch_words`] return.
///
/// A user's problem: the point nearest to a `site`, as the lower level sees it. [`check_gradients`] finds what is wrong with
/// its gradients, and with [`PageProblem`](crate::provisioning::PageProblem) boards can run it.
///
/// ```
/// use fabswarm_shared::problem::{
///     Mismatch, NoiseKey, Penalty, PenaltyForm, Problem, Shape, check_gradients,
/// };
///
/// /// f = (x − y)²/2, g = (y − site)²/2.
/// struct Nearest {
///     site: f32,
/// }
///
/// impl Problem<f32> for Nearest {
///     fn shape(&self) -> Shape {
///         Shape { x: 1, y: 1, x_is_local: false }
///     }
///     fn check(&self) -> Result<(), Mismatch> {
///         Ok(())
///     }
///     fn oracle_words(&self) -> usize {
///         0
///     }
///     fn upper_value(&self, x: &[f32], y: &[f32], _: &mut [f32]) -> f32 {
///         0.5 * (x[0] - y[0]) * (x[0] - y[0])
///     }
///     fn lower_value(&self, _: &[f32], y: &[f32], _: &mut [f32]) -> f32 {
///         0.5 * (y[0] - self.site) * (y[0] - self.site)
///     }
///     fn upper_gradient(&self, x: &[f32], y: &[f32], dx: &mut [f32], dy: &mut [f32], _: &mut [f32]) {
///         (dx[0], dy[0]) = (x[0] - y[0], y[0] - x[0]);
///     }
///     fn lower_gradient(
///         &self, _: NoiseKey, _: &[f32], y: &[f32], dx: &mut [f32], dy: &mut [f32], _: &mut [f32],
///     ) {
///         (dx[0], dy[0]) = (0.0, y[0] - self.site);
///     }
/// }
///
/// let penalty = Penalty { lambda: 10.0, normalise: false, form: PenaltyForm::OneSided };
/// let moment = NoiseKey { agent: 0, round: 0 };
/// let problem = Nearest { site: 2.0 };
/// let (mut d, mut scratch) = ([0.0; 3], vec![0.0; problem.scratch_words()]);
/// problem.penalty_gradient(&penalty, moment, &[0.0, 1.0, 1.0], &mut d, &mut scratch);
/// assert_eq!(d, [-1.0, 1.0 - 10.0, -10.0]);
/// check_gradients::<_, 8>(&problem, &[0.0, 1.0, 1.5])?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Problem<S: Scalar> {
    /// Sizes of the decision.
    fn shape(&self) -> Shape;

    /// Whether the data fit together.
    ///
    /// # Errors
    /// The first [`Mismatch`] found.
    fn check(&self) -> Result<(), Mismatch>;

    /// Words of working memory that any of the values and gradients of f and g needs.
    fn oracle_words(&self) -> usize;

    /// Words of working memory that [`Problem::penalty_gradient`] needs: by default one gradient of g, besides what the oracles
    /// need.
    fn scratch_words(&self) -> usize {
        let shape = self.shape();
        shape.x + shape.y + self.oracle_words()
    }

    /// `f_i(x, y)`.
    fn upper_value(&self, x: &[S], y: &[S], scratch: &mut [S]) -> S;

    /// `g_i(x, y)` without noise.
    fn lower_value(&self, x: &[S], y: &[S], scratch: &mut [S]) -> S;

    /// `∇f_i(x, y)` into `dx`, `dy`.
    fn upper_gradient(&self, x: &[S], y: &[S], dx: &mut [S], dy: &mut [S], scratch: &mut [S]);

    /// `∇g_i(x, y)` into `dx`, `dy`.
    fn lower_gradient(&self, at: NoiseKey, x: &[S], y: &[S], dx: &mut [S], dy: &mut [S], scratch: &mut [S]);

    /// Takes a fresh reading in `round`, if a sensor replaces data of the problem while it runs.
    fn take_reading(&mut self, _round: u32, _value: S) {}

    /// Brings x back into the set it must stay in.
    fn project(&self, _x: &mut [S]) {}

    /// The packed local gradient `d_i`, eq. (7), times [`Penalty::scale`]:
    ///
    /// $$d_x = \nabla_x f(x,y) + \lambda(\nabla_x g(x,y) - \nabla_x g(x,z)),\quad
    ///   d_y = \nabla_y f(x,y) + \lambda\nabla_y g(x,y),\quad d_z = \lambda\nabla_y g(x,z)$$
    ///
    /// With [`PenaltyForm::Symmetric`], d_y is the same and
    ///
    /// $$d_x = \tfrac12\big(\nabla_x f(x,y) + \nabla_x f(x,z) + \lambda(\nabla_x g(x,y) - \nabla_x g(x,z))\big),\quad
    ///   d_z = \lambda\nabla_y g(x,z) - \nabla_y f(x,z)$$
    fn penalty_gradient(&self, penalty: &Penalty<S>, at: NoiseKey, v: &[S], d: &mut [S], scratch: &mut [S]) {
        let shape = self.shape();
        let scale = penalty.scale();
        let bound = scale * penalty.lambda;
        let (x, y, z) = shape.split(v);
        let (dx, dy, dz) = shape.split_mut(d);
        let (gx, scratch) = scratch.split_at_mut(shape.x);
        let (gy, scratch) = scratch.split_at_mut(shape.y);

        self.upper_gradient(x, y, dx, dy, scratch);
        self.lower_gradient(at, x, y, gx, gy, scratch);
        for (d, &g) in dx.iter_mut().zip(&*gx).chain(dy.iter_mut().zip(&*gy)) {
            *d = scale * *d + bound * g;
        }
        self.lower_gradient(at, x, z, gx, dz, scratch);
        for (d, &g) in dx.iter_mut().zip(&*gx) {
            *d -= bound * g;
        }
        for d in &mut *dz {
            *d *= bound;
        }
        if penalty.form == PenaltyForm::Symmetric {
            self.upper_gradient(x, z, gx, gy, scratch);
            for (d, &f) in dx.iter_mut().zip(&*gx) {
                *d = S::from_f64(0.5) * (*d + scale * f);
            }
            for (d, &f) in dz.iter_mut().zip(&*gy) {
                *d -= scale * f;
            }
        }
    }
}

/// Any of the four built-in problems, chosen at run time.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum AnyProblem<'a, S> {
    /// Value of a policy from shared features and private rewards.
    PolicyEvaluation(PolicyEvaluation<'a, S>),
    /// Regulariser of a classifier.
    HyperTuning(HyperTuning<'a, S>),
    /// Weights of training samples with corrupted labels.
    HyperCleaning(HyperCleaning<'a, S>),
    /// Trust in the sensors of a flying swarm.
    SensorTrust(SensorTrust<'a, S>),
}

macro_rules! each_problem {
    ($self:ident, $problem:ident => $call:expr) => {
        match $self {
            AnyProblem::PolicyEvaluation($problem) => $call,
            AnyProblem::HyperTuning($problem) => $call,
            AnyProblem::HyperCleaning($problem) => $call,
            AnyProblem::SensorTrust($problem) => $call,
        }
    };
}

impl<S: Scalar> Problem<S> for AnyProblem<'_, S> {
    crate::delegate_problem!(each_problem, S);
}

#[cfg(test)]
pub(crate) mod testing;
