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

    fn freeze(&mut self, agent: usize) {
        if let Some(board) = self.find_mut(agent as u16) {
            board.freeze();
        }
    }

    fn thaw(&mut self, agent: usize) {
        if let Some(board) = self.find_mut(agent as u16) {
            board.thaw();
        }
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

    fn end_round(&mut self, agents: &[usize]) {
        Boards::end_round(self, agents);
    }

    fn check(&mut self, agent: usize, digest: u32, state: &dyn Fn() -> Vec<u32>) -> Result<(), Halt> {
        let agent = agent as u16;
        let heard = self.heard(agent).map_err(Error::into_halt)?;
        let Some(telemetry) = heard.map(|heard| heard.telemetry) else { return Ok(()) };
        self.digests.checks += 1;
        if telemetry.digest == digest {
            return Ok(());
        }
        self.digests.mismatches += 1;
        let difference = self.compare(agent, telemetry.round, state());
        let (board, shadow) = (telemetry.digest, digest);
        Err(Error::Mismatch { agent, round: telemetry.round, board, shadow, difference }.into_halt())
    }

    fn deepest_stack_bytes(&self) -> Option<u32> {
        self.boards.iter().filter_map(|board| board.heard()?.telemetry.deepest_stack_bytes).max()
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
