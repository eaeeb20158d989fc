//! `boards/readings.csv`: the fresh readings of a run's boards.

use fabswarm_diagnostic::Diagnostic;
use std::collections::VecDeque;
use std::path::Path;
use std::{fs, io};

const FILE: &str = "readings.csv";
const HEADER: &str = "slot,agent,reading\n";

/// Fresh readings in the order in which agents took them: the slot of the air, the agent and the value.
#[derive(Clone, Debug, Default)]
pub struct ReadingLog(VecDeque<(u32, usize, f32)>);

impl ReadingLog {
    /// Adds a reading.
    pub fn push(&mut self, slot: u32, agent: usize, value: f32) {
        self.0.push_back((slot, agent, value));
    }

    /// Takes the next reading, if `agent` took it in `slot`.
    pub fn take(&mut self, slot: u32, agent: usize) -> Option<f32> {
        self.0.pop_front_if(|(at, of, _)| (*at, *of) == (slot, agent)).map(|(_, _, value)| value)
    }

    /// Writes the file in the folder of a run's boards, if there are readings.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, folder: &Path) -> io::Result<()> {
        if self.0.is_empty() {
            return Ok(());
        }
        let line = |(slot, agent, value): &(u32, usize, f32)| format!("{slot},{agent},{value}\n");
        let lines: String = self.0.iter().map(line).collect();
        fs::write(folder.join(FILE), HEADER.to_owned() + &lines)
    }

    /// Reads the file in the folder of a run's boards, which only runs with readings have.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn read(folder: &Path) -> Result<Self, Diagnostic> {
        let path = folder.join(FILE);
        if !path.exists() {
            return Ok(Self::default());
        }
        let refuse = |what: String| Diagnostic::of_file(&path, what, "restore the file from the run");
        let text = fs::read_to_string(&path).map_err(|error| refuse(error.to_string()))?;
        let rows = text.strip_prefix(HEADER).ok_or_else(|| refuse("it is no log of readings".to_owned()))?;
        let parse = |row: &str| {
            let mut fields = row.split(',');
            let mut next = || fields.next();
            Some((next()?.parse().ok()?, next()?.parse().ok()?, next()?.parse().ok()?))
        };
        let parsed = rows.lines().enumerate().map(|(index, row)| {
            parse(row).ok_or_else(|| refuse(format!("line {}: `{row}` is no reading", index + 2)))
        });
        parsed.collect::<Result<_, _>>().map(Self)
    }
}
