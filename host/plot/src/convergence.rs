//! How a run converged: error and consensus error over the rounds, and the tracking defect where there is one.

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::{BLUE, Decades, Drawing, DrawingFailure, FAINT, GREEN, INK, VERMILION, power_of_ten};

const WIDTH: u32 = 960;
const HEIGHT: u32 = 620;
/// Where the axes begin.
const LEFT: u32 = 76;
/// Space to the right of the axes.
const RIGHT: u32 = 40;
const LEGEND_HEIGHT: u32 = 28;
/// The logarithm of one per cent.
const ONE_PERCENT: f64 = -2.0;

/// The figure of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct ConvergenceFigure {
    /// What was run.
    pub title: String,
    /// With which constants.
    pub subtitle: String,
    /// What the error measures.
    pub error: String,
    /// The round in which the error fell below one per cent for good.
    pub one_percent: Option<u64>,
    /// What was measured, in order of rounds.
    pub points: Vec<ConvergencePoint>,
}

/// A swarm after a round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ConvergencePoint {
    /// The round.
    pub round: u64,
    /// Its error.
    pub error: f64,
    /// The distance between its agents.
    pub consensus_error: f64,
    /// How far its trackers are from its gradients.
    pub tracking_defect: f64,
}

/// Errors and tracking defect have panels of their own: they are decades apart.
#[derive(Clone, Copy)]
struct Panel {
    /// Whether it shows the errors, with a line at one per cent.
    has_errors: bool,
    /// Whether the round axis below it has numbers and a title.
    is_lowest: bool,
}

impl Panel {
    const fn space_below(self) -> u32 {
        if self.is_lowest { 42 } else { 8 }
    }
}

/// One curve of a panel.
struct Line<'a> {
    name: &'a str,
    colour: RGBColor,
    value: fn(&ConvergencePoint) -> f64,
}

impl ConvergenceFigure {
    /// The text of an SVG file.
    ///
    /// # Errors
    /// When it cannot be drawn.
    pub fn svg(&self) -> Result<String, DrawingFailure> {
        super::svg(self)
    }

    /// The bytes of a PNG file.
    ///
    /// # Errors
    /// When it cannot be drawn.
    pub fn png(&self) -> Result<Vec<u8>, DrawingFailure> {
        super::png(self)
    }
}

impl Drawing for ConvergenceFigure {
    fn size(&self) -> (u32, u32) {
        (WIDTH, HEIGHT)
    }

    fn draw<B: DrawingBackend>(&self, area: &DrawingArea<B, Shift>, scale: u32) -> Result<(), DrawingFailure>
    where
        B::ErrorType: 'static,
    {
        let unit = |units: u32| units * scale;
        area.fill(&WHITE)?;
        let title = ("sans-serif", unit(19)).into_font().color(&INK);
        let subtitle = ("sans-serif", unit(13)).into_font().color(&INK.mix(0.75));
        let left = unit(LEFT) as i32;
        area.draw_text(&self.title, &title, (left, unit(16) as i32))?;
        area.draw_text(&self.subtitle, &subtitle, (left, unit(42) as i32))?;
        let (_, panels) = area.split_vertically(unit(66));
        let error = Line { name: &self.error, colour: BLUE, value: |row| row.error };
        let consensus = Line {
            name: "consensus error: distance between agents",
            colour: VERMILION,
            value: |row| row.consensus_error,
        };
        // Zero has no place on a logarithmic axis: a defect that is always 0 is stated, and the errors get its space.
        if self.points.iter().all(|row| row.tracking_defect == 0.0) {
            let right = (unit(WIDTH - RIGHT) as i32, unit(24) as i32);
            let note = ("sans-serif", unit(13)).into_font().color(&GREEN);
            let note = note.pos(Pos::new(HPos::Right, VPos::Center));
            area.draw_text("tracking defect: exactly 0 in every round", &note, right)?;
            let panel = Panel { has_errors: true, is_lowest: true };
            self.panel(&panels, scale, panel, &[error, consensus])?;
        } else {
            let defect = Line {
                name: "tracking defect: trackers against gradients",
                colour: GREEN,
                value: |row| row.tracking_defect,
            };
            let (upper, lower) = panels.split_vertically(unit(370));
            self.panel(&upper, scale, Panel { has_errors: true, is_lowest: false }, &[error, consensus])?;
            self.panel(&lower, scale, Panel { has_errors: false, is_lowest: true }, &[defect])?;
        }
        Ok(())
    }
}

impl ConvergenceFigure {
    fn panel<B: DrawingBackend>(
        &self,
        area: &DrawingArea<B, Shift>,
        scale: u32,
        panel: Panel,
        lines: &[Line<'_>],
    ) -> Result<(), DrawingFailure>
    where
        B::ErrorType: 'static,
    {
        let unit = |units: u32| units * scale;
        let label = ("sans-serif", unit(13)).into_font().color(&INK);
        draw_legend(area, scale, lines, &label)?;
        let last_round = self.points.iter().last().map_or(1, |last| last.round.max(1)) as f64;
        let decades = Decades::around(lines.iter().flat_map(|line| self.points.iter().map(line.value)));
        let (lowest, highest) = decades.ends();
        let mut chart = ChartBuilder::on(area)
            .margin_left(unit(14))
            .margin_right(unit(RIGHT))
            .margin_top(unit(LEGEND_HEIGHT))
            .set_label_area_size(LabelAreaPosition::Left, unit(LEFT - 14))
            .set_label_area_size(LabelAreaPosition::Bottom, unit(panel.space_below()))
            .build_cartesian_2d(0.0..last_round, decades)?;
        let mut mesh = chart.configure_mesh();
        mesh.axis_style(INK.stroke_width(scale))
            .bold_line_style(FAINT.stroke_width(scale))
            .light_line_style(TRANSPARENT)
            .label_style(label.clone())
            .axis_desc_style(label)
            .y_desc("relative size")
            .x_labels(8)
            .y_label_formatter(&|log| power_of_ten(*log));
        if panel.is_lowest {
            mesh.x_label_formatter(&whole_round).x_desc("round").draw()?;
        } else {
            mesh.x_label_formatter(&|_| String::new()).draw()?;
        }

        for line in lines {
            // Zero has no logarithm: the curve pauses there.
            let points = self.points.iter().map(|row| (row.round as f64, (line.value)(row).log10()));
            let points =
                points.filter(|(_, log)| log.is_finite()).map(|(round, log)| (round, log.max(lowest)));
            chart.draw_series(LineSeries::new(points, line.colour.stroke_width(2 * scale)))?;
        }
        if panel.has_errors && (lowest..=highest).contains(&ONE_PERCENT) {
            let ends = [(0.0, ONE_PERCENT), (last_round, ONE_PERCENT)];
            chart.draw_series(DashedLineSeries::new(ends, unit(6), unit(4), INK.stroke_width(scale)))?;
            let small = ("sans-serif", unit(12)).into_font();
            let beside = small.color(&INK).pos(Pos::new(HPos::Left, VPos::Center));
            chart.draw_series([EmptyElement::at(ends[1]) + Text::new("1 %", (unit(6) as i32, 0), beside)])?;
            if let Some(round) = self.one_percent {
                let above = small.color(&BLUE).pos(Pos::new(HPos::Left, VPos::Bottom));
                chart.draw_series([EmptyElement::at((round as f64, ONE_PERCENT))
                    + Circle::new((0, 0), unit(4), BLUE.filled())
                    + Text::new(format!("round {round}"), (unit(5) as i32, -(unit(6) as i32)), above)])?;
            }
        }
        Ok(())
    }
}

/// Writes the names of the curves above a panel, where they hide nothing.
fn draw_legend<B: DrawingBackend>(
    area: &DrawingArea<B, Shift>,
    scale: u32,
    lines: &[Line<'_>],
    style: &TextStyle<'_>,
) -> Result<(), DrawingFailure>
where
    B::ErrorType: 'static,
{
    let unit = |units: u32| (units * scale) as i32;
    let mut left = unit(LEFT);
    for line in lines {
        let middle = unit(LEGEND_HEIGHT) / 2;
        let stroke = [(left, middle), (left + unit(20), middle)];
        area.draw(&PathElement::new(stroke, line.colour.stroke_width(2 * scale)))?;
        let style = style.pos(Pos::new(HPos::Left, VPos::Center));
        area.draw_text(line.name, &style, (left + unit(26), middle))?;
        left += unit(26 + 28) + area.estimate_text_size(line.name, &style)?.0 as i32;
    }
    Ok(())
}

/// A round as a label; nothing between two rounds, which a short run has room for.
fn whole_round(round: &f64) -> String {
    if round.fract() == 0.0 { format!("{round:.0}") } else { String::new() }
}
