//! Events of boards that the scenario does not plan, written to the run folder.

use std::fmt::Write;
use std::path::Path;
use std::{fs, io};

/// The file in a run's folder `boards/`; it is there if anything happened.
const EVENTS: &str = "events.csv";

/// Something that happened to a board, or that it logged as a warning or error.
#[derive(Clone, Debug, PartialEq, Eq)]
struct BoardEvent {
    round: u32,
    /// Its agent; `None` if the run failed for another reason.
    agent: Option<u16>,
    what: &'static str,
    detail: String,
}

#[derive(Debug, Default)]
pub(crate) struct EventLog(Vec<BoardEvent>);

impl EventLog {
    pub(crate) fn push(&mut self, round: u32, agent: Option<u16>, what: &'static str, detail: String) {
        self.0.push(BoardEvent { round, agent, what, detail });
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn write(&self, folder: &Path) -> io::Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        let mut text = "round,agent,event,detail\n".to_owned();
        for BoardEvent { round, agent, what, detail } in &self.0 {
            let agent = agent.map(|agent| agent.to_string()).unwrap_or_default();
            let detail = detail.replace('"', "\"\"").replace('\n', " ");
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{round},{agent},{what},\"{detail}\"");
        }
        fs::write(folder.join(EVENTS), text)
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
        assert_eq!(
            table,
            "round,agent,event,detail\n7,3,lost,\"it \"\"hangs\"\" at 0x12\"\n8,,failed,\"\"\n"
        );
    }
}
