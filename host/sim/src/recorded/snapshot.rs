//! The states of a swarm at one round.

use crate::swarm::{ArrayFab, Swarm};
use fabswarm_shared::graph::Schedule;
use fabswarm_shared::problem::Shape;
use fabswarm_shared::scalar::Scalar;
use serde::{Deserialize, Serialize};

/// One row per agent.
pub(super) type MatrixRows = Vec<Vec<f64>>;

/// The states of all agents after `k` rounds. Only `k` is needed to ask for one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// The round.
    pub k: u64,
    /// x, a row per agent.
    #[serde(default)]
    pub x: MatrixRows,
    /// y, a row per agent.
    #[serde(default)]
    pub y: MatrixRows,
    /// z, a row per agent.
    #[serde(default)]
    pub z: MatrixRows,
    /// The trackers of x.
    #[serde(default)]
    pub tx: MatrixRows,
    /// The trackers of y.
    #[serde(default)]
    pub ty: MatrixRows,
    /// The trackers of z.
    #[serde(default)]
    pub tz: MatrixRows,
    /// Mean relative distance of x from the solution.
    #[serde(default)]
    pub xrel_mean: f64,
}

impl Snapshot {
    pub(super) fn take<S: Scalar, G: Schedule + Sync>(shape: &Shape, swarm: &ArrayFab<S, G>) -> Self {
        let [x, y, z] = parts(shape, &swarm.decisions());
        let [tx, ty, tz] = parts(shape, &swarm.trackers());
        Self { k: swarm.round(), x, y, z, tx, ty, tz, xrel_mean: swarm.metrics().error }
    }

    pub(super) fn vectors(&self) -> [&MatrixRows; 6] {
        [&self.x, &self.y, &self.z, &self.tx, &self.ty, &self.tz]
    }
}

/// The largest difference between two lists of snapshots: of each variable in each of them the norm of the difference, relative
/// to the norm in `theirs` where that is not zero. `None` where the lists are not of the same rounds and sizes.
pub fn largest_difference(ours: &[Snapshot], theirs: &[Snapshot]) -> Option<f64> {
    let lengths = |rows: &MatrixRows| rows.iter().map(Vec::len).collect::<Vec<_>>();
    let is_alike = |(ours, theirs): (&Snapshot, &Snapshot)| {
        let mut vectors = ours.vectors().into_iter().zip(theirs.vectors());
        ours.k == theirs.k && vectors.all(|(ours, theirs)| lengths(ours) == lengths(theirs))
    };
    if ours.len() != theirs.len() || !ours.iter().zip(theirs).all(is_alike) {
        return None;
    }
    let norm = |words: &mut dyn Iterator<Item = f64>| words.map(|word| word * word).sum::<f64>().sqrt();
    let difference = |(ours, theirs): (&MatrixRows, &MatrixRows)| {
        let (ours, theirs) = (ours.iter().flatten(), theirs.iter().flatten());
        let size = norm(&mut theirs.clone().copied());
        let gap = norm(&mut ours.zip(theirs).map(|(ours, theirs)| ours - theirs));
        if size > 0.0 { gap / size } else { gap }
    };
    let vectors =
        ours.iter().zip(theirs).flat_map(|(ours, theirs)| ours.vectors().into_iter().zip(theirs.vectors()));
    Some(vectors.map(difference).max_by(f64::total_cmp).unwrap_or(0.0))
}

/// The x, y and z parts of packed states.
fn parts<S: Scalar>(shape: &Shape, packed: &[S]) -> [MatrixRows; 3] {
    let mut parts = [MatrixRows::new(), MatrixRows::new(), MatrixRows::new()];
    for state in packed.chunks_exact(shape.words()) {
        let (x, y, z) = shape.split(state);
        for (rows, part) in parts.iter_mut().zip([x, y, z]) {
            rows.push(part.iter().map(|word| word.to_f64()).collect());
        }
    }
    parts
}
