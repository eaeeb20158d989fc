//! What a campaign writes: a folder per experiment, and one self-contained HTML page of all.

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

use fabswarm_plot::HtmlPage;
use fabswarm_sim::whole_file;

use crate::campaign::ExperimentOutcome;
use crate::experiment::{Experiment, StepChoice};
use crate::table::{self, Table};
use crate::{figure, verdict};

/// Why something cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {path}: {reason}\nhelp: see that the folder exists and the disk is not full, or name another with --out", path = path.display())]
pub struct PageError {
    path: PathBuf,
    reason: String,
}

impl PageError {
    pub(crate) fn new(path: &Path, reason: String) -> Self {
        Self { path: path.into(), reason }
    }
}

/// What is shown of one experiment.
#[derive(Clone, Debug)]
pub struct Section {
    pub(crate) name: &'static str,
    pub(crate) title: String,
    pub(crate) source: String,
    pub(crate) notes: Vec<String>,
    pub(crate) svg: Option<String>,
    pub(crate) verdicts: Table,
    pub(crate) results: Table,
}

/// Draws, tabulates and judges an experiment and writes it to `folder`.
///
/// # Errors
/// Where a file cannot be written.
pub fn write_experiment(
    experiment: &Experiment,
    outcome: &ExperimentOutcome,
    folder: &Path,
) -> Result<Section, PageError> {
    std::fs::create_dir_all(folder).map_err(|error| failed(folder, &error))?;
    let verdicts = verdict::of(experiment, outcome);
    let mut section = Section {
        name: experiment.name,
        title: experiment.title.clone(),
        source: experiment.source.clone(),
        notes: notes(experiment),
        svg: None,
        verdicts: table::verdicts(&verdicts, experiment.seeds),
        results: table::results(&outcome.series),
    };
    if !experiment.axes.is_empty() {
        let svg = figure::svg(experiment, &outcome.series);
        write(&folder.join("figure.svg"), svg.as_bytes())?;
        section.svg = Some(svg);
        write(&folder.join("curves.csv"), table::curves_csv(&outcome.series).as_bytes())?;
    }
    if !outcome.trials.is_empty() {
        write(&folder.join("steps.csv"), table::trials_csv(outcome).as_bytes())?;
    }
    write(&folder.join("verdict.md"), section.to_markdown().as_bytes())?;
    Ok(section)
}

fn notes(experiment: &Experiment) -> Vec<String> {
    let mut notes = experiment.notes.clone();
    if experiment.series.iter().any(|series| series.steps == StepChoice::Search) {
        let grid = &experiment.grid;
        let list = |steps: &[f64]| steps.iter().map(f64::to_string).collect::<Vec<_>>().join(", ");
        notes.push(format!(
            "Steps were searched for every method on the same grid and budget, for each panel by itself: on x {}; on y, z and v {}; \
             {} rounds on seeds {}, which do not count below. The lowest settled error won.",
            list(&grid.upper),
            list(&grid.lower),
            grid.rounds,
            grid.seeds.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")
        ));
    }
    notes
}

impl Section {
    /// Verdicts and results in Markdown.
    #[must_use]
    pub fn to_markdown(&self) -> String {
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
    #[must_use]
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
///
/// # Errors
/// Where the file cannot be written.
pub fn write_page(path: &Path, made_by: &str, sections: &[Section]) -> Result<(), PageError> {
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
    write(path, page.finish().as_bytes())
}

pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), PageError> {
    whole_file::write(path, bytes).map_err(|error| failed(path, &error))
}

pub(crate) fn failed(path: &Path, error: &io::Error) -> PageError {
    PageError::new(path, error.to_string())
}
