//! FAB, the paper's Algorithm 1, one agent and round at a time.
//!
//! | paper | here |
//! |---|---|
//! | eq. (state_v_update): $v_i \leftarrow \sum_j a_{ij} v_j - \eta_v t_{v,i}$ | [`mix`], then [`descend`] |
//! | eq. (localgrad): $d_i = \nabla L_i(x_i, y_i, z_i)$ | [`crate::problem::Problem::penalty_gradient`] |
//! | eq. (track_v_update): $t_i \leftarrow \sum_j b_{ij} t_j + d_i^+ - d_i$ | [`mix`], then [`track`] |
//!
//! A is row-stochastic (agents *pull* decisions), B column-stochastic (agents *push* their trackers).

use crate::linear::{axpy, scaled};
use crate::problem::Shape;
use crate::scalar::Scalar;
use serde::{Deserialize, Serialize};

/// The step sizes η_x, η_y, η_z.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Steps<S> {
    /// η_x.
    pub x: S,
    /// η_y.
    pub y: S,
    /// η_z.
    pub z: S,
}

/// `next = w·own + Σ_j w_j·v_j` over what was heard, in the order given.
///
/// The order decides the last bit, so callers name senders in ascending order.
#[inline(always)]
pub fn mix<'v, S: Scalar>(
    own_weight: S,
    own: &[S],
    heard: impl IntoIterator<Item = (S, &'v [S])>,
    next: &mut [S],
) {
    scaled(own_weight, own, next);
    for (weight, v) in heard {
        axpy(weight, v, next);
    }
}

/// `v −= η_v·t_v` for x, y and z.
#[inline(always)]
pub fn descend<S: Scalar>(shape: &Shape, steps: &Steps<S>, tracker: &[S], v: &mut [S]) {
    let (x, y, z) = shape.split_mut(v);
    let (tx, ty, tz) = shape.split(tracker);
    axpy(-steps.x, tx, x);
    axpy(-steps.y, ty, y);
    axpy(-steps.z, tz, z);
}

/// `t += d⁺ − d`, and `d` becomes `d⁺`.
#[inline(always)]
pub fn track<S: Scalar>(newest: &[S], gradient: &mut [S], tracker: &mut [S]) {
    for ((t, d), &new) in tracker.iter_mut().zip(gradient).zip(newest) {
        *t += new - *d;
        *d = new;
    }
}
