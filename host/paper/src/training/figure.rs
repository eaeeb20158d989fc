//! Accuracy over epochs, seconds and bytes: a row of charts per panel, mean lines with shaded deviation.

use fabswarm_plot::{Drawing, DrawingFailure, FAINT, INK};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::{Chart, TrainingExperiment, TrainingSeriesOutcome};
use crate::figure::{CHART_HEIGHT, CHART_WIDTH, LEFT, Legend, PALETTE, short};

/// Curves of an experiment with large models.
#[derive(Debug)]
pub(super) struct AccuracyFigure<'a> {
    experiment: &'a TrainingExperiment,
    outcomes: &'a [TrainingSeriesOutcome],
    legend: Legend<'a>,
}

impl<'a> AccuracyFigure<'a> {
    pub(super) fn new(experiment: &'a TrainingExperiment, outcomes: &'a [TrainingSeriesOutcome]) -> Self {
        let mut labels: Vec<&str> = Vec::new();
        for outcome in outcomes {
            if !labels.contains(&outcome.series.label.as_str()) {
                labels.push(&outcome.series.label);
            }
        }
        let colours = PALETTE.iter().cycle().map(|&(red, green, blue)| RGBColor(red, green, blue));
        let entries = labels.into_iter().zip(colours).collect();
        let width = experiment.charts.len() as u32 * CHART_WIDTH;
        Self { experiment, outcomes, legend: Legend { title: &experiment.title, width, entries } }
    }

    fn chart<B: DrawingBackend>(
        &self,
        area: &DrawingArea<B, Shift>,
        scale: u32,
        panel: &str,
        chart: Chart,
    ) -> Result<(), DrawingFailure>
    where
        B::ErrorType: 'static,
    {
        let unit = |units: u32| units * scale;
        let curves: Vec<_> = self
            .outcomes
            .iter()
            .filter(|outcome| outcome.series.panel == panel)
            .map(|outcome| (self.legend.colour(&outcome.series.label), outcome.curve(chart)))
            .collect();
        let places = curves.iter().filter_map(|(_, points)| points.last()).map(|(place, _)| *place);
        let last = places.fold(f64::MIN_POSITIVE, f64::max);
        let highest = match chart {
            Chart::Regularisation => {
                let values = curves.iter().flat_map(|(_, points)| points).map(|(_, value)| value.mean);
                1.1 * values.fold(0.01, f64::max)
            }
            _ => 1.0,
        };
        let (abscissa, ordinate) = match chart {
            Chart::Epochs => ("epochs", "test accuracy"),
            Chart::Seconds => ("seconds", "test accuracy"),
            Chart::Bytes => ("bytes sent by all agents", "test accuracy"),
            Chart::Regularisation => ("epochs", "learned regularisation"),
        };
        let label = ("sans-serif", unit(12)).into_font().color(&INK);
        let mut drawn = ChartBuilder::on(area)
            .margin_left(unit(8))
            .margin_right(unit(22))
            .margin_top(unit(26))
            .set_label_area_size(LabelAreaPosition::Left, unit(LEFT))
            .set_label_area_size(LabelAreaPosition::Bottom, unit(40))
            .build_cartesian_2d(0.0..last, 0.0..highest)?;
        drawn
            .configure_mesh()
            .axis_style(INK.stroke_width(scale))
            .bold_line_style(FAINT.stroke_width(scale))
            .light_line_style(TRANSPARENT)
            .label_style(label.clone())
            .axis_desc_style(label.clone())
            .x_labels(6)
            .y_labels(6)
            .x_desc(abscissa)
            .y_desc(ordinate)
            .x_label_formatter(&|value| short(*value))
            .y_label_formatter(&|value| short(*value))
            .draw()?;
        let title = label.pos(Pos::new(HPos::Left, VPos::Center));
        area.draw_text(panel, &title, (unit(LEFT + 8) as i32, unit(14) as i32))?;
        let clamped = |value: f64| value.clamp(0.0, highest);
        for (colour, points) in &curves {
            let upper = points.iter().map(|(place, value)| (*place, clamped(value.mean + value.deviation)));
            let lower =
                points.iter().rev().map(|(place, value)| (*place, clamped(value.mean - value.deviation)));
            drawn.draw_series([Polygon::new(upper.chain(lower).collect::<Vec<_>>(), colour.mix(0.15))])?;
        }
        for (colour, points) in curves {
            let line = points.into_iter().map(|(place, value)| (place, clamped(value.mean)));
            drawn.draw_series(LineSeries::new(line, colour.stroke_width(2 * scale)))?;
        }
        Ok(())
    }
}

impl Drawing for AccuracyFigure<'_> {
    fn size(&self) -> (u32, u32) {
        let panels = self.experiment.panels().len() as u32;
        (self.legend.width, self.legend.height() + panels * CHART_HEIGHT)
    }

    fn draw<B: DrawingBackend>(&self, area: &DrawingArea<B, Shift>, scale: u32) -> Result<(), DrawingFailure>
    where
        B::ErrorType: 'static,
    {
        area.fill(&WHITE)?;
        self.legend.draw(area, scale)?;
        let (_, charts) = area.split_vertically(self.legend.height() * scale);
        let (panels, columns) = (self.experiment.panels(), &self.experiment.charts);
        for (at, area) in charts.split_evenly((panels.len(), columns.len())).iter().enumerate() {
            self.chart(area, scale, panels[at / columns.len()], columns[at % columns.len()])?;
        }
        Ok(())
    }
}
