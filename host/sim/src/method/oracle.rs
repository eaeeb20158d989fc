//! Local gradients: what a method descends along.

mod hypergradient;
mod lower_level;
mod penalty;
mod soba;

pub use hypergradient::{Hypergradient, InnerLoop};
pub use lower_level::LowerLevel;
pub use penalty::{MeanPenaltyGradient, PenaltyGradient};
pub use soba::SobaDirection;

use crate::task::TaskProblem;
use fabswarm_shared::problem::AnyProblem;

use super::network::Network;

/// Local gradients of all agents.
pub trait Oracle {
    /// Words of one agent's row.
    fn words(&self) -> usize;

    /// The first word that agents exchange; those before it belong to their agent alone.
    fn first_exchanged(&self) -> usize {
        0
    }

    /// Each agent's gradient at its row of `v`, with the noise of the network's round.
    fn gradients(&mut self, network: &mut Network, v: &[f64]) -> Vec<f64>;

    /// Gradients at another `v` with the noise of the last call.
    fn gradients_again(&mut self, network: &mut Network, v: &[f64]) -> Vec<f64> {
        self.gradients(network, v)
    }

    /// Brings one row back into the set that the problem allows.
    fn project(&self, _row: &mut [f64]) {}

    /// Rows and the gradients there as packed decisions `[x | y | z]`, where they are others.
    fn packed(&self, rows: &[f64], d: &[f64]) -> [Vec<f64>; 2] {
        [rows.to_vec(), d.to_vec()]
    }
}

/// The problem with exact observations.
fn without_noise(problem: TaskProblem<'_, f64>) -> TaskProblem<'_, f64> {
    match problem {
        TaskProblem::BuiltIn(AnyProblem::PolicyEvaluation(mut problem)) => {
            problem.reward_noise = 0.0;
            TaskProblem::BuiltIn(AnyProblem::PolicyEvaluation(problem))
        }
        other => other,
    }
}
