//! The sending side of payloads.

use half::f16;

use super::super::Error;
use super::motion::{Motion, Step};
use super::quantise::{LIMIT, exponent, quantise, shown};
use super::{BLOCK, BYTE, FULL, HALF, Width};

/// Encodes one sender's payloads; up to `WORDS` words.
///
/// In each round, [`encode`](Self::encode) gives the same bytes however often it is called, and
/// [`end_round`](Self::end_round) with the same values then remembers what receivers saw.
#[derive(Clone, Debug)]
pub struct Encoder<const WORDS: usize> {
    width: Width,
    phase: u32,
    /// Rounds of the last payload of any width, and of the last full one.
    last: Option<Last>,
    /// v of the last full payload.
    key: [f32; WORDS],
    /// What rounding held back from v so far.
    residual: [f32; WORDS],
    /// σ of the last payload.
    sigma: [i32; WORDS],
    motion: Motion,
}

#[derive(Clone, Copy, Debug)]
struct Last {
    round: u32,
    full: u32,
}

impl<const WORDS: usize> Encoder<WORDS> {
    /// Starts with nothing sent. `phase` (the agent's id) staggers the full frames of a swarm.
    #[must_use]
    pub const fn new(width: Width, phase: u16) -> Self {
        Self {
            width,
            phase: phase as u32,
            last: None,
            key: [0.0; WORDS],
            residual: [0.0; WORDS],
            sigma: [0; WORDS],
            motion: Motion::new(),
        }
    }

    /// Forgets what was sent, as a new epoch or a restart does: the next payload is full.
    pub fn reset(&mut self) {
        *self = Self::new(self.width, self.phase as u16);
    }

    /// Writes the payload of `round` to the start of `out` and returns its length.
    ///
    /// # Errors
    /// [`Error::WordCount`] when there are more than `WORDS` words or not as many of `sigma` as of `v`,
    /// [`Error::NotFinite`] when v has diverged, [`Error::BufferTooSmall`] when `out` is.
    pub fn encode(&self, round: u32, v: &[f32], sigma: &[i32], out: &mut [u8]) -> Result<usize, Error> {
        let width = self.width_of(round, v, sigma)?;
        let length = width.payload_bytes(v.len());
        let out = out.get_mut(..length).ok_or(Error::BufferTooSmall)?;
        match (width, self.last) {
            (Width::Half, Some(last)) => self.encode_half(last, round, v, sigma, out),
            (Width::Byte, Some(last)) => self.encode_byte(last, round, v, sigma, out),
            // Adding a residual of zero would still turn −0 into +0.
            _ if self.width == Width::Full => encode_full(v.iter().copied(), sigma, out),
            _ => encode_full(self.targets(v), sigma, out),
        }
        Ok(length)
    }

    /// Remembers what was sent in `round`; call it once, before v and σ change.
    ///
    /// # Errors
    /// Those of [`encode`](Self::encode), with nothing changed.
    pub fn end_round(&mut self, round: u32, v: &[f32], sigma: &[i32]) -> Result<(), Error> {
        let width = self.width_of(round, v, sigma)?;
        if self.width == Width::Full {
            return Ok(());
        }
        match width {
            Width::Full => {
                for ((key, residual), &v) in self.key.iter_mut().zip(&mut self.residual).zip(v) {
                    *key = v + core::mem::take(residual);
                }
            }
            Width::Half => {
                for (residual, &v) in self.residual.iter_mut().zip(v) {
                    let target = v + *residual;
                    *residual = target - f16::from_f32(target).to_f32();
                }
            }
            Width::Byte => {
                let blocks = self.residual.chunks_mut(BLOCK).zip(self.key.chunks(BLOCK)).zip(v.chunks(BLOCK));
                for ((residual, key), v) in blocks {
                    let e = block_exponent(v, residual, key);
                    for ((residual, &key), &v) in residual.iter_mut().zip(key).zip(v) {
                        let target = v + *residual;
                        *residual = target - shown(key, quantise(target - key, e), e);
                    }
                }
            }
        }
        match self.last {
            Some(last) if round > last.round => {
                self.motion.push(Step::between(&self.sigma, sigma), round - last.round);
            }
            _ => self.motion = Motion::new(),
        }
        for (held, &sigma) in self.sigma.iter_mut().zip(sigma) {
            *held = sigma;
        }
        let full = match (width, self.last) {
            (Width::Half | Width::Byte, Some(last)) => last.full,
            _ => round,
        };
        self.last = Some(Last { round, full });
        Ok(())
    }

    /// How wide the payload of `round` is: narrow if it may be and if every word fits.
    fn width_of(&self, round: u32, v: &[f32], sigma: &[i32]) -> Result<Width, Error> {
        if v.len() > WORDS || v.len() != sigma.len() {
            return Err(Error::WordCount);
        }
        if !self.targets(v).all(f32::is_finite) {
            return Err(Error::NotFinite);
        }
        let period = self.width.period();
        let is_due = self.last.is_none_or(|last| {
            round <= last.round
                || round - last.full >= period
                || round.wrapping_add(self.phase).is_multiple_of(period)
        });
        let mut targets = self.targets(v);
        let fits = match self.width {
            Width::Full => false,
            Width::Half => targets.all(|target| target.abs() <= f16::MAX.to_f32_const()),
            Width::Byte => {
                targets.zip(&self.key).all(|(target, key)| key.abs() < LIMIT && (target - key).abs() < LIMIT)
            }
        };
        Ok(if is_due || !fits { Width::Full } else { self.width })
    }

    /// v with what rounding held back before.
    fn targets(&self, v: &[f32]) -> impl Iterator<Item = f32> {
        v.iter().zip(&self.residual).map(|(v, residual)| v + residual)
    }

    fn encode_half(&self, last: Last, round: u32, v: &[f32], sigma: &[i32], out: &mut [u8]) {
        let step = Step::between(&self.sigma, sigma);
        let window = self.motion.window(Width::Half, step, round - last.round);
        let Some((header, words)) = out.split_first_chunk_mut() else {
            return;
        };
        *header = [HALF, window.rounds, window.granularity];
        let (v_out, sigma_out) = words.split_at_mut(2 * v.len());
        for (out, target) in v_out.as_chunks_mut().0.iter_mut().zip(self.targets(v)) {
            *out = f16::from_f32(target).to_le_bytes();
        }
        for (out, &sigma) in sigma_out.as_chunks_mut().0.iter_mut().zip(sigma) {
            *out = ((sigma >> window.granularity) as u16).to_le_bytes();
        }
    }

    fn encode_byte(&self, last: Last, round: u32, v: &[f32], sigma: &[i32], out: &mut [u8]) {
        let step = Step::between(&self.sigma, sigma);
        let window = self.motion.window(Width::Byte, step, round - last.round);
        let Some((header, words)) = out.split_first_chunk_mut() else {
            return;
        };
        // Both are below 16: a full payload is at most 15 rounds away.
        let age = (round - last.full) as u8;
        *header = [BYTE, age << 4 | window.rounds, window.granularity];
        let (exponents, words) = words.split_at_mut(v.len().div_ceil(BLOCK));
        let (v_out, sigma_out) = words.split_at_mut(v.len());
        let blocks = v.chunks(BLOCK).zip(self.residual.chunks(BLOCK)).zip(self.key.chunks(BLOCK));
        for ((((v, residual), key), e_out), v_out) in blocks.zip(exponents).zip(v_out.chunks_mut(BLOCK)) {
            let e = block_exponent(v, residual, key);
            *e_out = e as u8;
            for (((out, &v), residual), key) in v_out.iter_mut().zip(v).zip(residual).zip(key) {
                *out = quantise(v + residual - key, e) as u8;
            }
        }
        for (out, &sigma) in sigma_out.iter_mut().zip(sigma) {
            *out = (sigma >> window.granularity) as u8;
        }
    }
}

fn encode_full(v: impl Iterator<Item = f32>, sigma: &[i32], out: &mut [u8]) {
    let Some((kind, words)) = out.split_first_mut() else {
        return;
    };
    *kind = FULL;
    let (v_out, sigma_out) = words.split_at_mut(4 * sigma.len());
    for (out, v) in v_out.as_chunks_mut().0.iter_mut().zip(v) {
        *out = v.to_le_bytes();
    }
    for (out, sigma) in sigma_out.as_chunks_mut().0.iter_mut().zip(sigma) {
        *out = sigma.to_le_bytes();
    }
}

fn block_exponent(v: &[f32], residual: &[f32], key: &[f32]) -> i8 {
    let differences = v.iter().zip(residual).zip(key).map(|((v, residual), key)| (v + residual - key).abs());
    exponent(differences.fold(0.0, f32::max))
}
