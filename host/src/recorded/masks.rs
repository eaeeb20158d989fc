//! Graphs written as hexadecimal row masks.

use super::Error;
use fabswarm_shared::graph::Trace;

/// Reads graphs of `agents` fixed-width row masks each, row 0 first; bit j of row i says that i hears j.
pub(super) fn parse(graphs: &[String], agents: usize, digits: usize) -> Result<Vec<u64>, Error> {
    let words = Trace::words_per_row(agents);
    let mut rows = Vec::with_capacity(graphs.len() * agents * words);
    for (round, graph) in graphs.iter().enumerate() {
        let mask_error = |found: String| Error::Mask {
            round,
            found,
            expected: format!("{agents} row masks of {digits} hex digits, {} in all", agents * digits),
        };
        if graph.len() != agents * digits || !graph.is_ascii() {
            return Err(mask_error(format!("{} characters long", graph.chars().count())));
        }
        for row in graph.as_bytes().chunks_exact(digits) {
            let start = rows.len();
            rows.resize(start + words, 0);
            for (place, &digit) in row.iter().rev().enumerate() {
                let value = char::from(digit)
                    .to_digit(16)
                    .ok_or_else(|| mask_error(format!("no hexadecimal number at {:?}", char::from(digit))))?;
                let bit = place * 4;
                let beyond = agents.saturating_sub(bit).min(4);
                if value >> beyond != 0 {
                    return Err(mask_error(format!("a mask with bits beyond agent {}", agents - 1)));
                }
                if value != 0 {
                    rows[start + bit / 64] |= u64::from(value) << (bit % 64);
                }
            }
        }
    }
    Ok(rows)
}

/// The pattern of non-zero entries of two row-major matrices, as one round.
pub(super) fn pattern(a: &[f64], b: &[f64], agents: usize) -> Vec<u64> {
    let words = Trace::words_per_row(agents);
    let mut rows = vec![0; agents * words];
    for (place, (&a, &b)) in a.iter().zip(b).enumerate() {
        let (row, column) = (place / agents, place % agents);
        if a != 0.0 || b != 0.0 {
            rows[row * words + column / 64] |= 1 << (column % 64);
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_of_any_width_are_read() {
        let graphs = ["201097".to_string()];
        assert!(parse(&graphs, 2, 3).unwrap_err().to_string().contains("beyond agent 1"));
        assert_eq!(parse(&["12".into()], 2, 1).unwrap(), [1, 2]);
        // 66 agents: 17 digits a row, two words.
        let row = format!("2{}1", "0".repeat(15));
        assert_eq!(parse(&[row.repeat(66)], 66, 17).unwrap()[..2], [1, 2]);
    }

    #[test]
    fn bad_masks_are_named() {
        assert!(parse(&["1".into()], 2, 1).unwrap_err().to_string().contains("graphs[0]"));
        assert!(parse(&["11".into(), "1g".into()], 2, 1).unwrap_err().to_string().contains("graphs[1]"));
        assert!(parse(&["1é".into()], 2, 1).is_err());
    }
}
