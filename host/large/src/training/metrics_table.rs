//! A CSV table that grows with the run, one row per evaluation; its first column is the round, and a resumed run keeps the rows
//! before it.

use super::Error;
use fabswarm_sim::record::RunFolder;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum MetricValue {
    Count(u64),
    Number(f64),
    Absent,
}

impl From<Option<f64>> for MetricValue {
    fn from(value: Option<f64>) -> Self {
        value.map_or(MetricValue::Absent, MetricValue::Number)
    }
}

/// The remedy for tables that a run cannot go on with.
pub(super) const BEGIN_ANEW: &str = "put metrics.csv and times.csv back as they were; or move both away, with their `.part`, to begin new ones";

/// The text to begin a table with: its header and, where the run goes on at round `resumed`, the rows before it.
///
/// # Errors
/// When the table of the earlier run cannot be read, or has other columns.
pub(super) fn beginning(
    folder: &RunFolder,
    name: &str,
    columns: &[&str],
    resumed: Option<u32>,
) -> Result<String, Error> {
    let header = format!("{}\n", columns.join(","));
    let Some(resumed) = resumed else { return Ok(header) };
    let refuse = |what: String| Error::resume(&folder.path().join(name), what, BEGIN_ANEW);
    let Some(left) = folder.left_of(name).map_err(|error| refuse(error.to_string()))? else {
        return Ok(header);
    };
    let rows = left
        .strip_prefix(&header)
        .ok_or_else(|| refuse("its columns are not those of this version".to_owned()))?;
    // A row that a kill cut in two has no end of line.
    let whole = rows.split_inclusive('\n').filter(|row| row.ends_with('\n'));
    let is_before = |row: &&str| {
        row.split(',').next().and_then(|round| round.parse().ok()).is_some_and(|round: u32| round < resumed)
    };
    Ok(header + &whole.filter(is_before).collect::<String>())
}

/// A row of a table.
pub(super) fn row(cells: impl IntoIterator<Item = MetricValue>) -> String {
    let cells = cells.into_iter().map(|cell| match cell {
        MetricValue::Count(count) => count.to_string(),
        // Debug is the shortest form that reads back as the same bits, with an exponent where that is shorter.
        MetricValue::Number(value) => format!("{value:?}"),
        MetricValue::Absent => String::new(),
    });
    cells.collect::<Vec<_>>().join(",") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [&str; 3] = ["round", "loss", "strength"];

    #[test]
    fn a_table_is_taken_up_before_the_round_it_goes_on_at() {
        let folder = tempfile::tempdir().unwrap();
        let run = RunFolder::at(folder.path()).unwrap();
        let begin = |resumed| beginning(&run, "m.csv", &COLUMNS, resumed).unwrap();
        let mut table = run.growing_file_from("m.csv", &begin(None)).unwrap();
        for round in [5, 10, 15] {
            let cells = [MetricValue::Count(round), MetricValue::Number(1e-9), MetricValue::Absent];
            table.append(row(cells).as_bytes()).unwrap();
        }
        table.append(b"20,0.").unwrap();
        assert_eq!(begin(Some(99)), "round,loss,strength\n5,1e-9,\n10,1e-9,\n15,1e-9,\n");
        assert_eq!(begin(Some(15)), "round,loss,strength\n5,1e-9,\n10,1e-9,\n");

        let mut table = run.growing_file_from("m.csv", &begin(Some(10))).unwrap();
        let cells = [MetricValue::Count(10), MetricValue::Number(0.5), MetricValue::Number(2.0)];
        table.append(row(cells).as_bytes()).unwrap();
        table.complete().unwrap();
        assert_eq!(begin(Some(11)), "round,loss,strength\n5,1e-9,\n10,0.5,2.0\n");
        let refused = || beginning(&run, "m.csv", &["round"], Some(11)).unwrap_err().to_string();
        assert!(refused().contains("m.csv: its columns are not those of this version\nhelp: put"));
        std::fs::write(folder.path().join("m.csv"), b"round\n\xff\n").unwrap();
        assert!(refused().contains("m.csv: stream did not contain valid UTF-8\nhelp: put"));
    }
}
