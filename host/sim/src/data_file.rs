//! Tables and arrays of the user's own, before any of it has a meaning.
//!
//! | file | what it is | read by |
//! |---|---|---|
//! | `.csv` | a table: a line of names, then a line per row | every build |
//! | `.npz` | named arrays, as `numpy.savez` writes them | every build |
//! | `.safetensors` | named arrays | builds with the feature `safetensors`, which large agents turn on |

mod samples;
#[cfg(feature = "safetensors")]
mod tensors;

pub use samples::{NUMBER_OF_AGENT, SampleFile, SampleLabels, SampleRows};

use crate::csv_rows::csv_rows;
use crate::npz::{self, NpyArray};
use fabswarm_diagnostic::Diagnostic;
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// A table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DataTable {
    path: PathBuf,
    /// The names of its columns.
    names: Vec<String>,
    /// Its rows, each with a cell for every name.
    rows: Vec<Vec<String>>,
    /// How the file numbers each row: the line of a CSV file, from 1.
    numbers: Vec<usize>,
}

/// Arrays by their names.
pub(crate) type NamedArrays = BTreeMap<String, NpyArray>;

/// A file in memory.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum DataFile {
    Table(DataTable),
    Arrays(NamedArrays),
}

impl DataFile {
    /// Reads a file by its ending.
    ///
    /// # Errors
    /// When it cannot be read, is none of these kinds, or of one that this build does not read.
    pub(crate) fn read(path: &Path) -> Result<Self, Diagnostic> {
        let refuse = |what: &str, remedy: &str| Err(Diagnostic::of_file(path, what, remedy));
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("csv") => {
                let text = std::fs::read_to_string(path).map_err(|error| unreadable(path, error))?;
                DataTable::from_csv(path, &text).map(Self::Table)
            }
            Some("npz") => npz::read(path).map(Self::Arrays),
            Some("parquet") => {
                let (from, to) = (path.display(), path.with_extension("csv"));
                let to = to.display();
                let remedy = format!(
                    "convert it: python3 -c 'import pandas; pandas.read_parquet(\"{from}\").to_csv(\"{to}\", index=False)'"
                );
                refuse("fabswarm reads no Parquet", &remedy)
            }
            #[cfg(feature = "safetensors")]
            Some("safetensors") => tensors::read(path).map(Self::Arrays),
            #[cfg(not(feature = "safetensors"))]
            Some("safetensors") => refuse(
                "this build of fabswarm reads no safetensors",
                "build with `--features large`, or `full` for everything; or write it with numpy.savez, as .npz",
            ),
            _ => refuse(
                "it is none of .csv, .npz and .safetensors",
                "give a table, or named arrays such as numpy.savez writes",
            ),
        }
    }
}

impl DataTable {
    /// Refuses the table.
    fn refuse(&self, what: impl fmt::Display, remedy: impl Into<String>) -> Diagnostic {
        Diagnostic::of_file(&self.path, what, remedy)
    }

    /// Where a column is.
    fn column(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|known| known == name)
    }

    /// The number in a cell.
    fn number(&self, row: usize, column: usize) -> Result<f64, Diagnostic> {
        let place = format!("row {}, column `{}`", self.numbers[row], self.names[column]);
        let text = &self.rows[row][column];
        let missing = "fill in what is missing, or leave the row out";
        let (what, remedy) = match text.parse::<f64>() {
            Ok(number) if number.is_finite() => return Ok(number),
            Ok(number) => (number.to_string(), missing),
            Err(_) if text.is_empty() => ("empty".to_owned(), missing),
            Err(_) => (format!("`{text}`"), "give numbers; encode words as numbers first"),
        };
        Err(self.refuse(format!("{place} is {what}"), remedy))
    }

    /// Refuses columns of inputs that number the rows, or are far too large for any step: both make agents diverge.
    fn check_inputs(&self, columns: &[usize]) -> Result<(), Diagnostic> {
        /// The largest input that is taken.
        const LARGEST: f64 = 1000.0;
        /// Rows from which numbers that rise by one count them.
        const COUNTING: usize = 20;
        for &column in columns {
            let name = &self.names[column];
            let values: Vec<f64> =
                (0..self.rows.len()).map(|row| self.number(row, column)).collect::<Result<_, _>>()?;
            let is_index = ["", "id", "index", "unnamed: 0"].contains(&name.to_lowercase().as_str());
            if is_index
                || (values.len() >= COUNTING && values.windows(2).all(|pair| pair[1] == pair[0] + 1.0))
            {
                let what = format!("column `{name}` numbers the rows, and would be an input");
                return Err(self.refuse(what, "drop it; pandas writes none with index=False"));
            }
            let largest = values.iter().fold(0.0, |largest: f64, value| largest.max(value.abs()));
            if largest > LARGEST {
                let what = format!("column `{name}` reaches {largest}, which no step suits");
                return Err(self.refuse(what, "scale every input to about -1 to 1, or drop it"));
            }
        }
        Ok(())
    }

    /// Whether each row is a test sample: its `split` is `test` rather than `train`; without that column the last fifth.
    fn is_test(&self) -> Result<Vec<bool>, Diagnostic> {
        /// Samples per test sample.
        const SPLIT: usize = 5;
        let Some(split) = self.column("split") else {
            let first = self.rows.len() - self.rows.len() / SPLIT;
            return Ok((0..self.rows.len()).map(|row| row >= first).collect());
        };
        let is_test = |(cells, number): (&Vec<String>, &usize)| match cells[split].as_str() {
            "train" => Ok(false),
            "test" => Ok(true),
            other => {
                let what = format!("row {number}, column `split` is `{other}`");
                Err(self.refuse(what, "give `train` or `test`"))
            }
        };
        self.rows.iter().zip(&self.numbers).map(is_test).collect()
    }

    fn from_csv(path: &Path, text: &str) -> Result<Self, Diagnostic> {
        let refuse = |what: &str, remedy| Diagnostic::of_file(path, what, remedy);
        let mut lines = csv_rows(text).into_iter();
        let (_, names) = lines.next().ok_or_else(|| refuse("it is empty", "begin with a line of names"))?;
        if let Some(name) = (1..names.len()).find(|&at| names[..at].contains(&names[at])) {
            let what = format!("the line of names has `{}` twice", names[name]);
            return Err(refuse(&what, "give each column a name of its own"));
        }
        let (mut rows, mut numbers) = (Vec::new(), Vec::new());
        for (at, cells) in lines {
            if cells.len() != names.len() {
                let what = format!("row {at} has {} cells, and there are {} names", cells.len(), names.len());
                let remedy = "give every row a cell for every name; quote cells that have a comma";
                return Err(refuse(&what, remedy));
            }
            rows.push(cells);
            numbers.push(at);
        }
        if rows.is_empty() {
            return Err(refuse("it has a line of names and no rows", "give a row for each sample"));
        }
        Ok(Self { path: path.to_owned(), names, rows, numbers })
    }
}

/// The error for a file that cannot be read.
pub(crate) fn unreadable(path: &Path, error: io::Error) -> Diagnostic {
    if error.kind() != io::ErrorKind::InvalidData {
        return Diagnostic::of_file(path, error, "check the path");
    }
    let remedy = format!("convert it: iconv -f latin1 -t utf-8 '{}' > utf-8.csv", path.display());
    Diagnostic::of_file(path, "it is not UTF-8", remedy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_that_make_agents_diverge_are_refused_by_column() {
        type Cell = fn(usize) -> f64;
        let path = Path::new("own.csv");
        let refused = |name: &str, value: Cell| {
            let rows: String = (0..30).map(|row| format!("{}\n", value(row))).collect();
            let table = DataTable::from_csv(path, &format!("{name}\n{rows}")).unwrap();
            table.check_inputs(&[0]).map_err(|error| error.to_string())
        };
        assert_eq!(refused("age", |row| (row * 7 % 30) as f64 / 10.0), Ok(()));
        let cases: [(&str, Cell, &str); 4] = [
            ("ID", |row| (row * 7 % 30) as f64, "column `ID` numbers the rows"),
            ("step", |row| row as f64 + 5.0, "column `step` numbers the rows"),
            ("pay", |row| (row * 7 % 30) as f64 * -100.0, "column `pay` reaches 2900"),
            ("a", |row| if row == 3 { f64::NAN } else { 0.5 }, "row 5, column `a` is NaN"),
        ];
        for (name, value, expected) in cases {
            let message = refused(name, value).unwrap_err();
            assert!(message.contains(expected) && message.contains("help: "), "{message}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_refused_with_a_remedy() {
        let folder = tempfile::tempdir().unwrap();
        for (name, content, expected) in [
            ("a.csv", "", "it is empty\nhelp: begin with a line of names"),
            ("a.csv", "a,b\n", "a.csv: it has a line of names and no rows\nhelp: "),
            ("a.csv", "a,b,a\n1,2,3\n", "a.csv: the line of names has `a` twice\nhelp: "),
            ("a.csv", "a,b\n1\n", "row 2 has 1 cells, and there are 2 names\nhelp: "),
            ("a.npz", "a,b\n", "not an archive of numpy.savez"),
            ("a.txt", "a,b\n", "it is none of .csv, .npz and .safetensors\nhelp: "),
            ("a.parquet", "", "reads no Parquet\nhelp: convert it: python3 -c 'import pandas; "),
            #[cfg(feature = "safetensors")]
            ("a.safetensors", "a,b\n", "not a safetensors file"),
            #[cfg(not(feature = "safetensors"))]
            ("a.safetensors", "", "reads no safetensors\nhelp: build with `--features large`"),
        ] {
            let path = folder.path().join(name);
            std::fs::write(&path, content).unwrap();
            let message = DataFile::read(&path).unwrap_err().to_string();
            assert!(message.contains(expected), "{name}: {message}");
        }
        for name in ["none.csv", "none.npz"] {
            let message = DataFile::read(&folder.path().join(name)).unwrap_err().to_string();
            assert!(
                message.contains("No such file") && message.ends_with("help: check the path"),
                "{message}"
            );
        }
        let latin = folder.path().join("latin.csv");
        std::fs::write(&latin, b"gr\xf6\xdfe,label\n1,0\n").unwrap();
        let message = DataFile::read(&latin).unwrap_err().to_string();
        assert!(
            message.contains("it is not UTF-8\nhelp: convert it: iconv -f latin1 -t utf-8 '"),
            "{message}"
        );
    }
}
