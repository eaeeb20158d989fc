//! Reading the state of all agents, and putting it back.

use fabswarm_shared::scalar::Scalar as _;

use super::books::{HostBooks, SUM_WORDS};
use super::elsewhere::{Elsewhere, KeptState, RemoteHosts, StateRows};
use super::{Fab, Upper, X_STRIDE};
use crate::device::{Device, Result};

impl<D: Device> Fab<D> {
    pub fn rounds(&self) -> u32 {
        self.round - u32::from(self.is_between)
    }

    pub fn device(&self) -> &D {
        &self.device
    }

    /// Words of a frame, for a model of so many parameters: decisions, trackers (or the ledger's sums) and the push-sum weight,
    /// as far as there are any.
    pub fn frame_words(&self, parameters: usize) -> usize {
        let x = usize::from(matches!(self.state.upper, Upper::Strength(_)));
        let decisions = x + self.state.lower.packed.groups * parameters;
        match self.state.config.push_sum {
            None => 2 * decisions,
            Some(rule) if rule.has_trackers() => 2 * decisions + 1,
            Some(_) => decisions + 1,
        }
    }

    /// y of one agent, packed.
    pub fn y(&self, agent: usize) -> Result<Vec<D::Scalar>> {
        self.read_part("v", agent * self.state.lower.packed.stride, self.state.lower.packed.stride)
    }

    /// z of one agent, packed; y where there is one level only.
    pub fn z(&self, agent: usize) -> Result<Vec<D::Scalar>> {
        let vector = (self.state.lower.packed.groups - 1) * self.state.lower.packed.agents + agent;
        self.read_part("v", vector * self.state.lower.packed.stride, self.state.lower.packed.stride)
    }

    /// The mean of all agents' y, and the root mean square distance of agents to it, relative to its norm.
    pub fn mean(&self) -> Result<(Vec<D::Scalar>, f64)> {
        let agents = self.state.lower.packed.agents;
        // Relative to the first agent: agents that agree differ by nothing at all, not by what squares round to.
        let first = self.y(0)?;
        let mut offset = vec![0.0_f64; self.state.lower.packed.stride];
        let mut squares = 0.0;
        for agent in 1..agents {
            for ((offset, word), first) in offset.iter_mut().zip(self.y(agent)?).zip(&first) {
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
        match &self.state.upper {
            Upper::Logits { .. } => self.read_part("x", 0, self.state.data.samples).map(Some),
            _ => Ok(None),
        }
    }

    /// τ of every agent, when it is learned.
    pub fn strengths(&self) -> Result<Option<Vec<D::Scalar>>> {
        match &self.state.upper {
            Upper::Strength(x) => {
                let words = self.read_part("x.v", 0, x.packed.words())?;
                Ok(Some(words.into_iter().step_by(X_STRIDE).collect()))
            }
            _ => Ok(None),
        }
    }

    /// Every buffer that outlives a round, with its name and words.
    fn buffers(&self) -> Vec<(String, &D::Reals, usize)> {
        let vectors = self.state.lower.packed.groups * self.state.lower.packed.agents;
        let mut buffers = vec![("decay".to_owned(), &self.state.decay, vectors)];
        let lower = self.state.lower.buffers(self.parity()).into_iter();
        buffers.extend(lower.map(|(part, buffer, words)| (part.to_owned(), buffer, words)));
        match &self.state.upper {
            Upper::Logits { logits, momentum } => {
                buffers.push(("x".to_owned(), logits, self.state.data.samples));
                let m = momentum.iter().map(|momentum| &momentum.accumulator);
                buffers.extend(m.map(|m| ("x.m".to_owned(), m, self.state.data.samples)));
            }
            Upper::Strength(x) => {
                let x = x.buffers(self.parity()).into_iter();
                buffers.extend(x.map(|(part, buffer, words)| (format!("x.{part}"), buffer, words)));
            }
            Upper::None => {}
        }
        buffers
    }

    /// The device, and the buffer of that name.
    fn buffer_mut(&mut self, name: &str) -> (&D, Option<&mut D::Reals>) {
        let parity = self.parity();
        let buffer = match (name, &mut self.state.upper, name.strip_prefix("x.")) {
            ("decay", ..) => Some(&mut self.state.decay),
            ("x", Upper::Logits { logits, .. }, _) => Some(logits),
            ("x.m", Upper::Logits { momentum: Some(momentum), .. }, _) => Some(&mut momentum.accumulator),
            (_, Upper::Strength(x), Some(part)) => x.buffer_mut(part, parity),
            _ => self.state.lower.buffer_mut(name, parity),
        };
        (&self.device, buffer)
    }

    /// Names and words of everything that outlives a round: what a run needs to go on bit for bit.
    pub fn parts(&self) -> Vec<(String, usize)> {
        self.buffers().into_iter().map(|(name, _, words)| (name, words)).collect()
    }

    /// Names and words of the sums that links between hosts have, where one may be lost: what a host needs beside
    /// [`Fab::parts`] to come back alone.
    pub fn book_parts(&self) -> Vec<(String, usize)> {
        let is_watched = self.elsewhere.as_ref().is_some_and(|elsewhere| elsewhere.hosts().outlives_loss());
        if !is_watched && !self.has_books() {
            return Vec::new();
        }
        let named = |prefix: &'static str, packed| {
            HostBooks::<D::Scalar>::parts(packed).map(|(part, words)| (format!("{prefix}{part}"), words))
        };
        let mut parts = named("", self.state.lower.packed).to_vec();
        if let Upper::Strength(x) = &self.state.upper {
            parts.extend(named("x.", x.packed));
        }
        parts
    }

    /// The books that have the part of that name, and its name there.
    fn books_of<'n>(&self, name: &'n str) -> Option<(&HostBooks<D::Scalar>, &'n str)> {
        match (&self.state.upper, name.strip_prefix("x.")) {
            (Upper::Strength(x), Some(part)) => Some((x.books.as_ref()?, part)),
            _ => Some((self.state.lower.books.as_ref()?, name)),
        }
    }

    /// Words of a part of the state, from `offset` on.
    ///
    /// # Panics
    /// When [`Fab::parts`] does not name it.
    pub fn read_part(&self, name: &str, offset: usize, words: usize) -> Result<Vec<D::Scalar>> {
        if let Some(elsewhere) = &self.elsewhere {
            return elsewhere.read(self.rows_of(name), name, offset..offset + words);
        }
        if let Some(sums) = self.books_of(name).and_then(|(books, part)| books.read(part, offset, words)) {
            return Ok(sums);
        }
        match self.buffers().iter().find(|(other, ..)| other == name) {
            Some((_, buffer, _)) => self.device.read(buffer, offset, words),
            None => panic!("a state has no `{name}`"),
        }
    }

    /// Replaces words of a part of the state; the round must be that of the new state already.
    ///
    /// # Panics
    /// When [`Fab::parts`] does not name it.
    pub fn write_part(&mut self, name: &str, offset: usize, words: &[D::Scalar]) -> Result<()> {
        if let Some(elsewhere) = &self.elsewhere {
            return elsewhere.write(self.rows_of(name), name, offset, words);
        }
        let books = match (&mut self.state.upper, name.strip_prefix("x.")) {
            (Upper::Strength(x), Some(part)) => x.books.as_mut().map(|books| (books, part)),
            _ => self.state.lower.books.as_mut().map(|books| (books, name)),
        };
        if books.is_some_and(|(books, part)| books.write(part, offset, words)) {
            return Ok(());
        }
        match self.buffer_mut(name) {
            (device, Some(buffer)) => device.write(buffer, offset, words),
            _ => panic!("a state has no `{name}`"),
        }
    }

    /// Makes `round` the last that was done.
    pub fn set_rounds(&mut self, round: u32) {
        (self.round, self.is_between) = (round, false);
    }

    /// What the rows of a part belong to.
    fn rows_of(&self, name: &str) -> StateRows {
        let agents = self.state.config.agents;
        let (part, words) = match (&self.state.upper, name.strip_prefix("x.")) {
            (Upper::Logits { .. }, Some(_)) => return StateRows::Samples,
            (_, Some(part)) => (part, X_STRIDE),
            (_, None) => (name, self.state.lower.packed.stride),
        };
        match part {
            "x" => StateRows::Samples,
            "decay" => StateRows::Agents { agents, words: 1 },
            "mass" => StateRows::Links { agents, words },
            "sums" => StateRows::Agents { agents, words: SUM_WORDS * words },
            "taken" => StateRows::Receptions { agents, words: SUM_WORDS * words },
            _ => StateRows::Agents { agents, words },
        }
    }

    /// From now on the state of all agents is that of `hosts`; `sample_owners` has the agent that learns about each sample.
    pub fn watch(&mut self, hosts: Box<dyn RemoteHosts<D::Scalar>>, sample_owners: Vec<Option<usize>>) {
        self.elsewhere = Some(Elsewhere::new(hosts, sample_owners));
    }

    /// The hosts that compute the agents, where they are not computed here.
    pub fn hosts(&self) -> Option<&dyn RemoteHosts<D::Scalar>> {
        self.elsewhere.as_ref().map(Elsewhere::hosts)
    }

    /// Whether the state has a part of that name with so many words from `offset` on.
    pub fn has_part(&self, name: &str, offset: usize, words: usize) -> bool {
        let is_it = |(part, size): &(String, usize)| {
            part == name && offset.checked_add(words).is_some_and(|end| end <= *size)
        };
        self.parts().iter().chain(&self.book_parts()).any(is_it)
    }

    /// What hosts that are lost have from now on.
    pub fn keep(&mut self, kept: Box<dyn KeptState<D::Scalar>>) {
        if let Some(elsewhere) = &mut self.elsewhere {
            elsewhere.keep(kept);
        }
    }

    /// Lets lost hosts take part again that can be reached, while all others stand after the same round.
    ///
    /// # Errors
    /// When these fail.
    pub fn readmit(&self) -> Result<()> {
        let Some(elsewhere) = &self.elsewhere else { return Ok(()) };
        let parts = self.parts().into_iter().chain(self.book_parts());
        let parts: Vec<_> = parts
            .map(|(name, words)| {
                let rows = self.rows_of(&name);
                (name, words, rows)
            })
            .collect();
        elsewhere.hosts().returning().into_iter().try_for_each(|host| elsewhere.readmit(host, &parts))
    }

    /// Forgets what was taken of other hosts since the last round: a round that was broken off begins again.
    pub fn clear_taken(&mut self) {
        let x = match &mut self.state.upper {
            Upper::Strength(x) => x.books.as_mut(),
            _ => None,
        };
        self.state.lower.books.iter_mut().chain(x).for_each(HostBooks::clear);
    }
}
