//! State of agents that other hosts compute, as the process that started their run reads and restores it.
//!
//! State has one layout, whoever computes it: what is read here is what one process with all agents would have, so evaluations and
//! checkpoints are the same bytes.

use std::fmt::Debug;
use std::ops::Range;

use super::Imbalance;
use crate::device::{Block, Result};
use crate::real::Real;

/// The hosts of a run, as seen by the process that started it. All of them are in the same round whenever state is read or written.
pub trait RemoteHosts<S>: Debug + Send {
    /// The agents of each host; together they are the swarm.
    fn blocks(&self) -> &[Block];

    /// Words of a part of a host's state, from `offset` on.
    ///
    /// # Errors
    /// When the host cannot be asked.
    fn read(&self, host: usize, part: &str, offset: usize, words: usize) -> Result<Vec<S>>;

    /// Replaces words of a part of a host's state.
    ///
    /// # Errors
    /// When the host cannot be told.
    fn write(&self, host: usize, part: &str, offset: usize, words: &[S]) -> Result<()>;

    /// Makes `round` the last that was done.
    ///
    /// # Errors
    /// When a host cannot be told.
    fn set_rounds(&self, round: u32) -> Result<()>;

    /// Lets every host go on until it has done `round`.
    ///
    /// # Errors
    /// When a host cannot be told.
    fn permit(&self, round: u32) -> Result<()>;

    /// Waits until every host has done `round`.
    ///
    /// # Errors
    /// When a host fails.
    fn wait_for(&self, round: u32) -> Result<()>;

    /// Ends the permission, and returns the round in which all hosts stand then.
    ///
    /// # Errors
    /// When a host fails.
    fn halt(&self) -> Result<u32>;

    /// The [`Fab::imbalances`](super::Fab::imbalances) of all hosts together.
    ///
    /// # Errors
    /// When a host cannot be asked.
    fn imbalances(&self) -> Result<Vec<Imbalance>>;
}

/// What the rows of a part of the state belong to.
#[derive(Clone, Copy, Debug)]
pub(super) enum StateRows {
    /// Vectors of agents, in turn.
    Agents { agents: usize, words: usize },
    /// What waits on links, at the senders.
    Links { agents: usize, words: usize },
    /// A word for every sample of the data.
    Samples,
}

/// Words that one host has, and follow each other.
#[derive(Debug)]
struct StateRun {
    host: usize,
    words: Range<usize>,
}

/// Where agents are that are not computed here.
#[derive(Debug)]
pub(super) struct Elsewhere<S> {
    hosts: Box<dyn RemoteHosts<S>>,
    /// For every sample of the data the agent that learns about it, if there is one.
    sample_owners: Vec<Option<usize>>,
}

impl<S: Real> Elsewhere<S> {
    pub(super) fn new(hosts: Box<dyn RemoteHosts<S>>, sample_owners: Vec<Option<usize>>) -> Self {
        Elsewhere { hosts, sample_owners }
    }

    pub(super) fn hosts(&self) -> &dyn RemoteHosts<S> {
        &*self.hosts
    }

    pub(super) fn imbalances(&self) -> Result<Vec<Imbalance>> {
        self.hosts.imbalances()
    }

    pub(super) fn read(&self, rows: StateRows, part: &str, range: Range<usize>) -> Result<Vec<S>> {
        if let StateRows::Samples = rows {
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
        }
        let mut all = Vec::with_capacity(range.len());
        for StateRun { host, words } in self.runs(rows, range) {
            all.extend(self.hosts.read(host, part, words.start, words.len())?);
        }
        Ok(all)
    }

    pub(super) fn write(&self, rows: StateRows, part: &str, offset: usize, words: &[S]) -> Result<()> {
        if let StateRows::Samples = rows {
            let everybody = 0..self.hosts.blocks().len();
            return everybody.into_iter().try_for_each(|host| self.hosts.write(host, part, offset, words));
        }
        for run in self.runs(rows, offset..offset + words.len()) {
            let part_of = &words[run.words.start - offset..run.words.end - offset];
            self.hosts.write(run.host, part, run.words.start, part_of)?;
        }
        Ok(())
    }

    /// Who has which of these words.
    fn runs(&self, rows: StateRows, range: Range<usize>) -> Vec<StateRun> {
        let mut runs: Vec<StateRun> = Vec::new();
        let mut at = range.start;
        while at < range.end {
            let (row_words, owner) = match rows {
                StateRows::Agents { agents, words } => (words, at / words % agents),
                StateRows::Links { agents, words } => {
                    let (receiver, place) = (at / words / (agents - 1) % agents, at / words % (agents - 1));
                    (words, place + usize::from(place >= receiver))
                }
                StateRows::Samples => unreachable!("samples have no rows"),
            };
            let end = range.end.min((at / row_words + 1) * row_words);
            let host = self.hosts.blocks().iter().position(|block| block.has(owner)).unwrap_or(0);
            match runs.last_mut().filter(|last| last.host == host) {
                Some(last) => last.words.end = end,
                None => runs.push(StateRun { host, words: at..end }),
            }
            at = end;
        }
        runs
    }
}
