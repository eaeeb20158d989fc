//! The broadcast ledger: a push that survives real radios.
//!
//! A radio loses frames after their sender has fixed its weights, and with them the tracking mass they carried. So
//! mass is never sent. Agent j, which up to `a_j` others may hear, keeps a running sum σ_j of *one* share, the same for
//! each of its audience, and broadcasts the sum:
//!
//! $$s_j = \tfrac{1-\kappa}{a_j}\,t_j,\qquad \sigma_j \leftarrow \sigma_j + s_j,\qquad t_j \leftarrow t_j - a_j s_j$$
//!
//! A listener takes what it has not taken yet: $t_i \leftarrow t_i + \sigma_j - \rho_{ij}$, $\rho_{ij} \leftarrow
//! \sigma_j$. A lost frame is mass that waits for the next one; loss, delay, duplication and links that come and go are all
//! the same. It is FAB with $b_{jj} = \kappa$ and $b_{ij} = (1-\kappa)/a_j$ over links with delay, and conserves
//!
//! $$\sum_i t_i + \sum_j \sum_{i \in \text{audience}(j)} (\sigma_j - \rho_{ij}) = \sum_i d_i.$$
//!
//! Running sums that survive loss are those of Hadjicostis, Vaidya and Domínguez-García (2015), there one per link.
//!
//! Trackers are integers of 2⁻²⁰ each and σ wraps, so the invariant holds with `==` whatever the air does. A share is the
//! whole part of an accumulator that carries its remainder; without that carry small trackers would never move.
//!
//! A gradient is refused beyond ±1024; a tracker that went beyond ±2048 would come back from the other side, and nothing on
//! a board has the instructions to spare to look for it every round. Trackers stay near the mean gradient but for the mass
//! that waits for somebody who was away.
//!
//! ```
//! use fabswarm_shared::ledger::{ShareWeights, give, take};
//!
//! // An agent that keeps half of its tracker and shares the rest among two others.
//! let weights = ShareWeights::new(0.5, 2);
//! let (mut tracker, mut carry, mut sigma) = ([800], [0], [0]);
//! let (mut rho, mut received) = ([0], [0]);
//!
//! give(&weights, 0, &mut tracker, &mut carry, &mut sigma); // This round's frame is lost,
//! give(&weights, 0, &mut tracker, &mut carry, &mut sigma);
//! take(&sigma, &mut rho, &mut received); // and the next one brings the mass of both.
//! take(&sigma, &mut rho, &mut received); // A repetition brings nothing.
//! assert_eq!((tracker, sigma, received), ([200], [300], [300]));
//! let waiting = sigma[0]; // The other has collected nothing yet.
//! assert_eq!(tracker[0] + received[0] + waiting, 800);
//! ```

use crate::fab::{Steps, accumulated, descended};
use crate::linear::first_invalid;
use crate::problem::Shape;

/// Bits behind the point of an exact tracker: one is 2²⁰.
pub const POINT: u32 = 20;

const ONE: f32 = (1u32 << POINT) as f32;

/// Bits behind the point of a share's weight.
const WEIGHT_POINT: u32 = 31;

/// The mass that an agent gives away each round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ShareWeights {
    audience: u32,
    /// The weight of one share, with [`WEIGHT_POINT`] bits behind the point.
    fixed_weight: u32,
}

impl ShareWeights {
    /// Keeps κ of the tracker and gives the rest to `audience` others in equal shares; keeps all where there are none.
    #[must_use]
    pub fn new(self_weight: f32, audience: u32) -> Self {
        let kept = f64::from(self_weight).clamp(0.0, 1.0);
        let weight = if audience == 0 { 0.0 } else { (1.0 - kept) / f64::from(audience) };
        Self { audience, fixed_weight: libm::round(weight * f64::from(1u32 << WEIGHT_POINT)) as u32 }
    }

    /// How many may ever hear this agent.
    pub const fn audience(&self) -> u32 {
        self.audience
    }
}

/// The value of a tracker's word.
#[inline(always)]
pub fn value(word: i32) -> f32 {
    word as f32 * (1.0 / ONE)
}

/// The size of the largest share that [`give`] would take now.
pub fn largest_share(share_weights: &ShareWeights, tracker: &[i32]) -> u32 {
    let largest = tracker.iter().map(|word| word.unsigned_abs()).max().unwrap_or(0);
    ((i64::from(largest) * i64::from(share_weights.fixed_weight)) >> WEIGHT_POINT) as u32 + 1
}

/// `s = w·t`, `σ += s`, `t −= a·s`, with shares that are multiples of 2^`granularity`.
#[inline(always)]
pub fn give(
    share_weights: &ShareWeights,
    granularity: u8,
    tracker: &mut [i32],
    carry: &mut [i64],
    sigma: &mut [i32],
) {
    // A shift by a number that the compiler knows takes a fraction of the instructions on 32 bits.
    match granularity {
        0 => give_multiples(share_weights, 0, tracker, carry, sigma),
        _ => give_multiples(share_weights, granularity.min(24).into(), tracker, carry, sigma),
    }
}

#[inline(always)]
fn give_multiples(
    share_weights: &ShareWeights,
    granularity: u32,
    tracker: &mut [i32],
    carry: &mut [i64],
    sigma: &mut [i32],
) {
    let point = WEIGHT_POINT + granularity;
    for ((t, carry), sigma) in tracker.iter_mut().zip(carry).zip(sigma) {
        let due = *carry + i64::from(*t) * i64::from(share_weights.fixed_weight);
        let share = due >> point;
        *carry = due & ((1 << point) - 1);
        let share = (share << granularity) as i32;
        *sigma = sigma.wrapping_add(share);
        *t = t.wrapping_sub(share.wrapping_mul(share_weights.audience as i32));
    }
}

/// `t += σ − ρ`, `ρ = σ`.
#[inline(always)]
pub fn take(sigma: &[i32], rho: &mut [i32], tracker: &mut [i32]) {
    for ((t, rho), &sigma) in tracker.iter_mut().zip(rho).zip(sigma) {
        *t = t.wrapping_add(sigma.wrapping_sub(*rho));
        *rho = sigma;
    }
}

/// `sum += factor·words`, for balancing the books.
#[inline(always)]
pub fn add(sum: &mut [i32], words: &[i32], factor: i32) {
    for (sum, &word) in sum.iter_mut().zip(words) {
        *sum = sum.wrapping_add(word.wrapping_mul(factor));
    }
}

/// `t += d⁺ − d`, `d = d⁺`.
///
/// # Errors
/// The first word of the gradient that is not finite or too large for an exact tracker; nothing is changed then.
#[inline(always)]
pub fn track(newest: &[f32], gradient: &mut [i32], tracker: &mut [i32]) -> Result<(), usize> {
    const LIMIT: f32 = (i32::MAX / 2) as f32 / ONE;
    // Without their sign bit, floats have the order of their bits, and NaN comes after all of them.
    let fits = |new: f32| new.to_bits() << 1 < LIMIT.to_bits() << 1;
    if let Some(word) = first_invalid(newest, fits) {
        return Err(word);
    }
    for ((t, d), &new) in tracker.iter_mut().zip(gradient).zip(newest) {
        let new = round(new * ONE);
        *t = t.wrapping_add(new.wrapping_sub(*d));
        *d = new;
    }
    Ok(())
}

/// The nearest integer, halves away from zero; a cast and no call, as every target has one.
#[inline(always)]
fn round(value: f32) -> i32 {
    (value + 0.5f32.copysign(value)) as i32
}

/// `m ← β·m + t` over a packed decision: what never travels descends along its `gradient`, the rest along its tracker.
#[inline(always)]
pub fn accumulate(shape: &Shape, momentum: f32, gradient: &[f32], tracker: &[i32], accumulator: &mut [f32]) {
    let (local, exchanged) = accumulator[..shape.words()].split_at_mut(shape.exchanged().start);
    for (m, &d) in local.iter_mut().zip(gradient) {
        *m = accumulated(momentum, *m, d);
    }
    for (m, &t) in exchanged.iter_mut().zip(tracker) {
        *m = accumulated(momentum, *m, value(t));
    }
}

/// `v −= η_v·m_v` over a packed decision, as [`crate::fab::descend`] does with packed steps.
#[inline(always)]
pub fn descend(shape: &Shape, steps: &Steps<f32>, accumulator: &[f32], v: &mut [f32]) {
    let z = shape.x + shape.y;
    for (step, part) in [(steps.x, 0..shape.x), (steps.y, shape.x..z), (steps.z, z..shape.words())] {
        for (v, &m) in v[part.clone()].iter_mut().zip(&accumulator[part]) {
            *v = descended(*v, step, m);
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Three agents that hear each other at random: no lsb is ever lost.
        #[test]
        fn exact_mass_is_conserved(
            kappa in 0.0..1.0f32,
            start in prop::array::uniform3(-1_000_000_000..1_000_000_000i32),
            rounds in prop::collection::vec((any::<[bool; 9]>(), 0u8..12), 1..200),
        ) {
            let share_weights = ShareWeights::new(kappa, 2);
            let (mut t, d) = (start.map(|t| [t]), start);
            let (mut carry, mut sigma, mut rho) = ([[0i64]; 3], [[0i32]; 3], [[[0i32]; 3]; 3]);
            for (heard, granularity) in rounds {
                for j in 0..3 {
                    give(&share_weights, granularity, &mut t[j], &mut carry[j], &mut sigma[j]);
                }
                for i in 0..3 {
                    for j in 0..3 {
                        if i != j && heard[3 * i + j] {
                            take(&sigma[j], &mut rho[i][j], &mut t[i]);
                        }
                    }
                }
                let mut mass = 0i32;
                for i in 0..3 {
                    mass = mass.wrapping_add(t[i][0]);
                    for j in 0..3 {
                        if i != j {
                            mass = mass.wrapping_add(sigma[j][0].wrapping_sub(rho[i][j][0]));
                        }
                    }
                }
                prop_assert_eq!(mass, d.iter().fold(0i32, |sum, &d| sum.wrapping_add(d)));
            }
        }

        #[test]
        fn shares_are_multiples_of_the_granularity_and_of_the_promised_size(
            kappa in 0.0..1.0f32, audience in 1u32..20, t: i32, g in 0u8..20,
        ) {
            let share_weights = ShareWeights::new(kappa, audience);
            let t = t / 64;
            let largest = largest_share(&share_weights, &[t]);
            let (mut tracker, mut carry, mut sigma) = ([t], [0], [0]);
            give(&share_weights, g, &mut tracker, &mut carry, &mut sigma);
            prop_assert_eq!(sigma[0] & ((1 << g) - 1), 0);
            prop_assert!(sigma[0].unsigned_abs() <= largest + (1 << g));
        }
    }

    #[test]
    fn the_carry_moves_what_is_smaller_than_a_share() {
        let share_weights = ShareWeights::new(0.98, 9);
        let (mut t, mut carry, mut sigma) = ([10], [0], [0]);
        for _ in 0..1000 {
            give(&share_weights, 0, &mut t, &mut carry, &mut sigma);
        }
        assert!(t[0] < 10 && sigma[0] > 0, "{t:?} {sigma:?}");
    }

    #[test]
    fn gradients_out_of_range_are_named_and_change_nothing() {
        for bad in [f32::NAN, -f32::NAN, f32::INFINITY, 1024.0, -1024.0] {
            let (mut d, mut t) = ([5, 5], [7, 7]);
            assert_eq!(track(&[1.0, bad], &mut d, &mut t), Err(1));
            assert_eq!((d, t), ([5, 5], [7, 7]));
        }
        let (mut d, mut t) = ([5], [7]);
        assert_eq!(track(&[1024.0_f32.next_down()], &mut d, &mut t), Ok(()));
        assert_eq!((d, t), ([(1 << 30) - 64], [(1 << 30) - 62]));
    }
}
