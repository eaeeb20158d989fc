//! Random senders of several agents, drawn side by side.

use super::Graph;
use crate::rng::{Purpose, Streams};

/// Draws whom `LANES` agents from `first` on hear: each other agent with this probability, and where `joins_ring` the agent
/// before for certain. `visit` is that of [`super::Schedule::heard_side_by_side`].
///
/// Pairs are not drawn one by one. Each draw is the number of agents skipped before the next sender, so the cost is
/// proportional to the number of edges. Skips are memoryless: stopping at the certain sender and drawing again from there changes
/// no probability.
#[cfg_attr(not(microcontroller), inline(always))]
pub(super) fn senders<const LANES: usize>(
    graph: &Graph,
    first: usize,
    round: u32,
    probability: f64,
    joins_ring: bool,
    mut visit: impl FnMut(usize, [u32; LANES]),
) {
    // Candidates are numbered without the agent itself; one past the last means none.
    let nobody = graph.agents as u32 - 1;
    let [mut agents, mut certain, mut candidates] = [[nobody; LANES]; 3];
    for (lane, agent) in (first as u32..graph.agents as u32).take(LANES).enumerate() {
        agents[lane] = agent;
        candidates[lane] = 0;
        if joins_ring {
            certain[lane] = agent.checked_sub(1).unwrap_or(nobody - 1);
        }
    }
    let mean_skip = mean_skip(probability);
    let mut streams = Streams::<LANES>::new(graph.seed, first as u32, round, Purpose::Edges);
    let mut draws = [0; LANES];
    for number in 0.. {
        // Each 64-bit number serves for two draws, its upper half first.
        if number % 2 == 0 {
            draws = streams.next_u64();
        } else {
            draws.iter_mut().for_each(|draw| *draw <<= 32);
        }
        let mut senders = [0; LANES];
        let mut is_open = false;
        for lane in 0..LANES {
            let passed = geometric_skip((draws[lane] >> 40) as u32, mean_skip);
            let bound = if candidates[lane] <= certain[lane] { certain[lane] } else { nobody };
            let candidate = (candidates[lane] + passed).min(bound);
            is_open |= candidate < nobody;
            senders[lane] = candidate + u32::from(candidate >= agents[lane]);
            candidates[lane] = candidate + 1;
        }
        if !is_open {
            return;
        }
        visit(number, senders);
    }
}

/// The number of distinct draws: as many as an f32 has below one.
const DRAWS: u32 = 1 << 24;

/// The largest skip: more than a swarm has agents, and exact in an f32.
const MOST: u32 = (1 << 22) - 1;

/// Agents skipped per halving of a uniform draw; infinite if the probability is zero.
fn mean_skip(probability: f64) -> f32 {
    // The subtraction keeps the sign of what is divided by positive where the logarithm is zero.
    (1.0 / (0.0 - libm::log(1.0 - probability) * core::f64::consts::LOG2_E)) as f32
}

/// The number of agents skipped before the next sender, from a draw below [`DRAWS`]: geometric, with probabilities rounded to
/// multiples of 2⁻²⁴. In f32 with a polynomial, because it runs for every edge; additions and products only, so that every
/// machine computes the same bits.
#[inline(always)]
fn geometric_skip(draw: u32, mean_skip: f32) -> u32 {
    /// Beside it an f32 has no digits behind the point: adding it rounds, and leaves the integer in the lowest bits.
    const ROUNDING: f32 = (3 << 22) as f32;
    let halvings = 0.0 - log2((draw + 1) as f32 * (1.0 / DRAWS as f32));
    let passed = halvings * mean_skip;
    // False for NaN (zero times infinity), which counts as infinitely many.
    let passed = if passed < MOST as f32 { passed } else { MOST as f32 };
    (passed - 0.5 + ROUNDING).to_bits() & MOST
}

/// The binary logarithm of a normal number, to a millionth of itself.
#[inline(always)]
fn log2(number: f32) -> f32 {
    /// Coefficients of the polynomial that is nearest to log₂(1 + f) / f for 1 + f between √½ and √2.
    const NEAREST: [f32; 8] = [
        1.442_694_9,
        -0.721_352_8,
        0.480_923_24,
        -0.360_239_62,
        0.287_098_7,
        -0.248_876_88,
        0.234_042_3,
        -0.145_811_51,
    ];
    let bits = number.to_bits();
    let exponent = bits.wrapping_sub(core::f32::consts::FRAC_1_SQRT_2.to_bits()) & 0xff80_0000;
    let f = f32::from_bits(bits.wrapping_sub(exponent)) - 1.0;
    let [a, b, c, d] = [0, 2, 4, 6].map(|at| NEAREST[at] + NEAREST[at + 1] * f);
    let square = f * f;
    let fraction = ((a + b * square) + (c + d * square) * (square * square)) * f;
    fraction + (exponent as i32 >> 23) as f32
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::graph::Topology;

    #[test]
    fn the_number_passed_over_is_geometric() {
        for probability in [0.001, 0.05, 0.3, 0.9] {
            let mean_skip = mean_skip(probability);
            let mut counts = [0u32; 8];
            for draw in 0..DRAWS {
                let passed = geometric_skip(draw, mean_skip) as usize;
                if passed < counts.len() {
                    counts[passed] += 1;
                }
            }
            for (passed, &count) in counts.iter().enumerate() {
                let exact = probability * (1.0 - probability).powi(passed as i32) * f64::from(DRAWS);
                assert!((f64::from(count) - exact).abs() <= 4.0, "{probability} {passed}: {count}, {exact}");
            }
        }
    }

    #[test]
    fn probabilities_zero_and_one_are_exact() {
        for draw in [0, 1, DRAWS / 2, DRAWS - 2, DRAWS - 1] {
            assert_eq!(geometric_skip(draw, mean_skip(1.0)), 0);
            assert!(geometric_skip(draw, mean_skip(0.0)) >= MOST - 1);
            assert!(geometric_skip(draw, mean_skip(1e-300)) >= MOST - 1);
        }
    }

    #[test]
    fn every_agent_is_heard_as_often_as_every_other() {
        let graph = Graph { topology: Topology::Complete, agents: 12, seed: 5 };
        let mut heard = [0.0f64; 12];
        for round in 0..20_000 {
            senders::<1>(&graph, 4, round, 0.2, true, |_, [sender]| heard[sender as usize] += 1.0);
        }
        let mut expected = [4000.0; 12];
        (expected[3], expected[4]) = (20_000.0, 0.0);
        for (heard, expected) in heard.into_iter().zip(expected) {
            assert!((heard - expected).abs() <= 4.0 * 57.0, "{heard} {expected}");
        }
    }
}
