//! The receiving side of payloads.

use half::f16;

use super::super::Error;
use super::quantise::{EXPONENTS, LIMIT, shown};
use super::{BLOCK, BYTE, FULL, HALF, Width};

/// What this agent last took of the sender's σ (its ρ for that sender).
#[derive(Clone, Copy, Debug)]
pub struct Heard<'a> {
    /// The sender's round it is from; `None` if nothing was taken in this epoch.
    pub round: Option<u32>,
    /// The words.
    pub sigma: &'a [i32],
}

/// Whether a payload told σ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Sigma {
    /// It did, exactly.
    Known,
    /// It did not: ρ is too old for its few bits. ρ stays as it is until a later frame.
    Unknown,
}

/// Decodes the payloads of one sender.
///
/// It keeps the last full payload of up to `WORDS` words. With `WORDS` = 0 it reads full and half payloads only.
#[derive(Clone, Debug)]
pub struct Decoder<const WORDS: usize> {
    key: [f32; WORDS],
    key_round: Option<u32>,
}

impl<const WORDS: usize> Default for Decoder<WORDS> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const WORDS: usize> Decoder<WORDS> {
    /// Starts with nothing heard.
    #[must_use]
    pub const fn new() -> Self {
        Self { key: [0.0; WORDS], key_round: None }
    }

    /// Forgets what was heard, as a new epoch does.
    pub fn reset(&mut self) {
        self.key_round = None;
    }

    /// Reads the payload of a frame that the caller has found fresh, of exactly as many words as `v` has.
    ///
    /// When σ is unknown, `sigma` is what was heard before, so that σ − ρ is zero.
    ///
    /// # Errors
    /// [`Error::WordCount`], [`Error::Malformed`], [`Error::NotFinite`] or [`Error::KeyUnknown`], with nothing changed
    /// or written.
    pub fn decode(
        &mut self,
        payload: &[u8],
        round: u32,
        heard: Heard<'_>,
        v: &mut [f32],
        sigma: &mut [i32],
    ) -> Result<Sigma, Error> {
        let words = v.len();
        if sigma.len() != words || heard.sigma.len() != words {
            return Err(Error::WordCount);
        }
        let width = match payload.first() {
            Some(&FULL) => Width::Full,
            Some(&HALF) => Width::Half,
            Some(&BYTE) => Width::Byte,
            _ => return Err(Error::Malformed),
        };
        if payload.len() != width.payload_bytes(words) {
            return Err(Error::WordCount);
        }
        match (width, payload) {
            (Width::Full, [_, body @ ..]) => {
                let (v_in, sigma_in) = body.split_at(4 * words);
                self.read_full(v_in, round, v)?;
                for (sigma, &word) in sigma.iter_mut().zip(sigma_in.as_chunks().0) {
                    *sigma = i32::from_le_bytes(word);
                }
                Ok(Sigma::Known)
            }
            (Width::Half, &[_, window, granularity, ref body @ ..]) => {
                let bits = Bits::new(width, window, granularity)?;
                let (v_in, sigma_in) = body.split_at(2 * words);
                read_half(v_in, v)?;
                let sigma_in = sigma_in.as_chunks().0.iter().map(|&word| u32::from(u16::from_le_bytes(word)));
                Ok(bits.restore(sigma_in, round, heard, sigma))
            }
            (Width::Byte, &[_, age_window, granularity, ref body @ ..]) => {
                let bits = Bits::new(width, age_window & 0x0F, granularity)?;
                let key_round = round.checked_sub(u32::from(age_window >> 4));
                let (v_in, sigma_in) = body.split_at(words.div_ceil(BLOCK) + words);
                self.read_byte(v_in, key_round, v)?;
                Ok(bits.restore(sigma_in.iter().map(|&byte| u32::from(byte)), round, heard, sigma))
            }
            _ => Err(Error::Malformed),
        }
    }

    fn read_full(&mut self, v_in: &[u8], round: u32, v: &mut [f32]) -> Result<(), Error> {
        let v_in = v_in.as_chunks().0;
        if !v_in.iter().all(|&word| f32::from_le_bytes(word).is_finite()) {
            return Err(Error::NotFinite);
        }
        for (v, &word) in v.iter_mut().zip(v_in) {
            *v = f32::from_le_bytes(word);
        }
        if let Some(key) = self.key.get_mut(..v.len()) {
            key.copy_from_slice(v);
            // A key beyond the limit is never referred to, and without it no difference can overflow.
            let is_usable = v.iter().all(|v| v.abs() < LIMIT);
            self.key_round = is_usable.then_some(round);
        }
        Ok(())
    }

    fn read_byte(&self, v_in: &[u8], key_round: Option<u32>, v: &mut [f32]) -> Result<(), Error> {
        if key_round.is_none() || key_round != self.key_round || v.len() > WORDS {
            return Err(Error::KeyUnknown);
        }
        let (exponents, quantised) = v_in.split_at(v.len().div_ceil(BLOCK));
        if !exponents.iter().all(|&e| EXPONENTS.contains(&(e as i8))) {
            return Err(Error::Malformed);
        }
        let blocks = v.chunks_mut(BLOCK).zip(self.key.chunks(BLOCK)).zip(quantised.chunks(BLOCK));
        for (((v, key), quantised), &e) in blocks.zip(exponents) {
            for ((v, &key), &quantised) in v.iter_mut().zip(key).zip(quantised) {
                *v = shown(key, quantised as i8, e as i8);
            }
        }
        Ok(())
    }
}

fn read_half(v_in: &[u8], v: &mut [f32]) -> Result<(), Error> {
    let v_in = v_in.as_chunks().0;
    if !v_in.iter().all(|&word| f16::from_le_bytes(word).is_finite()) {
        return Err(Error::NotFinite);
    }
    for (v, &word) in v.iter_mut().zip(v_in) {
        *v = f16::from_le_bytes(word).to_f32();
    }
    Ok(())
}

/// How to read the few bits of σ that a narrow payload carries.
#[derive(Clone, Copy)]
struct Bits {
    bits: u32,
    window: u32,
    granularity: u32,
}

impl Bits {
    fn new(width: Width, window: u8, granularity: u8) -> Result<Self, Error> {
        let bits = Self { bits: width.sigma_bits(), window: window.into(), granularity: granularity.into() };
        if bits.bits + bits.granularity > 32 { Err(Error::Malformed) } else { Ok(bits) }
    }

    /// σ = ρ + 2^g · (difference of the bits, as a signed number).
    fn restore(
        self,
        sent: impl Iterator<Item = u32>,
        round: u32,
        heard: Heard<'_>,
        sigma: &mut [i32],
    ) -> Sigma {
        let age = heard.round.and_then(|heard| round.checked_sub(heard));
        if age.is_none_or(|age| age > self.window) {
            sigma.copy_from_slice(heard.sigma);
            return Sigma::Unknown;
        }
        let above = 32 - self.bits;
        for ((sigma, &rho), sent) in sigma.iter_mut().zip(heard.sigma).zip(sent) {
            let difference = sent.wrapping_sub((rho >> self.granularity) as u32);
            let difference = (difference << above) as i32 >> above;
            *sigma = rho.wrapping_add(difference << self.granularity);
        }
        Sigma::Known
    }
}
