//! The receiving side of payloads.

use super::super::Error;
use super::quantise::{EXPONENTS, dequantise, restore};
use super::sigma_history::WINDOW_UNIT;
use super::{BLOCK, BYTE, EPOCH, FULL, HALF, SIGMA_OMITTED, Width, first_sigma_word};
use crate::linear::first_invalid;

/// Decodes the payloads of one sender.
///
/// It keeps the last v of up to `WORDS` words; with `WORDS` = 0 it reads full and half payloads only. What it returns
/// must be taken: the next payload may build on it.
#[derive(Clone, Debug)]
pub struct Decoder<const WORDS: usize> {
    v: [f32; WORDS],
    v_round: Option<u32>,
    /// The receiver's knowledge of σ, of even and of odd words.
    rho: [RhoOrigin; 2],
}

/// The age of the receiver's ρ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RhoOrigin {
    /// Not known to this decoder.
    Unknown,
    /// From the beginning of the epoch: zero.
    Zero,
    /// From this round.
    From(u32),
}

impl<const WORDS: usize> Default for Decoder<WORDS> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const WORDS: usize> Decoder<WORDS> {
    /// Starts with an epoch, with ρ = 0.
    pub const fn new() -> Self {
        Self { v: [0.0; WORDS], v_round: None, rho: [RhoOrigin::Zero; 2] }
    }

    /// Forgets every payload, as after a restart with memory. The words that are left are never looked at.
    pub const fn forget(&mut self) {
        self.v_round = None;
        self.rho = [RhoOrigin::Unknown; 2];
    }

    /// Forgets every payload, as at the start of an epoch with ρ = 0.
    pub const fn start_epoch(&mut self) {
        self.v_round = None;
        self.rho = [RhoOrigin::Zero; 2];
    }

    /// Reads the payload of a frame that the caller has found newer than the last, of exactly as many words as `v` has. Returns
    /// whether `v` is known: it is not, and left as it is, where it was sent as a change from a payload that was not received.
    ///
    /// `rho` is what the caller last took of the sender's σ. Words of `sigma` that the payload does not hold, or that build on a
    /// newer ρ, are set to those of `rho`, so that nothing is taken for them.
    ///
    /// # Errors
    /// [`Error::WordCount`], [`Error::Malformed`] or [`Error::NotFinite`], with nothing changed or written.
    pub fn decode(
        &mut self,
        payload: &[u8],
        round: u32,
        rho: &[i32],
        v: &mut [f32],
        sigma: &mut [i32],
    ) -> Result<bool, Error> {
        let words = v.len();
        if sigma.len() != words || rho.len() != words {
            return Err(Error::WordCount);
        }
        let width = match payload.first() {
            Some(&FULL) => Width::Full,
            Some(&HALF) => Width::Half,
            Some(&BYTE) => Width::Byte,
            _ => return Err(Error::Malformed),
        };
        if payload.len() != width.length(words, round) {
            return Err(Error::WordCount);
        }
        let is_v_known = match (width, payload) {
            (Width::Full, [_, body @ ..]) => {
                let (v_in, sigma_in) = body.split_at(4 * words);
                read_full(v_in, v)?;
                for (sigma, &word) in sigma.iter_mut().zip(sigma_in.as_chunks().0) {
                    *sigma = i32::from_le_bytes(word);
                }
                self.rho = [RhoOrigin::From(round); 2];
                true
            }
            (Width::Half, &[_, window, granularity, ref body @ ..]) => {
                let bits = SigmaBits::new(granularity)?;
                let (exponents, words_in) = body.split_at(words.div_ceil(BLOCK));
                let (v_in, sigma_in) = words_in.split_at(2 * words);
                read_half(exponents, v_in.as_chunks().0, v)?;
                sigma.copy_from_slice(rho);
                let is_told = self.rho.iter().all(|rho| rho.is_within(window, round));
                if let Some(bits) = bits.filter(|_| is_told) {
                    bits.restore(sigma_in, sigma.iter_mut());
                    self.rho = [RhoOrigin::From(round); 2];
                }
                true
            }
            (Width::Byte, &[_, v_window, window, granularity, ref body @ ..]) => {
                let bits = SigmaBits::new(granularity)?;
                let age = self.v_round.and_then(|heard| round.checked_sub(heard));
                let base = self.v.get(..words).filter(|_| age.is_some_and(|age| age <= v_window.into()));
                let (exponents, words_in) = body.split_at(words.div_ceil(BLOCK));
                let (v_in, sigma_in) = words_in.split_at(words);
                if let Some(base) = base {
                    read_byte(exponents, v_in, base, v)?;
                }
                sigma.copy_from_slice(rho);
                let first = first_sigma_word(round);
                if let Some(bits) = bits.filter(|_| self.rho[first].is_within(window, round)) {
                    bits.restore(sigma_in, sigma.iter_mut().skip(first).step_by(2));
                    self.rho[first] = RhoOrigin::From(round);
                }
                base.is_some()
            }
            _ => return Err(Error::Malformed),
        };
        if let Some(held) = self.v.get_mut(..words).filter(|_| is_v_known) {
            held.copy_from_slice(v);
            self.v_round = Some(round);
        }
        Ok(is_v_known)
    }
}

fn read_full(v_in: &[u8], v: &mut [f32]) -> Result<(), Error> {
    let v_in = v_in.as_chunks().0;
    if first_invalid(v_in, |word| f32::from_le_bytes(word).is_finite()).is_some() {
        return Err(Error::NotFinite);
    }
    for (v, &word) in v.iter_mut().zip(v_in) {
        *v = f32::from_le_bytes(word);
    }
    Ok(())
}

fn read_half(exponents: &[u8], v_in: &[[u8; 2]], v: &mut [f32]) -> Result<(), Error> {
    check_exponents(exponents)?;
    let word = |&word: &[u8; 2], e: u8| dequantise(i16::from_le_bytes(word).into(), e as i8);
    let blocks = || v_in.chunks(BLOCK).zip(exponents);
    if !blocks().all(|(words, &e)| words.iter().all(|w| word(w, e).is_finite())) {
        return Err(Error::NotFinite);
    }
    for (v, (words, &e)) in v.chunks_mut(BLOCK).zip(blocks()) {
        for (v, w) in v.iter_mut().zip(words) {
            *v = word(w, e);
        }
    }
    Ok(())
}

fn read_byte(exponents: &[u8], v_in: &[u8], base: &[f32], v: &mut [f32]) -> Result<(), Error> {
    check_exponents(exponents)?;
    let word = |(&base, &low): (&f32, &u8), e: u8| dequantise(restore(base, low, e as i8), e as i8);
    let blocks = || base.chunks(BLOCK).zip(v_in.chunks(BLOCK)).zip(exponents);
    if !blocks().all(|((base, low), &e)| base.iter().zip(low).all(|w| word(w, e).is_finite())) {
        return Err(Error::NotFinite);
    }
    for (v, ((base, low), &e)) in v.chunks_mut(BLOCK).zip(blocks()) {
        for (v, w) in v.iter_mut().zip(base.iter().zip(low)) {
            *v = word(w, e);
        }
    }
    Ok(())
}

fn check_exponents(exponents: &[u8]) -> Result<(), Error> {
    if exponents.iter().all(|&e| EXPONENTS.contains(&(e as i8))) { Ok(()) } else { Err(Error::Malformed) }
}

impl RhoOrigin {
    /// Whether a payload of `round` with this window can build on it.
    fn is_within(self, window: u8, round: u32) -> bool {
        match self {
            Self::Unknown => false,
            Self::Zero => window == EPOCH,
            Self::From(heard) => round
                .checked_sub(heard)
                .is_some_and(|age| window == EPOCH || age <= WINDOW_UNIT * u32::from(window)),
        }
    }
}

/// How the 16 bits of σ in a narrow payload are read.
#[derive(Clone, Copy)]
struct SigmaBits {
    granularity: u8,
}

impl SigmaBits {
    fn new(granularity: u8) -> Result<Option<Self>, Error> {
        match granularity {
            0..=16 => Ok(Some(Self { granularity })),
            SIGMA_OMITTED => Ok(None),
            _ => Err(Error::Malformed),
        }
    }

    /// σ = ρ + 2^g · (difference of the bits, as a signed number), with ρ in `sigma` before and σ after.
    fn restore<'a>(self, sent: &[u8], sigma: impl Iterator<Item = &'a mut i32>) {
        for (sigma, &sent) in sigma.zip(sent.as_chunks().0) {
            let difference = u16::from_le_bytes(sent).wrapping_sub((*sigma >> self.granularity) as u16);
            *sigma = sigma.wrapping_add(i32::from(difference as i16) << self.granularity);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORDS: usize = 4;

    /// Decodes a payload that builds on ρ and v of up to a window ago: whether it told v, and words of σ.
    fn decode(decoder: &mut Decoder<WORDS>, width: Width, window: u8, round: u32) -> (bool, usize) {
        let head: &[u8] = match width {
            Width::Full => &[FULL],
            Width::Half => &[HALF, window, 0],
            Width::Byte => &[BYTE, window, window, 0],
        };
        let mut payload = [0; Width::Full.length(WORDS, 0)];
        payload[..head.len()].copy_from_slice(head);
        let payload = &payload[..width.length(WORDS, round)];
        let mut sigma = [0; WORDS];
        // σ is zero, so that words are told which are not those of ρ any longer.
        let v = decoder.decode(payload, round, &[1; WORDS], &mut [0.0; WORDS], &mut sigma).unwrap();
        (v, sigma.iter().filter(|&&word| word == 0).count())
    }

    /// ρ is zero again, so a payload that builds on an older one would be put together wrongly.
    #[test]
    fn a_new_epoch_forgets_what_payloads_build_on() {
        let mut decoder = Decoder::new();
        assert_eq!(decode(&mut decoder, Width::Full, 0, 7), (true, 4));
        assert_eq!(decode(&mut decoder, Width::Half, 1, 8), (true, 4));
        assert_eq!(decode(&mut decoder, Width::Byte, 1, 9), (true, 2));
        decoder.start_epoch();
        assert_eq!(decode(&mut decoder.clone(), Width::Byte, 1, 10), (false, 0));
        assert_eq!(decode(&mut decoder.clone(), Width::Half, 1, 10), (true, 0));
        assert_eq!(decode(&mut decoder, Width::Half, EPOCH, 10), (true, 4));
    }
}
