//! What a data frame carries: the exchanged decision words v and the running sum σ of the ledger, in one of three widths.
//!
//! | width | bytes for w words | v | σ |
//! |---|---|---|---|
//! | full | 1 + 8w | f32 | all 32 bits |
//! | half | 3 + 4w | f16 | 16 bits |
//! | byte | 3 + 2w + ⌈w/16⌉ | i8 difference to the sender's last full frame, one exponent for 16 words | 8 bits |
//!
//! **v** in a narrow frame is rounded, and the sender adds what it rounded away to the next round's v (error feedback): it
//! computes what receivers see, and all of them see the same bits. Exponents are powers of two, so that nothing
//! depends on how a target divides.
//!
//! **σ** is never rounded. It is a modular sum of shares: if all shares since the receiver's ρ are multiples of 2^g and
//! their sum is below half of what the bits can count, a few bits of σ ≫ g and ρ give σ exactly. The sender watches how far σ
//! moved and writes g and a *window* W into the frame; a receiver whose ρ is from within the last W rounds takes σ, any
//! other takes v and leaves σ for a later full frame. So σ is exact or not taken, and the ledger's invariant holds
//! as with full frames. [`Width::granularity`] tells the ledger which g keeps the window long; what a
//! multiple of 2^g leaves over stays in its carry.
//!
//! A narrow sender sends a full frame first, then every [`Width::period`] rounds, and whenever a value does not fit.

mod decoder;
mod encoder;
mod motion;
mod quantise;

pub use decoder::{Decoder, Heard, Sigma};
pub use encoder::Encoder;

use serde::{Deserialize, Serialize};

/// How narrow an agent's frames may be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[serde(rename_all = "kebab-case")]
pub enum Width {
    /// f32 decisions, all of σ.
    #[default]
    Full,
    /// f16 decisions, 16 bits of σ.
    Half,
    /// i8 differences, 8 bits of σ.
    Byte,
}

/// Words that share an exponent in a byte payload.
const BLOCK: usize = 16;

/// First byte of a payload.
const FULL: u8 = 0;
const HALF: u8 = 1;
const BYTE: u8 = 2;

impl Width {
    /// Bytes of a payload of `words` words of v and of σ each.
    #[must_use]
    pub const fn payload_bytes(self, words: usize) -> usize {
        match self {
            Self::Full => 1 + 8 * words,
            Self::Half => 3 + 4 * words,
            Self::Byte => 3 + words.div_ceil(BLOCK) + 2 * words,
        }
    }

    /// Rounds from one full frame to the next.
    #[must_use]
    pub const fn period(self) -> u32 {
        match self {
            Self::Full => 1,
            Self::Half => 64,
            Self::Byte => 16,
        }
    }

    /// Bits of σ that travel.
    const fn sigma_bits(self) -> u32 {
        match self {
            Self::Full => 32,
            Self::Half => 16,
            Self::Byte => 8,
        }
    }

    /// The smallest g such that frames stay readable for a receiver that missed `rounds` − 1 of them, when this round's
    /// shares are up to `largest` in magnitude and are rounded to multiples of 2^g.
    #[must_use]
    pub const fn granularity(self, largest: u32, rounds: u32) -> u8 {
        let bits = self.sigma_bits();
        let countable = (1_u64 << (bits - 1)) - 1;
        let mut g = 0;
        // Rounding with a carry makes a share larger by less than one multiple.
        while g + bits < 32 && (largest as u64 + (1 << g)) * rounds as u64 > countable << g {
            g += 1;
        }
        g as u8
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::super::Error;
    use super::*;

    const WORDS: usize = 19;

    /// One agent listening to one sender.
    struct Listener {
        decoder: Decoder<WORDS>,
        round: Option<u32>,
        rho: [i32; WORDS],
        v: [f32; WORDS],
    }

    impl Listener {
        const NEW: Self = Self { decoder: Decoder::new(), round: None, rho: [0; WORDS], v: [0.0; WORDS] };

        fn hear(&mut self, payload: &[u8], round: u32) -> Result<Sigma, Error> {
            let mut sigma = [0; WORDS];
            let heard = Heard { round: self.round, sigma: &self.rho };
            let told = self.decoder.decode(payload, round, heard, &mut self.v, &mut sigma)?;
            self.rho = sigma;
            if told == Sigma::Known {
                self.round = Some(round);
            }
            Ok(told)
        }
    }

    fn width() -> impl Strategy<Value = Width> {
        prop_oneof![Just(Width::Full), Just(Width::Half), Just(Width::Byte)]
    }

    /// A round: rounds skipped, scale of the shares (as bits), their seed, drift of v, heard by the first and the second listener.
    fn rounds() -> impl Strategy<Value = std::vec::Vec<(u32, u32, u32, f32, bool, bool)>> {
        vec((1..4_u32, 0..31_u32, any::<u32>(), -0.1..0.1_f32, any::<bool>(), any::<bool>()), 1..120)
    }

    extern crate std;

    proptest! {
        /// With shares of any size, rounded or not, under any loss: σ comes out exact or not at all, and all see the same v.
        #[test]
        fn sigma_is_exact_or_unknown(width in width(), rounded: bool, calm: bool, rounds in rounds()) {
            let mut encoder = Encoder::<WORDS>::new(width, 5);
            let mut listeners = [Listener::NEW, Listener::NEW];
            let (mut round, mut v, mut sigma) = (7, [0.5_f32; WORDS], [0_i32; WORDS]);
            for (skip, scale, seed, drift, first, second) in rounds {
                round += skip;
                let scale = if calm { 8 + scale % 2 } else { scale };
                let g = if rounded { width.granularity(1 << scale, 15) } else { 0 };
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
                for (listener, hears) in listeners.iter_mut().zip([first, second]) {
                    let before = listener.rho;
                    match hears.then(|| listener.hear(&out[..length], round)) {
                        Some(Ok(Sigma::Known)) => prop_assert_eq!(listener.rho, sigma),
                        Some(Ok(Sigma::Unknown)) => prop_assert_eq!(listener.rho, before),
                        Some(Err(error)) => prop_assert_eq!(error, Error::KeyUnknown),
                        None => {}
                    }
                    if hears && out[0] != BYTE {
                        prop_assert_eq!(seen.replace(listener.v).unwrap_or(listener.v), listener.v);
                    }
                }
            }
        }

        /// Error feedback: over time receivers see v on average, far below one quantum.
        #[test]
        fn what_is_shown_averages_to_v(width in width(), value in -3.0..3.0_f32) {
            let mut encoder = Encoder::<WORDS>::new(width, 0);
            let mut listener = Listener::NEW;
            let (mut sum, mut wanted) = (0.0, 0.0);
            let rounds = 640;
            for round in 1..=rounds {
                let v: [f32; WORDS] = core::array::from_fn(|i| value + (round % 16) as f32 * 0.01 * i as f32);
                let mut out = [0; 200];
                let length = encoder.encode(round, &v, &[0; WORDS], &mut out).unwrap();
                encoder.end_round(round, &v, &[0; WORDS]).unwrap();
                prop_assert_eq!(listener.hear(&out[..length], round), Ok(Sigma::Known));
                sum += f64::from(listener.v[1]);
                wanted += f64::from(v[1]);
                prop_assert!((listener.v[18] - v[18]).abs() < 0.05);
            }
            prop_assert!((sum - wanted).abs() / f64::from(rounds) < 1e-4, "{}", (sum - wanted) / f64::from(rounds));
        }

        #[test]
        fn any_bytes_are_taken_or_refused(bytes in vec(any::<u8>(), 0..170), round: u32) {
            let mut listener = Listener::NEW;
            let _ = listener.hear(&bytes, round);
        }
    }

    #[test]
    fn calm_shares_of_the_advised_granularity_are_always_told() {
        for width in [Width::Half, Width::Byte] {
            let mut encoder = Encoder::<WORDS>::new(width, 0);
            let mut listener = Listener::NEW;
            let (mut sigma, mut sizes) = ([0_i32; WORDS], [0; 3]);
            for round in 1..500 {
                let g = width.granularity(30_000, 8);
                sigma = sigma.map(|sigma| sigma.wrapping_add(30_000 >> g << g));
                let mut out = [0; 200];
                let length = encoder.encode(round, &[1.0; WORDS], &sigma, &mut out).unwrap();
                encoder.end_round(round, &[1.0; WORDS], &sigma).unwrap();
                sizes[usize::from(out[0])] += 1;
                // Seven in eight frames are lost.
                if round % 8 == 1 {
                    let told = listener.hear(&out[..length], round);
                    assert!(told == Ok(Sigma::Known) || told == Err(Error::KeyUnknown), "{round} {told:?}");
                }
            }
            assert!(sizes[0] <= 500 / width.period() + 2, "{sizes:?}");
        }
    }

    #[test]
    fn what_does_not_fit_goes_in_full() {
        let mut encoder = Encoder::<1>::new(Width::Half, 0);
        let mut out = [0; 16];
        encoder.end_round(1, &[1.0], &[0]).unwrap();
        assert_eq!(encoder.encode(2, &[1.0], &[0], &mut out), Ok(7));
        assert_eq!(encoder.encode(2, &[1e6], &[0], &mut out), Ok(9));
        assert_eq!(encoder.encode(2, &[f32::NAN], &[0], &mut out), Err(Error::NotFinite));
        assert_eq!(encoder.encode(2, &[1.0, 1.0], &[0, 0], &mut out), Err(Error::WordCount));
        assert_eq!(encoder.encode(2, &[1.0], &[0], &mut out[..6]), Err(Error::BufferTooSmall));
        encoder.reset();
        assert_eq!(encoder.encode(2, &[1.0], &[0], &mut out), Ok(9));
    }
}
