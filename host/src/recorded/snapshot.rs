//! The states of a swarm at one round.

use crate::swarm::{PlainFab, Swarm};
use fabswarm_shared::graph::Schedule;
use fabswarm_shared::problem::Shape;
use fabswarm_shared::scalar::Scalar;
use serde::{Deserialize, Serialize};

/// One row an agent.
pub(super) type Rows = Vec<Vec<f64>>;

/// The states of all agents after `k` rounds. Only `k` is needed to ask for one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// The round.
    pub k: u64,
    /// Decisions x.
    #[serde(default)]
    pub x: Rows,
    /// Decisions y.
    #[serde(default)]
    pub y: Rows,
    /// Decisions z.
    #[serde(default)]
    pub z: Rows,
    /// Trackers of x.
    #[serde(default)]
    pub tx: Rows,
    /// Trackers of y.
    #[serde(default)]
    pub ty: Rows,
    /// Trackers of z.
    #[serde(default)]
    pub tz: Rows,
    /// Mean relative distance of x from the solution.
    #[serde(default)]
    pub xrel_mean: f64,
}

impl Snapshot {
    pub(super) fn take<S: Scalar, G: Schedule + Sync>(shape: &Shape, swarm: &PlainFab<S, G>) -> Self {
        let [x, y, z] = parts(shape, swarm.decisions());
        let [tx, ty, tz] = parts(shape, swarm.trackers());
        Self { k: swarm.round(), x, y, z, tx, ty, tz, xrel_mean: swarm.metrics().error }
    }

    /// The largest difference of any of the six vectors of any agent, relative to that vector over all agents. `None`
    /// where the other snapshot is of another round, another size, or holds no states.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Option<f64> {
        if self.k != other.k {
            return None;
        }
        let pairs = [
            (&self.x, &other.x),
            (&self.y, &other.y),
            (&self.z, &other.z),
            (&self.tx, &other.tx),
            (&self.ty, &other.ty),
            (&self.tz, &other.tz),
        ];
        let mut largest = 0.0f64;
        for (ours, theirs) in pairs {
            let lengths = |rows: &Rows| rows.iter().map(Vec::len).collect::<Vec<_>>();
            if lengths(ours) != lengths(theirs) {
                return None;
            }
            let size = theirs.iter().flatten().fold(0.0f64, |size, value| size.max(value.abs()));
            let numbers = ours.iter().flatten().zip(theirs.iter().flatten());
            let gap = numbers.fold(0.0f64, |gap, (ours, theirs)| gap.max((ours - theirs).abs()));
            largest = largest.max(if gap == 0.0 { 0.0 } else { gap / size });
        }
        Some(largest)
    }
}

/// The x, y and z parts of packed states.
fn parts<S: Scalar>(shape: &Shape, packed: &[S]) -> [Rows; 3] {
    let mut parts = [Rows::new(), Rows::new(), Rows::new()];
    for state in packed.chunks_exact(shape.words()) {
        let (x, y, z) = shape.split(state);
        for (rows, part) in parts.iter_mut().zip([x, y, z]) {
            rows.push(part.iter().map(|word| word.to_f64()).collect());
        }
    }
    parts
}
