//! Tables of named columns, as CSV.

use std::path::Path;

use super::Error;
use crate::whole_file;

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableColumn {
    /// Its name.
    pub name: String,
    /// Its text in every row; empty where there is no value.
    pub cells: Vec<String>,
}

impl TableColumn {
    /// A column of numbers.
    pub fn of_reals(name: &str, values: impl Iterator<Item = Option<f64>>) -> Self {
        // The shortest form that reads back as the same bits.
        let cells = values.map(|value| value.map(|value| format!("{value:?}")).unwrap_or_default());
        Self { name: name.to_owned(), cells: cells.collect() }
    }

    /// A column of whole numbers.
    pub fn of_integers(name: &str, values: impl Iterator<Item = Option<i64>>) -> Self {
        let cells = values.map(|value| value.map(|value| value.to_string()).unwrap_or_default());
        Self { name: name.to_owned(), cells: cells.collect() }
    }
}

/// Writes a table as CSV.
pub fn write_csv(path: &Path, columns: &[TableColumn]) -> Result<(), Error> {
    let rows = columns.iter().map(|column| column.cells.len()).max().unwrap_or(0);
    let names: Vec<String> = columns.iter().map(|column| quoted(&column.name)).collect();
    let mut text = names.join(",") + "\n";
    for row in 0..rows {
        let cells: Vec<String> = columns.iter().map(|column| quoted(&column.cells[row])).collect();
        text += &(cells.join(",") + "\n");
    }
    whole_file::write(path, text.as_bytes())
        .map_err(|source| Error::Unwritable { path: path.to_owned(), source })
}

/// A cell as CSV has it.
fn quoted(cell: &str) -> String {
    if cell.contains([',', '"', '\n']) {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn csv_has_a_line_per_row_and_quotes_what_needs_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("table.csv");
        let columns = [
            TableColumn::of_integers("seed", [Some(1), Some(2)].into_iter()),
            TableColumn::of_reals("loss", [Some(0.25), None].into_iter()),
            TableColumn { name: "ended".to_owned(), cells: vec!["a, \"b\"".to_owned(), String::new()] },
        ];
        write_csv(&path, &columns).unwrap();
        let text = std::fs::read_to_string(path).unwrap();
        assert_eq!(text, "seed,loss,ended\n1,0.25,\"a, \"\"b\"\"\"\n2,,\n");
    }
}
