//! The first difference between a board and its shadow.

use super::frame_fields::FrameFields;
use fabswarm_shared::wire::seal::Key;
use fabswarm_sim::swarm::ShadowRound;
use std::fmt::Write;
use std::path::Path;
use std::{fs, io};

/// The frames that an agent received in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RoundReception {
    pub(crate) heard: u16,
    /// Frames that it refused; `None` if that cannot be compared.
    pub(crate) refused: Option<u32>,
}

impl RoundReception {
    /// Describes in what a board differs from its shadow, if it does.
    fn difference(self, shadow: Self) -> Option<String> {
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
        let expected = RoundReception { heard: shadow.heard, refused: shadow.refused };
        if let Some(difference) = board.difference(expected) {
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
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FramePair {
    board: Vec<Vec<u8>>,
    shadow: Vec<Vec<u8>>,
}

impl FramePair {
    /// Keeps the frames of a round if they differ.
    pub(crate) fn differing(board: &[Vec<u8>], shadow: &[Vec<u8>]) -> Option<Self> {
        (board != shadow).then(|| Self { board: board.to_vec(), shadow: shadow.to_vec() })
    }

    /// Names the first field that differs.
    pub(crate) fn describe(&self, key: Option<&Key>) -> String {
        let Self { board, shadow } = self;
        if board.len() != shadow.len() {
            return format!("{} frames instead of {}", board.len(), shadow.len());
        }
        let number = board.iter().zip(shadow).position(|(board, shadow)| board != shadow).unwrap_or(0);
        let fields = |frames: &[Vec<u8>]| FrameFields::of(frames.get(number).map_or(&[], Vec::as_slice), key);
        format!("frame {number}: {}", fields(board).first_difference(&fields(shadow)))
    }

    /// Writes the frames into `folder`, each in a line of hexadecimal digits with its fields below.
    pub(crate) fn write(&self, folder: &Path, agent: u16, round: u32, key: Option<&Key>) -> io::Result<()> {
        let names = Self::files(agent, round);
        for (name, frames) in names.iter().zip([&self.board, &self.shadow]) {
            let mut text = String::new();
            for frame in frames {
                let digits: String = frame.iter().map(|byte| format!("{byte:02x}")).collect();
                // Writing to a string cannot fail.
                let _ = writeln!(text, "{digits}\n{}", FrameFields::of(frame, key));
            }
            fs::write(folder.join(name), text)?;
        }
        Ok(())
    }

    /// The files of a board and of its shadow.
    pub(crate) fn files(agent: u16, round: u32) -> [String; 2] {
        ["board", "shadow"].map(|which| format!("agent-{agent}-round-{round}-frames-{which}.txt"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAME: RoundReception = RoundReception { heard: 3, refused: Some(0) };

    fn shadow() -> ShadowRound {
        ShadowRound { digest: 7, heard: 3, refused: Some(0), state: Vec::new() }
    }

    #[test]
    fn what_was_taken_is_compared_before_what_came_of_it() {
        let differing = FramePair { board: vec![vec![1]], shadow: Vec::new() };
        let of = |board, digest| ShadowDifference::of((board, digest), &shadow(), Some(differing.clone()));
        let deaf = RoundReception { heard: 2, ..SAME };
        let expected = "it heard 2 others instead of 3".to_owned();
        assert_eq!(of(deaf, 8), Some(ShadowDifference::Reception(expected)));
        let refusing = RoundReception { heard: 2, refused: Some(1) };
        let expected = "it heard 2 others instead of 3, it refused 1 frames instead of 0".to_owned();
        assert_eq!(of(refusing, 8), Some(ShadowDifference::Reception(expected)));
        assert_eq!(of(SAME, 8), Some(ShadowDifference::State { board: 8, shadow: 7 }));
        assert_eq!(of(SAME, 7), Some(ShadowDifference::Frames(differing.clone())));
        let unknown = RoundReception { refused: None, ..SAME };
        assert_eq!(ShadowDifference::of((unknown, 7), &shadow(), None), None);
    }

    #[test]
    fn both_frames_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let frames = |bytes: &[u8]| vec![bytes.to_vec()];
        assert_eq!(FramePair::differing(&frames(&[1]), &frames(&[1])), None);
        let pair = FramePair::differing(&frames(&[0, 3, 1, 7, 9]), &frames(&[0, 3, 1, 8, 9])).unwrap();
        assert_eq!(pair.describe(None), "frame 0: round is 7 instead of 8");
        pair.write(folder.path(), 3, 7, None).unwrap();
        let written = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
        assert!(written("agent-3-round-7-frames-board.txt").starts_with("0003010709\nkind data\nsender 3\n"));
        assert!(written("agent-3-round-7-frames-shadow.txt").starts_with("0003010809\n"));
        let none = FramePair::differing(&frames(&[1]), &[]).unwrap();
        assert_eq!(none.describe(None), "1 frames instead of 0");
    }
}
