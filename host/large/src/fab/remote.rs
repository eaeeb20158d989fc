//! State of agents that other hosts compute, as the process that started their run reads and restores it.
//!
//! State has one layout, whoever computes it: what is read here is what one process with all agents would have, so evaluations and
//! checkpoints are the same bytes.

use std::fmt::Debug;
use std::ops::Range;

use super::mixing::books::SUM_WORDS;
use super::{Imbalance, StatePart, VectorPart};
use crate::device::{self, Block, Result};
use crate::real::Real;

/// The hosts of a run, as seen by the process that started it. All of them are in the same round whenever state is read or written.
/// What returns a result fails when a host fails or cannot be reached.
pub trait RemoteHosts<S>: Debug + Send {
    /// The agents of each host; together they are the swarm.
    fn blocks(&self) -> &[Block];

    /// Words of a part of a host's state, from `offset` on.
    fn read(&self, host: usize, part: StatePart, offset: usize, words: usize) -> Result<Vec<S>>;

    /// Replaces words of a part of a host's state.
    fn write(&self, host: usize, part: StatePart, offset: usize, words: &[S]) -> Result<()>;

    /// Makes `round` the last that was done.
    fn set_rounds(&self, round: u32) -> Result<()>;

    /// Lets every host go on until it has done `round`.
    fn permit(&self, round: u32) -> Result<()>;

    /// Waits until every host has done `round`.
    fn wait_for(&self, round: u32) -> Result<()>;

    /// Ends the permission, and returns the round in which all hosts stand then.
    fn halt(&self) -> Result<u32>;

    /// The [`Fab::imbalances`](super::Fab::imbalances) of all hosts together.
    fn imbalances(&self) -> Result<Vec<Imbalance>>;

    /// Whether the others go on when a host is lost, so that links between hosts have books at both ends.
    fn outlives_loss(&self) -> bool {
        false
    }

    /// Whether a host is lost: its agents are silent, and as they were in the last checkpoint.
    fn is_lost(&self, _host: usize) -> bool {
        false
    }

    /// Notes that a host failed; returns whether it counts as lost now, and the others go on.
    fn lose(&self, _host: usize, _error: &device::Error) -> bool {
        false
    }

    /// Lost hosts that can be reached again.
    fn returning(&self) -> Vec<usize> {
        Vec::new()
    }

    /// Lets a host take part again from the round on in which all others stand. Where it has lost its memory, `restore` writes its
    /// state of the last checkpoint. A host that fails again stays lost.
    fn readmit(&self, _host: usize, _restore: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        Ok(())
    }

    /// Notes that the present state of all hosts that are not lost is in a checkpoint.
    fn checkpointed(&self) -> Result<()> {
        Ok(())
    }
}

/// The state of all agents as a checkpoint has it.
pub trait KeptState<S>: Debug + Send {
    /// Words of a part, from `offset` on.
    ///
    /// # Errors
    /// When they cannot be read.
    fn read(&self, part: StatePart, offset: usize, words: usize) -> Result<Vec<S>>;
}

/// Rows of a part of the state, each on the host of its owner. Parts without rows have a word for every sample.
#[derive(Clone, Copy, Debug)]
pub(super) struct StateRows {
    pub(super) agents: usize,
    /// Words of a row.
    pub(super) words: usize,
    pub(super) owner: RowOwner,
}

/// Whose host has a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RowOwner {
    /// Rows of agents, in turn.
    Agent,
    /// Rows of links: what waits there is at the senders.
    Sender,
    /// Rows of links: what was taken there is at the receivers.
    Receiver,
}

impl StateRows {
    /// The agent whose host has the word at a place.
    fn owner_of(self, at: usize) -> usize {
        let (row, others) = (at / self.words, self.agents - 1);
        match self.owner {
            RowOwner::Agent => row % self.agents,
            RowOwner::Receiver => row / others % self.agents,
            RowOwner::Sender => {
                let (receiver, place) = (row / others % self.agents, row % others);
                place + usize::from(place >= receiver)
            }
        }
    }
}

/// Words that one host has, and follow each other.
#[derive(Debug)]
struct StateRun {
    host: usize,
    words: Range<usize>,
}

/// Where agents are that are not computed here.
#[derive(Debug)]
pub(super) struct RemoteState<S> {
    hosts: Box<dyn RemoteHosts<S>>,
    /// For every sample of the data the agent that learns about it, if there is one.
    sample_owners: Vec<Option<usize>>,
    /// The last checkpoint, for hosts that are lost.
    kept: Option<Box<dyn KeptState<S>>>,
}

/// A piece of one row of links between two hosts.
#[derive(Debug)]
struct FarPiece {
    /// The hosts of its sender and its receiver.
    hosts: [usize; 2],
    /// The sums at both ends.
    parts: [StatePart; 2],
    /// Where they begin there.
    at: [usize; 2],
    /// Words of one vector, and of this piece.
    stride: usize,
    words: usize,
}

impl<S: Real> RemoteState<S> {
    pub(super) fn new(hosts: Box<dyn RemoteHosts<S>>, sample_owners: Vec<Option<usize>>) -> Self {
        RemoteState { hosts, sample_owners, kept: None }
    }

    pub(super) fn hosts(&self) -> &dyn RemoteHosts<S> {
        &*self.hosts
    }

    pub(super) fn keep(&mut self, kept: Box<dyn KeptState<S>>) {
        self.kept = Some(kept);
    }

    /// Words of one host; those of the last checkpoint where it is lost.
    fn read_from(&self, host: usize, part: StatePart, offset: usize, words: usize) -> Result<Vec<S>> {
        if !self.hosts.is_lost(host) {
            match self.hosts.read(host, part, offset, words) {
                Err(error) if self.kept.is_some() && self.hosts.lose(host, &error) => {}
                read => return read,
            }
        }
        match &self.kept {
            Some(kept) => kept.read(part, offset, words),
            None => self.hosts.read(host, part, offset, words),
        }
    }

    pub(super) fn read(
        &self,
        rows: Option<StateRows>,
        part: StatePart,
        range: Range<usize>,
    ) -> Result<Vec<S>> {
        let Some(rows) = rows else {
            let mut all = vec![S::ZERO; range.len()];
            for (host, block) in self.hosts.blocks().iter().enumerate() {
                let there = self.read_from(host, part, range.start, range.len())?;
                let owners = &self.sample_owners[range.clone()];
                for ((word, there), owner) in all.iter_mut().zip(there).zip(owners) {
                    if owner.is_some_and(|agent| block.has(agent)) {
                        *word = there;
                    }
                }
            }
            return Ok(all);
        };
        let mut all = Vec::with_capacity(range.len());
        for StateRun { host, words } in self.runs(rows, range) {
            match self.far_piece(rows, part, &words) {
                None => all.extend(self.read_from(host, part, words.start, words.len())?),
                Some(piece) => {
                    let [sums, taken] = [0, 1].map(|end| self.read_sums(&piece, end));
                    let waiting = sums?.into_iter().zip(taken?).map(|(sum, taken)| S::from_f64(sum - taken));
                    all.extend(waiting);
                }
            }
        }
        Ok(all)
    }

    fn read_sums(&self, piece: &FarPiece, end: usize) -> Result<Vec<f64>> {
        let read = |at| self.read_from(piece.hosts[end], piece.parts[end], at, piece.words);
        let (whole, rest) = (read(piece.at[end])?, read(piece.at[end] + piece.stride)?);
        Ok(whole.into_iter().zip(rest).map(|(whole, rest)| whole.to_f64() + rest.to_f64()).collect())
    }

    pub(super) fn write(
        &self,
        rows: Option<StateRows>,
        part: StatePart,
        offset: usize,
        words: &[S],
    ) -> Result<()> {
        let Some(rows) = rows else {
            let everybody = 0..self.hosts.blocks().len();
            return everybody.into_iter().try_for_each(|host| self.hosts.write(host, part, offset, words));
        };
        for run in self.runs(rows, offset..offset + words.len()) {
            let part_of = &words[run.words.start - offset..run.words.end - offset];
            match self.far_piece(rows, part, &run.words) {
                None => self.hosts.write(run.host, part, run.words.start, part_of)?,
                // The sums of a run begin at nothing: as if so much less had been taken.
                Some(FarPiece { hosts: [_, host], parts: [_, part], at: [_, at], stride, .. }) => {
                    let taken: Vec<S> = part_of.iter().map(|&word| -word).collect();
                    self.hosts.write(host, part, at, &taken)?;
                    self.hosts.write(host, part, at + stride, &vec![S::ZERO; taken.len()])?;
                }
            }
        }
        Ok(())
    }

    /// Lets a lost host take part again, with what the last checkpoint has of these parts where it has lost its memory.
    pub(super) fn readmit(&self, host: usize, parts: &[(StatePart, usize, Option<StateRows>)]) -> Result<()> {
        self.hosts.readmit(host, &mut || {
            let Some(kept) = &self.kept else { return Ok(()) };
            for &(part, words, rows) in parts {
                for run in self.host_runs(rows, part, host, words) {
                    let words = kept.read(part, run.start, run.len())?;
                    self.hosts.write(host, part, run.start, &words)?;
                }
            }
            Ok(())
        })
    }

    /// Which words of a part a host has, without what waits on links to other hosts.
    fn host_runs(
        &self,
        rows: Option<StateRows>,
        part: StatePart,
        host: usize,
        words: usize,
    ) -> Vec<Range<usize>> {
        let Some(rows) = rows else { return std::iter::once(0..words).collect() };
        let own = |run: &StateRun| run.host == host && self.far_piece(rows, part, &run.words).is_none();
        self.runs(rows, 0..words).into_iter().filter(own).map(|run| run.words).collect()
    }

    fn host_of(&self, agent: usize) -> usize {
        self.hosts.blocks().iter().position(|block| block.has(agent)).unwrap_or(0)
    }

    /// Where the sums are of which these words are the difference, if they wait on a link between hosts that has books.
    fn far_piece(&self, rows: StateRows, part: StatePart, words: &Range<usize>) -> Option<FarPiece> {
        let StateRows { agents, words: stride, owner: RowOwner::Sender } = rows else { return None };
        let (link, within) = (words.start / stride, words.start % stride);
        let vector = link / (agents - 1);
        let (sender, receiver) = (rows.owner_of(words.start), vector % agents);
        let hosts = [self.host_of(sender), self.host_of(receiver)];
        if !self.hosts.outlives_loss() || hosts[0] == hosts[1] {
            return None;
        }
        let (set, _) = part.in_set()?;
        let row = SUM_WORDS * stride;
        let sums_of = vector - receiver + sender;
        Some(FarPiece {
            hosts,
            parts: [VectorPart::Sums, VectorPart::Taken].map(|part| StatePart::of_set(set, part)),
            at: [sums_of * row + within, link * row + within],
            stride,
            words: words.len(),
        })
    }

    /// Who has which of these words; links that have books are runs of their own.
    fn runs(&self, rows: StateRows, range: Range<usize>) -> Vec<StateRun> {
        let mut runs: Vec<StateRun> = Vec::new();
        let mut at = range.start;
        while at < range.end {
            let end = range.end.min((at / rows.words + 1) * rows.words);
            let host = self.host_of(rows.owner_of(at));
            let has_own_rows = rows.owner == RowOwner::Sender && self.hosts.outlives_loss();
            match runs.last_mut().filter(|last| last.host == host && !has_own_rows) {
                Some(last) => last.words.end = end,
                None => runs.push(StateRun { host, words: at..end }),
            }
            at = end;
        }
        runs
    }
}
