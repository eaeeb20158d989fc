//! Boards as the remote part of a swarm, each with a shadow.

use super::{Boards, Error};
use crate::swarm::{DigestCounts, Halt, Remote};
use std::io;
use std::path::Path;

impl Remote for Boards {
    fn is_remote(&self, agent: usize) -> bool {
        self.find(agent as u16).is_some()
    }

    fn kill(&mut self, agent: usize) {
        if let Some(board) = self.find_mut(agent as u16) {
            board.kill();
        }
    }

    fn restart(&mut self, agent: usize, round: u32, keeps_memory: bool) -> Result<(), Halt> {
        Boards::restart(self, agent as u16, round, keeps_memory).map_err(Error::into_halt)
    }

    fn begin_round(&mut self) -> Result<(), Halt> {
        Boards::begin_round(self).map_err(Error::into_halt)
    }

    fn frames(&self, agent: usize) -> &[Vec<u8>] {
        Boards::frames(self, agent as u16)
    }

    fn deliver(&mut self, agent: usize, frame: &[u8]) {
        Boards::deliver(self, agent as u16, frame);
    }

    fn end_round(&mut self) -> Result<(), Halt> {
        Boards::end_round(self).map_err(Error::into_halt)
    }

    fn check(&mut self, agent: usize, digest: u32, x: &[f32]) -> Result<(), Halt> {
        let agent = agent as u16;
        let Some(heard) = self.heard(agent) else { return Ok(()) };
        let telemetry = heard.telemetry;
        let mismatch = (telemetry.digest != digest).then(|| Error::Mismatch {
            agent,
            round: telemetry.round,
            board: telemetry.digest,
            shadow: digest,
            board_x: heard.x.clone(),
            shadow_x: x.to_vec(),
        });
        self.digests.checks += 1;
        self.digests.mismatches += u64::from(mismatch.is_some());
        mismatch.map_or(Ok(()), |error| Err(error.into_halt()))
    }

    fn digests(&self) -> DigestCounts {
        self.digests
    }

    fn take_warnings(&mut self) -> Vec<String> {
        Boards::take_warnings(self)
    }

    fn keep_logs(&mut self, folder: &Path) -> io::Result<()> {
        Boards::keep_logs(self, folder)
    }
}
