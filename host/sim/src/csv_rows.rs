//! Tables in CSV, as people and spreadsheets write them.
//!
//! The crate `csv` (1.4) takes a space before a quote for a part of the cell, and names wrong lines after CRLF and blank lines.

/// The rows of a text that are not blank, each with the line in which it begins, from 1. In quotes commas and line breaks belong to
/// the cell, and two quotes are one. Spaces around a cell are left out, and so is the byte-order mark of spreadsheets.
pub(crate) fn csv_rows(text: &str) -> Vec<(usize, Vec<String>)> {
    let mut rows = vec![(1, vec![String::new()])];
    let (mut line, mut is_quoted) = (1, false);
    let mut letters = text.trim_start_matches('\u{feff}').chars().peekable();
    while let Some(letter) = letters.next() {
        line += usize::from(letter == '\n');
        let Some((_, cells)) = rows.last_mut() else { break };
        match (letter, cells.last_mut()) {
            ('"', Some(cell)) if is_quoted && letters.next_if_eq(&'"').is_some() => cell.push('"'),
            ('"', _) => is_quoted = !is_quoted,
            (',', _) if !is_quoted => cells.push(String::new()),
            ('\n', _) if !is_quoted => rows.push((line, vec![String::new()])),
            (letter, cell) => cell.into_iter().for_each(|cell| cell.push(letter)),
        }
    }
    for cell in rows.iter_mut().flat_map(|(_, cells)| cells) {
        *cell = cell.trim().to_owned();
    }
    rows.retain(|(_, cells)| *cells != [""]);
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_line_breaks_and_marks_are_read() {
        let text = "\u{feff}a, \"b, c\",d\r\n\r\n1,\"two\nlines\",\"say \"\"x\"\"\"\n  \n,2 ,\n";
        let expected = [(1, ["a", "b, c", "d"]), (3, ["1", "two\nlines", "say \"x\""]), (6, ["", "2", ""])];
        let expected = expected.map(|(line, cells)| (line, cells.map(str::to_owned).to_vec()));
        assert_eq!(csv_rows(text), expected);
        assert_eq!(csv_rows("\n"), []);
    }
}
