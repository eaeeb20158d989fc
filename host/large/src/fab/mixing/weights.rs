//! Mixing by pull and push weights, or by push-sum weights.

use std::collections::BTreeSet;

use fabswarm_shared::scalar::Scalar as _;

use crate::device::{Descent, Device, Result};
use crate::fab::FabConfig;
use crate::fab::exchange::WeightExchange;
use crate::fab::parcel::{ParcelPart, ParcelRoute, ParcelSink, ParcelSource};
use crate::fab::vectors::ExchangedVectors;

/// The weights of a round in the device's memory.
#[derive(Debug)]
pub(in crate::fab) struct WeightMixing<D: Device> {
    pull: D::Mixing,
    pub(super) push: D::Mixing,
    /// With push-sum weights, what each agent's step is multiplied by.
    factors: Option<D::Reals>,
    adapts_first: bool,
}

impl<D: Device> WeightMixing<D> {
    pub(super) fn new(device: &D, config: &FabConfig) -> Result<Self> {
        let &FabConfig { agents, own, .. } = config;
        Ok(WeightMixing {
            pull: device.mixing(agents, own)?,
            push: device.mixing(agents, own)?,
            factors: config.push_sum.map(|_| device.reals(agents)).transpose()?,
            adapts_first: config.adapts_first(),
        })
    }

    pub(super) fn write(&mut self, device: &D, exchange: &WeightExchange) -> Result<()> {
        device.write_mixing(&mut self.pull, &exchange.pull)?;
        device.write_mixing(&mut self.push, &exchange.push)?;
        let (Some(to), Some(factors)) = (&mut self.factors, &exchange.factors) else { return Ok(()) };
        let words: Vec<D::Scalar> = factors.iter().map(|&factor| D::Scalar::from_f64(factor)).collect();
        device.write(to, 0, &words)
    }

    pub(super) fn pull(
        &self,
        device: &D,
        vectors: &mut ExchangedVectors<D>,
        strengths: &D::Reals,
    ) -> Result<()> {
        let packed = vectors.packed;
        if let Some(state) = vectors.round_mix(strengths, self.adapts_first) {
            return device.mix_round(state, packed, &self.pull, &self.push);
        }
        vectors.accumulate(device, None)?;
        let steps = vectors.steps;
        let (v, direction) = vectors.descent();
        let descent = Descent { steps, factors: self.factors.as_ref(), awake: None };
        if self.adapts_first {
            device.descend(v, direction, packed, &descent)?;
            device.pull(v, packed, &self.pull, None)
        } else if self.factors.is_some() {
            device.pull(v, packed, &self.pull, None)?;
            device.descend(v, direction, packed, &descent)
        } else {
            device.pull(v, packed, &self.pull, Some((direction, steps)))
        }
    }

    pub(in crate::fab) fn write_parcel(
        &self,
        device: &D,
        exchange: &WeightExchange,
        parcel: ParcelRoute,
        sets: &[ExchangedVectors<D>],
        sink: &mut ParcelSink<'_, D>,
    ) -> Result<()> {
        for sender in exchange.senders(parcel) {
            let factor = exchange.factors.as_ref().map_or(1.0, |factors| factors[sender]);
            for vectors in sets {
                let stride = vectors.packed.stride;
                for vector in vectors.packed.vectors_of(sender) {
                    match parcel.part {
                        ParcelPart::Trackers => sink(&vectors.t, vector * stride, stride)?,
                        ParcelPart::Decisions if self.adapts_first => {
                            sink(&vectors.adapted(device, vector, factor)?, 0, stride)?;
                        }
                        ParcelPart::Decisions => sink(&vectors.v, vector * stride, stride)?,
                    }
                }
            }
        }
        Ok(())
    }
}

pub(in crate::fab) fn take_parcel<D: Device>(
    device: &D,
    exchange: &WeightExchange,
    parcel: ParcelRoute,
    sets: &mut [ExchangedVectors<D>],
    source: &mut ParcelSource<'_, D>,
) -> Result<()> {
    for sender in exchange.senders(parcel) {
        for vectors in &mut *sets {
            let stride = vectors.packed.stride;
            for vector in vectors.packed.vectors_of(sender) {
                let to = match parcel.part {
                    ParcelPart::Decisions => &mut vectors.v,
                    ParcelPart::Trackers => &mut vectors.t,
                };
                source(device, to, vector * stride, stride)?;
            }
        }
    }
    Ok(())
}

impl WeightExchange {
    /// Agents of one host that those of the other hear.
    pub(in crate::fab) fn senders(&self, parcel: ParcelRoute) -> BTreeSet<usize> {
        let weights = match parcel.part {
            ParcelPart::Decisions => &self.pull,
            ParcelPart::Trackers => &self.push,
        };
        let heard = parcel.to.range().flat_map(|receiver| weights.row(receiver));
        heard.map(|(sender, _)| sender).filter(|&sender| parcel.from.has(sender)).collect()
    }
}
