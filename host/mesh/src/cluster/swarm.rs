//! A run on several hosts in the place of agents that are computed here.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use fabswarm_large::device::{self, Block};
use fabswarm_large::fab::{Imbalance, RemoteHosts, StatePart};

use super::run::ClusterRun;
use super::unexpected;
use crate::message::{Answer, Request};
use fabswarm_large::training::block::{to_bytes, to_words};

/// Words of state in one message.
const PIECE: usize = 128 << 10;

/// A run on several hosts in the place of agents that are computed here.
#[derive(Clone, Debug)]
pub struct ClusterSwarm(pub Arc<ClusterRun>);

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
                (Answer::Words, body) if body.len() == words * size_of::<f32>() => {
                    all.extend(to_words(&body))
                }
                (other, _) => return Err(unexpected(&self.0.shared.peers[host], &other).into()),
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

    fn permit(&self, round: u32) -> device::Result<()> {
        Ok(self.0.permit_all(round)?)
    }

    fn wait_for(&self, round: u32) -> device::Result<()> {
        Ok(self.0.wait_for_all(round)?)
    }

    fn halt(&self) -> device::Result<u32> {
        Ok(self.0.halt_all()?)
    }

    fn imbalances(&self) -> device::Result<Vec<Imbalance>> {
        let mut whole: Vec<Imbalance> = Vec::new();
        for host in self.0.hosts() {
            let parts = self.0.imbalances_of(host)?;
            whole.resize(whole.len().max(parts.len()), Imbalance::default());
            whole.iter_mut().zip(&parts).for_each(|(whole, part)| whole.add(part));
        }
        Ok(whole)
    }

    fn outlives_loss(&self) -> bool {
        self.0.outlives_loss()
    }

    fn is_lost(&self, host: usize) -> bool {
        self.0.is_lost(host)
    }

    fn lose(&self, host: usize, error: &device::Error) -> bool {
        self.0.lose(host, error)
    }

    fn returning(&self) -> Vec<usize> {
        self.0.returning()
    }

    fn readmit(&self, host: usize, restore: &mut dyn FnMut() -> device::Result<()>) -> device::Result<()> {
        Ok(self.0.readmit(host, restore)?)
    }

    fn checkpointed(&self) -> device::Result<()> {
        Ok(self.0.keep_imbalances()?)
    }
}
