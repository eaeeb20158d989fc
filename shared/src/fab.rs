//! FAB, Algorithm 1 of Yaoshuai Ma, Xiao Wang, Wei Yao and Jin Zhang, *FAB: A First-Order AB-based Gradient Algorithm for
//! Distributed Bilevel Optimization over Time-Varying Directed Graphs* (2026), one agent and round at a time. Equation
//! numbers in this crate are those of that paper.
//!
//! | paper | here |
//! |---|---|
//! | eq. (6): $v_i \leftarrow \sum_j a_{ij} v_j - \eta_v t_{v,i}$ | [`gather`] and scale, then [`descend`] |
//! | eq. (7): $d_i = \nabla L_i(x_i, y_i, z_i)$ | [`crate::problem::Problem::penalty_gradient`] |
//! | momentum, not in the paper: $m_i \leftarrow \beta m_i + t_i$, and $m_i$ instead of $t_i$ in eq. (6) | [`accumulated`], [`descend_with_momentum`] |
//! | eq. (8): $t_i \leftarrow \sum_j b_{ij} t_j + d_i^+ - d_i$ | [`gather`], then [`track`] |
//! | eq. (6) with the step before the average, not in the paper but in Push-Pull's own form: $v_i \leftarrow \sum_j a_{ij} (v_j - \eta_v m_{v,j})$ | [`Order::AdaptFirst`] |
//! | eq. (6) and (8) in different rounds, not in the paper | [`Phases`] |
//!
//! A is row-stochastic (agents *pull* decisions), B column-stochastic (agents *push* their trackers). The weights of
//! [`crate::graph::Weights`] depend on the receiver alone (A) or on the sender alone (B), so nothing is weighted link by link: a
//! receiver scales the sum of all decisions once, and a sender its tracker once, into the share that each who hears it adds.

mod phases;

pub use phases::Phases;

use crate::linear::{add, zip_map_in_place};
use crate::problem::Shape;
use crate::scalar::Scalar;
use serde::{Deserialize, Serialize};

/// The step sizes η_x, η_y, η_z and the momentum β.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Steps<S> {
    /// η_x.
    pub x: S,
    /// η_y.
    pub y: S,
    /// η_z.
    pub z: S,
    /// β, at least 0 and below 1; 0 is Algorithm 1 as published.
    pub momentum: S,
}

impl<S: Scalar> Steps<S> {
    /// Writes each word's step into a packed vector.
    pub fn pack(&self, shape: &Shape, packed: &mut [S]) {
        let (x, y, z) = shape.split_mut(packed);
        x.fill(self.x);
        y.fill(self.y);
        z[..shape.y].fill(self.z);
    }
}

/// Whether agents descend before or after they average decisions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// Agents send `w = v − η·m` and average what they hear: $v_i \leftarrow \sum_j a_{ij} w_j$.
    AdaptFirst,
    /// Agents send `v`, average and then descend, eq. (6).
    CombineFirst,
}

/// Words that [`gather`] carries in one piece: those of a vector register. Public for the host, which pads its rows to it.
#[doc(hidden)]
pub const PIECE: usize = 16;

/// `sums += Σ_j v_j` over what was heard, in the order given.
///
/// The order decides the last bit, so callers name senders in ascending order. `PIECES` times 16 sums stay in registers
/// while all that was heard is added; what is left of a vector beyond whole blocks of them goes through memory. So does all of
/// it on a microcontroller, which has neither the registers nor the flash.
#[inline(always)]
pub fn gather<'v, const PIECES: usize, S: Scalar>(
    sums: &mut [S],
    heard: impl Iterator<Item = &'v [S]> + Clone,
) {
    let mut start = 0;
    if !cfg!(microcontroller) {
        for block in sums.as_chunks_mut::<PIECE>().0.as_chunks_mut::<PIECES>().0 {
            let mut sums = *block;
            for v in heard.clone() {
                if let Some(v) = v[start..].as_chunks::<PIECE>().0.first_chunk::<PIECES>() {
                    for piece in 0..PIECES {
                        for lane in 0..PIECE {
                            sums[piece][lane] += v[piece][lane];
                        }
                    }
                }
            }
            *block = sums;
            start += PIECES * PIECE;
        }
    }
    let sums = &mut sums[start..];
    if !sums.is_empty() {
        heard.for_each(|v| add(&v[start..], sums));
    }
}

/// `v −= η·t`, word by word; `steps` are packed by [`Steps::pack`].
#[inline(always)]
pub fn descend<S: Scalar>(steps: &[S], tracker: &[S], v: &mut [S]) {
    zip_map_in_place([tracker, steps], [v], |[t, step], [v]| [descended(v, step, t)]);
}

/// `v − η·t` for one word, eq. (6). [`descend`] applies it with one step per word, which vector registers need;
/// [`crate::ledger::descend`] with one step per variable, which needs no memory.
#[inline(always)]
pub fn descended<S: Scalar>(v: S, step: S, tracker: S) -> S {
    v - step * tracker
}

/// `m ← β·m + t` and `v −= η·m`, word by word. Callers with β = 0 use [`descend`], which needs no m.
#[inline(always)]
pub fn descend_with_momentum<S: Scalar>(
    momentum: S,
    steps: &[S],
    tracker: &[S],
    accumulator: &mut [S],
    v: &mut [S],
) {
    zip_map_in_place([tracker, steps], [accumulator, v], |[t, step], [m, v]| {
        let m = accumulated(momentum, m, t);
        [m, descended(v, step, m)]
    });
}

/// `β·m + t` for one word.
#[inline(always)]
pub fn accumulated<S: Scalar>(momentum: S, accumulator: S, tracker: S) -> S {
    momentum * accumulator + tracker
}

/// `a_ij = 1/(heard + 1)`, the uniform weight that an agent gives to itself and each of the `heard` others.
#[inline(always)]
pub fn pull_weight<S: Scalar>(heard: usize) -> S {
    S::ONE / (S::from_count(heard) + S::ONE)
}

/// `t += d⁺ − d`, and `d` becomes `d⁺`.
#[inline(always)]
pub fn track<S: Scalar>(newest: &[S], gradient: &mut [S], tracker: &mut [S]) {
    zip_map_in_place([newest], [gradient, tracker], |[new], [d, t]| [new, t + (new - d)]);
}
