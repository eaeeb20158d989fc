//! The boards of a swarm, however they are paced: their start, logs and events.

pub(crate) mod launch;

pub(crate) use launch::Launcher;

use crate::error;
use crate::machine::temp_dir::LockedTempDir;
use crate::machine::{BoardLink, BoardProcess, TOKENS_PER_BOARD, decisions_name, log_name};
use fabswarm_diagnostic::Diagnostic;
use fabswarm_sim::scenario::LostBoards;
use fabswarm_sim::swarm::BoardWarning;
use mio::{Events, Poll, Token, event::Event};
use std::path::Path;
use std::sync::{Arc, atomic::AtomicBool};
use std::time::{Duration, Instant};
use std::{fs, io};

/// How long a board that owes an answer may be silent before the run fails.
pub(crate) const SILENCE_LIMIT: Duration = Duration::from_secs(30);

/// Interval at which the host looks for unplugged boards.
const RECALL_EVERY: Duration = Duration::from_millis(300);

/// Bytes read from a board at once: more than it sends in a round.
const CHUNK_BYTES: usize = 64 * 1024;

/// The file in a run's folder `boards/` for the events; it is there if anything happened.
const EVENTS: &str = "events.csv";

/// The rows of a table of what happened to boards, or ended the run, and was not planned by the scenario.
#[derive(Debug, Default)]
pub(crate) struct EventLog(String);

impl EventLog {
    /// Adds an event of the board of `agent`, or of the run.
    pub(crate) fn push(&mut self, round: u32, agent: Option<u16>, what: &str, detail: String) {
        let agent = agent.map(|agent| agent.to_string()).unwrap_or_default();
        let detail = detail.replace('"', "\"\"").replace('\n', " ");
        self.0 += &format!("{round},{agent},{what},\"{detail}\"\n");
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn write(&self, folder: &Path) -> io::Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        fs::write(folder.join(EVENTS), format!("round,agent,event,detail\n{}", self.0))
    }
}

/// The boards of a swarm, in the order of their agents.
#[derive(Debug)]
pub(crate) struct Fleet<B> {
    pub(crate) boards: Vec<B>,
    pub(crate) events: EventLog,
    warnings: Vec<BoardWarning>,
    pub(crate) lost_boards: LostBoards,
    pub(crate) silence_limit: Duration,
    /// Ends a wait for boards that do not answer.
    pub(crate) interrupted: Arc<AtomicBool>,
    recalled: Instant,
    pub(crate) poll: Poll,
    polled: Events,
    chunk: Vec<u8>,
    /// Holds sockets, flash and logs; removed when the boards are dropped, hence the last field.
    temp_dir: LockedTempDir,
}

impl<B: AsMut<BoardLink>> Fleet<B> {
    pub(crate) fn new(boards: Vec<B>, poll: Poll, temp_dir: LockedTempDir) -> Self {
        Self {
            polled: Events::with_capacity(2 * boards.len().max(16)),
            boards,
            events: EventLog::default(),
            warnings: Vec::new(),
            lost_boards: LostBoards::Rejoin,
            silence_limit: SILENCE_LIMIT,
            interrupted: Arc::default(),
            recalled: Instant::now(),
            poll,
            chunk: vec![0; CHUNK_BYTES],
            temp_dir,
        }
    }

    /// Waits for packets, and returns the tokens of boards that sent some. A signal, such as Ctrl-C, ends the wait with `None`.
    pub(crate) fn poll(&mut self, timeout: Duration) -> Result<Option<Vec<Token>>, Diagnostic> {
        match self.poll.poll(&mut self.polled, Some(timeout)) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(None),
            Err(error) => Err(error::wait(error)),
            Ok(()) => Ok(Some(self.polled.iter().map(Event::token).collect())),
        }
    }

    /// Reads what has arrived under a token. Returns the index of its board, and whether that was unplugged.
    pub(crate) fn receive(&mut self, token: Token) -> Result<(usize, bool), Diagnostic> {
        let index = token.0 / TOKENS_PER_BOARD;
        let link = self.boards[index].as_mut();
        if token.0.is_multiple_of(TOKENS_PER_BOARD) {
            link.connect(&self.poll)?;
        }
        Ok((index, link.fill(&mut self.chunk)))
    }

    pub(crate) fn flush(&mut self) {
        for board in &mut self.boards {
            board.as_mut().flush(&self.poll);
        }
    }

    /// Regularly tries to bring boards back, by `recall`.
    pub(crate) fn recall(
        &mut self,
        recall: impl Fn(&mut B, &Poll) -> Result<(), Diagnostic>,
    ) -> Result<(), Diagnostic> {
        if self.recalled.elapsed() < RECALL_EVERY {
            return Ok(());
        }
        self.recalled = Instant::now();
        self.boards.iter_mut().try_for_each(|board| recall(board, &self.poll))
    }

    pub(crate) fn warn(&mut self, agent: u16, text: String) {
        self.warnings.push(BoardWarning { agent: agent.into(), text });
    }

    /// Decodes what was added to the log of a board.
    pub(crate) fn read_log(&mut self, index: usize) {
        let link = self.boards[index].as_mut();
        let (agent, is_followed) = (usize::from(link.agent), link.is_log_followed);
        let lines = link.process_mut().map(|process| process.read_log(is_followed)).unwrap_or_default();
        self.warnings.extend(lines.into_iter().map(|text| BoardWarning { agent, text }));
    }

    /// Fails if the process of a board has ended.
    pub(crate) fn check_process(&mut self, index: usize) -> Result<(), Diagnostic> {
        let process = self.boards[index].as_mut().process_mut();
        let Some(status) = process.and_then(|board| board.child.exit_status()) else { return Ok(()) };
        self.read_log(index);
        let link = self.boards[index].as_mut();
        let messages = link.process().map(BoardProcess::last_message).unwrap_or_default();
        let (agent, colon) = (link.agent, if messages.is_empty() { "" } else { ": " });
        let what = format!("the board of agent {agent} ended ({status}){colon}{messages}");
        Err(Diagnostic::new(what, format!("see {} in the run's folder boards/", log_name(agent))))
    }

    /// Adds everything that the board of `agent` logs to the warnings.
    pub(crate) fn follow_log(&mut self, agent: usize) {
        let mut links = self.boards.iter_mut().map(AsMut::as_mut);
        if let Some(link) = links.find(|link| usize::from(link.agent) == agent) {
            link.is_log_followed = true;
        }
    }

    /// Returns what boards logged at level warn or error, and what happened to them, since the last call.
    pub(crate) fn take_warnings(&mut self) -> Vec<BoardWarning> {
        (0..self.boards.len()).for_each(|index| self.read_log(index));
        std::mem::take(&mut self.warnings)
    }

    /// Copies the boards' logs and the events into `folder`.
    pub(crate) fn keep_logs(&mut self, folder: &Path) -> io::Result<()> {
        fs::create_dir_all(folder)?;
        for board in &mut self.boards {
            let agent = board.as_mut().agent;
            for (name, is_due) in [(log_name(agent), true), (decisions_name(agent), false)] {
                let file = self.temp_dir.path().join(&name);
                if is_due || file.exists() {
                    fs::copy(file, folder.join(&name))?;
                }
            }
        }
        self.events.write(folder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_a_table() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = EventLog::default();
        log.write(folder.path()).unwrap();
        assert!(!folder.path().join(EVENTS).exists());
        log.push(7, Some(3), "lost", "it \"hangs\"\nat 0x12".to_owned());
        log.push(8, None, "failed", String::new());
        log.write(folder.path()).unwrap();
        let table = fs::read_to_string(folder.path().join(EVENTS)).unwrap();
        let rows = "7,3,lost,\"it \"\"hangs\"\" at 0x12\"\n8,,failed,\"\"\n";
        assert_eq!(table, format!("round,agent,event,detail\n{rows}"));
    }
}
