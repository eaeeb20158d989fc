//! A round, whole or in the two halves between which hosts wait for each other's trackers.

use super::exchange::Exchange;
use super::{EarlierEstimate, Fab, FabState, RoundBatch, SampleLogits};
use crate::device::{Device, Gradient, Result};

/// Steps that a device records once for each parity, and replays. The numbers are their keys.
#[derive(Clone, Copy)]
enum GraphKey {
    /// A whole round.
    Round = 0,
    /// Its first half.
    Descent = 2,
    /// Its second half.
    Tracking = 4,
}

/// Added to the key of a graph that closes the last round first, where rounds may be open.
const CLOSED: usize = 6;

impl<D: Device> Fab<D> {
    /// One round.
    ///
    /// # Errors
    /// When the device fails, or `exchange` is not of the kind the configuration asks for.
    pub fn round(&mut self, exchange: &Exchange, draw: &RoundBatch) -> Result<()> {
        self.round += 1;
        self.write_draw(draw)?;
        self.state.mixing.write(&self.device, exchange)?;
        self.advance()
    }

    /// The first half of a round on one of several hosts: all that needs decisions, but no trackers, of the others.
    ///
    /// # Errors
    /// As [`Fab::round`].
    pub fn descend(&mut self, exchange: &Exchange, draw: &RoundBatch) -> Result<()> {
        self.round = self.rounds() + 1;
        self.is_between = true;
        self.write_draw(draw)?;
        self.state.mixing.write(&self.device, exchange)?;
        let (key, parity, state) = (self.key(GraphKey::Descent), self.parity(), &mut self.state);
        self.device.replay(key, |device| state.descend(device, parity))?;
        state.sets[0].open();
        // The next steps may wait for other hosts; the gradient does not.
        self.device.wait()
    }

    /// The other half, with what was taken of the trackers of the others.
    pub fn track_gradients(&mut self) -> Result<()> {
        let (parity, state) = (self.parity(), &mut self.state);
        self.device
            .replay(GraphKey::Tracking as usize + parity, |device| state.track_gradients(device, parity))?;
        self.is_between = false;
        Ok(())
    }

    /// Another round with the samples and weights of the last: what a round costs without choosing them.
    pub fn repeat(&mut self) -> Result<()> {
        self.round += 1;
        self.advance()
    }

    fn advance(&mut self) -> Result<()> {
        let (key, parity, state) = (self.key(GraphKey::Round), self.parity(), &mut self.state);
        self.device.replay(key, |device| {
            state.descend(device, parity)?;
            state.track_gradients(device, parity)
        })?;
        state.sets[0].open();
        Ok(())
    }

    /// The key of `steps`, which differ with the parity of the round and with whether the last one is open.
    fn key(&self, steps: GraphKey) -> usize {
        steps as usize + self.parity() + if self.state.sets[0].is_closed() { CLOSED } else { 0 }
    }
}

impl<D: Device> FabState<D> {
    /// Decisions, and the gradient there.
    fn descend(&mut self, device: &D, parity: usize) -> Result<()> {
        self.load(device)?;
        self.pull(device)?;
        self.differentiate(device, parity)?;
        self.recur(device, parity)
    }

    /// The samples of the round, with their weights.
    pub(super) fn load(&mut self, device: &D) -> Result<()> {
        let FabState { data, schedule, y, z, logits, .. } = self;
        let logits = logits.as_ref().map(|samples| &samples.logits);
        device.load(y, data, schedule, 1.0, logits)?;
        z.as_mut().map_or(Ok(()), |z| device.load(z, data, schedule, -1.0, logits))
    }

    /// Decisions: those of others, and a step.
    fn pull(&mut self, device: &D) -> Result<()> {
        let FabState { config, earlier, mixing, sets, decay, .. } = self;
        if let Some(earlier) = earlier {
            device.copy(&sets[0].v, &mut earlier.v, sets[0].packed)?;
        }
        sets.iter_mut().try_for_each(|set| mixing.pull(device, set, decay))?;
        if let [lower, x] = &mut sets[..] {
            device.decay_from(&mut x.v, lower.packed, decay, 2.0 * config.lower_weight())?;
        }
        Ok(())
    }

    /// `d⁺` of y and z, but for their regulariser, and the step of the samples' logits.
    pub(super) fn differentiate(&mut self, device: &D, parity: usize) -> Result<()> {
        let FabState { config, schedule, y, z, sets, logits, .. } = self;
        let lower = &mut sets[0];
        let fresh = Some(&mut lower.d[lower.tracking.gradient(parity)]);
        let mut passes: Vec<&mut D::Pass> = [&mut *y].into_iter().chain(z.as_mut()).collect();
        device.run(&mut passes, &lower.v, fresh, lower.packed, schedule)?;
        if let (Some(SampleLogits { logits, momentum }), Some(z)) = (logits, z) {
            let momentum = momentum.as_mut().map(|state| (&mut state.accumulator, state.factor));
            let step = config.gap_weight() * config.steps[0];
            device.step_logits(logits, schedule, [y, z], step, momentum)?;
        }
        Ok(())
    }

    /// Adds what a method keeps of the last gradient, where it keeps any.
    fn recur(&mut self, device: &D, parity: usize) -> Result<()> {
        let FabState { schedule, y, earlier, sets, decay, .. } = self;
        let Some(EarlierEstimate { v, gradient, kept }) = earlier else { return Ok(()) };
        let packed = sets[0].packed;
        device.run(&mut [y], v, Some(gradient), packed, schedule)?;
        let newest = Gradient { regulariser: Some((&*v, decay)), ..sets[0].pursuit(parity, None).1 };
        device.recur(newest, gradient, packed, *kept)
    }

    /// The steps after the gradient of y and z: the gradient of x, and trackers.
    pub(super) fn track_gradients(&mut self, device: &D, parity: usize) -> Result<()> {
        let FabState { config, mixing, sets, decay, .. } = self;
        mixing.track(device, &mut sets[0], parity, Some(decay))?;
        if let [lower, x] = &mut sets[..] {
            let scale = config.gap_weight() * config.lower_weight();
            device.norm_gap(&lower.v, lower.packed, &mut x.d[parity], scale)?;
            mixing.track(device, x, parity, None)?;
        }
        Ok(())
    }
}
