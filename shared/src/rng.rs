//! Counter-based random numbers: any draw of any agent in any round, in any order.
//!
//! A [`Stream`] is named by (seed, agent, round, purpose). The name is hashed into a key and draw
//! number `c` is `mix(key + c·γ)`, SplitMix64's output function on a counter. Two simulators that
//! visit agents in different orders, and a board that knows only itself, therefore see the same
//! numbers.

/// The purpose of a stream; streams of different purposes never share numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
#[non_exhaustive]
pub enum Purpose {
    /// Which directed edges exist in a round.
    Edges = 1,
    /// The random constants of a problem.
    Problem = 2,
    /// Noise on what an agent observes in a round.
    Noise = 3,
    /// Losses, delays and damage of frames on the channel.
    Air = 4,
    /// Where agents fly.
    Motion = 5,
    /// Which samples belong to whom, and which of them are corrupted.
    Data = 6,
    /// Which samples make a batch.
    Batch = 7,
    /// Which activations are dropped.
    Dropout = 8,
    /// How fast an agent's clock runs.
    Clock = 9,
    /// The key of a simulated swarm.
    Key = 10,
    /// Bytes that a cable loses or changes.
    Cable = 11,
}

const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// SplitMix64's finaliser: a bijection in which every input bit reaches every output bit.
const fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// An endless sequence of random numbers.
///
/// ```
/// use fabswarm_shared::rng::{Purpose, Stream};
///
/// let mut noise = Stream::new(42, 3, 100, Purpose::Noise);
/// let first = noise.next_u64();
/// assert!((0.0..1.0).contains(&noise.uniform_f64()));
/// // The same name gives the same numbers, wherever and whenever they are drawn.
/// assert_eq!(Stream::new(42, 3, 100, Purpose::Noise).next_u64(), first);
/// assert_ne!(Stream::new(42, 3, 101, Purpose::Noise).next_u64(), first);
/// ```
#[derive(Clone, Debug)]
pub struct Stream {
    key: u64,
    counter: u64,
}

impl Stream {
    /// The stream of `agent` in `round` for `purpose`.
    #[inline]
    pub const fn new(seed: u64, agent: u32, round: u32, purpose: Purpose) -> Self {
        let place = ((agent as u64) << 32) | round as u64;
        let seeded = mix(seed.wrapping_add(GAMMA.wrapping_mul(purpose as u64)));
        let key = mix(seeded ^ mix(place.wrapping_add(GAMMA)));
        Self { key, counter: 0 }
    }

    /// Uniform over all 64-bit integers.
    #[inline]
    pub const fn next_u64(&mut self) -> u64 {
        self.counter = self.counter.wrapping_add(GAMMA);
        mix(self.key.wrapping_add(self.counter))
    }

    /// Uniform over all 32-bit integers.
    #[inline]
    pub const fn next_u32(&mut self) -> u32 {
        (self.next_u64() >> 32) as u32
    }

    /// Uniform in `[0, 1)`, a multiple of 2⁻⁵³.
    #[inline]
    pub fn uniform_f64(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Uniform in `0..bound`; 0 where `bound` is 0. The bias is below `bound`·2⁻⁶⁴.
    #[inline]
    pub fn below(&mut self, bound: u32) -> u32 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u32
    }

    /// Standard normal, by Marsaglia's polar method: without a cosine, whose tables are 3 KiB of a microcontroller's flash.
    pub fn gaussian_f64(&mut self) -> f64 {
        loop {
            let (x, y) = (2.0 * self.uniform_f64() - 1.0, 2.0 * self.uniform_f64() - 1.0);
            let square = x * x + y * y;
            if square > 0.0 && square < 1.0 {
                return x * libm::sqrt(-2.0 * libm::log(square) / square);
            }
        }
    }
}

/// The streams of consecutive agents, advanced together in vector registers.
#[derive(Clone, Debug)]
pub(crate) struct Streams<const LANES: usize> {
    places: [u64; LANES],
}

impl<const LANES: usize> Streams<LANES> {
    /// The streams of the agents from `first` on.
    #[inline(always)]
    pub(crate) fn new(seed: u64, first: u32, round: u32, purpose: Purpose) -> Self {
        let mut places = [0; LANES];
        for (lane, place) in places.iter_mut().enumerate() {
            *place = Stream::new(seed, first.wrapping_add(lane as u32), round, purpose).key;
        }
        Self { places }
    }

    /// [`Stream::next_u64`] of each.
    #[inline(always)]
    pub(crate) fn next_u64(&mut self) -> [u64; LANES] {
        let mut draws = [0; LANES];
        for (draw, place) in draws.iter_mut().zip(&mut self.places) {
            *place = place.wrapping_add(GAMMA);
            *draw = mix(*place);
        }
        draws
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    #[test]
    fn counter_zero_key_is_splitmix64() {
        // Reference sequence of SplitMix64 from state 1234567.
        let mut stream = Stream { key: 1_234_567, counter: 0 };
        assert_eq!(stream.next_u64(), 6_457_827_717_110_365_317);
        assert_eq!(stream.next_u64(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn moments_are_those_of_the_distributions() {
        let mut stream = Stream::new(7, 0, 0, Purpose::Noise);
        let draws = 100_000;
        let uniform = (0..draws).map(|_| stream.uniform_f64()).sum::<f64>() / f64::from(draws);
        assert!((uniform - 0.5).abs() < 0.005, "{uniform}");
        let normal: Vec<f64> = (0..draws).map(|_| stream.gaussian_f64()).collect();
        let mean = normal.iter().sum::<f64>() / f64::from(draws);
        let variance = normal.iter().map(|v| v * v).sum::<f64>() / f64::from(draws);
        assert!(mean.abs() < 0.015 && (variance - 1.0).abs() < 0.02);
    }

    #[test]
    fn below_stays_below_and_reaches_all() {
        let mut stream = Stream::new(1, 2, 3, Purpose::Data);
        let mut seen = [0; 6];
        for _ in 0..600 {
            seen[stream.below(6) as usize] += 1;
        }
        assert!(seen.iter().all(|&count| count > 50), "{seen:?}");
        assert_eq!(stream.below(0), 0);
    }

    proptest! {
        #[test]
        fn streams_side_by_side_are_those_of_each_agent(seed: u64, first: u32, round: u32) {
            let mut together = Streams::<3>::new(seed, first, round, Purpose::Edges);
            let mut alone = [0, 1, 2]
                .map(|lane| Stream::new(seed, first.wrapping_add(lane), round, Purpose::Edges));
            for _ in 0..5 {
                prop_assert_eq!(together.next_u64(), alone.each_mut().map(Stream::next_u64));
            }
        }

        #[test]
        fn neighbouring_names_give_unrelated_numbers(seed: u64, agent in 0u32..1000, round in 0u32..1000) {
            prop_assume!(agent != round);
            let draw = |seed, agent, round, purpose| Stream::new(seed, agent, round, purpose).next_u64();
            for other in [
                draw(seed, agent + 1, round, Purpose::Noise),
                draw(seed, agent, round + 1, Purpose::Noise),
                draw(seed, agent, round, Purpose::Air),
                draw(seed.wrapping_add(1), agent, round, Purpose::Noise),
                draw(seed, round, agent, Purpose::Noise),
            ] {
                let differing = (draw(seed, agent, round, Purpose::Noise) ^ other).count_ones();
                prop_assert!((8..=56).contains(&differing), "{differing} bits differ");
            }
        }
    }
}
