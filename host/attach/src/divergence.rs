//! The first difference between a board and its shadow.

/// In what a board differs from its shadow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ShadowDifference {
    /// The digests of their states differ.
    State { board: u32, shadow: u32 },
    /// The board sent other frames, but its state is the same.
    Frames(String),
}

/// The first difference between a board and its shadow.
#[derive(Clone, Debug)]
pub(super) struct Divergence {
    /// The air's slot.
    pub(super) slot: u32,
    /// The agent's round.
    pub(super) round: u32,
    pub(super) kind: ShadowDifference,
}

/// Describes the first difference between the frames that a board and its shadow sent, if there is one.
pub(super) fn frame_difference(board: &[Vec<u8>], shadow: &[Vec<u8>]) -> Option<String> {
    if board.len() != shadow.len() {
        return Some(format!("{} frames instead of {}", board.len(), shadow.len()));
    }
    let number = board.iter().zip(shadow).position(|(board, shadow)| board != shadow)?;
    let (board, shadow) = (&board[number], &shadow[number]);
    let byte = board.iter().zip(shadow).position(|(board, shadow)| board != shadow);
    let byte = byte.unwrap_or(board.len().min(shadow.len()));
    let (length, expected) = (board.len(), shadow.len());
    Some(format!("frame {number} ({length} bytes, expected {expected}) differs from byte {byte} on"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_names_the_frame_and_the_byte() {
        let sent = [vec![1, 2, 3]];
        let difference = |expected: &[Vec<u8>]| frame_difference(&sent, expected);
        assert_eq!(difference(&sent), None);
        let expected = "frame 0 (3 bytes, expected 3) differs from byte 2 on";
        assert_eq!(difference(&[vec![1, 2, 4]]).as_deref(), Some(expected));
        let expected = "frame 0 (3 bytes, expected 2) differs from byte 2 on";
        assert_eq!(difference(&[vec![1, 2]]).as_deref(), Some(expected));
        assert_eq!(difference(&[]).as_deref(), Some("1 frames instead of 0"));
    }
}
