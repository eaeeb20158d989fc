//! The output of a campaign: a folder per experiment, and one self-contained HTML page of all.

use std::fmt::Write as _;
use std::path::Path;

use fabswarm_diagnostic::Diagnostic;
use fabswarm_plot::{Figure, HtmlPage, LinePoint, Panel, PlotLine, Scale};
use fabswarm_sim::whole_file;

use crate::experiment::{Experiment, ExperimentOutcome, SearchTrial, failed};
use crate::table::Table;
use crate::verdict;
use crate::workload::{SeriesOutcome, Workload, distinct};

/// A column of the table of results: its name, and the cell of a series with what was searched.
pub(crate) type Column<W> = (&'static str, fn(&SeriesOutcome<W>, &<W as Workload>::Search) -> String);

/// The figures and tables of an experiment.
pub(crate) trait Presentation: Workload {
    /// The file of all tries of a search.
    const TRIALS_FILE: &'static str;
    /// Its columns after the panel and the method.
    const TRIAL_COLUMNS: &'static str;
    const CURVE_COLUMNS: &'static str;
    /// The columns of the table of results after the panel and the method. Columns without a cell are left out.
    const COLUMNS: &'static [Column<Self>];

    fn notes(experiment: &Experiment<Self>, outcome: &ExperimentOutcome<Self>) -> Vec<String>;
    fn curve(outcome: &SeriesOutcome<Self>, axis: Self::Axis) -> Vec<LinePoint>;
    /// The name of an axis, and the scale of the values over it.
    fn scale(axis: Self::Axis, lines: &[PlotLine]) -> (&'static str, Scale);
    fn curve_rows(outcome: &SeriesOutcome<Self>) -> Vec<String>;
    fn trial_row(trial: &SearchTrial<Self>) -> String;
}

/// The part of the page about one experiment.
#[derive(Clone, Debug)]
pub struct Section {
    name: &'static str,
    title: String,
    source: String,
    notes: Vec<String>,
    svg: Option<String>,
    verdicts: Table,
    results: Table,
}

/// Draws, tabulates and judges an experiment and writes it to `folder`.
pub(crate) fn write_experiment<W: Presentation>(
    experiment: &Experiment<W>,
    outcome: &ExperimentOutcome<W>,
    folder: &Path,
) -> Result<Section, Diagnostic> {
    std::fs::create_dir_all(folder).map_err(failed("write", folder))?;
    let svg = (!experiment.axes.is_empty()).then(|| figure(experiment, &outcome.series));
    if let Some(svg) = &svg {
        write(&folder.join("figure.svg"), svg)?;
    }
    let rows = outcome.series.iter().flat_map(|one| {
        let name = (one.series.panel.as_str(), one.series.label.as_str());
        W::curve_rows(one).into_iter().map(move |row| (name, row))
    });
    write(&folder.join("curves.csv"), &csv(W::CURVE_COLUMNS, rows))?;
    if !outcome.trials.is_empty() {
        let rows = outcome
            .trials
            .iter()
            .map(|trial| ((trial.panel.as_str(), trial.label.as_str()), W::trial_row(trial)));
        write(&folder.join(W::TRIALS_FILE), &csv(W::TRIAL_COLUMNS, rows))?;
    }
    let claims: &[_] = if experiment.is_quick { &[] } else { &experiment.claims };
    let section = Section {
        name: experiment.name,
        title: experiment.title.clone(),
        source: experiment.source.clone(),
        notes: experiment.notes.iter().cloned().chain(W::notes(experiment, outcome)).collect(),
        svg,
        verdicts: verdict::on(claims, experiment.margin, experiment.seeds, &outcome.series),
        results: results(experiment, &outcome.series),
    };
    write(&folder.join("verdict.md"), &section.to_markdown())?;
    Ok(section)
}

fn results<W: Presentation>(experiment: &Experiment<W>, outcomes: &[SeriesOutcome<W>]) -> Table {
    let mut table = Table::new(&["panel", "method"]);
    table.rows =
        outcomes.iter().map(|one| vec![one.series.panel.clone(), one.series.label.clone()]).collect();
    for (name, cell) in W::COLUMNS {
        let cells: Vec<String> = outcomes.iter().map(|one| cell(one, &experiment.search)).collect();
        if cells.iter().any(|cell| !cell.is_empty()) {
            table.head.push((*name).to_owned());
            table.rows.iter_mut().zip(cells).for_each(|(row, cell)| row.push(cell));
        }
    }
    table
}

/// A row of panels per panel of the paper, a column per axis: mean lines with shaded deviation.
fn figure<W: Presentation>(experiment: &Experiment<W>, outcomes: &[SeriesOutcome<W>]) -> String {
    let labels = distinct(outcomes.iter().map(|outcome| outcome.series.label.as_str()));
    let mut panels = Vec::new();
    for panel in experiment.panels() {
        for &axis in &experiment.axes {
            let here = outcomes.iter().filter(|outcome| outcome.series.panel == panel);
            let line = |outcome: &SeriesOutcome<W>| PlotLine {
                name: outcome.series.label.clone(),
                colour: labels.iter().position(|label| *label == outcome.series.label).unwrap_or(0),
                points: W::curve(outcome, axis),
            };
            let lines: Vec<PlotLine> = here.map(line).collect();
            let (name, scale) = W::scale(axis, &lines);
            panels.push(Panel::new(panel, name, scale, lines));
        }
    }
    let columns = experiment.axes.len();
    Figure { columns, panel_width: 480.0, ..Figure::new(&experiment.title, "", panels) }.to_svg()
}

/// Rows that begin with a panel and a method.
fn csv<'a>(columns: &str, rows: impl Iterator<Item = ((&'a str, &'a str), String)>) -> String {
    let mut text = format!("panel,method,{columns}\n");
    for ((panel, label), row) in rows {
        let _ = writeln!(text, "\"{panel}\",\"{label}\",{row}");
    }
    text
}

impl Section {
    /// Verdicts and results in Markdown.
    pub(crate) fn to_markdown(&self) -> String {
        let mut text = format!("# {}\n\n{}\n\n", self.title, self.source);
        self.notes.iter().for_each(|note| text += &format!("- {note}\n"));
        let (verdicts, results) = (self.verdicts.to_markdown(), self.results.to_markdown());
        if !self.verdicts.rows.is_empty() {
            let _ = write!(text, "\n## Verdicts\n\n{verdicts}");
        }
        let _ = write!(text, "\n## Results\n\n{results}");
        text
    }

    /// The verdicts for a terminal, one claim per paragraph.
    pub fn to_text(&self) -> String {
        let mut text = format!("{} ({})\n", self.title, self.source);
        for row in &self.verdicts.rows {
            let [claim, measured, finding, _] = row.as_slice() else { continue };
            let _ = write!(
                text,
                "  {}: {claim}\n      {}\n",
                finding.to_uppercase(),
                measured.replace("; ", "\n      ")
            );
        }
        text
    }
}

/// Writes all sections as one page without references to anything outside of it.
pub fn write_page(path: &Path, made_by: &str, sections: &[Section]) -> Result<(), Diagnostic> {
    let mut page = HtmlPage::new("The paper, run again");
    page.paragraph(&format!("Made by {made_by}."));
    page.contents(sections.iter().map(|section| (section.name, section.title.as_str())));
    for section in sections {
        page.chapter(section.name, &section.title);
        page.paragraph(&section.source);
        page.list(&section.notes);
        page.figure(section.svg.as_deref().unwrap_or_default());
        for (title, table) in [("Verdicts", &section.verdicts), ("Results", &section.results)] {
            if !table.rows.is_empty() {
                page.table(title, table.head.iter().map(String::as_str), table.rows.iter().cloned());
            }
        }
    }
    write(path, &page.finish())
}

fn write(path: &Path, text: &str) -> Result<(), Diagnostic> {
    whole_file::write(path, text.as_bytes()).map_err(failed("write", path))
}
