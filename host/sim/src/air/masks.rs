//! Graphs written as hexadecimal row masks.

use fabswarm_shared::graph::Trace;

/// Reads graphs of `agents` row masks each, row 0 first; bit j of row i is set if i hears j. All rows have `digits`
/// hexadecimal digits, or as many as it takes.
///
/// # Errors
/// The fault of the first graph that cannot be read.
pub fn parse(graphs: &[String], agents: usize, digits: Option<usize>) -> Result<Vec<u64>, String> {
    let digits = digits.unwrap_or_else(|| agents.div_ceil(4));
    if digits < agents.div_ceil(4).max(1) {
        let least = agents.div_ceil(4);
        return Err(format!("`row_mask_hex_digits` is {digits}, and {agents} agents need at least {least}"));
    }
    if graphs.is_empty() {
        return Err("`graphs` is empty; expected at least 1 graph".to_owned());
    }
    let words = Trace::words_per_row(agents);
    let mut rows = Vec::with_capacity(graphs.len() * agents * words);
    // A length beyond all numbers is that of no graph.
    let length = agents.saturating_mul(digits);
    for (round, graph) in graphs.iter().enumerate() {
        let mask_error = |found: String| {
            format!(
                "`graphs[{round}]` is {found}; expected {agents} row masks of {digits} hex digits, {length} in all"
            )
        };
        if graph.len() != length || !graph.is_ascii() {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_of_any_width_are_read() {
        let graphs = ["201097".to_string()];
        assert!(parse(&graphs, 2, Some(3)).unwrap_err().contains("beyond agent 1"));
        assert_eq!(parse(&["12".into()], 2, None).unwrap(), [1, 2]);
        // 66 agents: 17 digits a row, two words.
        let row = format!("2{}1", "0".repeat(15));
        assert_eq!(parse(&[row.repeat(66)], 66, Some(17)).unwrap()[..2], [1, 2]);
    }

    #[test]
    fn bad_masks_are_named() {
        assert!(parse(&["1".into()], 2, Some(1)).unwrap_err().contains("graphs[0]"));
        assert!(parse(&["11".into(), "1g".into()], 2, Some(1)).unwrap_err().contains("graphs[1]"));
        assert!(
            parse(&["11".into()], 5, Some(1)).unwrap_err().ends_with("is 1, and 5 agents need at least 2")
        );
        assert!(parse(&[], 2, None).unwrap_err().contains("`graphs` is empty"));
        assert!(parse(&[String::new()], 2, Some(1 << 63)).unwrap_err().contains("0 characters long"));
        assert!(parse(&["1é".into()], 2, Some(1)).is_err());
    }
}
