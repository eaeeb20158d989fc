//! The content of a data frame, in one of three widths: the exchanged scalars v of the decision and the running sum σ.
//!
//! | width | bytes for w scalars | v | σ |
//! |---|---|---|---|
//! | full | 1 + 8w | f32 | all 32 bits |
//! | half | 3 + ⌈w/16⌉ + 4w | 16-bit multiple of 2^e, one e for 16 scalars | 16 bits |
//! | byte | 4 + ⌈w/16⌉ + w + 2⌈w/2⌉ | low 8 bits of a multiple of 2^e | 16 bits of every other scalar |
//!
//! A receiver that heard this sender recently needs only the low bits of a scalar that changed little since. The sender tracks
//! the range of each scalar over the last rounds, sends enough low bits to distinguish the scalar from everything in that range,
//! and states in the payload for how many rounds this holds: the *window*. A receiver within the window completes the bits
//! from what it holds; any other waits for a full payload. A narrow sender sends full payloads when an epoch begins, every
//! [`Width::period`] rounds, and whenever a value does not fit. Every receiver therefore reads exactly what was sent.
//!
//! **v** is rounded, and the sender adds the rounding error to the next round's v (error feedback). Units are powers of two, so
//! that scaling is exact on every target. Half payloads share an exponent among 16 scalars instead of using f16: the unit of the
//! largest scalars, which dominate the error, is 16 times finer.
//!
//! **σ** is never rounded: the shares of a narrow sender are multiples of 2^g, with g from [`Encoder::granularity`] such that
//! their sum over a window fits 16 bits, and the remainder stays in the ledger's carry. The ledger's invariant holds as with
//! full payloads; a scalar of σ that is not sent is mass that waits.

mod decision_history;
mod decoder;
mod encoder;
mod quantise;
mod sigma_history;

pub use decoder::Decoder;
pub use encoder::Encoder;

use serde::{Deserialize, Serialize};

/// How narrow an agent's frames may be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Width {
    /// f32 decisions, all of σ.
    #[default]
    Full,
    /// 16 bits of each decision, 16 bits of σ.
    Half,
    /// 8 bits of each decision, 16 bits of every other word of σ.
    Byte,
}

/// Words that share an exponent.
const BLOCK: usize = 16;

/// First byte of a payload.
const FULL: u8 = 0;
const HALF: u8 = 1;
const BYTE: u8 = 2;

/// The window of payloads that every receiver of this epoch can decode.
const EPOCH: u8 = 255;

/// The granularity of payloads without a readable σ.
const SIGMA_OMITTED: u8 = 255;

/// The first word of σ that a byte payload holds; every second word follows.
///
/// The Thue–Morse sequence: a link that fails periodically still carries both halves.
const fn first_sigma_word(round: u32) -> usize {
    (round.count_ones() % 2) as usize
}

impl Width {
    /// Bytes of a payload of `words` words of v and of σ each, at most.
    pub const fn payload_bytes(self, words: usize) -> usize {
        self.length(words, 0)
    }

    const fn length(self, words: usize, round: u32) -> usize {
        match self {
            Self::Full => 1 + 8 * words,
            Self::Half => 3 + words.div_ceil(BLOCK) + 4 * words,
            Self::Byte => 4 + words.div_ceil(BLOCK) + words + 2 * ((words + 1 - first_sigma_word(round)) / 2),
        }
    }

    /// Rounds from one full payload to the next.
    pub const fn period(self) -> u32 {
        match self {
            Self::Full => 1,
            Self::Half => 64,
            Self::Byte => 16,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::super::Error;
    use super::*;

    extern crate std;

    const WORDS: usize = 19;

    /// One agent listening to one sender.
    struct Listener {
        decoder: Decoder<WORDS>,
        rho: [i32; WORDS],
        v: [f32; WORDS],
    }

    impl Listener {
        fn hear(&mut self, payload: &[u8], round: u32) -> Result<bool, Error> {
            let mut sigma = [0; WORDS];
            let is_v_known = self.decoder.decode(payload, round, &self.rho, &mut self.v, &mut sigma)?;
            self.rho = sigma;
            Ok(is_v_known)
        }

        fn new() -> Self {
            Self { decoder: Decoder::new(), rho: [0; WORDS], v: [0.0; WORDS] }
        }
    }

    fn encoder(width: Width, round: u32) -> Encoder<WORDS> {
        let mut encoder = Encoder::new(width, 5);
        encoder.begin_epoch(round);
        encoder
    }

    fn width() -> impl Strategy<Value = Width> {
        prop_oneof![Just(Width::Full), Just(Width::Half), Just(Width::Byte)]
    }

    /// A round: rounds skipped, scale of the shares (in bits), their seed, drift of v, and who hears it.
    fn rounds() -> impl Strategy<Value = std::vec::Vec<(u32, u32, u32, f32, [bool; 2])>> {
        vec((1..4_u32, 0..31_u32, any::<u32>(), -0.1..0.1_f32, any::<[bool; 2]>()), 1..250)
    }

    proptest! {
        /// With shares of any size, rounded or not, under any loss, after restarts: σ comes out exact or not at
        /// all, and all see the same v.
        #[test]
        fn what_is_told_is_exact(
            width in width(),
            rounded: bool,
            calm: bool,
            rounds in rounds(),
            restart in 0..500_usize,
        ) {
            let mut encoder = encoder(width, 8);
            let mut listeners = [Listener::new(), Listener::new()];
            let (mut round, mut v, mut sigma) = (8, [0.5_f32; WORDS], [0_i32; WORDS]);
            for (i, (skip, scale, seed, drift, hears)) in rounds.into_iter().enumerate() {
                if i == restart {
                    encoder = Encoder::new(width, 5);
                }
                if i == restart / 2 {
                    listeners[1].decoder.forget();
                }
                let scale = if calm { 8 + scale % 2 } else { scale };
                let g = if rounded { encoder.granularity(1 << scale) } else { 0 };
                for (i, (v, sigma)) in v.iter_mut().zip(&mut sigma).enumerate() {
                    let share = (seed.rotate_left(i as u32) >> (31 - scale)) as i32 - (1 << scale);
                    *sigma = sigma.wrapping_add(share >> g << g);
                    *v += drift * (i as f32 - 9.0);
                }
                let mut out = [0; 200];
                let length = encoder.encode(round, &v, &sigma, &mut out).unwrap();
                let mut again = [0; 200];
                encoder.encode(round, &v, &sigma, &mut again).unwrap();
                prop_assert_eq!(out, again);
                encoder.end_round(round, &v, &sigma).unwrap();
                let mut seen = None;
                for (listener, hears) in listeners.iter_mut().zip(hears) {
                    let before = listener.rho;
                    if !hears {
                        continue;
                    }
                    let is_v_known = listener.hear(&out[..length], round).unwrap();
                    // Even and odd words.
                    for half in 0..2 {
                        let of = |words: [i32; WORDS]| words.into_iter().skip(half).step_by(2);
                        let is_told = of(listener.rho).eq(of(sigma));
                        prop_assert!(is_told || (out[0] != FULL && of(listener.rho).eq(of(before))));
                    }
                    if is_v_known {
                        prop_assert_eq!(*seen.get_or_insert(listener.v), listener.v);
                    }
                }
                round += skip;
            }
        }

        /// Error feedback: over time receivers see v on average, far below one quantum.
        #[test]
        fn sent_decisions_average_to_v(width in width(), value in -3.0..3.0_f32) {
            let mut encoder = encoder(width, 1);
            let mut listener = Listener::new();
            let (mut sum, mut wanted) = (0.0, 0.0);
            let rounds = 640;
            for round in 1..=rounds {
                let v: [f32; WORDS] = core::array::from_fn(|i| value + (round % 16) as f32 * 0.01 * i as f32);
                let mut out = [0; 200];
                let sigma = [round as i32; WORDS];
                let length = encoder.encode(round, &v, &sigma, &mut out).unwrap();
                encoder.end_round(round, &v, &sigma).unwrap();
                prop_assert!(listener.hear(&out[..length], round).unwrap());
                prop_assert!(listener.rho.contains(&(round as i32)), "some words of σ come in every round");
                sum += f64::from(listener.v[1]);
                wanted += f64::from(v[1]);
                prop_assert!((listener.v[18] - v[18]).abs() < 0.05);
            }
            prop_assert!((sum - wanted).abs() / f64::from(rounds) < 1e-4, "{}", (sum - wanted) / f64::from(rounds));
        }
    }

    #[test]
    fn values_out_of_range_are_sent_in_full() {
        for width in [Width::Half, Width::Byte] {
            let mut encoder = Encoder::<1>::new(width, 0);
            let mut out = [0; 16];
            encoder.end_round(1, &[1.0], &[0]).unwrap();
            let narrow = width.payload_bytes(1);
            assert_eq!(encoder.encode(3, &[1.0], &[0], &mut out), Ok(narrow));
            assert_eq!(encoder.encode(3, &[1e38], &[0], &mut out), Ok(9));
            assert_eq!(encoder.encode(1, &[1.0], &[0], &mut out), Ok(9), "the round went back");
            assert_eq!(encoder.encode(999, &[1.0], &[0], &mut out), Ok(9), "a long silence");
            assert_eq!(encoder.encode(3, &[f32::NAN], &[0], &mut out), Err(Error::NotFinite));
            assert_eq!(encoder.encode(3, &[1.0, 1.0], &[0, 0], &mut out), Err(Error::WordCount));
            assert_eq!(encoder.encode(3, &[1.0], &[0], &mut out[..narrow - 1]), Err(Error::BufferTooSmall));
            encoder.begin_epoch(3);
            assert_eq!(encoder.encode(3, &[1.0], &[0], &mut out), Ok(9));
        }
    }

    #[test]
    fn words_and_their_changes_are_narrow_up_to_a_limit() {
        let limit = quantise::LIMIT;
        for width in [Width::Half, Width::Byte] {
            let narrow = width.payload_bytes(1);
            for (before, now, bytes) in
                [(0.75, 0.99, narrow), (0.75, 1.0, 9), (-0.5, 0.49, narrow), (-0.5, 0.5, 9)]
            {
                let mut encoder = Encoder::<1>::new(width, 0);
                encoder.end_round(1, &[before * limit], &[0]).unwrap();
                let length = encoder.encode(3, &[now * limit], &[0], &mut [0; 16]);
                assert_eq!(length, Ok(bytes), "{width:?} {before} {now}");
            }
        }
    }

    #[test]
    fn full_payloads_of_a_full_sender_keep_the_sign_of_zero() {
        let mut out = [0; 9];
        assert_eq!(Encoder::<1>::new(Width::Full, 0).encode(1, &[-0.0], &[7], &mut out), Ok(9));
        assert_eq!(out, [FULL, 0, 0, 0, 0x80, 7, 0, 0, 0]);
    }

    /// A receiver of what was sent before a silence, or before the round went back, may hold anything.
    #[test]
    fn windows_begin_anew_after_a_silence_and_after_going_back() {
        let mut encoder = Encoder::<1>::new(Width::Half, 0);
        for (round, later, window) in [(1, 13, 3), (2, 14, 3), (101, 105, 1), (50, 59, 2)] {
            encoder.end_round(round, &[1.0], &[0]).unwrap();
            let mut out = [0; 16];
            assert_eq!(encoder.encode(later, &[1.0], &[0], &mut out), Ok(Width::Half.payload_bytes(1)));
            assert_eq!(out[..2], [HALF, window], "{round}");
        }
    }

    #[test]
    fn slices_of_different_lengths_are_refused() {
        let payload = [FULL; 17];
        for (rho, sigma) in [(1, 2), (2, 1), (1, 1)] {
            let (mut v, mut told) = ([0.0; 2], [0; 2]);
            let decoded = Decoder::<2>::new().decode(&payload, 0, &[0; 2][..rho], &mut v, &mut told[..sigma]);
            assert_eq!(decoded, Err(Error::WordCount), "{rho} {sigma}");
        }
    }
}
