//! Reading the state of all agents, and putting it back.

use fabswarm_shared::scalar::Scalar as _;

use super::remote::{RemoteHosts, RemoteState, StateRows};
use super::{Fab, FabState, StatePart, VectorPart};
use crate::device::{Device, Packed, Result, X_STRIDE};

impl<D: Device> Fab<D> {
    /// Rounds done so far.
    pub fn rounds(&self) -> u32 {
        self.round - u32::from(self.is_between)
    }

    /// The device that computes the agents.
    pub fn device(&self) -> &D {
        &self.device
    }

    /// Words of a frame, for a model of `parameters` parameters: decisions, trackers (or the ledger's sums) and the push-sum weight,
    /// as far as there are any.
    pub fn frame_words(&self, parameters: usize) -> usize {
        let x = self.state.sets.len() - 1;
        let decisions = x + self.lower().groups * parameters;
        match self.state.config.push_sum {
            None => 2 * decisions,
            Some(rule) if rule.has_trackers() => 2 * decisions + 1,
            Some(_) => decisions + 1,
        }
    }

    /// How y and z are packed.
    pub(super) fn lower(&self) -> Packed {
        self.state.sets[0].packed
    }

    /// y of one agent, packed.
    pub fn y(&self, agent: usize) -> Result<Vec<D::Scalar>> {
        self.decisions(agent)
    }

    /// z of one agent, packed; y where there is one level only.
    pub fn z(&self, agent: usize) -> Result<Vec<D::Scalar>> {
        self.decisions((self.lower().groups - 1) * self.lower().agents + agent)
    }

    fn decisions(&self, vector: usize) -> Result<Vec<D::Scalar>> {
        let stride = self.lower().stride;
        self.read_part(StatePart::Lower(VectorPart::Decisions), vector * stride, stride)
    }

    /// The mean of all agents' y, and the root mean square distance of agents to it, relative to its norm.
    pub fn mean(&self) -> Result<(Vec<D::Scalar>, f64)> {
        self.mean_of(|agent| self.y(agent))
    }

    /// The mean of all agents' z where it minimises `g − f/λ`, which need not have a minimum.
    pub fn mean_twin(&self) -> Result<Option<Vec<D::Scalar>>> {
        let is_symmetric = self.state.config.is_symmetric();
        is_symmetric.then(|| Ok(self.mean_of(|agent| self.z(agent))?.0)).transpose()
    }

    fn mean_of(&self, of: impl Fn(usize) -> Result<Vec<D::Scalar>>) -> Result<(Vec<D::Scalar>, f64)> {
        let Packed { agents, stride, .. } = self.lower();
        // Relative to the first agent: agents that agree differ by nothing at all, not by what squares round to.
        let first = of(0)?;
        let mut offset = vec![0.0_f64; stride];
        let mut squares = 0.0;
        for agent in 1..agents {
            for ((offset, word), first) in offset.iter_mut().zip(of(agent)?).zip(&first) {
                let difference = word.to_f64() - first.to_f64();
                *offset += difference / agents as f64;
                squares += difference * difference;
            }
        }
        let spread = squares / agents as f64 - offset.iter().map(|word| word * word).sum::<f64>();
        // Not `max`, which ignores NaN: a diverged swarm would look like one that agrees.
        let spread = if spread < 0.0 { 0.0 } else { spread };
        let mean: Vec<f64> =
            first.iter().zip(offset).map(|(first, offset)| first.to_f64() + offset).collect();
        let norm: f64 = mean.iter().map(|word| word * word).sum();
        let consensus = if norm > 0.0 { (spread / norm).sqrt() } else { spread.sqrt() };
        Ok((mean.into_iter().map(D::Scalar::from_f64).collect(), consensus))
    }

    /// ψ of every sample, when samples have one.
    pub fn logits(&self) -> Result<Option<Vec<D::Scalar>>> {
        let has_logits = self.state.logits.is_some();
        has_logits.then(|| self.read_part(StatePart::Logits, 0, self.state.data.samples)).transpose()
    }

    /// τ of every agent, when it is learned.
    pub fn strengths(&self) -> Result<Option<Vec<D::Scalar>>> {
        let Some(x) = self.state.sets.get(1) else { return Ok(None) };
        let words = self.read_part(StatePart::Upper(VectorPart::Decisions), 0, x.packed.words())?;
        Ok(Some(words.into_iter().step_by(X_STRIDE).collect()))
    }

    /// Everything that outlives a round, with its words: what a run needs to go on bit for bit.
    pub fn parts(&self) -> Vec<(StatePart, usize)> {
        let mut parts = vec![(StatePart::Decay, self.lower().groups * self.lower().agents)];
        for (number, set) in self.state.sets.iter().enumerate() {
            let of_set = |(part, words)| (StatePart::of_set(number, part), words);
            parts.extend(set.parts().into_iter().map(of_set));
        }
        if let Some(samples) = &self.state.logits {
            let momentum = samples.momentum.as_ref().map(|_| StatePart::LogitMomentum);
            let each = [StatePart::Logits].into_iter().chain(momentum);
            parts.extend(each.map(|part| (part, self.state.data.samples)));
        }
        parts
    }

    /// The buffer of a part of the state that is not of exchanged vectors.
    fn buffer(&self, part: StatePart) -> Option<&D::Reals> {
        let FabState { decay, logits, .. } = &self.state;
        match part {
            StatePart::Decay => Some(decay),
            StatePart::Logits => logits.as_ref().map(|samples| &samples.logits),
            StatePart::LogitMomentum => Some(&logits.as_ref()?.momentum.as_ref()?.accumulator),
            StatePart::Lower(_) | StatePart::Upper(_) => None,
        }
    }

    /// The device, and the buffer of a part of the state, to be written.
    fn buffer_mut(&mut self, part: StatePart) -> (&D, Option<&mut D::Reals>) {
        let parity = self.parity();
        let FabState { decay, sets, logits, .. } = &mut self.state;
        let buffer = match (part, part.in_set()) {
            (_, Some((set, part))) => sets.get_mut(set).and_then(|set| set.buffer_mut(part, parity)),
            (StatePart::Decay, _) => Some(decay),
            (StatePart::LogitMomentum, _) => {
                let momentum = logits.as_mut().and_then(|samples| samples.momentum.as_mut());
                momentum.map(|momentum| &mut momentum.accumulator)
            }
            _ => logits.as_mut().map(|samples| &mut samples.logits),
        };
        (&self.device, buffer)
    }

    /// Words of a part of the state, from `offset` on.
    ///
    /// # Panics
    /// When it is not of [`Fab::parts`].
    pub fn read_part(&self, part: StatePart, offset: usize, words: usize) -> Result<Vec<D::Scalar>> {
        if let Some(elsewhere) = &self.elsewhere {
            return elsewhere.read(self.rows_of(part), part, offset..offset + words);
        }
        if let Some((set, part)) = part.in_set()
            && let Some(set) = self.state.sets.get(set)
            && let Some(found) =
                set.read(&self.device, (part, self.parity()), &self.state.decay, offset, words)?
        {
            return Ok(found);
        }
        let buffer = self.buffer(part).unwrap_or_else(|| panic!("a state has no `{part}`"));
        self.device.read(buffer, offset, words)
    }

    /// Replaces words of a part of the state; the round must be that of the new state already.
    ///
    /// # Panics
    /// When it is not of [`Fab::parts`].
    pub fn write_part(&mut self, part: StatePart, offset: usize, words: &[D::Scalar]) -> Result<()> {
        if let Some(elsewhere) = &self.elsewhere {
            return elsewhere.write(self.rows_of(part), part, offset, words);
        }
        let FabState { sets, decay, .. } = &mut self.state;
        sets[0].close(&self.device, decay)?;
        let (device, buffer) = self.buffer_mut(part);
        device.write(buffer.unwrap_or_else(|| panic!("a state has no `{part}`")), offset, words)
    }

    /// Makes `round` the last that was done.
    pub fn set_rounds(&mut self, round: u32) {
        (self.round, self.is_between) = (round, false);
    }

    /// The rows of a part; nothing where it has a word for every sample.
    fn rows_of(&self, part: StatePart) -> Option<StateRows> {
        let agents = self.state.config.agents;
        let words = match part {
            StatePart::Logits | StatePart::LogitMomentum => return None,
            StatePart::Decay => 1,
            StatePart::Lower(_) => self.lower().stride,
            StatePart::Upper(_) => X_STRIDE,
        };
        let are_links = matches!(part.in_set(), Some((_, VectorPart::Mass)));
        Some(StateRows { agents, words, are_links })
    }

    /// From now on the state of all agents is that of `hosts`; `sample_owners` has the agent that learns about each sample.
    pub fn watch(&mut self, hosts: Box<dyn RemoteHosts<D::Scalar>>, sample_owners: Vec<Option<usize>>) {
        self.elsewhere = Some(RemoteState::new(hosts, sample_owners));
    }

    /// The hosts that compute the agents, where they are not computed here.
    pub fn hosts(&self) -> Option<&dyn RemoteHosts<D::Scalar>> {
        self.elsewhere.as_ref().map(RemoteState::hosts)
    }

    /// Whether the state has `words` words of a part from `offset` on.
    pub fn has_part(&self, part: StatePart, offset: usize, words: usize) -> bool {
        let is_it = |&(other, size): &(StatePart, usize)| {
            part == other && offset.checked_add(words).is_some_and(|end| end <= size)
        };
        self.parts().iter().any(is_it)
    }
}
