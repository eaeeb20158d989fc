//! Pull and push over packed state, in place.
//!
//! A task takes a stripe of columns of all agents and goes through it in tiles: a tile of every agent stays
//! in cache, so each word of state is read from memory once and written once, whatever the number of neighbours.

use fabswarm_shared::fab::accumulated;
use rayon::prelude::*;

use super::Cpu;
use super::CpuReals;
use super::vectors::on_vectors;
use crate::device::{Gradient, Packed, RoundMix};
use crate::mixing::{add_weighted, mix_weighted};
use crate::real::Real;

/// Columns of a tile: all vectors of ten agents fit the second-level cache, and a tile is long enough to be fetched in advance.
const TILE: usize = 512;
/// Tiles of a stripe: enough stripes to keep every core busy, few enough that making them costs nothing.
const STRIPE: usize = 16 * TILE;

/// For every agent, whom it hears and with what weight.
type WeightRows<S> = [Vec<(usize, S)>];
/// The last gradient of a tile, and the strength of ½‖v‖², which it lacks where the round is open.
type TileGradient<'a, S> = (&'a [S], Option<S>);

/// `v ← A v − η t`, or `v ← A v` without t.
pub(super) fn pull<S: Real>(
    v: &mut [S],
    packed: Packed,
    rows: &WeightRows<S>,
    descent: Option<(&[S], [S; 2])>,
) {
    let seed = |tile: ColumnTile, out: &mut [S]| {
        let Some((t, steps)) = descent else { return out.fill(S::ZERO) };
        let factor = -steps[tile.group];
        out.iter_mut().zip(&t[tile.at..]).for_each(|(out, &t)| *out = factor * t);
    };
    mix(stripes(v, packed), packed, rows, seed, |_, _, _| ());
}

/// `fresh ← fresh + c v` where there is a regulariser, then `t ← B t − last + fresh`, in that order, as [`mix_round`] has it.
pub(super) fn track<S: Real>(
    t: &mut [S],
    gradient: Gradient<'_, Cpu<S>>,
    packed: Packed,
    rows: &WeightRows<S>,
) {
    let Gradient { fresh, last, regulariser } = gradient;
    let seed = |tile: ColumnTile, out: &mut [S]| {
        out.iter_mut().zip(&last[tile.at..]).for_each(|(out, &last)| *out = -last);
    };
    let mut all = stripes(t, packed);
    for (stripe, fresh) in all.iter_mut().zip(stripes(fresh, packed)) {
        stripe.beside = fresh.vectors;
    }
    mix(all, packed, rows, seed, |tile, out, fresh| {
        if let Some((v, strengths)) = regulariser {
            let strength = strengths[tile.group * packed.agents + tile.agent];
            fresh.iter_mut().zip(&v[tile.at..]).for_each(|(fresh, &v)| *fresh += strength * v);
        }
        out.iter_mut().zip(fresh).for_each(|(out, fresh)| *out += *fresh);
    });
}

/// [`crate::device::Device::mix_round`]: each word of state is read from memory once and written once.
pub(super) fn mix_round<S: Real>(
    state: RoundMix<'_, Cpu<S>>,
    packed: Packed,
    pull: &WeightRows<S>,
    push: &WeightRows<S>,
) {
    let RoundMix { v, t, d, strengths, is_open, momentum, steps, adapts_first } = state;
    let steps = steps.map(S::from_f64);
    let beta = S::from_f64(momentum.as_ref().map_or(0.0, |&(_, beta)| beta));
    let mut all = stripes(v, packed);
    if let Some((m, _)) = momentum {
        for (stripe, m) in all.iter_mut().zip(stripes(m, packed)) {
            stripe.beside = m.vectors;
        }
    }
    let one = |scratch: &mut [CpuReals<S>; 2],
               (mut decisions, mut trackers): (Stripe<'_, S>, Stripe<'_, S>)| {
        let [sent, tracked] = scratch;
        let (group, width, step) = (decisions.group, decisions.vectors[0].len(), steps[decisions.group]);
        on_vectors(
            #[inline(always)]
            || {
                for from in (0..width).step_by(TILE) {
                    let range = from..width.min(from + TILE);
                    let tile_of = |agent: usize| agent * TILE..agent * TILE + range.len();
                    let gradient_of = |agent: usize| {
                        let vector = group * packed.agents + agent;
                        let at = vector * packed.stride + decisions.first_column + from;
                        (&d[at..][..range.len()], is_open.then(|| strengths[vector]))
                    };
                    for agent in 0..packed.agents {
                        let v = &decisions.vectors[agent][range.clone()];
                        let t = &trackers.vectors[agent][range.clone()];
                        let (sent, tracked) = (&mut sent[tile_of(agent)], &mut tracked[tile_of(agent)]);
                        close_tile((v, t, gradient_of(agent)), sent, tracked);
                        let m = decisions.beside.get_mut(agent).map(|m| &mut m[range.clone()]);
                        let direction = m.map_or(&*tracked, |m| {
                            m.iter_mut().zip(&*tracked).for_each(|(m, &t)| *m = accumulated(beta, *m, t));
                            m
                        });
                        if adapts_first {
                            sent.iter_mut().zip(direction).for_each(|(sent, &m)| *sent -= step * m);
                        }
                    }
                    for agent in 0..packed.agents {
                        let v = &mut decisions.vectors[agent][range.clone()];
                        let t = &mut trackers.vectors[agent][range.clone()];
                        let pushed = |sender| &tracked[tile_of(sender)];
                        push_tile(t, v, gradient_of(agent), &push[agent], pushed);
                        let pulled = |sender| &sent[tile_of(sender)];
                        if adapts_first {
                            mix_weighted(v, &pull[agent], pulled, |_| S::ZERO);
                        } else {
                            let m = decisions.beside.get(agent).map(|m| &m[range.clone()]);
                            let m = &m.unwrap_or(pushed(agent))[..v.len()];
                            mix_weighted(v, &pull[agent], pulled, |k| -step * m[k]);
                        }
                    }
                }
            },
        );
    };
    let scratch = || [(); 2].map(|()| CpuReals::new(packed.agents * TILE));
    all.into_par_iter().zip(stripes(t, packed)).for_each_init(scratch, one);
}

/// Copies a tile of one agent to where it is mixed from, and closes its round where that is open.
#[inline(always)]
fn close_tile<S: Real>(
    (v, t, (d, strength)): (&[S], &[S], TileGradient<'_, S>),
    sent: &mut [S],
    tracked: &mut [S],
) {
    let words = v.len();
    let (t, d) = (&t[..words], &d[..words]);
    let (sent, tracked) = (&mut sent[..words], &mut tracked[..words]);
    match strength {
        Some(strength) => {
            for k in 0..words {
                sent[k] = v[k];
                tracked[k] = t[k] + (d[k] + strength * v[k]);
            }
        }
        None => {
            sent.copy_from_slice(v);
            tracked.copy_from_slice(t);
        }
    }
}

/// `t ← B t − d`, where d has the regulariser's part of an open round.
#[inline(always)]
fn push_tile<'a, S: Real>(
    t: &mut [S],
    v: &[S],
    (d, strength): TileGradient<'_, S>,
    row: &[(usize, S)],
    pushed: impl Fn(usize) -> &'a [S],
) {
    let (v, d) = (&v[..t.len()], &d[..t.len()]);
    match strength {
        Some(strength) => mix_weighted(t, row, pushed, |k| -(d[k] + strength * v[k])),
        None => mix_weighted(t, row, pushed, |k| -d[k]),
    }
}

/// Neighbouring columns of all agents of one group.
#[derive(Debug)]
struct Stripe<'a, S> {
    group: usize,
    first_column: usize,
    vectors: Vec<&'a mut [S]>,
    /// The same columns of a second buffer that is written along with the first, or nothing.
    beside: Vec<&'a mut [S]>,
}

/// Which words of packed state are being mixed.
#[derive(Clone, Copy, Debug)]
struct ColumnTile {
    group: usize,
    agent: usize,
    /// The first word in the packed buffers.
    at: usize,
}

/// All stripes of `buffer`, group by group.
fn stripes<S>(buffer: &mut [S], packed: Packed) -> Vec<Stripe<'_, S>> {
    let mut all: Vec<Stripe<'_, S>> = Vec::new();
    for (group, vectors) in buffer.chunks_mut(packed.agents * packed.stride).enumerate() {
        let first = all.len();
        for (agent, vector) in vectors.chunks_mut(packed.stride).enumerate() {
            for (number, part) in vector.chunks_mut(STRIPE).enumerate() {
                if agent == 0 {
                    let vectors = Vec::with_capacity(packed.agents);
                    all.push(Stripe { group, first_column: number * STRIPE, vectors, beside: Vec::new() });
                }
                all[first + number].vectors.push(part);
            }
        }
    }
    all
}

/// `v_i ← seed + Σ_j w_ij v_j`, where `seed(tile, out)` fills `out`; `finish(tile, out, beside)` may change it and the words beside it.
fn mix<S: Real>(
    all: Vec<Stripe<'_, S>>,
    packed: Packed,
    rows: &WeightRows<S>,
    seed: impl Fn(ColumnTile, &mut [S]) + Sync,
    finish: impl Fn(ColumnTile, &mut [S], &mut [S]) + Sync,
) {
    let mut is_read = vec![packed.own.agents == packed.agents; packed.agents];
    rows[packed.own.range()].iter().flatten().for_each(|&(sender, _)| is_read[sender] = true);
    let one = |old: &mut CpuReals<S>, mut stripe: Stripe<'_, S>| {
        let width = stripe.vectors[0].len();
        for from in (0..width).step_by(TILE) {
            let range = from..width.min(from + TILE);
            let read = old.chunks_exact_mut(TILE).zip(&stripe.vectors).zip(&is_read);
            for ((old, vector), _) in read.filter(|(_, is_read)| **is_read) {
                old[..range.len()].copy_from_slice(&vector[range.clone()]);
            }
            for agent in packed.own.range() {
                let vector = &mut stripe.vectors[agent];
                let first = (stripe.group * packed.agents + agent) * packed.stride;
                let tile = ColumnTile { group: stripe.group, agent, at: first + stripe.first_column + from };
                let beside =
                    stripe.beside.get_mut(agent).map_or(&mut [][..], |vector| &mut vector[range.clone()]);
                on_vectors(
                    #[inline(always)]
                    || {
                        let out = &mut vector[range.clone()];
                        seed(tile, out);
                        let words = out.len();
                        add_weighted(out, &rows[agent], |sender| &old[sender * TILE..][..words]);
                        finish(tile, out, beside);
                    },
                );
            }
        }
    };
    all.into_par_iter().for_each_init(|| CpuReals::new(packed.agents * TILE), one);
}
