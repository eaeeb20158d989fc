//! The broadcast ledger over packed state.
//!
//! ```text
//! w_ij ← w_ij + s_ij t_j                          what j sets aside for i waits
//! received, sent a rounds ago:  recent = Σ_{q<a} s_ij t_j(k − q)
//!                               t_i ← t_i + w_ij − recent,  w_ij ← recent
//! ```
//!
//! `w_ij` is the σ_j − ρ_ij of two agents that cannot see each other's memory; here both sides are ours, so the difference is
//! kept itself, which does not drift. A late frame carries only what was set aside before it was sent.
//!
//! Where i and j are on different hosts, w_ij is on the sender's, and what i takes has come from there in a parcel: it lies in
//! the place of w_ij on the receiver's host.

use rayon::prelude::*;

use super::Cpu;
use crate::device::{BroadcastHistory, Gradient, LedgerReception};
use crate::real::Real;

/// Words of one agent that stay in cache while its neighbours' are added.
const TILE: usize = 4096;

/// Records this round's decisions and trackers.
pub(super) fn record_broadcast<S: Real>(
    history: &mut BroadcastHistory<Cpu<S>>,
    v: &[S],
    t: &[S],
    reception: &LedgerReception<Cpu<S>>,
) {
    let (packed, now) = (history.packed, history.place(reception.round[0], 0, 0));
    let decisions = history.v[now..now + packed.words()].par_chunks_mut(packed.stride);
    let own = decisions.zip(v.par_chunks(packed.stride)).enumerate();
    own.filter(|(vector, _)| packed.is_own(*vector))
        .for_each(|(_, (recorded, v))| recorded.copy_from_slice(v));
    let trackers = history.t[now..now + packed.words()].par_chunks_mut(packed.stride);
    let own = trackers.zip(t.par_chunks(packed.stride)).enumerate();
    own.filter(|(vector, _)| packed.is_own(*vector)).for_each(|(vector, (recorded, t))| {
        match reception.awake[vector % packed.agents] {
            0 => recorded.fill(S::ZERO),
            _ => recorded.copy_from_slice(t),
        }
    });
}

/// `v_i ← mean of v_i and what i receives − η t_i`, or only the mean without t.
pub(super) fn pull<S: Real>(
    v: &mut [S],
    history: &BroadcastHistory<Cpu<S>>,
    reception: &LedgerReception<Cpu<S>>,
    descent: Option<(&[S], [S; 2])>,
) {
    let packed = history.packed;
    v.par_chunks_mut(packed.stride).enumerate().for_each(|(vector, v)| {
        let (group, receiver) = (vector / packed.agents, vector % packed.agents);
        if !packed.own.has(receiver) || reception.awake[receiver] == 0 {
            return;
        }
        let ages = reception.ages[receiver * packed.agents..][..packed.agents].iter().enumerate();
        let place = |(sender, &age): (usize, &u32)| {
            history.place(reception.round[0], age as usize - 1, group * packed.agents + sender)
        };
        let heard: Vec<usize> = ages.filter(|&(_, &age)| age > 0).map(place).collect();
        let weight = S::ONE / S::from_f64((heard.len() + 1) as f64);
        for (tile, v) in v.chunks_mut(TILE).enumerate() {
            heard.iter().for_each(|from| add(v, &history.v[from + tile * TILE..]));
            let Some((t, steps)) = descent else {
                v.iter_mut().for_each(|v| *v = weight * *v);
                continue;
            };
            let t = &t[vector * packed.stride + tile * TILE..];
            v.iter_mut().zip(t).for_each(|(v, &t)| *v = weight * *v - steps[group] * t);
        }
    });
}

/// `t_i ← κ t_i + what i collects + d⁺ − d`.
pub(super) fn track<S: Real>(
    t: &mut [S],
    mass: &mut [S],
    gradient: Gradient<'_, Cpu<S>>,
    history: &BroadcastHistory<Cpu<S>>,
    reception: &LedgerReception<Cpu<S>>,
) {
    let Gradient { fresh, last, regulariser } = gradient;
    let packed = history.packed;
    let (agents, stride) = (packed.agents, packed.stride);
    let links = mass.par_chunks_mut((agents - 1) * stride);
    let own = t.par_chunks_mut(stride).zip(fresh.par_chunks_mut(stride)).zip(last.par_chunks(stride));
    own.zip(links).enumerate().for_each(|(vector, (((t, fresh), last), links))| {
        let (group, receiver) = (vector / agents, vector % agents);
        let is_own = packed.own.has(receiver);
        if !is_own {
            // Its own host has its tracker.
        } else if reception.awake[receiver] == 0 {
            fresh.copy_from_slice(last);
        } else {
            if let Some((v, strengths)) = regulariser {
                let v = &v[vector * stride..][..stride];
                fresh.iter_mut().zip(v).for_each(|(fresh, &v)| *fresh += strengths[vector] * v);
            }
            let kept = reception.shares[receiver * agents + receiver];
            let terms = fresh.iter().zip(last);
            t.iter_mut().zip(terms).for_each(|(t, (&fresh, &last))| *t = kept * *t + fresh - last);
        }
        let others = (0..agents).filter(|&sender| sender != receiver);
        for (sender, link) in others.zip(links.chunks_mut(stride)) {
            let (share, age) =
                (reception.shares[receiver * agents + sender], reception.ages[receiver * agents + sender]);
            let from = group * agents + sender;
            let tracker_at = |age| &history.t[history.place(reception.round[0], age, from)..][..stride];
            if !packed.own.has(sender) {
                if is_own && age > 0 {
                    add(t, link);
                    link.fill(S::ZERO);
                }
                continue;
            }
            if !is_own && share == S::ZERO {
                // Nothing ever waits there: its memory is never touched.
                continue;
            }
            let waiting = link.iter_mut().zip(tracker_at(0));
            match age {
                0 => waiting.for_each(|(mass, &now)| *mass += share * now),
                1 if !is_own => link.fill(S::ZERO),
                late if !is_own => {
                    let since: Vec<&[S]> = (0..late as usize - 1).map(tracker_at).collect();
                    link.iter_mut().enumerate().for_each(|(word, mass)| *mass = recent(&since, share, word));
                }
                1 => waiting.zip(&mut *t).for_each(|((mass, &now), t)| {
                    *t += *mass + share * now;
                    *mass = S::ZERO;
                }),
                late => {
                    let since: Vec<&[S]> = (0..late as usize - 1).map(tracker_at).collect();
                    for (word, ((mass, &now), t)) in waiting.zip(&mut *t).enumerate() {
                        let recent = recent(&since, share, word);
                        *t += *mass + share * now - recent;
                        *mass = recent;
                    }
                }
            }
        }
    });
}

/// A word of what was set aside since a late frame was sent, this round included.
#[inline(always)]
fn recent<S: Real>(since: &[&[S]], share: S, word: usize) -> S {
    since.iter().fold(S::ZERO, |sum, t| sum + share * t[word])
}

#[inline(always)]
fn add<S: Real>(to: &mut [S], words: &[S]) {
    to.iter_mut().zip(words).for_each(|(to, &word)| *to += word);
}
