//! The figure of an experiment: a row of panels per panel of the paper, a column per axis, mean lines with shaded deviation.

use fabswarm_plot::{Figure, LinePoint, Panel, PlotLine, Scale};

use crate::experiment::{Axis, Experiment};
use crate::outcome::SeriesOutcome;

/// The figure of an experiment that has axes.
#[must_use]
pub fn svg(experiment: &Experiment, outcomes: &[SeriesOutcome]) -> String {
    let labels = labels(outcomes.iter().map(|outcome| outcome.series.label.as_str()));
    let mut panels = Vec::new();
    for panel in experiment.panels() {
        for &axis in &experiment.axes {
            let here = outcomes.iter().filter(|outcome| outcome.series.panel == panel);
            let lines = here.map(|outcome| {
                // The mean less the deviation can be negative, which has no logarithm: no lower than the best run.
                let points = outcome.curve().into_iter().map(|point| LinePoint {
                    x: point.on(axis),
                    y: point.error.mean,
                    low: (point.error.mean - point.error.deviation).max(point.least_error),
                    high: point.error.mean + point.error.deviation,
                });
                line(&labels, &outcome.series.label, points.collect())
            });
            let lines: Vec<PlotLine> = lines.collect();
            // A curve beyond 10 has left the picture; showing where to would flatten the others.
            let errors: Vec<f64> =
                lines.iter().flat_map(|line| &line.points).map(|point| point.y.min(10.0)).collect();
            let scale = Scale::decades("relative error", errors.into_iter());
            panels.push(Panel::new(panel, axis.label(), scale, lines));
        }
    }
    grid(&experiment.title, experiment.axes.len(), panels)
}

/// Each label once, in order: its place is its colour.
pub(crate) fn labels<'a>(all: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut labels = Vec::new();
    for label in all {
        if !labels.contains(&label) {
            labels.push(label);
        }
    }
    labels
}

pub(crate) fn line(labels: &[&str], label: &str, points: Vec<LinePoint>) -> PlotLine {
    let colour = labels.iter().position(|known| *known == label).unwrap_or(0);
    PlotLine { name: label.to_owned(), colour, points }
}

pub(crate) fn grid(title: &str, columns: usize, panels: Vec<Panel>) -> String {
    Figure { columns, panel_width: 480.0, ..Figure::new(title, "", panels) }.to_svg()
}

impl Axis {
    /// The name below the axis.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Iterations => "iterations (outer ones of a double loop)",
            Self::Rounds => "rounds of communication",
            Self::Floats => "floats over all links",
            Self::Seconds => "seconds on one core",
        }
    }
}
