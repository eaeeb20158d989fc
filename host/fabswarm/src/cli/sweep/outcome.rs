//! Results of a sweep: a row for each run, a row for each recorded round of all runs, and a table to print.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result};
use fabswarm_sim::record::table::TableColumn;
use fabswarm_sim::record::{self, counted, table};
use fabswarm_sim::scenario::{Flag, ResolvedScenario, ScenarioKey};
use serde_json::Value as Json;

use super::super::output;
use super::children::ChildRun;
use super::grid::{Combination, SweptKey, shown};
use super::spread;
use fabswarm_plot::{Figure, Panel, PlotLine, Scale};

/// Columns of the printed table, where a run's summary has them.
const PRINTED: [(&str, &str); 7] = [
    ("rounds_to_one_percent_distance", "rounds to 1 % distance"),
    ("rounds_to_one_percent_gradient", "rounds to 1 % gradient"),
    ("distance_to_solution", "distance to solution"),
    ("gradient_norm", "gradient norm"),
    ("consensus_error", "consensus error"),
    ("test_accuracy", "test accuracy"),
    ("cleaning_auc", "cleaning AUC"),
];

/// Candidates for the figure, the first that all runs have, and whether in powers of ten.
const DRAWN: [(&str, bool); 3] =
    [("distance_to_solution", true), ("gradient_norm", true), ("test_accuracy", false)];

/// One finished run.
#[derive(Debug)]
struct Finished {
    /// The values of the swept keys.
    values: Vec<Flag>,
    summary: serde_json::Map<String, Json>,
    metrics: Vec<(String, Vec<Option<f64>>)>,
}

impl Finished {
    /// The recorded values of a metric.
    fn metric(&self, name: &str) -> Option<&[Option<f64>]> {
        self.metrics.iter().find(|(own, _)| own == name).map(|(_, cells)| cells.as_slice())
    }

    /// Round and value wherever there is one.
    fn curve(&self, name: &str) -> Vec<(f64, f64)> {
        let (Some(rounds), Some(values)) = (self.metric("round"), self.metric(name)) else {
            return Vec::new();
        };
        rounds.iter().zip(values).filter_map(|(round, value)| (*round).zip(*value)).collect()
    }
}

/// All finished runs of a sweep.
#[derive(Debug)]
pub(super) struct Results {
    swept: Vec<SweptKey>,
    finished: Vec<Finished>,
    count: usize,
}

impl Results {
    /// Reads what the runs have written.
    pub(super) fn read(
        axes: &[SweptKey],
        runs: &[(Combination, ResolvedScenario)],
        children: &[ChildRun],
    ) -> Result<Self> {
        let swept: Vec<SweptKey> = axes.iter().filter(|axis| axis.is_swept()).cloned().collect();
        let is_swept = |flag: &&Flag| swept.iter().any(|axis| axis.key.path == flag.key.path);
        let mut finished = Vec::new();
        for ((combination, _), child) in runs.iter().zip(children).filter(|(_, child)| child.is_done()) {
            let path = child.run_folder().join("summary.json");
            let text =
                std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
            let summary = serde_json::from_str(&text).map_err(|error| {
                fault!("{} is damaged: {error}", path.display(); "remove its folder, and run the sweep again")
            })?;
            finished.push(Finished {
                values: combination.flags.iter().filter(is_swept).cloned().collect(),
                summary,
                metrics: metrics(&child.run_folder().join("metrics.csv"))?,
            });
        }
        Ok(Self { swept, finished, count: runs.len() })
    }

    /// Writes `runs.csv` and `metrics.csv` and the figure.
    pub(super) fn write(&self, folder: &Path) -> Result<(), record::Error> {
        for (name, columns) in [("runs", self.run_columns()), ("metrics", self.metric_columns())] {
            table::write_csv(&folder.join(format!("{name}.csv")), &columns)?;
        }
        if let Some(figure) = self.figure() {
            let path = folder.join("sweep.svg");
            std::fs::write(&path, figure.to_svg())
                .map_err(|source| record::Error::Unwritable { path, source })?;
        }
        Ok(())
    }

    /// The swept keys that are not seeds.
    fn keys(&self) -> impl Iterator<Item = &'static ScenarioKey> {
        self.swept.iter().map(|axis| axis.key).filter(|key| !is_seed(key))
    }

    /// The swept keys, with the value of `repeat(run)` rows for each run.
    fn key_columns(&self, repeat: impl Fn(&Finished) -> usize) -> Vec<TableColumn> {
        let column = |(index, axis): (usize, &SweptKey)| {
            let values = self
                .finished
                .iter()
                .flat_map(|run| std::iter::repeat_n(&run.values[index].value, repeat(run)));
            let name = axis.key.path.replace('.', "_");
            let cell = |value: &toml_edit::Value| match value.as_float() {
                Some(real) => format!("{real:?}"),
                None => shown(value),
            };
            TableColumn { name, cells: values.map(cell).collect() }
        };
        self.swept.iter().enumerate().map(column).collect()
    }

    /// A row per run: its swept keys and what its summary says in one word or number.
    fn run_columns(&self) -> Vec<TableColumn> {
        let mut columns = self.key_columns(|_| 1);
        let mut names: Vec<&String> = Vec::new();
        for name in self.finished.iter().flat_map(|run| run.summary.keys()) {
            if !names.contains(&name) && columns.iter().all(|column| column.name != *name) {
                names.push(name);
            }
        }
        for name in names {
            let cells: Vec<&Json> =
                self.finished.iter().map(|run| run.summary.get(name).unwrap_or(&Json::Null)).collect();
            columns.push(if cells.iter().any(|cell| cell.is_object() || cell.is_array()) {
                continue;
            } else if cells.iter().any(|cell| cell.is_string()) {
                let cells = cells.iter().map(|cell| cell.as_str().unwrap_or_default().to_owned());
                TableColumn { name: name.clone(), cells: cells.collect() }
            } else if cells.iter().all(|cell| cell.is_null() || cell.is_i64()) {
                TableColumn::of_integers(name, cells.iter().map(|cell| cell.as_i64()))
            } else {
                TableColumn::of_reals(name, cells.iter().map(|cell| cell.as_f64()))
            });
        }
        columns
    }

    /// A row per recorded round of all runs.
    fn metric_columns(&self) -> Vec<TableColumn> {
        let rows = |run: &Finished| run.metrics.first().map_or(0, |(_, cells)| cells.len());
        let mut columns = self.key_columns(rows);
        let metrics = self.finished.iter().flat_map(|run| run.metrics.iter().enumerate());
        let names: BTreeSet<(usize, &String)> = metrics.map(|(place, (name, _))| (place, name)).collect();
        for (_, name) in names {
            let cells = self.finished.iter().flat_map(|run| {
                let own = run.metrics.iter().find(|(own, _)| own == name);
                own.map_or_else(|| vec![None; rows(run)], |(_, cells)| cells.clone())
            });
            columns.push(match name.as_str() {
                "round" => TableColumn::of_integers(name, cells.map(|cell| cell.map(|round| round as i64))),
                _ => TableColumn::of_reals(name, cells),
            });
        }
        columns
    }

    /// The runs of each combination of the swept keys that are not seeds.
    fn groups(&self) -> Vec<(Vec<String>, Vec<&Finished>)> {
        let mut groups: Vec<(Vec<String>, Vec<&Finished>)> = Vec::new();
        for run in &self.finished {
            let values = run.values.iter().filter(|flag| !is_seed(flag.key));
            let name: Vec<String> = values.map(|flag| shown(&flag.value)).collect();
            match groups.iter_mut().find(|(known, _)| *known == name) {
                Some((_, runs)) => runs.push(run),
                None => groups.push((name, vec![run])),
            }
        }
        groups
    }

    /// Medians and ranges over the seeds, round by round, for each combination of the other keys.
    fn figure(&self) -> Option<Figure> {
        let has = |name: &str| self.finished.iter().all(|run| run.metric(name).is_some());
        let (name, is_logarithmic) = DRAWN.into_iter().find(|(name, _)| has(name))?;
        let groups = self.groups();
        // By their flags, which are shorter than their paths.
        let keys: Vec<&str> = self.keys().map(|key| key.flag).collect();
        let drawn = groups.iter().take(Figure::MOST_COLOURS).enumerate().map(|(colour, (values, runs))| {
            let pairs: Vec<String> =
                keys.iter().zip(values).map(|(key, value)| format!("{key} {value}")).collect();
            let name_of_group = if pairs.is_empty() { "all runs".to_owned() } else { pairs.join(", ") };
            let curves: Vec<Vec<(f64, f64)>> = runs.iter().map(|run| run.curve(name)).collect();
            let name = format!("{name_of_group} ({})", counted(runs.len(), "run"));
            PlotLine { name, colour, points: spread::points(&curves) }
        });
        let drawn: Vec<PlotLine> = drawn.collect();
        let title = match (keys.is_empty(), groups.len() > drawn.len()) {
            (true, _) => counted(self.finished.len(), "run"),
            (false, false) => {
                format!("{}, by {}", counted(self.finished.len(), "run"), keys.join(", "))
            }
            (false, true) => format!("the first {} of {} combinations", drawn.len(), groups.len()),
        };
        let points = drawn.iter().flat_map(|line| &line.points);
        let values: Vec<f64> = points.flat_map(|point| [point.low, point.y, point.high]).collect();
        let scale = if is_logarithmic { Scale::decades } else { Scale::around };
        let panel = Panel::new("", "round", scale(&name.replace('_', " "), values.into_iter()), drawn);
        let panel = Panel { height: 480.0, ..panel };
        let subtitle = "median and range over seeds; a run that has ended keeps its last value";
        Some(Figure::new(&title, subtitle, vec![panel]))
    }

    /// Medians and ranges over the seeds, for each combination of the other keys.
    pub(super) fn table(&self) -> String {
        let groups = self.groups();
        let is_known =
            |(key, _): &(&str, &str)| self.finished.iter().any(|run| run.summary.contains_key(*key));
        let printed: Vec<_> = PRINTED.into_iter().filter(is_known).collect();
        let titles = printed.iter().map(|(_, title)| *title);
        let head = self.keys().map(|key| key.path).chain(["runs"]).chain(titles);
        let mut lines: Vec<Vec<String>> = vec![head.map(str::to_owned).collect()];
        for (name, runs) in &groups {
            let mut line = name.clone();
            line.push(runs.len().to_string());
            line.extend(printed.iter().map(|(key, _)| spread(runs, key)));
            lines.push(line);
        }
        let mut text: String = output::aligned(&lines, &[]).map(|line| format!("  {line}\n")).collect();
        if self.finished.len() < self.count {
            text += &format!("{} of {} runs are finished\n", self.finished.len(), self.count);
        }
        text
    }
}

fn is_seed(key: &ScenarioKey) -> bool {
    key.path.ends_with("seed")
}

/// `median (least–most)` of a number in the summaries, and how many never had one; `–` where it is not measured. Only rounds that
/// were waited for can never come: any other number that a summary lacks was not measured.
fn spread(runs: &[&Finished], key: &str) -> String {
    if runs.iter().all(|run| !run.summary.contains_key(key)) {
        return "–".to_owned();
    }
    let values: Vec<f64> = runs.iter().filter_map(|run| run.summary.get(key)?.as_f64()).collect();
    let number = |value: f64| match value {
        value if value.fract() == 0.0 && value.abs() < 1e9 => format!("{value}"),
        value if (0.01..1000.0).contains(&value.abs()) => format!("{value:.3}"),
        value => format!("{value:.2e}"),
    };
    let word = if key.starts_with("rounds_to") { "never" } else { "–" };
    let missing = runs.len() - values.len();
    let Some([least, median, most]) = spread::of(values.into_iter()) else { return word.to_owned() };
    let never = if missing == 0 { String::new() } else { format!(", {missing} {word}") };
    match runs.len() {
        1 => number(median),
        _ => format!("{} ({}–{}{never})", number(median), number(least), number(most)),
    }
}

/// The columns of a table of metrics.
fn metrics(path: &Path) -> Result<Vec<(String, Vec<Option<f64>>)>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut lines = text.lines();
    let names = lines.next().unwrap_or_default().split(',');
    let mut columns: Vec<(String, Vec<Option<f64>>)> =
        names.map(|name| (name.to_owned(), Vec::new())).collect();
    for line in lines {
        let mut cells = line.split(',');
        for (_, column) in &mut columns {
            column.push(cells.next().and_then(|cell| cell.parse().ok()));
        }
    }
    Ok(columns)
}
