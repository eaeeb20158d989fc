//! In what a board differs from its shadow.

mod frame_fields;

use fabswarm_shared::agent::StateField;
use fabswarm_shared::wire::seal::Key;
use fabswarm_sim::swarm::{ShadowRound, SwarmError};
use frame_fields::FrameFields;
use std::path::Path;
use std::{fs, io};

/// Texts about a board and its shadow, for two files of the run folder.
#[derive(Debug)]
pub(crate) struct FilePair {
    /// The first difference, and the names of the files.
    pub(crate) difference: String,
    /// Names and texts.
    files: [(String, String); 2],
}

impl FilePair {
    /// The names of both files begin with `stem`.
    fn new(stem: &str, difference: &str, [board, shadow]: [String; 2]) -> Self {
        let names = ["board", "shadow"].map(|which| format!("{stem}-{which}.txt"));
        let difference =
            format!("{difference}; see {} and {} in the run's folder boards/", names[0], names[1]);
        let [board_name, shadow_name] = names;
        Self { difference, files: [(board_name, board), (shadow_name, shadow)] }
    }

    pub(crate) fn write(&self, folder: &Path) -> io::Result<()> {
        self.files.iter().try_for_each(|(name, text)| fs::write(folder.join(name), text))
    }
}

/// The states of a board, or why it could not be read, and of its shadow, which should be equal: one word per line with its index, its
/// bits, what they stand for, and its name.
pub(crate) fn state_pair(
    agent: u16,
    round: u32,
    board: Result<Vec<u32>, SwarmError>,
    shadow: &[u32],
) -> FilePair {
    // The shadow's state says where everything is, in both.
    let line = |(number, &word): (usize, &u32)| {
        let field = StateField::find(shadow, number);
        let meaning = field.map(|field| format!(" {} {field}", field.value(word)));
        format!("{number:5} {word:#010x}{}\n", meaning.unwrap_or_default())
    };
    let text = |state: &[u32]| state.iter().enumerate().map(line).collect::<String>();
    let (difference, board) = match board {
        Err(error) => (format!("the board did not send its state ({error})"), format!("{error}\n")),
        Ok(board) => (state_difference(&board, shadow), text(&board)),
    };
    FilePair::new(&format!("agent-{agent}-round-{round}"), &difference, [board, text(shadow)])
}

/// Names the first word that differs, as far as both states go.
fn state_difference(board: &[u32], shadow: &[u32]) -> String {
    let Some(number) = board.iter().zip(shadow).position(|(board, shadow)| board != shadow) else {
        return format!("the board's state has {} words, its shadow's {}", board.len(), shadow.len());
    };
    let (found, expected) = (board[number], shadow[number]);
    match StateField::find(shadow, number) {
        Some(field) => format!(
            "{field} is {} ({found:#010x}) instead of {} ({expected:#010x})",
            field.value(found),
            field.value(expected)
        ),
        None => format!("word {number} is {found:#010x} instead of {expected:#010x}"),
    }
}

/// The frames that an agent received in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RoundReception {
    pub(crate) heard: u16,
    /// Frames that it refused; `None` if that cannot be compared.
    pub(crate) refused: Option<u32>,
}

impl RoundReception {
    /// Describes in what a board differs from its shadow, if it does.
    fn difference(self, shadow: &ShadowRound) -> Option<String> {
        let mut parts = Vec::new();
        if self.heard != shadow.heard {
            parts.push(format!("it heard {} others instead of {}", self.heard, shadow.heard));
        }
        if let (Some(board), Some(shadow)) = (self.refused, shadow.refused)
            && board != shadow
        {
            parts.push(format!("it refused {board} frames instead of {shadow}"));
        }
        (!parts.is_empty()).then(|| parts.join(", "))
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ShadowDifference {
    /// The board took other frames; describes how they differ.
    Reception(String),
    State {
        board: u32,
        shadow: u32,
    },
    /// The board sent other frames, but its state is the same.
    Frames(FramePair),
}

impl ShadowDifference {
    /// Compares a round of a board with that of its shadow: first what it took, as everything else follows from that.
    pub(crate) fn of(
        (board, digest): (RoundReception, u32),
        shadow: &ShadowRound,
        frames: Option<FramePair>,
    ) -> Option<Self> {
        if let Some(difference) = board.difference(shadow) {
            return Some(Self::Reception(difference));
        }
        if digest != shadow.digest {
            return Some(Self::State { board: digest, shadow: shadow.digest });
        }
        frames.map(Self::Frames)
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Divergence {
    pub(crate) slot: u32,
    pub(crate) round: u32,
    pub(crate) kind: ShadowDifference,
}

/// The frames that a board and its shadow sent in a round, which differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FramePair {
    board: Vec<Vec<u8>>,
    shadow: Vec<Vec<u8>>,
}

impl FramePair {
    /// Keeps the frames of a round if they differ.
    pub(crate) fn differing(board: &[Vec<u8>], shadow: &[Vec<u8>]) -> Option<Self> {
        (board != shadow).then(|| Self { board: board.to_vec(), shadow: shadow.to_vec() })
    }

    /// The frames of both, each in a line of hexadecimal digits with its fields below.
    pub(crate) fn pair(&self, agent: u16, round: u32, key: Option<&Key>) -> FilePair {
        let text = |frame: &Vec<u8>| {
            let digits: String = frame.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("{digits}\n{}\n", FrameFields::of(frame, key))
        };
        let texts = [&self.board, &self.shadow].map(|frames| frames.iter().map(text).collect());
        FilePair::new(&format!("agent-{agent}-round-{round}-frames"), &self.difference(key), texts)
    }

    /// Names the first field that differs.
    fn difference(&self, key: Option<&Key>) -> String {
        let Self { board, shadow } = self;
        let mut frames = board.iter().zip(shadow).enumerate();
        match frames.find(|(_, (board, shadow))| board != shadow) {
            Some((number, (board, shadow))) if self.board.len() == self.shadow.len() => {
                let [board, shadow] = [board, shadow].map(|frame| FrameFields::of(frame, key));
                format!("frame {number}: {}", board.first_difference(&shadow))
            }
            _ => format!("{} frames instead of {}", board.len(), shadow.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_taken_is_compared_before_what_came_of_it() {
        let same = RoundReception { heard: 3, refused: Some(0) };
        let shadow = ShadowRound { digest: 7, heard: 3, refused: Some(0), state: Vec::new() };
        let differing = FramePair { board: vec![vec![1]], shadow: Vec::new() };
        let of = |board, digest| ShadowDifference::of((board, digest), &shadow, Some(differing.clone()));
        let deaf = RoundReception { heard: 2, ..same };
        let expected = "it heard 2 others instead of 3".to_owned();
        assert_eq!(of(deaf, 8), Some(ShadowDifference::Reception(expected)));
        let refusing = RoundReception { heard: 2, refused: Some(1) };
        let expected = "it heard 2 others instead of 3, it refused 1 frames instead of 0".to_owned();
        assert_eq!(of(refusing, 8), Some(ShadowDifference::Reception(expected)));
        assert_eq!(of(same, 8), Some(ShadowDifference::State { board: 8, shadow: 7 }));
        assert_eq!(of(same, 7), Some(ShadowDifference::Frames(differing.clone())));
        let unknown = RoundReception { refused: None, ..same };
        assert_eq!(ShadowDifference::of((unknown, 7), &shadow, None), None);
        assert!(differing.pair(3, 7, None).difference.starts_with("1 frames instead of 0; see "));
    }

    #[test]
    fn both_states_are_written_and_the_first_difference_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let pair = state_pair(3, 7, Ok(vec![1, 0x3F80_0000]), &[1, 0]);
        assert_eq!(
            pair.difference,
            "word 1 is 0x3f800000 instead of 0x00000000; see agent-3-round-7-board.txt and \
             agent-3-round-7-shadow.txt in the run's folder boards/"
        );
        pair.write(folder.path()).unwrap();
        let board = fs::read_to_string(folder.path().join("agent-3-round-7-board.txt")).unwrap();
        assert_eq!(board, "    0 0x00000001\n    1 0x3f800000\n");
    }
}
