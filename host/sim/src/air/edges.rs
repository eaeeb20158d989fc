//! Graphs as a list of links: a CSV file with the columns `round`, `sender` and `receiver`.

use fabswarm_diagnostic::Diagnostic;
use fabswarm_shared::graph::Trace;
use std::path::Path;

use crate::csv_rows::csv_rows;

/// Words of all graphs together; more is a mistyped round.
const MOST_WORDS: usize = 1 << 27;

/// Reads row masks of a swarm of `agents` agents. Without a column `round` all links are there in every round.
pub(super) fn read(path: &Path, text: &str, agents: usize) -> Result<Vec<u64>, Diagnostic> {
    let refuse = |line: usize, what: String, remedy: &str| {
        Diagnostic::new(format!("{}:{}: {what}", path.display(), line), remedy)
    };
    let mut rows = csv_rows(text).into_iter();
    let columns =
        "begin with the line `round,sender,receiver`, or `sender,receiver` for links that never change";
    let Some((at, names)) = rows.next() else {
        return Err(refuse(1, "the file is empty".to_owned(), columns));
    };
    let place = |name: &str| names.iter().position(|known| known == name);
    let (Some(sender), Some(receiver)) = (place("sender"), place("receiver")) else {
        return Err(refuse(
            at,
            format!("`{}` names no columns `sender` and `receiver`", names.join(",")),
            columns,
        ));
    };
    let round = place("round");
    let mut links = Vec::new();
    for (at, cells) in rows {
        let number = |column: usize| -> Result<usize, Diagnostic> {
            let cell = cells.get(column).map_or("", String::as_str);
            cell.parse().map_err(|_| {
                refuse(at, format!("{} is `{cell}`", names[column]), "give whole numbers from 0 on")
            })
        };
        let round = round.map_or(Ok(0), number)?;
        let (from, to) = (number(sender)?, number(receiver)?);
        for (name, agent) in [("sender", from), ("receiver", to)] {
            if agent >= agents {
                let what = format!("{name} {agent}, and the swarm has agents 0 to {}", agents - 1);
                return Err(refuse(at, what, "correct the number, or raise swarm.agents"));
            }
        }
        if from == to {
            let what = format!("agent {from} is linked to itself");
            return Err(refuse(at, what, "remove the line: an agent always knows its own state"));
        }
        links.push((at, round, from, to));
    }
    let words = Trace::words_per_row(agents);
    let Some(&(at, last, ..)) = links.iter().max_by_key(|(_, round, ..)| *round) else {
        return Err(refuse(at, "no links follow".to_owned(), columns));
    };
    let size = (last.checked_add(1)).and_then(|rounds| rounds.checked_mul(agents * words));
    let Some(size) = size.filter(|size| *size <= MOST_WORDS) else {
        return Err(refuse(at, format!("round {last} is too far away"), "number rounds from 0 on"));
    };
    let mut masks = vec![0; size];
    for (_, round, from, to) in links {
        masks[(round * agents + to) * words + from / 64] |= 1 << (from % 64);
    }
    Ok(masks)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &str, agents: usize) -> Result<Vec<u64>, String> {
        read(Path::new("links.csv"), text, agents).map_err(|error| error.to_string())
    }

    #[test]
    fn links_become_masks_of_their_rounds() {
        assert_eq!(
            read_text("round,sender,receiver\n0,1,0\n0, 0,1\n2,1,0\n", 2).unwrap(),
            [2, 1, 0, 0, 2, 0]
        );
        assert_eq!(read_text("receiver,sender\n1,0\n\n0,1\n", 2).unwrap(), [2, 1]);
        let wide = read_text("sender,receiver\n70,0\n", 71).unwrap();
        assert_eq!((wide.len(), wide[1]), (142, 1 << 6));
    }

    #[test]
    fn errors_name_line_value_and_remedy() {
        for (text, expected) in [
            ("", "links.csv:1: the file is empty\nhelp: begin with"),
            ("0,1\n", "links.csv:1: `0,1` names no columns `sender` and `receiver`\nhelp: begin with"),
            ("sender,receiver\n", "links.csv:1: no links follow"),
            ("sender,receiver\n0,x\n", "links.csv:2: receiver is `x`\nhelp: give whole numbers"),
            ("sender,receiver\n0\n", "links.csv:2: receiver is ``"),
            (
                "sender,receiver\n0,1\n\n3,0\n",
                "links.csv:4: sender 3, and the swarm has agents 0 to 2\nhelp: ",
            ),
            ("sender,receiver\n1,1\n", "links.csv:2: agent 1 is linked to itself"),
            ("round,sender,receiver\n99999999999,0,1\n", "links.csv:2: round 99999999999 is too far away"),
        ] {
            let message = read_text(text, 3).unwrap_err();
            assert!(message.starts_with(expected), "{message}");
        }
    }
}
