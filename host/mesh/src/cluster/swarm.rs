//! A run on several hosts in place of agents that are computed here.

use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError};

use fabswarm_large::device::{self, Block};
use fabswarm_large::fab::{Imbalance, RemoteHosts, StatePart};
use fabswarm_large::training::block::{to_bytes, to_words};

use super::losses::LossEvent;
use super::run::ClusterRun;
use crate::Error;
use crate::message::{Request, Response};

/// Words of state in one message.
const PIECE: usize = 128 << 10;

/// The agents of a run that other hosts compute.
#[derive(Clone, Debug)]
pub struct ClusterSwarm(pub Arc<ClusterRun>);

impl ClusterSwarm {
    fn checkpointed_imbalances(&self) -> MutexGuard<'_, Vec<Option<Vec<Imbalance>>>> {
        self.0.checkpointed_imbalances.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The imbalances of a host; for a lost one those of the checkpoint that holds its state.
    fn imbalances_of(&self, host: usize) -> Result<Vec<Imbalance>, Error> {
        if !self.is_lost(host) {
            match self.fetch_imbalances(host) {
                Err(error) if self.0.lose(host, &error) => {}
                found => return found,
            }
        }
        Ok(self.checkpointed_imbalances()[host].clone().unwrap_or_default())
    }

    /// Fetches the imbalances of one host, in as many messages as they take.
    fn fetch_imbalances(&self, host: usize) -> Result<Vec<Imbalance>, Error> {
        let mut numbers: Vec<f64> = Vec::new();
        loop {
            let request = Request::Imbalances { round: self.0.round(), offset: numbers.len() };
            let (response, body) = self.0.ask(host, &request, &[])?;
            let Response::Imbalances(sums) = response else {
                return Err(self.0.unexpected(host, &response));
            };
            numbers.extend(body.as_chunks().0.iter().map(|number| f64::from_le_bytes(*number)));
            if numbers.len() >= 2 * sums.iter().sum::<usize>() || body.is_empty() {
                let mut rest = numbers.into_iter();
                let part = |count: usize| Imbalance {
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
        while all.len() < words {
            let (offset, words) = (offset + all.len(), PIECE.min(words - all.len()));
            let request = Request::Read { round: self.0.round(), part, offset, words };
            match self.0.ask(host, &request, &[])? {
                (Response::Words, body) if body.len() == words * size_of::<f32>() => {
                    all.extend(to_words(&body))
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
        self.0.round.store(round.into(), Ordering::Relaxed);
        Ok(())
    }

    fn permit(&self, until: u32) -> device::Result<()> {
        for host in self.0.present() {
            self.0.command(host, |seq| Request::Permit { seq, until })?;
        }
        Ok(())
    }

    fn wait_for(&self, round: u32) -> device::Result<()> {
        Ok(self.0.wait_for_all(round)?)
    }

    fn halt(&self) -> device::Result<u32> {
        let mut last = self.0.round();
        for host in self.0.present() {
            match self.0.command(host, |seq| Request::Halt { seq })? {
                None => {}
                Some(Response::Reached { round, .. }) => last = last.max(round),
                Some(other) => return Err(self.0.unexpected(host, &other).into()),
            }
        }
        self.permit(last)?;
        self.wait_for(last)?;
        Ok(last)
    }

    fn imbalances(&self) -> device::Result<Vec<Imbalance>> {
        let mut whole: Vec<Imbalance> = Vec::new();
        for host in self.0.hosts() {
            let parts = self.imbalances_of(host)?;
            whole.resize(whole.len().max(parts.len()), Imbalance::default());
            whole.iter_mut().zip(&parts).for_each(|(whole, part)| whole.add(part));
        }
        Ok(whole)
    }

    fn outlives_loss(&self) -> bool {
        self.0.policy.outlives
    }

    fn is_lost(&self, host: usize) -> bool {
        self.0.losses.has(host)
    }

    fn lose(&self, host: usize, error: &device::Error) -> bool {
        self.0.lose(host, error)
    }

    fn returning(&self) -> Vec<usize> {
        let run = &self.0;
        let has_answered = |host: &usize| run.losses.may_return(*host, run.shared.sign(*host).at);
        run.losses.hosts().into_iter().filter(has_answered).collect()
    }

    fn readmit(&self, host: usize, restore: &mut dyn FnMut() -> device::Result<()>) -> device::Result<()> {
        let run = &self.0;
        let Ok(has_memory) = run.bring_back(host, restore) else {
            run.losses.postpone(host);
            return Ok(());
        };
        let (others, round) = (run.present(), run.round());
        run.admissions[host].store(run.next_seq(), Ordering::Relaxed);
        // From here on it is told of every loss, like all others.
        if let Some(since) = run.losses.remove(host) {
            run.silent_rounds[host].fetch_add(round - since, Ordering::Relaxed);
            let name = run.host_name(host).to_owned();
            (run.policy.observe)(&LossEvent::Back { host: name, round, has_memory });
        }
        for lost in run.losses.hosts() {
            run.exclude(host, lost)?;
        }
        for other in others {
            run.command(other, |seq| Request::Admit { seq, host })?;
            // It was lost again meanwhile: hosts that have admitted it must not wait for it.
            if run.losses.has(host) {
                return Ok(run.present().into_iter().try_for_each(|other| run.exclude(other, host))?);
            }
        }
        Ok(())
    }

    fn checkpointed(&self) -> device::Result<()> {
        for host in self.0.present() {
            let found = self.imbalances_of(host)?;
            self.checkpointed_imbalances()[host] = Some(found);
        }
        Ok(())
    }
}
