//! Random Markov chains, as in the paper's reinforcement-learning task.

use super::converted;
use crate::scenario;
use fabswarm_shared::problem::{PolicyEvaluation, Shape};
use fabswarm_shared::rng::{Purpose, Stream};
use fabswarm_shared::scalar::Scalar;
use nalgebra::{DMatrix, DVector};

/// Features and transitions that all agents share, and each agent's own rewards.
#[derive(Clone, Debug)]
pub struct PolicyEvaluationData<S> {
    features: Vec<S>,
    successors: Vec<S>,
    rewards: Vec<S>,
    states: usize,
    upper_weight: S,
    lower_weight: S,
    regularisation: S,
    reward_noise: S,
    seed: u64,
    solution: Vec<f64>,
}

/// A policy-evaluation problem in double precision, before it is given to agents.
#[derive(Clone, Debug)]
pub struct Chain {
    /// Φ, states × features.
    pub features: DMatrix<f64>,
    /// P, states × states.
    pub transitions: DMatrix<f64>,
    /// r_i, states × agents.
    pub rewards: DMatrix<f64>,
    /// γ.
    pub discount: f64,
    /// τ.
    pub regularisation: f64,
    /// c_f.
    pub upper_weight: f64,
    /// c_g.
    pub lower_weight: f64,
    /// ω.
    pub reward_noise: f64,
    /// The seed of the noise.
    pub seed: u64,
}

impl Chain {
    /// Φ uniform, P uniform with normalised rows, rewards uniform.
    fn draw(parameters: &scenario::PolicyEvaluationSection, seed: u64, agents: usize) -> Self {
        let (states, features) = (parameters.states, parameters.features);
        let mut common = Stream::new(seed, u32::MAX, 0, Purpose::Problem);
        let features = DMatrix::from_fn(states, features, |_, _| common.uniform_f64());
        let mut transitions = DMatrix::from_fn(states, states, |_, _| common.uniform_f64());
        for mut row in transitions.row_iter_mut() {
            let sum = row.sum();
            row /= sum;
        }
        let mut rewards = DMatrix::zeros(states, agents);
        for (agent, mut column) in rewards.column_iter_mut().enumerate() {
            let mut own = Stream::new(seed, agent as u32, 0, Purpose::Problem);
            column.apply(|reward| *reward = own.uniform_f64());
        }
        Self {
            features,
            transitions,
            rewards,
            discount: parameters.discount,
            regularisation: parameters.regularisation,
            upper_weight: parameters.upper_weight,
            lower_weight: parameters.lower_weight,
            reward_noise: parameters.reward_noise,
            seed,
        }
    }

    /// Checks that rows of P are probabilities and x* is not zero, as distances are relative to it. The error is a fault and its remedy.
    pub fn check(&self) -> Result<(), (String, &'static str)> {
        /// How far the sum of probabilities may be from 1.
        const TOLERANCE: f64 = 1e-6;
        for (state, row) in self.transitions.row_iter().enumerate() {
            if row.iter().any(|probability| *probability < 0.0) || (row.sum() - 1.0).abs() > TOLERANCE {
                let what = format!("row {state} of `P` sums to {:.6}, or has a negative number", row.sum());
                return Err((what, "give the probabilities of the next state, row by row"));
            }
        }
        if self.solution().norm() > 0.0 {
            return Ok(());
        }
        let what = "the solution is x = 0, or there are several, as with a `phi` or `r` of zeros: no distance is relative to it";
        Err((what.to_owned(), "give other numbers, or set policy_evaluation.regularisation above 0"))
    }

    /// N = γPΦ, which is part of every agent's problem. nalgebra without `std` adds in the same order on every host; agents
    /// read the result and compute with `fabswarm_shared` alone.
    fn successors(&self) -> DMatrix<f64> {
        self.discount * &self.transitions * &self.features
    }

    /// `x* = (c_f·DᵀD + τI)⁻¹ c_f·Dᵀr̄` with `D = Φ − N`; zero where that matrix is singular.
    pub fn solution(&self) -> DVector<f64> {
        let gap = &self.features - self.successors();
        let mean_reward = self.rewards.column_mean();
        let normal = self.upper_weight * gap.transpose() * &gap
            + self.regularisation * DMatrix::identity(gap.ncols(), gap.ncols());
        let right = self.upper_weight * gap.transpose() * mean_reward;
        normal.cholesky().map_or_else(|| DVector::zeros(right.len()), |factors| factors.solve(&right))
    }
}

impl<S: Scalar> PolicyEvaluationData<S> {
    pub(super) fn draw(parameters: &scenario::PolicyEvaluationSection, seed: u64, agents: usize) -> Self {
        Self::new(&Chain::draw(parameters, seed, agents))
    }

    /// Hands a chain to its agents.
    pub fn new(chain: &Chain) -> Self {
        Self {
            features: converted(chain.features.iter().copied()),
            successors: converted(chain.successors().iter().copied()),
            rewards: converted(chain.rewards.iter().copied()),
            states: chain.features.nrows(),
            upper_weight: S::from_f64(chain.upper_weight),
            lower_weight: S::from_f64(chain.lower_weight),
            regularisation: S::from_f64(chain.regularisation),
            reward_noise: S::from_f64(chain.reward_noise),
            seed: chain.seed,
            solution: chain.solution().iter().copied().collect(),
        }
    }

    pub(super) fn shape(&self) -> Shape {
        Shape { x: self.features.len() / self.states.max(1), y: self.states, x_is_local: false }
    }

    #[inline(always)]
    pub(super) fn problem(&self, shape: Shape, agent: usize) -> PolicyEvaluation<'_, S> {
        PolicyEvaluation {
            features: &self.features[..shape.x * shape.y],
            successors: &self.successors[..shape.x * shape.y],
            rewards: &self.rewards[agent * shape.y..][..shape.y],
            upper_weight: self.upper_weight,
            lower_weight: self.lower_weight,
            regularisation: self.regularisation,
            reward_noise: self.reward_noise,
            seed: self.seed,
        }
    }

    /// The optimal x.
    pub fn solution(&self) -> &[f64] {
        &self.solution
    }
}
