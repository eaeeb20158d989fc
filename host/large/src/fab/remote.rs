//! State of agents that other hosts compute, as the process that started their run reads and restores it.
//!
//! State has one layout on all hosts: the state read here is what one process with all agents would have, so evaluations and
//! checkpoints are the same bytes.

use std::fmt::Debug;
use std::ops::Range;

use super::{StatePart, TrackerImbalance};
use crate::device::{Block, Result};
use crate::real::Real;

/// The hosts of a run, as seen by the process that started it. All of them are in the same round whenever state is read or written.
/// A method that returns a result fails when a host fails or cannot be reached.
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
    fn imbalances(&self) -> Result<Vec<TrackerImbalance>>;
}

/// Rows of a part of the state, each on the host of its owner. Parts without rows have a word for every sample.
#[derive(Clone, Copy, Debug)]
pub(super) struct StateRows {
    pub(super) agents: usize,
    /// Words of a row.
    pub(super) words: usize,
    /// Whether rows are of links, where what waits is at the senders; otherwise of agents, in turn.
    pub(super) are_links: bool,
}

impl StateRows {
    /// The agent whose host has the word at a place.
    fn owner_of(self, at: usize) -> usize {
        let (row, others) = (at / self.words, self.agents - 1);
        if !self.are_links {
            return row % self.agents;
        }
        let (receiver, place) = (row / others % self.agents, row % others);
        place + usize::from(place >= receiver)
    }
}

/// Where agents are that are not computed here.
#[derive(Debug)]
pub(super) struct RemoteState<S> {
    hosts: Box<dyn RemoteHosts<S>>,
    /// For every sample of the data the agent that learns about it, if there is one.
    sample_owners: Vec<Option<usize>>,
}

impl<S: Real> RemoteState<S> {
    pub(super) fn new(hosts: Box<dyn RemoteHosts<S>>, sample_owners: Vec<Option<usize>>) -> Self {
        RemoteState { hosts, sample_owners }
    }

    pub(super) fn hosts(&self) -> &dyn RemoteHosts<S> {
        &*self.hosts
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
                let there = self.hosts.read(host, part, range.start, range.len())?;
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
        for (host, words) in self.runs(rows, range) {
            all.extend(self.hosts.read(host, part, words.start, words.len())?);
        }
        Ok(all)
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
        for (host, run) in self.runs(rows, offset..offset + words.len()) {
            self.hosts.write(host, part, run.start, &words[run.start - offset..run.end - offset])?;
        }
        Ok(())
    }

    fn host_of(&self, agent: usize) -> usize {
        self.hosts.blocks().iter().position(|block| block.has(agent)).unwrap_or(0)
    }

    /// The hosts that have these words, each with those of them that follow each other.
    fn runs(&self, rows: StateRows, range: Range<usize>) -> Vec<(usize, Range<usize>)> {
        let mut runs: Vec<(usize, Range<usize>)> = Vec::new();
        let mut at = range.start;
        while at < range.end {
            let end = range.end.min((at / rows.words + 1) * rows.words);
            let host = self.host_of(rows.owner_of(at));
            match runs.last_mut() {
                Some((last, words)) if *last == host => words.end = end,
                _ => runs.push((host, at..end)),
            }
            at = end;
        }
        runs
    }
}
