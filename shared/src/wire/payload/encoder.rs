//! The sending side of payloads.

use super::super::Error;
use super::decision_history::{DecisionHistory, DecisionRange, GENERATION};
use super::quantise::{LIMIT, dequantise, exponent_of_changes, exponent_of_words, multiple};
use super::sigma_history::{SigmaHistory, advice};
use super::{BLOCK, BYTE, FULL, HALF, SIGMA_OMITTED, Width, first_sigma_word};

/// Encodes one sender's payloads; up to `WORDS` words.
///
/// Within a round [`encode`](Self::encode) returns the same bytes however often it is called, and
/// [`end_round`](Self::end_round) with the same values then records what receivers saw.
#[derive(Clone, Debug)]
pub struct Encoder<const WORDS: usize> {
    width: Width,
    phase: u32,
    /// The part of v that rounding has held back so far.
    residual: [f32; WORDS],
    /// First round of the epoch, where it is known.
    epoch_round: Option<u32>,
    sent: Option<SendHistory<WORDS>>,
}

/// The first payloads of an epoch are full: each receiver needs one before it can read narrow ones.
const EARLY: u32 = 64;

/// The words that were sent before.
#[derive(Clone, Debug)]
struct SendHistory<const WORDS: usize> {
    round: u32,
    decisions: DecisionHistory<WORDS>,
    sigma: SigmaHistory<WORDS>,
}

impl<const WORDS: usize> Encoder<WORDS> {
    /// Starts in the middle of an epoch, as after a restart with memory. `phase` (the agent's id) staggers the full
    /// payloads of a swarm.
    pub const fn new(width: Width, phase: u16) -> Self {
        Self { width, phase: phase as u32, residual: [0.0; WORDS], epoch_round: None, sent: None }
    }

    /// Starts an epoch in `round`: all receivers know that σ was zero before it.
    pub fn begin_epoch(&mut self, round: u32) {
        *self = Self { epoch_round: Some(round), ..Self::new(self.width, self.phase as u16) };
    }

    /// The exponent g for this round: shares up to `largest` in magnitude should be multiples of 2^g, so that 16 bits of σ
    /// suffice.
    pub fn granularity(&self, largest: u32) -> u8 {
        match (self.width, &self.sent) {
            (Width::Full, _) => 0,
            (_, Some(sent)) => sent.sigma.advice(largest),
            (_, None) => advice(0, largest),
        }
    }

    /// Writes the payload of `round` to the start of `out` and returns its length.
    ///
    /// # Errors
    /// [`Error::WordCount`] when there are more than `WORDS` words or not as many of `sigma` as of `v`,
    /// [`Error::NotFinite`] when v has diverged, [`Error::BufferTooSmall`] when `out` is.
    pub fn encode(&self, round: u32, v: &[f32], sigma: &[i32], out: &mut [u8]) -> Result<usize, Error> {
        let width = self.width_of(round, v, sigma)?;
        let length = width.length(v.len(), round);
        let out = out.get_mut(..length).ok_or(Error::BufferTooSmall)?;
        match (width, &self.sent) {
            (Width::Half, Some(sent)) => self.encode_half(sent, round, v, sigma, out),
            (Width::Byte, Some(sent)) => self.encode_byte(sent, round, v, sigma, out),
            // Adding a residual of zero would still turn −0 into +0.
            _ if self.width == Width::Full => encode_full(v.iter().copied(), sigma, out),
            _ => encode_full(self.targets(v), sigma, out),
        }
        Ok(length)
    }

    /// Records what was sent in `round`; call it once, before v and σ change.
    ///
    /// # Errors
    /// Those of [`encode`](Self::encode), with nothing changed.
    pub fn end_round(&mut self, round: u32, v: &[f32], sigma: &[i32]) -> Result<(), Error> {
        let width = self.width_of(round, v, sigma)?;
        if self.width == Width::Full {
            return Ok(());
        }
        let mut seen = [0.0; WORDS];
        for (seen, target) in seen.iter_mut().zip(self.targets(v)) {
            *seen = target;
        }
        if let (Width::Half | Width::Byte, Some(sent)) = (width, &self.sent) {
            for (words, ranges) in seen.chunks_mut(BLOCK).zip(sent.decisions.ranges().chunks(BLOCK)) {
                let e = block_exponent(width, words.iter().copied(), ranges);
                words.iter_mut().for_each(|v| *v = dequantise(multiple(*v, e), e));
            }
        }
        for ((residual, &v), seen) in self.residual.iter_mut().zip(v).zip(&seen) {
            *residual = (v + *residual) - seen;
        }
        match &mut self.sent {
            Some(sent) if sent.is_followed_by(round) => {
                sent.round = round;
                sent.decisions.add(round, &seen);
                sent.sigma.add(round, sigma);
            }
            _ => {
                let is_whole = self.sent.is_none() && self.epoch_round.is_some();
                let (decisions, sigma) =
                    (DecisionHistory::new(round, &seen), SigmaHistory::new(round, is_whole, sigma));
                self.sent = Some(SendHistory { round, decisions, sigma });
            }
        }
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
        let is_early = self.epoch_round.is_some_and(|first| round.wrapping_sub(first) < EARLY);
        let is_due = is_early || round.wrapping_add(self.phase).is_multiple_of(self.width.period());
        let fits = self.sent.as_ref().is_some_and(|sent| {
            let mut words = self.targets(v).zip(sent.decisions.ranges());
            sent.is_followed_by(round) && words.all(|(v, range)| v.abs() < LIMIT && range.reach(v) < LIMIT)
        });
        Ok(if is_due || !fits { Width::Full } else { self.width })
    }

    /// v plus what rounding held back before.
    fn targets(&self, v: &[f32]) -> impl Iterator<Item = f32> {
        v.iter().zip(&self.residual).map(|(v, residual)| v + residual)
    }

    fn encode_half(&self, sent: &SendHistory<WORDS>, round: u32, v: &[f32], sigma: &[i32], out: &mut [u8]) {
        let granularity = sent.sigma.granularity(sigma).unwrap_or(SIGMA_OMITTED);
        let Some((header, words)) = out.split_first_chunk_mut() else { return };
        *header = [HALF, sent.sigma.window(round), granularity];
        let (exponents, words) = words.split_at_mut(v.len().div_ceil(BLOCK));
        let (v_out, sigma_out) = words.split_at_mut(2 * v.len());
        let mut v_out = v_out.as_chunks_mut().0.iter_mut();
        self.write_v(Width::Half, sent, v, exponents, |multiple| {
            if let Some(out) = v_out.next() {
                *out = (multiple as u16).to_le_bytes();
            }
        });
        write_sigma(sigma.iter(), granularity, sigma_out);
    }

    fn encode_byte(&self, sent: &SendHistory<WORDS>, round: u32, v: &[f32], sigma: &[i32], out: &mut [u8]) {
        let granularity = sent.sigma.granularity(sigma).unwrap_or(SIGMA_OMITTED);
        let Some((header, words)) = out.split_first_chunk_mut() else { return };
        *header = [BYTE, sent.decisions.window(round), sent.sigma.window(round), granularity];
        let (exponents, words) = words.split_at_mut(v.len().div_ceil(BLOCK));
        let (v_out, sigma_out) = words.split_at_mut(v.len());
        let mut v_out = v_out.iter_mut();
        self.write_v(Width::Byte, sent, v, exponents, |multiple| {
            if let Some(out) = v_out.next() {
                *out = multiple as u8;
            }
        });
        write_sigma(sigma.iter().skip(first_sigma_word(round)).step_by(2), granularity, sigma_out);
    }

    /// Writes the exponents and passes the multiples on.
    fn write_v(
        &self,
        width: Width,
        sent: &SendHistory<WORDS>,
        v: &[f32],
        exponents: &mut [u8],
        mut write: impl FnMut(i32),
    ) {
        let blocks =
            v.chunks(BLOCK).zip(self.residual.chunks(BLOCK)).zip(sent.decisions.ranges().chunks(BLOCK));
        for (((v, residual), ranges), out) in blocks.zip(exponents) {
            let targets = v.iter().zip(residual).map(|(v, residual)| v + residual);
            let e = block_exponent(width, targets.clone(), ranges);
            *out = e as u8;
            targets.for_each(|target| write(multiple(target, e)));
        }
    }
}

impl<const WORDS: usize> SendHistory<WORDS> {
    /// Whether a payload of `round` may build on these: not after going back, nor after a long silence.
    fn is_followed_by(&self, round: u32) -> bool {
        round.checked_sub(self.round).is_some_and(|later| (1..=GENERATION).contains(&later))
    }
}

fn encode_full(v: impl Iterator<Item = f32>, sigma: &[i32], out: &mut [u8]) {
    let Some((kind, words)) = out.split_first_mut() else { return };
    *kind = FULL;
    let (v_out, sigma_out) = words.split_at_mut(4 * sigma.len());
    for (out, v) in v_out.as_chunks_mut().0.iter_mut().zip(v) {
        *out = v.to_le_bytes();
    }
    for (out, sigma) in sigma_out.as_chunks_mut().0.iter_mut().zip(sigma) {
        *out = sigma.to_le_bytes();
    }
}

fn write_sigma<'a>(sigma: impl Iterator<Item = &'a i32>, granularity: u8, out: &mut [u8]) {
    // Nothing reads this when no word is sent.
    let shift = if granularity == SIGMA_OMITTED { 0 } else { granularity };
    for (out, &sigma) in out.as_chunks_mut().0.iter_mut().zip(sigma) {
        *out = ((sigma >> shift) as u16).to_le_bytes();
    }
}

fn block_exponent(width: Width, targets: impl Iterator<Item = f32>, ranges: &[DecisionRange]) -> i8 {
    let (mut magnitude, mut reach) = (0.0_f32, 0.0_f32);
    for (target, range) in targets.zip(ranges) {
        magnitude = magnitude.max(target.abs());
        reach = reach.max(range.reach(target));
    }
    if width == Width::Half { exponent_of_words(magnitude) } else { exponent_of_changes(magnitude, reach) }
}
