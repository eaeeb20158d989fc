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
        let [x, y, z] = parts(shape, &swarm.decisions());
        let [tx, ty, tz] = parts(shape, &swarm.trackers());
        Self { k: swarm.round(), x, y, z, tx, ty, tz, xrel_mean: swarm.metrics().error }
    }

    pub(super) fn vectors(&self) -> [&Rows; 6] {
        [&self.x, &self.y, &self.z, &self.tx, &self.ty, &self.tz]
    }
}

/// The largest difference between two lists of snapshots, relative to the largest value that the same variable takes in
/// `theirs`: a tracker starts at the size of a gradient, and its last bit stays of that size when it has shrunk. `None`
/// where the lists are not of the same rounds and sizes.
#[must_use]
pub fn largest_difference(ours: &[Snapshot], theirs: &[Snapshot]) -> Option<f64> {
    let lengths = |rows: &Rows| rows.iter().map(Vec::len).collect::<Vec<_>>();
    let is_alike = |(ours, theirs): (&Snapshot, &Snapshot)| {
        let mut vectors = ours.vectors().into_iter().zip(theirs.vectors());
        ours.k == theirs.k && vectors.all(|(ours, theirs)| lengths(ours) == lengths(theirs))
    };
    if ours.len() != theirs.len() || !ours.iter().zip(theirs).all(is_alike) {
        return None;
    }
    let variable = |index: usize| {
        let numbers = |list: &'_ [Snapshot]| -> Vec<f64> {
            list.iter().flat_map(|snapshot| snapshot.vectors()[index].iter().flatten().copied()).collect()
        };
        let (ours, theirs) = (numbers(ours), numbers(theirs));
        let size = theirs.iter().fold(0.0f64, |size, value| size.max(value.abs()));
        let gap = ours.iter().zip(&theirs).fold(0.0f64, |gap, (ours, theirs)| gap.max((ours - theirs).abs()));
        if gap == 0.0 { 0.0 } else { gap / size }
    };
    Some((0..6).map(variable).fold(0.0, f64::max))
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
