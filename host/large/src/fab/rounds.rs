//! A round, whole or in the two halves between which hosts wait for each other's trackers.

use super::exchanged::{DeviceLinks, Exchange, ExchangedVectors};
use super::{EarlierEstimate, Fab, FabConfig, Passes, RoundBatch, Upper, X_STRIDE};
use crate::device::{BatchSchedule, Device, DeviceDataset, Gradient, Result};

/// Keys of what a device replays, besides whole rounds: the halves of a round, each for both parities.
const DESCENTS: usize = 2;
const PURSUITS: usize = 4;

impl<D: Device> Fab<D> {
    /// One round.
    ///
    /// # Errors
    /// When the device fails.
    ///
    /// # Panics
    /// When `exchange` is not of the kind the configuration asks for.
    pub fn round(&mut self, exchange: &Exchange<'_>, draw: &RoundBatch) -> Result<()> {
        self.round += 1;
        self.write_draw(draw)?;
        self.links.write(&self.device, exchange)?;
        self.advance()
    }

    /// The first half of a round on one of several hosts: all that needs decisions, but no trackers, of the others.
    ///
    /// # Errors
    /// When the device fails.
    ///
    /// # Panics
    /// When `exchange` is not of the kind the configuration asks for.
    pub fn descend(&mut self, exchange: &Exchange<'_>, draw: &RoundBatch) -> Result<()> {
        self.round = self.rounds() + 1;
        self.is_between = true;
        self.write_draw(draw)?;
        self.links.write(&self.device, exchange)?;
        let parity = self.parity();
        let Fab { device, config, data, schedule, passes, earlier, links, lower, decay, upper, .. } = self;
        device.replay(DESCENTS + parity, |device| {
            descend(device, config, data, schedule, passes, earlier, links, lower, decay, upper, parity)
        })?;
        // What follows may wait for other hosts; the gradient does not.
        device.wait()
    }

    /// The other half, with what was taken of the trackers of the others; `exchange` may leave out hosts that were lost since.
    ///
    /// # Errors
    /// When the device fails.
    ///
    /// # Panics
    /// When `exchange` is not of the kind the configuration asks for.
    pub fn follow(&mut self, exchange: &Exchange<'_>) -> Result<()> {
        self.links.write(&self.device, exchange)?;
        if let Exchange::Ledger { awake, .. } = exchange {
            self.lower.keep_books(&self.device, awake)?;
            if let Upper::Strength(x) = &mut self.upper {
                x.keep_books(&self.device, awake)?;
            }
        }
        let parity = self.parity();
        let Fab { device, config, schedule, passes, links, lower, decay, upper, .. } = self;
        device.replay(PURSUITS + parity, |device| {
            follow(device, config, schedule, passes, links, lower, decay, upper, parity)
        })?;
        self.is_between = false;
        Ok(())
    }

    /// Another round with the samples and weights of the last: what a round costs without choosing them.
    ///
    /// # Errors
    /// When the device fails.
    pub fn repeat(&mut self) -> Result<()> {
        self.round += 1;
        self.advance()
    }

    fn advance(&mut self) -> Result<()> {
        let parity = self.parity();
        let Fab { device, config, data, schedule, passes, earlier, links, lower, decay, upper, .. } = self;
        device.replay(parity, |device| {
            descend(device, config, data, schedule, passes, earlier, links, lower, decay, upper, parity)?;
            follow(device, config, schedule, passes, links, lower, decay, upper, parity)
        })
    }
}

/// Decisions, and the gradient there.
#[expect(clippy::too_many_arguments, reason = "disjoint fields of one struct")]
fn descend<D: Device>(
    device: &D,
    config: &FabConfig,
    data: &DeviceDataset<D>,
    schedule: &BatchSchedule<D>,
    passes: &mut Passes<D>,
    earlier: &mut Option<EarlierEstimate<D>>,
    links: &DeviceLinks<D>,
    lower: &mut ExchangedVectors<D>,
    decay: &mut D::Reals,
    upper: &mut Upper<D>,
    parity: usize,
) -> Result<()> {
    pull(device, config, schedule, earlier.as_mut(), links, lower, decay, upper)?;
    differentiate(device, config, data, schedule, passes, earlier.as_mut(), lower, decay, upper, parity)
}

/// Decisions: those of others, and a step.
#[expect(clippy::too_many_arguments, reason = "disjoint fields of one struct")]
fn pull<D: Device>(
    device: &D,
    config: &FabConfig,
    schedule: &BatchSchedule<D>,
    earlier: Option<&mut EarlierEstimate<D>>,
    links: &DeviceLinks<D>,
    lower: &mut ExchangedVectors<D>,
    decay: &mut D::Reals,
    upper: &mut Upper<D>,
) -> Result<()> {
    if let Some(earlier) = earlier {
        device.copy(&lower.v, &mut earlier.v, lower.packed)?;
    }
    lower.pull(device, links, &schedule.round)?;
    match upper {
        Upper::Strength(x) => {
            x.pull(device, links, &schedule.round)?;
            device.decay_from(&mut x.v, X_STRIDE, lower.packed, decay, 2.0 * config.lower_weight())
        }
        _ => Ok(()),
    }
}

/// `d⁺` of y and z, but for their regulariser.
#[expect(clippy::too_many_arguments, reason = "disjoint fields of one struct")]
pub(super) fn differentiate<D: Device>(
    device: &D,
    config: &FabConfig,
    data: &DeviceDataset<D>,
    schedule: &BatchSchedule<D>,
    passes: &mut Passes<D>,
    earlier: Option<&mut EarlierEstimate<D>>,
    lower: &mut ExchangedVectors<D>,
    decay: &D::Reals,
    upper: &Upper<D>,
    parity: usize,
) -> Result<()> {
    let learned_from = config.validation_batch;
    let logits = match upper {
        Upper::Logits { logits, .. } => Some((logits, learned_from)),
        _ => None,
    };
    device.load(&mut passes.y, data, schedule, 0, logits)?;
    let fresh = Some(&mut lower.d[parity]);
    match &mut passes.z {
        Some(z) => {
            device.load(z, data, schedule, learned_from, logits)?;
            device.run(&mut [&mut passes.y, z], &lower.v, fresh, lower.packed, schedule)?;
        }
        None => device.run(&mut [&mut passes.y], &lower.v, fresh, lower.packed, schedule)?,
    }
    if let Some(EarlierEstimate { v, gradient, kept }) = earlier {
        device.run(&mut [&mut passes.y], v, Some(gradient), lower.packed, schedule)?;
        let [even, odd] = &mut lower.d;
        let (fresh, last) = if parity == 0 { (even, &*odd) } else { (odd, &*even) };
        let newest = Gradient { fresh, last, regulariser: Some((&*v, decay)) };
        device.recur(newest, gradient, lower.packed, *kept)?;
    }
    Ok(())
}

/// What follows the gradient of y and z: that of x, trackers, and the logits of samples.
#[expect(clippy::too_many_arguments, reason = "disjoint fields of one struct")]
pub(super) fn follow<D: Device>(
    device: &D,
    config: &FabConfig,
    schedule: &BatchSchedule<D>,
    passes: &Passes<D>,
    links: &DeviceLinks<D>,
    lower: &mut ExchangedVectors<D>,
    decay: &D::Reals,
    upper: &mut Upper<D>,
    parity: usize,
) -> Result<()> {
    let learned_from = config.validation_batch;
    lower.track(device, links, &schedule.round, parity, Some(decay))?;
    match (upper, &passes.z) {
        (Upper::Strength(x), _) => {
            device.norm_gap(&lower.v, lower.packed, &mut x.d[parity], X_STRIDE, config.lower_weight())?;
            x.track(device, links, &schedule.round, parity, None)
        }
        (Upper::Logits { logits, momentum }, Some(z)) => {
            let momentum = momentum.as_mut().map(|state| (&mut state.accumulator, state.factor));
            device.step_logits(logits, schedule, learned_from, &passes.y, z, config.steps[0], momentum)
        }
        _ => Ok(()),
    }
}
