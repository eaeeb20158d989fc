//! Accuracy over epochs, seconds and bytes: a row of panels per panel of the paper, mean lines with shaded deviation.

use fabswarm_plot::{LinePoint, Panel, PlotLine, Scale};

use super::{Chart, TrainingExperiment, TrainingSeriesOutcome};
use crate::figure::{grid, labels, line};

pub(super) fn svg(experiment: &TrainingExperiment, outcomes: &[TrainingSeriesOutcome]) -> String {
    let labels = labels(outcomes.iter().map(|outcome| outcome.series.label.as_str()));
    let mut panels = Vec::new();
    for panel in experiment.panels() {
        for &chart in &experiment.charts {
            let here = outcomes.iter().filter(|outcome| outcome.series.panel == panel);
            let lines = here.map(|outcome| {
                let points = outcome.curve(chart).into_iter().map(|(x, value)| LinePoint {
                    x,
                    y: value.mean,
                    low: value.mean - value.deviation,
                    high: value.mean + value.deviation,
                });
                line(&labels, &outcome.series.label, points.collect())
            });
            let lines: Vec<PlotLine> = lines.collect();
            let (abscissa, scale) = match chart {
                Chart::Epochs => ("epochs", Scale::linear("test accuracy", 0.0, 1.0)),
                Chart::Seconds => ("seconds", Scale::linear("test accuracy", 0.0, 1.0)),
                Chart::Bytes => ("bytes sent by all agents", Scale::linear("test accuracy", 0.0, 1.0)),
                Chart::Regularisation => {
                    let values = lines.iter().flat_map(|line| &line.points).map(|point| point.y);
                    let high = 1.1 * values.fold(0.01, f64::max);
                    ("epochs", Scale::linear("learned regularisation", 0.0, high))
                }
            };
            panels.push(Panel::new(panel, abscissa, scale, lines));
        }
    }
    grid(&experiment.title, experiment.charts.len(), panels)
}
