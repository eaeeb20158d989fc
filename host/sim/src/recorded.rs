//! Recorded problems: an explicit problem, explicit graphs, and the states that FAB passes through.
//!
//! A file holds everything that decides a trajectory, so two implementations can be compared
//! number by number. [`replay`] runs such a file and returns its states at the same rounds.

mod file;
mod snapshot;

pub use file::RecordedProblem;
pub use snapshot::{Snapshot, largest_difference};

use crate::scenario::PrecisionKind;
use crate::swarm::{ArrayFab, ArrayFabConfig, MixingRule, Swarm, SwarmError};
use crate::task::{PolicyEvaluationData, Task, converted};
use fabswarm_diagnostic::Diagnostic;
use fabswarm_shared::fab::{Order, Steps};
use fabswarm_shared::graph::{Disconnected, check_joint_connectivity};
use fabswarm_shared::problem::Penalty;
use fabswarm_shared::scalar::Scalar;

/// Why a recorded problem cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be used.
    #[error(transparent)]
    Invalid(#[from] Diagnostic),
    /// The steps are too large.
    #[error(transparent)]
    Swarm(#[from] SwarmError),
}

/// Every window of this many rounds must be jointly strongly connected.
const CONNECTIVITY_WINDOW: u32 = 30;

/// Runs FAB on a recorded problem and returns its states at the rounds of the file's snapshots.
///
/// # Errors
/// Where the graphs are not connected, or the swarm diverges.
pub fn replay(recorded: &RecordedProblem, precision: PrecisionKind) -> Result<Vec<Snapshot>, Error> {
    check_connectivity(recorded).map_err(|Disconnected { rounds, from, to }| {
        recorded.refuse(format!(
            "the graph is disconnected: in rounds {} to {} no information from agent {from} reaches agent {to}; FAB needs every \
             window of rounds to be jointly strongly connected",
            rounds.start,
            rounds.end - 1
        ))
    })?;
    match precision {
        PrecisionKind::F32 => replay_in::<f32>(recorded),
        PrecisionKind::F64 => replay_in::<f64>(recorded),
    }
}

fn check_connectivity(recorded: &RecordedProblem) -> Result<(), Disconnected> {
    let trace = recorded.trace();
    let rounds = trace.rounds() as u32;
    let window = CONNECTIVITY_WINDOW.min(rounds);
    let mut reached = vec![false; recorded.agents()];
    for start in 0..=rounds - window {
        check_joint_connectivity(&trace, start..start + window, &mut reached)?;
    }
    Ok(())
}

fn replay_in<S: Scalar>(recorded: &RecordedProblem) -> Result<Vec<Snapshot>, Error> {
    let constants = ArrayFabConfig {
        steps: Steps {
            x: S::from_f64(recorded.steps.x),
            y: S::from_f64(recorded.steps.y),
            z: S::from_f64(recorded.steps.z),
            momentum: S::from_f64(recorded.steps.momentum),
        },
        order: Order::CombineFirst,
        penalty: Penalty {
            lambda: S::from_f64(recorded.penalty.lambda),
            normalise: recorded.penalty.normalise,
            form: recorded.penalty.form,
        },
        mixing: match &recorded.mixing {
            MixingRule::Degrees(weights) => MixingRule::Degrees(*weights),
            MixingRule::Explicit { a, b } => {
                MixingRule::Explicit { a: converted(a.iter().copied()), b: converted(b.iter().copied()) }
            }
        },
    };
    let task = Task::PolicyEvaluation(PolicyEvaluationData::new(&recorded.chain));
    let mut swarm =
        ArrayFab::at(task, recorded.trace(), constants, converted(recorded.start.iter().copied()));
    let mut snapshots = Vec::new();
    for &round in recorded.rounds() {
        while swarm.round() < round {
            swarm.step()?;
        }
        snapshots.push(Snapshot::take(&recorded.shape, &swarm));
    }
    Ok(snapshots)
}
