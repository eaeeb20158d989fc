//! Tables of results in Markdown.

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Table {
    pub(crate) head: Vec<String>,
    /// The rows, each as long as the head.
    pub(crate) rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these columns and no rows yet.
    pub(crate) fn new(head: &[&str]) -> Self {
        Self { head: head.iter().map(ToString::to_string).collect(), rows: Vec::new() }
    }

    pub(crate) fn to_markdown(&self) -> String {
        let mut text = String::new();
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | ").replace('\n', " "));
        text += &line(&self.head);
        text += &line(&vec!["---".to_owned(); self.head.len()]);
        self.rows.iter().for_each(|row| text += &line(row));
        text
    }
}
