//! The states of a board and its shadow at their first difference, written to the run folder.

use crate::Error;
use fabswarm_shared::agent::StateField;
use std::{fmt, fmt::Write, fs, io, path::Path};

/// The states of a board and its shadow, which should be equal.
#[derive(Debug)]
pub(crate) struct StateDump {
    pub(crate) agent: u16,
    pub(crate) round: u32,
    /// The board's state, or why it could not be read.
    pub(crate) board: Result<Vec<u32>, Error>,
    pub(crate) shadow: Vec<u32>,
}

impl StateDump {
    /// Writes both states into `folder`, one word per line: its index, its bits, what they stand for, and its name.
    pub(crate) fn write(&self, folder: &Path) -> io::Result<()> {
        let [board, shadow] = self.files();
        match &self.board {
            Ok(state) => fs::write(folder.join(board), self.text(state))?,
            Err(error) => fs::write(folder.join(board), format!("{error}\n"))?,
        }
        fs::write(folder.join(shadow), self.text(&self.shadow))
    }

    /// The shadow's state says where everything is, in both.
    fn text(&self, state: &[u32]) -> String {
        let mut text = String::new();
        for (number, &word) in state.iter().enumerate() {
            let field = StateField::find(&self.shadow, number);
            let meaning = field.map(|field| format!(" {} {field}", field.value(word)));
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{number:5} {word:#010x}{}", meaning.unwrap_or_default());
        }
        text
    }

    fn files(&self) -> [String; 2] {
        ["board", "shadow"].map(|which| format!("agent-{}-round-{}-{which}.txt", self.agent, self.round))
    }

    /// The first word that differs, as far as both states go.
    fn first_difference(&self) -> Option<usize> {
        let board = self.board.as_ref().ok()?;
        board.iter().zip(&self.shadow).position(|(board, shadow)| board != shadow)
    }
}

impl fmt::Display for StateDump {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.board, self.first_difference()) {
            (Err(error), _) => write!(out, "the board did not send its state ({error})")?,
            (Ok(board), None) => {
                write!(
                    out,
                    "the board's state has {} words, its shadow's {}",
                    board.len(),
                    self.shadow.len()
                )?;
            }
            (Ok(board), Some(word)) => {
                let (board, shadow) = (board[word], self.shadow[word]);
                match StateField::find(&self.shadow, word) {
                    Some(field) => write!(
                        out,
                        "{field} is {} ({board:#010x}) instead of {} ({shadow:#010x})",
                        field.value(board),
                        field.value(shadow)
                    )?,
                    None => write!(out, "word {word} is {board:#010x} instead of {shadow:#010x}")?,
                }
            }
        }
        let [board, shadow] = self.files();
        write!(out, "; see {board} and {shadow} in the run's folder boards/")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_states_are_written_and_the_first_difference_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let dump = StateDump { agent: 3, round: 7, board: Ok(vec![1, 0x3F80_0000]), shadow: vec![1, 0] };
        assert_eq!(
            dump.to_string(),
            "word 1 is 0x3f800000 instead of 0x00000000; see agent-3-round-7-board.txt and \
             agent-3-round-7-shadow.txt in the run's folder boards/"
        );
        dump.write(folder.path()).unwrap();
        let board = fs::read_to_string(folder.path().join("agent-3-round-7-board.txt")).unwrap();
        assert_eq!(board, "    0 0x00000001\n    1 0x3f800000\n");
    }
}
