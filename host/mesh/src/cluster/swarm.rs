//! A run on several hosts in place of agents that are computed here.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use fabswarm_large::device::cpu::Cpu;
use fabswarm_large::device::shared::{OpenedSlabs, SlabHandle};
use fabswarm_large::device::{self, Block, Device as _};
use fabswarm_large::fab::{RemoteHosts, StatePart, TrackerImbalance};
use fabswarm_large::training::block::{to_bytes, to_words};

use super::run::ClusterRun;
use crate::Error;
use crate::message::{Request, Response, WORDS_MAX};

/// Words of state in one message.
const PIECE: usize = 128 << 10;

/// Memory that hosts on this machine share with the process that started their run. State is read in it: 32 times the words of a
/// message at once, and none of them encrypted.
#[derive(Debug, Default)]
pub(super) struct HostMemory {
    opened: OpenedSlabs<Cpu<f32>>,
    /// Hosts whose memory cannot be opened here, such as those of other machines.
    distant: BTreeSet<usize>,
}

impl HostMemory {
    /// Appends `words` words to `to`.
    fn append(&mut self, slabs: &[SlabHandle], words: usize, to: &mut Vec<f32>) -> device::Result<()> {
        let cpu = Cpu::new();
        let mut found = cpu.reals(words)?;
        self.opened.read(&cpu, slabs, words)?.copy(&cpu, &mut found, 0, words)?;
        cpu.append(&found, 0, words, to)
    }
}

/// The agents of a run that other hosts compute.
#[derive(Clone, Debug)]
pub struct ClusterSwarm(pub Arc<ClusterRun>);

impl ClusterSwarm {
    /// Fetches the imbalances of one host, in as many messages as they take.
    fn fetch_imbalances(&self, host: usize) -> Result<Vec<TrackerImbalance>, Error> {
        let mut numbers: Vec<f64> = Vec::new();
        loop {
            let request = Request::Imbalances { round: self.0.round(), offset: numbers.len() };
            let (response, body) = self.0.ask(host, &request, &[])?;
            let Response::Imbalances(sums) = response else {
                return Err(self.0.unexpected(host, &response));
            };
            numbers.extend(body.as_chunks().0.iter().map(|number| f64::from_le_bytes(*number)));
            let count = sums.iter().fold(0_usize, |count, &more| count.saturating_add(more));
            if numbers.len() / 2 >= count || body.is_empty() {
                let mut rest = numbers.into_iter();
                let part = |count: usize| TrackerImbalance {
                    sums: rest.by_ref().take(count).collect(),
                    sizes: rest.by_ref().take(count).collect(),
                };
                return Ok(sums.into_iter().map(part).collect());
            }
        }
    }
}

impl RemoteHosts<f32> for ClusterSwarm {
    fn blocks(&self) -> &[Block] {
        &self.0.blocks
    }

    fn read(&self, host: usize, part: StatePart, offset: usize, words: usize) -> device::Result<Vec<f32>> {
        let mut all = Vec::with_capacity(words);
        let mut memory = self.0.memory.lock().unwrap_or_else(PoisonError::into_inner);
        while all.len() < words {
            let (offset, left) = (offset + all.len(), WORDS_MAX.min(words - all.len()));
            let shares = !memory.distant.contains(&host);
            let request = Request::Read { round: self.0.round(), part, offset, words: left, shares };
            match self.0.ask(host, &request, &[])? {
                (Response::Words, body) if (1..=left).contains(&(body.len() / size_of::<f32>())) => {
                    all.extend(to_words(&body));
                }
                (Response::SharedWords(slabs), _) if shares => {
                    if memory.append(&slabs, left, &mut all).is_err() {
                        memory.distant.insert(host);
                    }
                }
                (other, _) => return Err(self.0.unexpected(host, &other).into()),
            }
        }
        Ok(all)
    }

    fn write(&self, host: usize, part: StatePart, offset: usize, words: &[f32]) -> device::Result<()> {
        for (number, words) in words.chunks(PIECE).enumerate() {
            let offset = offset + number * PIECE;
            let request = Request::Write { round: self.0.round(), part, offset };
            self.0.ask(host, &request, &to_bytes(words))?;
        }
        Ok(())
    }

    fn set_rounds(&self, round: u32) -> device::Result<()> {
        for host in self.0.hosts() {
            self.0.ask(host, &Request::SetRounds { round }, &[])?;
        }
        self.0.round.store(round, Ordering::Relaxed);
        Ok(())
    }

    fn permit(&self, until: u32) -> device::Result<()> {
        let seq = self.0.next_seq();
        for host in self.0.hosts() {
            self.0.ask(host, &Request::Permit { seq, until }, &[])?;
        }
        Ok(())
    }

    fn wait_for(&self, round: u32) -> device::Result<()> {
        Ok(self.0.wait_for_all(round)?)
    }

    fn halt(&self) -> device::Result<u32> {
        let (mut last, seq) = (self.0.round(), self.0.next_seq());
        for host in self.0.hosts() {
            match self.0.ask(host, &Request::Halt { seq }, &[])? {
                (Response::Reached { round, .. }, _) => last = last.max(round),
                (other, _) => return Err(self.0.unexpected(host, &other).into()),
            }
        }
        self.permit(last)?;
        self.wait_for(last)?;
        Ok(last)
    }

    fn imbalances(&self) -> device::Result<Vec<TrackerImbalance>> {
        let mut whole: Vec<TrackerImbalance> = Vec::new();
        for host in self.0.hosts() {
            let parts = self.fetch_imbalances(host)?;
            whole.resize(whole.len().max(parts.len()), TrackerImbalance::default());
            whole.iter_mut().zip(&parts).for_each(|(whole, part)| whole.add(part));
        }
        Ok(whole)
    }
}
