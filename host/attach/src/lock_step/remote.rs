//! Boards as the remote agents of a swarm.

use super::{
    LockStepBoards,
    board::LockStepBoard,
    round_queue::{FrameSource, ShadowRoundEnd},
};
use crate::firmware::board_kind::BoardKind;
use crate::machine::BoardProcess;
use fabswarm_diagnostic::Diagnostic;
use fabswarm_sim::swarm::{
    BoardChange, BoardReports, BoardView, BoardWarning, DigestCounts, Remote, ShadowRound, SwarmError,
};
use std::path::Path;
use std::{fs, io};

impl Remote for LockStepBoards {
    fn is_remote(&self, agent: usize) -> bool {
        self.find(agent as u16).is_some()
    }

    fn kill(&mut self, agent: usize, keeps_memory: bool) -> Result<(), SwarmError> {
        self.after_catch_up(agent, |board| board.kill(keeps_memory))
    }

    fn restart(&mut self, agent: usize, round: u32) -> Result<(), SwarmError> {
        let Some(index) = self.index_of(agent as u16) else { return Ok(()) };
        // The new process truncates the log.
        self.fleet.read_log(index);
        self.fleet.boards[index].restart(round).map_err(|error| self.fail(error))
    }

    fn take_changes(&mut self) -> Vec<BoardChange> {
        std::mem::take(&mut self.changes)
    }

    fn freeze(&mut self, agent: usize) -> Result<(), SwarmError> {
        self.after_catch_up(agent, |board| {
            board.freeze();
            Ok(())
        })
    }

    fn thaw(&mut self, agent: usize) {
        if let Some(board) = self.find_mut(agent as u16) {
            board.thaw();
        }
    }

    fn shadow_sent(&mut self, agent: usize, frame: &[u8]) {
        if let Some(board) = self.find_mut(agent as u16) {
            board.queue.record_sent(frame);
        }
    }

    fn shadow_received(&mut self, agent: usize, sender: usize, frame: &[u8]) {
        let Some(index) = self.index_of(agent as u16) else { return };
        let source = self
            .index_of(sender as u16)
            .map(|board| FrameSource { board, air_round: self.fleet.boards[board].queue.last_sent_round() });
        self.fleet.boards[index].queue.record_received(source, frame);
    }

    fn reading(&mut self, agent: usize) -> Result<Option<f32>, SwarmError> {
        if self.find(agent as u16).is_none_or(|board| board.sensor.is_none()) {
            return Ok(None);
        }
        Remote::catch_up(self)?;
        let reading = self.find(agent as u16).and_then(LockStepBoard::reading);
        if let Some(reading) = reading {
            self.readings.push(self.slot, agent, reading);
        }
        Ok(reading)
    }

    fn shadow_ended_round(&mut self, agent: usize, round: ShadowRound) {
        let slot = self.slot;
        if let Some(board) = self.find_mut(agent as u16) {
            board.queue.record_end(ShadowRoundEnd { slot, shadow: round });
        }
    }

    fn follow(&mut self) -> Result<(), SwarmError> {
        LockStepBoards::follow(self).map_err(|error| self.fail(error))
    }

    fn catch_up(&mut self) -> Result<(), SwarmError> {
        LockStepBoards::catch_up(self).map_err(|error| self.fail(error))
    }

    fn board(&self, agent: usize) -> Option<BoardView> {
        self.find(agent as u16).map(LockStepBoard::view)
    }
}

impl BoardReports for LockStepBoards {
    fn digests(&self) -> DigestCounts {
        let mut total = DigestCounts::default();
        for board in &self.fleet.boards {
            total.checks += board.digests.checks;
            total.mismatches += board.digests.mismatches;
        }
        total
    }

    fn deepest_stack_bytes(&self) -> Option<u32> {
        self.fleet.boards.iter().filter_map(|board| board.telemetry?.deepest_stack_bytes).max()
    }

    fn follow_log(&mut self, agent: usize) {
        self.fleet.follow_log(agent);
    }

    fn take_warnings(&mut self) -> Vec<BoardWarning> {
        self.fleet.take_warnings()
    }

    fn keep_logs(&mut self, folder: &Path) -> io::Result<()> {
        self.fleet.keep_logs(folder)?;
        // Debugging a fault takes the image that had it.
        let processes = self.fleet.boards.iter().filter_map(|board| board.link.process());
        let firmware = processes.map(BoardProcess::firmware);
        for firmware in firmware.filter(|firmware| firmware.kind != BoardKind::Native) {
            let copy = folder.join(format!("{}.elf", firmware.kind.name()));
            if !self.fleet.events.is_empty() && !copy.exists() {
                fs::copy(&firmware.image, copy)?;
            }
        }
        self.readings.write(folder)?;
        self.differing.iter().try_for_each(|pair| pair.write(folder))
    }
}

impl LockStepBoards {
    /// Applies `act` to a board, once all boards have caught up with their shadows if that board is running.
    fn after_catch_up(
        &mut self,
        agent: usize,
        act: impl FnOnce(&mut LockStepBoard) -> Result<(), Diagnostic>,
    ) -> Result<(), SwarmError> {
        if self.find(agent as u16).is_some_and(|board| !board.is_away()) {
            LockStepBoards::catch_up(self).map_err(|error| self.fail(error))?;
        }
        self.find_mut(agent as u16).map_or(Ok(()), act).map_err(|error| self.fail(error))
    }

    /// Notes what ends the run.
    fn fail(&mut self, error: impl Into<SwarmError>) -> SwarmError {
        let error = error.into();
        if let SwarmError::Boards(fault) = &error {
            let what = fault.what().lines().next().unwrap_or_default().to_owned();
            self.fleet.events.push(self.slot, None, "failed", what);
        }
        error
    }
}
