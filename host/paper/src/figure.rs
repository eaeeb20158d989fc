//! The figure of an experiment: a row of charts per panel, a column per axis, mean lines with shaded deviation.

mod legend;

pub(crate) use legend::Legend;

use fabswarm_plot::{Decades, Drawing, DrawingFailure, FAINT, INK, power_of_ten};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::experiment::{Axis, Experiment};
use crate::outcome::{CurvePoint, SeriesOutcome};

pub(crate) const CHART_WIDTH: u32 = 480;
pub(crate) const CHART_HEIGHT: u32 = 300;
/// Where the axis of errors begins.
pub(crate) const LEFT: u32 = 62;

/// Okabe and Ito's colours and three more, for series of one method.
pub(crate) const PALETTE: [(u8, u8, u8); 10] = [
    (0, 114, 178),
    (213, 94, 0),
    (0, 158, 115),
    (204, 121, 167),
    (230, 159, 0),
    (86, 180, 233),
    (120, 120, 120),
    (110, 60, 160),
    (40, 40, 40),
    (140, 86, 75),
];

/// Curves of an experiment.
#[derive(Debug)]
pub struct CurvesFigure<'a> {
    axes: &'a [Axis],
    panels: Vec<(&'a str, Vec<Curve<'a>>)>,
    legend: Legend<'a>,
}

#[derive(Debug)]
struct Curve<'a> {
    label: &'a str,
    points: Vec<CurvePoint>,
}

impl<'a> CurvesFigure<'a> {
    /// The figure of an experiment that has axes.
    #[must_use]
    pub fn new(experiment: &'a Experiment, outcomes: &'a [SeriesOutcome]) -> Self {
        let mut entries: Vec<(&str, RGBColor)> = Vec::new();
        let has_one_method = outcomes.iter().all(|one| one.series.method == outcomes[0].series.method);
        for outcome in outcomes {
            if entries.iter().all(|(label, _)| *label != outcome.series.label) {
                let in_order = PALETTE[entries.len() % PALETTE.len()];
                let (red, green, blue) =
                    if has_one_method { in_order } else { outcome.series.method.colour() };
                entries.push((&outcome.series.label, RGBColor(red, green, blue)));
            }
        }
        let curves_of = |panel: &str| {
            let here = outcomes.iter().filter(|outcome| outcome.series.panel == panel);
            here.map(|outcome| Curve { label: &outcome.series.label, points: outcome.curve() }).collect()
        };
        let panels = experiment.panels().into_iter().map(|panel| (panel, curves_of(panel))).collect();
        let width = experiment.axes.len() as u32 * CHART_WIDTH;
        let legend = Legend { title: &experiment.title, width, entries };
        Self { axes: &experiment.axes, panels, legend }
    }

    fn chart<B: DrawingBackend>(
        &self,
        area: &DrawingArea<B, Shift>,
        scale: u32,
        (panel, curves): &(&str, Vec<Curve<'_>>),
        axis: Axis,
    ) -> Result<(), DrawingFailure>
    where
        B::ErrorType: 'static,
    {
        let unit = |units: u32| units * scale;
        let label = ("sans-serif", unit(12)).into_font().color(&INK);
        let last = curves.iter().filter_map(|curve| curve.points.last()).map(|point| point.on(axis));
        let last = last.fold(f64::MIN_POSITIVE, f64::max);
        // A curve beyond 10 has left the picture; showing where to would flatten the others.
        let errors = || curves.iter().flat_map(|curve| &curve.points).map(|point| point.error.mean.min(10.0));
        let decades = Decades::around(errors());
        let (lowest, highest) = decades.ends();
        let mut chart = ChartBuilder::on(area)
            .margin_left(unit(8))
            .margin_right(unit(22))
            .margin_top(unit(26))
            .set_label_area_size(LabelAreaPosition::Left, unit(LEFT))
            .set_label_area_size(LabelAreaPosition::Bottom, unit(40))
            .build_cartesian_2d(0.0..last, decades)?;
        chart
            .configure_mesh()
            .axis_style(INK.stroke_width(scale))
            .bold_line_style(FAINT.stroke_width(scale))
            .light_line_style(TRANSPARENT)
            .label_style(label.clone())
            .axis_desc_style(label.clone())
            .y_desc("relative error")
            .x_labels(6)
            .x_desc(axis.label())
            .x_label_formatter(&|value| short(*value))
            .y_label_formatter(&|log| power_of_ten(*log))
            .draw()?;
        let title = label.pos(Pos::new(HPos::Left, VPos::Center));
        area.draw_text(panel, &title, (unit(LEFT + 8) as i32, unit(14) as i32))?;
        let place = |point: &CurvePoint, error: f64| (point.on(axis), error.log10().clamp(lowest, highest));
        for Curve { label, points } in curves {
            let colour = self.legend.colour(label);
            // The mean less the deviation can be negative, which has no logarithm: no lower than the best run.
            let upper = points.iter().map(|point| place(point, point.error.mean + point.error.deviation));
            let lower = points
                .iter()
                .rev()
                .map(|point| place(point, (point.error.mean - point.error.deviation).max(point.least_error)));
            let band: Vec<_> = upper.chain(lower).collect();
            chart.draw_series([Polygon::new(band, colour.mix(0.15))])?;
        }
        for Curve { label, points } in curves {
            let line = points.iter().map(|point| place(point, point.error.mean));
            chart.draw_series(LineSeries::new(line, self.legend.colour(label).stroke_width(2 * scale)))?;
        }
        Ok(())
    }
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

/// A number as short as an axis needs it.
pub(crate) fn short(value: f64) -> String {
    match value {
        value if value >= 1e9 => format!("{}G", value / 1e9),
        value if value >= 1e6 => format!("{}M", value / 1e6),
        value if value >= 1e4 => format!("{}k", value / 1e3),
        value => format!("{}", (value * 1e6).round() / 1e6),
    }
}

impl Drawing for CurvesFigure<'_> {
    fn size(&self) -> (u32, u32) {
        (self.legend.width, self.legend.height() + self.panels.len() as u32 * CHART_HEIGHT)
    }

    fn draw<B: DrawingBackend>(&self, area: &DrawingArea<B, Shift>, scale: u32) -> Result<(), DrawingFailure>
    where
        B::ErrorType: 'static,
    {
        area.fill(&WHITE)?;
        self.legend.draw(area, scale)?;
        let (_, charts) = area.split_vertically(self.legend.height() * scale);
        let areas = charts.split_evenly((self.panels.len(), self.axes.len()));
        for (at, area) in areas.iter().enumerate() {
            let (panel, axis) = (at / self.axes.len(), at % self.axes.len());
            self.chart(area, scale, &self.panels[panel], self.axes[axis])?;
        }
        Ok(())
    }
}
