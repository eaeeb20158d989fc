//! Vectors that agents exchange: decisions, with their trackers and gradients.

use fabswarm_shared::scalar::Scalar as _;

use super::FabConfig;
use super::mixing::ledger::LedgerVectors;
use super::state_part::VectorPart;
use crate::device::{Device, Gradient, LedgerReception, Packed, Result, RoundMix};

/// One set of vectors of all agents: y and z, or x.
#[derive(Debug)]
pub(super) struct ExchangedVectors<D: Device> {
    pub(super) packed: Packed,
    /// One step per group.
    pub(super) steps: [f64; 2],
    pub(super) v: D::Reals,
    pub(super) t: D::Reals,
    /// Gradients of this and the last round, in turn; where rounds may be open, one of the last round.
    pub(super) d: [D::Reals; 2],
    pub(super) momentum: Option<MomentumState<D>>,
    pub(super) tracking: Tracking,
    /// Where they are mixed by a ledger.
    pub(super) ledger: Option<LedgerVectors<D>>,
}

/// When trackers take a gradient in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tracking {
    /// In the round that computes it.
    EveryRound,
    /// In the next round. Until then `t` is u = t − d, and d lacks its regulariser: see [`Device::mix_round`].
    Open,
    /// In the next round, but that of the last has been taken in already.
    Closed,
}

impl Tracking {
    /// Which of two gradients is that of a round of this parity.
    pub(super) fn gradient(self, parity: usize) -> usize {
        if self == Tracking::EveryRound { parity } else { 0 }
    }
}

/// The state of momentum.
#[derive(Debug)]
pub(super) struct MomentumState<D: Device> {
    /// β, above 0.
    pub(super) factor: f64,
    /// m.
    pub(super) accumulator: D::Reals,
}

impl<D: Device> MomentumState<D> {
    /// `words` words of m, unless β is 0.
    pub(super) fn new(device: &D, factor: f64, words: usize) -> Result<Option<Self>> {
        if factor == 0.0 {
            return Ok(None);
        }
        Ok(Some(MomentumState { factor, accumulator: device.reals(words)? }))
    }
}

impl<D: Device> ExchangedVectors<D> {
    /// Vectors of zero; `v` are decisions that the device reads in its own way.
    pub(super) fn new(
        device: &D,
        config: &FabConfig,
        packed: Packed,
        v: D::Reals,
        steps: [f64; 2],
        mixes_at_once: bool,
    ) -> Result<Self> {
        let words = packed.words();
        let (tracking, second) =
            if mixes_at_once { (Tracking::Closed, 0) } else { (Tracking::EveryRound, words) };
        let (t, d) = (device.reals(words)?, [device.reals(words)?, device.reals(second)?]);
        let momentum = MomentumState::new(device, config.momentum, words)?;
        let ledger =
            config.ledger.as_ref().map(|ledger| LedgerVectors::new(device, ledger, packed)).transpose()?;
        Ok(ExchangedVectors { packed, steps, v, t, d, momentum, tracking, ledger })
    }

    /// Notes that there is a new gradient, which an open round does not take in.
    pub(super) fn open(&mut self) {
        if self.tracking == Tracking::Closed {
            self.tracking = Tracking::Open;
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.tracking == Tracking::Closed
    }

    /// Closes an open round, so that all parts can be written.
    pub(super) fn close(&mut self, device: &D, strengths: &D::Reals) -> Result<()> {
        if self.tracking == Tracking::Open {
            device.close_round(&mut self.t, &mut self.d[0], (&self.v, strengths), self.packed)?;
            self.tracking = Tracking::Closed;
        }
        Ok(())
    }

    /// The vectors that a round mixes in one pass, where it does.
    pub(super) fn round_mix<'a>(
        &'a mut self,
        strengths: &'a D::Reals,
        adapts_first: bool,
    ) -> Option<RoundMix<'a, D>> {
        let is_open = match self.tracking {
            Tracking::EveryRound => return None,
            Tracking::Open => true,
            Tracking::Closed => false,
        };
        let momentum = self.momentum.as_mut().map(|state| (&mut state.accumulator, state.factor));
        let ExchangedVectors { v, t, d: [d, _], steps, .. } = self;
        Some(RoundMix { v, t, d, strengths, is_open, momentum, steps: *steps, adapts_first })
    }

    /// Writes the same words into every agent's decisions, group by group.
    pub(super) fn start(&mut self, device: &D, words: &[D::Scalar]) -> Result<()> {
        self.packed.own.range().try_for_each(|agent| self.start_agent(device, agent, words))
    }

    fn start_agent(&mut self, device: &D, agent: usize, words: &[D::Scalar]) -> Result<()> {
        for group in 0..self.packed.groups {
            let at = (group * self.packed.agents + agent) * self.packed.stride;
            device.write(&mut self.v, at, words)?;
        }
        Ok(())
    }

    /// All that outlives a round, with its words.
    pub(super) fn parts(&self) -> Vec<(VectorPart, usize)> {
        let always = [VectorPart::Decisions, VectorPart::Trackers, VectorPart::Gradients];
        let momentum = self.momentum.as_ref().map(|_| VectorPart::Momentum);
        let own = always.into_iter().chain(momentum).map(|part| (part, self.packed.words()));
        own.chain(self.ledger.iter().flat_map(LedgerVectors::parts)).collect()
    }

    /// The buffer of a part; `parity` is that of the round.
    pub(super) fn buffer(&self, part: VectorPart, parity: usize) -> Option<&D::Reals> {
        match part {
            VectorPart::Decisions => Some(&self.v),
            VectorPart::Trackers => Some(&self.t),
            VectorPart::Gradients => Some(&self.d[self.tracking.gradient(parity)]),
            VectorPart::Momentum => self.momentum.as_ref().map(|momentum| &momentum.accumulator),
            VectorPart::SentDecisions => self.ledger.as_ref().map(|ledger| &ledger.history.v),
            VectorPart::SentTrackers => self.ledger.as_ref().map(|ledger| &ledger.history.t),
            VectorPart::Mass => self.ledger.as_ref().map(|ledger| &ledger.mass),
        }
    }

    /// The buffer of a part, to be written.
    pub(super) fn buffer_mut(&mut self, part: VectorPart, parity: usize) -> Option<&mut D::Reals> {
        match part {
            VectorPart::Decisions => Some(&mut self.v),
            VectorPart::Trackers => Some(&mut self.t),
            VectorPart::Gradients => Some(&mut self.d[self.tracking.gradient(parity)]),
            VectorPart::Momentum => self.momentum.as_mut().map(|momentum| &mut momentum.accumulator),
            VectorPart::SentDecisions => self.ledger.as_mut().map(|ledger| &mut ledger.history.v),
            VectorPart::SentTrackers => self.ledger.as_mut().map(|ledger| &mut ledger.history.t),
            VectorPart::Mass => self.ledger.as_mut().map(|ledger| &mut ledger.mass),
        }
    }

    /// Words of a part, as they are once an open round is closed.
    pub(super) fn read(
        &self,
        device: &D,
        (part, parity): (VectorPart, usize),
        strengths: &D::Reals,
        offset: usize,
        words: usize,
    ) -> Result<Option<Vec<D::Scalar>>> {
        let Some(buffer) = self.buffer(part, parity) else { return Ok(None) };
        let mut found = device.read(buffer, offset, words)?;
        match part {
            VectorPart::Gradients if self.tracking == Tracking::Open => {
                let vectors = self.packed.groups * self.packed.agents;
                let strengths = device.read(strengths, 0, vectors)?;
                let v = device.read(&self.v, offset, words)?;
                for (at, (d, v)) in (offset..).zip(found.iter_mut().zip(v)) {
                    *d += strengths[at / self.packed.stride] * v;
                }
            }
            VectorPart::Trackers if self.tracking == Tracking::Open => {
                let d = self.read(device, (VectorPart::Gradients, parity), strengths, offset, words)?;
                found.iter_mut().zip(d.into_iter().flatten()).for_each(|(t, d)| *t += d);
            }
            _ => {}
        }
        Ok(Some(found))
    }

    /// `m ← β m + t` of all agents that are up, where there is momentum.
    pub(super) fn accumulate(&mut self, device: &D, reception: Option<&LedgerReception<D>>) -> Result<()> {
        let Some(MomentumState { factor, accumulator }) = &mut self.momentum else { return Ok(()) };
        device.accumulate(accumulator, &self.t, self.packed, reception, *factor)
    }

    /// Decisions, and what they descend along: m, or t without momentum.
    pub(super) fn descent(&mut self) -> (&mut D::Reals, &D::Reals) {
        let direction = self.momentum.as_ref().map_or(&self.t, |momentum| &momentum.accumulator);
        (&mut self.v, direction)
    }

    /// `v − η c (β m + t)` of one vector: what an agent sends that steps before it sends, at the start of a round.
    pub(super) fn adapted(&self, device: &D, vector: usize, factor: f64) -> Result<D::Reals> {
        let Packed { agents, stride, .. } = self.packed;
        let copy = |from: &D::Reals| -> Result<D::Reals> {
            let mut to = device.reals(stride)?;
            device.copy_words(from, vector * stride, stride, &mut to)?;
            Ok(to)
        };
        let (mut sent, mut direction) = (copy(&self.v)?, copy(&self.t)?);
        if let Some(MomentumState { factor, accumulator }) = &self.momentum {
            let factor = D::Scalar::from_f64(*factor);
            device.add_scaled(accumulator, vector * stride, stride, factor, &mut direction)?;
        }
        let step = D::Scalar::from_f64(self.steps[vector / agents]) * D::Scalar::from_f64(factor);
        device.add_scaled(&direction, 0, stride, -step, &mut sent)?;
        Ok(sent)
    }

    /// Trackers, the gradient in `d[parity]` that they follow, with the strength of ½‖v‖² where there is one, and the ledger.
    pub(super) fn pursuit<'a>(
        &'a mut self,
        parity: usize,
        strengths: Option<&'a D::Reals>,
    ) -> (&'a mut D::Reals, Gradient<'a, D>, Option<&'a mut LedgerVectors<D>>) {
        let [even, odd] = &mut self.d;
        let (fresh, last) = if parity == 0 { (even, &*odd) } else { (odd, &*even) };
        let regulariser = strengths.map(|strengths| (&self.v, strengths));
        (&mut self.t, Gradient { fresh, last, regulariser }, self.ledger.as_mut())
    }

    /// The numbers of the vectors that are computed here.
    pub(super) fn own_vectors(&self) -> impl Iterator<Item = usize> + use<D> {
        let packed = self.packed;
        (0..packed.groups * packed.agents).filter(move |&vector| packed.is_own(vector))
    }

    /// Opens a new epoch because `agent` has lost its memory: it starts from `start` without a gradient, every tracker is its
    /// gradient, m is zero, and nothing waits on a link. `parity` is that of the last round.
    pub(super) fn renew(
        &mut self,
        device: &D,
        parity: usize,
        agent: usize,
        start: &[D::Scalar],
    ) -> Result<()> {
        let Packed { agents, stride, own, .. } = self.packed;
        if own.has(agent) {
            self.start_agent(device, agent, start)?;
        }
        let nothing = vec![D::Scalar::ZERO; stride];
        let parity = self.tracking.gradient(parity);
        for vector in self.own_vectors() {
            let at = vector * stride;
            if vector % agents == agent {
                device.write(&mut self.d[parity], at, &nothing)?;
            }
            let gradient = device.read(&self.d[parity], at, stride)?;
            device.write(&mut self.t, at, &gradient)?;
            if let Some(momentum) = &mut self.momentum {
                device.write(&mut momentum.accumulator, at, &nothing)?;
            }
        }
        self.ledger.as_mut().map_or(Ok(()), |ledger| ledger.renew(device))
    }

    /// `Σt + Σ(what waits) − Σd` of the agents that are computed here, word by word.
    pub(super) fn imbalance(
        &self,
        device: &D,
        parity: usize,
        strengths: &D::Reals,
    ) -> Result<TrackerImbalance> {
        let Packed { groups, agents, stride, .. } = self.packed;
        let mut whole =
            TrackerImbalance { sums: vec![0.0; groups * stride], sizes: vec![0.0; groups * stride] };
        for vector in self.own_vectors() {
            let first = vector / agents * stride;
            let read = |part| -> Result<Vec<D::Scalar>> {
                let words = self.read(device, (part, parity), strengths, vector * stride, stride)?;
                Ok(words.unwrap_or_default())
            };
            let (sums, sizes) = (&mut whole.sums[first..], &mut whole.sizes[first..]);
            for (sum, t) in sums.iter_mut().zip(read(VectorPart::Trackers)?) {
                *sum += t.to_f64();
            }
            for ((sum, size), d) in sums.iter_mut().zip(sizes).zip(read(VectorPart::Gradients)?) {
                *sum -= d.to_f64();
                *size += d.to_f64().abs();
            }
        }
        if let Some(ledger) = &self.ledger {
            ledger.add_waiting(device, &mut whole.sums)?;
        }
        Ok(whole)
    }
}

/// How far trackers and what waits are from the gradients they stand for, word by word.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct TrackerImbalance {
    /// `Σt + Σ(what waits) − Σd`.
    pub sums: Vec<f64>,
    /// `Σ|d|`.
    pub sizes: Vec<f64>,
}

impl TrackerImbalance {
    /// The same of two sets of agents together.
    pub fn add(&mut self, other: &TrackerImbalance) {
        for (to, from) in [(&mut self.sums, &other.sums), (&mut self.sizes, &other.sizes)] {
            to.resize(to.len().max(from.len()), 0.0);
            to.iter_mut().zip(from).for_each(|(to, from)| *to += from);
        }
    }

    /// The largest word, relative to the largest size.
    pub fn defect(&self) -> f64 {
        let largest = self.sums.iter().map(|sum| sum.abs()).fold(0.0, larger);
        largest / self.sizes.iter().copied().fold(f64::MIN_POSITIVE, larger)
    }
}

/// The larger of two numbers, NaN where one of them is NaN: `max` would ignore it.
pub(super) fn larger(a: f64, b: f64) -> f64 {
    if a > b || a.is_nan() { a } else { b }
}
