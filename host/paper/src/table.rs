//! Tables of results in Markdown.

use crate::verdict::Verdict;

/// A table with a head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// The names of the columns.
    pub head: Vec<String>,
    /// The rows, each as long as the head.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these columns and no rows yet.
    pub fn new(head: &[&str]) -> Self {
        Self { head: head.iter().map(ToString::to_string).collect(), rows: Vec::new() }
    }

    /// The table in Markdown.
    pub fn to_markdown(&self) -> String {
        let mut text = String::new();
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | ").replace('\n', " "));
        text += &line(&self.head);
        text += &line(&vec!["---".to_owned(); self.head.len()]);
        self.rows.iter().for_each(|row| text += &line(row));
        text
    }
}

/// The verdicts as a table.
pub fn verdicts(verdicts: &[Verdict], seeds: u64) -> Table {
    let mut table = Table::new(&["claim", "what we measured", "seen?", "seeds"]);
    for verdict in verdicts {
        let row =
            [verdict.claim.clone(), verdict.measured.clone(), verdict.finding.to_string(), seeds.to_string()];
        table.rows.push(row.to_vec());
    }
    table
}
