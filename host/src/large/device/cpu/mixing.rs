//! Pull, push and ledger over packed state, in place.
//!
//! A task takes a stripe of columns of all agents and goes through it in tiles: a tile of every agent fits the second-level
//! cache, so each word of state is read from memory once and written once, whatever the number of neighbours.

use pulp::Arch;
use rayon::prelude::*;

use super::Cpu;
use crate::large::device::{Packed, Waiting};
use crate::large::real::Real;

/// Columns of a tile.
const TILE: usize = 1024;
/// Tiles of a stripe: enough stripes to keep every core busy, few enough that making them costs nothing.
const STRIPE: usize = 16 * TILE;

type Rows<S> = [Vec<(usize, S)>];

/// `v ← A v − η t`.
pub(super) fn pull<S: Real>(v: &mut [S], t: &[S], packed: Packed, rows: &Rows<S>, steps: [S; 2]) {
    mix(v, packed, rows, |group, at, words, out| {
        let factor = -steps[group];
        out.iter_mut().zip(&t[at..at + words]).for_each(|(out, &t)| *out = factor * t);
    });
}

/// `t ← B t + fresh − last`.
pub(super) fn track<S: Real>(t: &mut [S], fresh: &[S], last: &[S], packed: Packed, rows: &Rows<S>) {
    mix(t, packed, rows, |_, at, words, out| {
        let (fresh, last) = (&fresh[at..at + words], &last[at..at + words]);
        out.iter_mut().zip(fresh).zip(last).for_each(|((out, &fresh), &last)| *out = fresh - last);
    });
}

/// `fresh ← fresh + c v`.
pub(super) fn regularise<S: Real>(fresh: &mut [S], v: &[S], strengths: &[S], packed: Packed) {
    let vectors = fresh.par_chunks_mut(packed.stride).zip(v.par_chunks(packed.stride));
    vectors.zip(strengths).for_each(|((fresh, v), &c)| {
        Arch::new().dispatch(|| fresh.iter_mut().zip(v).for_each(|(fresh, &v)| *fresh += c * v));
    });
}

/// Stripes of columns of `buffer`: `[group][stripe][agent]`, with the first column of each stripe.
fn stripes<S>(buffer: &mut [S], packed: Packed) -> Vec<(usize, usize, Vec<&mut [S]>)> {
    let mut all = Vec::new();
    for (group, vectors) in buffer.chunks_mut(packed.agents * packed.stride).enumerate() {
        let first = all.len();
        for (agent, vector) in vectors.chunks_mut(packed.stride).enumerate() {
            for (number, stripe) in vector.chunks_mut(STRIPE).enumerate() {
                if agent == 0 {
                    all.push((group, number * STRIPE, Vec::with_capacity(packed.agents)));
                }
                all[first + number].2.push(stripe);
            }
        }
    }
    all
}

/// `v_i ← seed + Σ_j w_ij v_j`, where `seed(group, word, words, out)` fills `out` for the packed words from `word` on.
fn mix<S: Real>(
    v: &mut [S],
    packed: Packed,
    rows: &Rows<S>,
    seed: impl Fn(usize, usize, usize, &mut [S]) + Sync,
) {
    stripes(v, packed).into_par_iter().for_each_init(
        || vec![S::ZERO; packed.agents * TILE],
        |old, (group, column, mut stripe)| {
            let width = stripe[0].len();
            for from in (0..width).step_by(TILE) {
                let words = TILE.min(width - from);
                for (old, vector) in old.chunks_exact_mut(TILE).zip(&stripe) {
                    old[..words].copy_from_slice(&vector[from..from + words]);
                }
                for (agent, vector) in stripe.iter_mut().enumerate() {
                    let out = &mut vector[from..from + words];
                    let at = (group * packed.agents + agent) * packed.stride + column + from;
                    Arch::new().dispatch(|| {
                        seed(group, at, words, out);
                        add_neighbours(out, old, &rows[agent]);
                    });
                }
            }
        },
    );
}

/// Adds three neighbours at a time: one pass over `out` for each three.
#[inline(always)]
fn add_neighbours<S: Real>(out: &mut [S], old: &[S], row: &[(usize, S)]) {
    let words = out.len();
    let tile = |agent: usize| &old[agent * TILE..][..words];
    let mut threes = row.chunks_exact(3);
    for three in &mut threes {
        let [(a, wa), (b, wb), (c, wc)] = [three[0], three[1], three[2]];
        let (a, b, c) = (tile(a), tile(b), tile(c));
        for k in 0..words {
            out[k] += wa * a[k] + wb * b[k] + wc * c[k];
        }
    }
    for &(agent, weight) in threes.remainder() {
        out.iter_mut().zip(tile(agent)).for_each(|(out, &word)| *out += weight * word);
    }
}

/// The broadcast ledger: each sender sets the same share aside for every member of its audience; a receiver that hears the
/// sender collects all that waits for it.
///
/// ```text
/// s_j = (1 − κ)/a · t_j        t_j ← t_j − a s_j + fresh_j − last_j
/// w_ij ← w_ij + s_j            heard: t_i ← t_i + w_ij, w_ij ← 0
/// ```
///
/// `w_ij` is the σ_j − ρ_ij of two agents that cannot see each other's memory; here both sides are ours, so the difference is
/// kept itself, which does not drift.
pub(super) fn track_by_ledger<S: Real>(
    t: &mut [S],
    fresh: &[S],
    last: &[S],
    packed: Packed,
    waiting: Waiting<'_, Cpu<S>>,
) {
    let Waiting { mass, heard, keep, audience, .. } = waiting;
    let agents = packed.agents;
    let share = S::from_f64((1.0 - keep) / audience as f64);
    let kept = S::ONE - S::from_f64(audience as f64) * share;
    let links = Packed { groups: 1, agents: agents * agents, stride: packed.groups * packed.stride };
    // A stripe of trackers belongs to columns of one group; stripes of links run over both groups' columns in turn.
    let mut link_columns = columns(mass, links, packed);
    let trackers = stripes(t, packed);
    trackers.into_par_iter().zip(link_columns.par_iter_mut()).for_each(
        |((group, column, mut stripe), links)| {
            let old: Vec<Vec<S>> = stripe.iter().map(|vector| vector.to_vec()).collect();
            for (receiver, vector) in stripe.iter_mut().enumerate() {
                let at = (group * agents + receiver) * packed.stride + column;
                for (k, word) in vector.iter_mut().enumerate() {
                    *word = kept * old[receiver][k] + fresh[at + k] - last[at + k];
                }
                for sender in (0..agents).filter(|&sender| sender != receiver) {
                    let link = &mut links[receiver * agents + sender];
                    let is_heard = heard[receiver * agents + sender] != 0;
                    for (k, mass) in link.iter_mut().enumerate() {
                        *mass += share * old[sender][k];
                        if is_heard {
                            vector[k] += *mass;
                            *mass = S::ZERO;
                        }
                    }
                }
            }
        },
    );
}

/// Stripes of link mass in the order of [`stripes`] of the trackers: `[group, stripe][link]`.
fn columns<S>(mass: &mut [S], links: Packed, packed: Packed) -> Vec<Vec<&mut [S]>> {
    let per_group = packed.stride.div_ceil(STRIPE);
    let mut all: Vec<Vec<&mut [S]>> =
        (0..packed.groups * per_group).map(|_| Vec::with_capacity(links.agents)).collect();
    for link in mass.chunks_mut(links.stride) {
        for (group, vector) in link.chunks_mut(packed.stride).enumerate() {
            for (number, stripe) in vector.chunks_mut(STRIPE).enumerate() {
                all[group * per_group + number].push(stripe);
            }
        }
    }
    all
}
