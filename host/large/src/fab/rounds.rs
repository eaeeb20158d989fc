//! A round, whole or in the two halves between which hosts wait for each other's trackers.

use super::exchanged::Exchange;
use super::{EarlierEstimate, Fab, FabState, RoundBatch, Upper, X_STRIDE};
use crate::device::{Device, Gradient, Result};

/// Keys of what a device replays, besides whole rounds: the halves of a round, each for both parities.
const DESCENTS: usize = 2;
const PURSUITS: usize = 4;

impl<D: Device> Fab<D> {
    /// One round.
    ///
    /// # Panics
    /// When `exchange` is not of the kind the configuration asks for.
    pub fn round(&mut self, exchange: &Exchange<'_>, draw: &RoundBatch) -> Result<()> {
        self.round += 1;
        self.write_draw(draw)?;
        self.state.links.write(&self.device, self.round, exchange)?;
        self.advance()
    }

    /// The first half of a round on one of several hosts: all that needs decisions, but no trackers, of the others.
    ///
    /// # Panics
    /// When `exchange` is not of the kind the configuration asks for.
    pub fn descend(&mut self, exchange: &Exchange<'_>, draw: &RoundBatch) -> Result<()> {
        self.round = self.rounds() + 1;
        self.is_between = true;
        self.write_draw(draw)?;
        self.state.links.write(&self.device, self.round, exchange)?;
        let (parity, state) = (self.parity(), &mut self.state);
        self.device.replay(DESCENTS + parity, |device| state.descend(device, parity))?;
        // What follows may wait for other hosts; the gradient does not.
        self.device.wait()
    }

    /// The other half, with what was taken of the trackers of the others; `exchange` may leave out hosts that were lost since.
    ///
    /// # Panics
    /// When `exchange` is not of the kind the configuration asks for.
    pub fn follow(&mut self, exchange: &Exchange<'_>) -> Result<()> {
        self.state.links.write(&self.device, self.round, exchange)?;
        if let Exchange::Ledger { awake, .. } = exchange {
            self.state.lower.keep_books(&self.device, awake)?;
            if let Upper::Strength(x) = &mut self.state.upper {
                x.keep_books(&self.device, awake)?;
            }
        }
        let (parity, state) = (self.parity(), &mut self.state);
        self.device.replay(PURSUITS + parity, |device| state.follow(device, parity))?;
        self.is_between = false;
        Ok(())
    }

    /// Another round with the samples and weights of the last: what a round costs without choosing them.
    pub fn repeat(&mut self) -> Result<()> {
        self.round += 1;
        self.advance()
    }

    fn advance(&mut self) -> Result<()> {
        let (parity, state) = (self.parity(), &mut self.state);
        self.device.replay(parity, |device| {
            state.descend(device, parity)?;
            state.follow(device, parity)
        })
    }
}

impl<D: Device> FabState<D> {
    /// Decisions, and the gradient there.
    fn descend(&mut self, device: &D, parity: usize) -> Result<()> {
        self.pull(device)?;
        self.differentiate(device, parity)?;
        self.recur(device, parity)
    }

    /// Decisions: those of others, and a step.
    fn pull(&mut self, device: &D) -> Result<()> {
        let FabState { config, earlier, links, lower, decay, upper, .. } = self;
        if let Some(earlier) = earlier {
            device.copy(&lower.v, &mut earlier.v, lower.packed)?;
        }
        lower.pull(device, links)?;
        match upper {
            Upper::Strength(x) => {
                x.pull(device, links)?;
                device.decay_from(&mut x.v, X_STRIDE, lower.packed, decay, 2.0 * config.lower_weight())
            }
            _ => Ok(()),
        }
    }

    /// `d⁺` of y and z, but for their regulariser.
    pub(super) fn differentiate(&mut self, device: &D, parity: usize) -> Result<()> {
        let FabState { config, data, schedule, y, z, lower, upper, .. } = self;
        let learned_from = config.validation_batch;
        let logits = match upper {
            Upper::Logits { logits, .. } => Some((&*logits, learned_from)),
            _ => None,
        };
        device.load(y, data, schedule, 0, logits)?;
        let fresh = Some(&mut lower.d[parity]);
        match z {
            Some(z) => {
                device.load(z, data, schedule, learned_from, logits)?;
                device.run(&mut [y, z], &lower.v, fresh, lower.packed, schedule)
            }
            None => device.run(&mut [y], &lower.v, fresh, lower.packed, schedule),
        }
    }

    /// Adds what a method keeps of the last gradient, where it keeps any.
    fn recur(&mut self, device: &D, parity: usize) -> Result<()> {
        let FabState { schedule, y, earlier, lower, decay, .. } = self;
        let Some(EarlierEstimate { v, gradient, kept }) = earlier else { return Ok(()) };
        device.run(&mut [y], v, Some(gradient), lower.packed, schedule)?;
        let [even, odd] = &mut lower.d;
        let (fresh, last) = if parity == 0 { (even, &*odd) } else { (odd, &*even) };
        let newest = Gradient { fresh, last, regulariser: Some((&*v, decay)) };
        device.recur(newest, gradient, lower.packed, *kept)
    }

    /// What follows the gradient of y and z: that of x, trackers, and the logits of samples.
    pub(super) fn follow(&mut self, device: &D, parity: usize) -> Result<()> {
        let FabState { config, schedule, y, z, links, lower, decay, upper, .. } = self;
        lower.track(device, links, parity, Some(decay))?;
        match (upper, z) {
            (Upper::Strength(x), _) => {
                device.norm_gap(&lower.v, lower.packed, &mut x.d[parity], X_STRIDE, config.lower_weight())?;
                x.track(device, links, parity, None)
            }
            (Upper::Logits { logits, momentum }, Some(z)) => {
                let momentum = momentum.as_mut().map(|state| (&mut state.accumulator, state.factor));
                let learned_from = config.validation_batch;
                device.step_logits(logits, schedule, learned_from, y, z, config.steps[0], momentum)
            }
            _ => Ok(()),
        }
    }
}
