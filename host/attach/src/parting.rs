//! Where a board ceases to be what its shadow is.

/// How a board is not what its shadow is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Difference {
    /// It came to another state, in which it stays.
    State { board: u32, shadow: u32 },
    /// It said something else on the way to the same state.
    Words(String),
}

/// The first difference of a board from its shadow.
#[derive(Clone, Debug)]
pub(super) struct Parting {
    /// The air's slot.
    pub(super) slot: u32,
    /// The agent's round.
    pub(super) round: u32,
    pub(super) difference: Difference,
}

/// How what a board said is not what its shadow said, if it is not.
pub(super) fn other_words(board: &[Vec<u8>], shadow: &[Vec<u8>]) -> Option<String> {
    if board.len() != shadow.len() {
        return Some(format!("{} frames instead of {}", board.len(), shadow.len()));
    }
    let number = board.iter().zip(shadow).position(|(board, shadow)| board != shadow)?;
    let (board, shadow) = (&board[number], &shadow[number]);
    let byte = board.iter().zip(shadow).position(|(board, shadow)| board != shadow);
    let byte = byte.unwrap_or(board.len().min(shadow.len()));
    let (length, expected) = (board.len(), shadow.len());
    Some(format!("frame {number} of {length} bytes instead of {expected} differs from byte {byte} on"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_words_are_told_by_frame_and_byte() {
        let said = [vec![1, 2, 3]];
        let words = |expected: &[Vec<u8>]| other_words(&said, expected);
        assert_eq!(words(&said), None);
        let expected = "frame 0 of 3 bytes instead of 3 differs from byte 2 on";
        assert_eq!(words(&[vec![1, 2, 4]]).as_deref(), Some(expected));
        let expected = "frame 0 of 3 bytes instead of 2 differs from byte 2 on";
        assert_eq!(words(&[vec![1, 2]]).as_deref(), Some(expected));
        assert_eq!(words(&[]).as_deref(), Some("1 frames instead of 0"));
    }
}
