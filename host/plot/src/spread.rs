//! Medians and ranges of several runs over their rounds: one line in one band for each group of runs.

use std::ops::Range;

use plotters::coord::Shift;
use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint, Ranged};
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::{Decades, Drawing, DrawingFailure, FAINT, INK, power_of_ten};

const WIDTH: u32 = 960;
const CHART_HEIGHT: u32 = 480;
const HEAD: u32 = 66;
const LEGEND_LINE: u32 = 22;
const LEFT: u32 = 76;

/// Okabe and Ito's colours and three more.
const PALETTE: [RGBColor; 10] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(120, 120, 120),
    RGBColor(110, 60, 160),
    RGBColor(40, 40, 40),
    RGBColor(140, 86, 75),
];

/// Runs that differ in their seeds alone.
#[derive(Clone, Debug, PartialEq)]
pub struct SpreadGroup {
    /// What they have in common.
    pub name: String,
    /// Their medians and ranges, in order of rounds.
    pub points: Vec<SpreadPoint>,
}

/// Several runs in one round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SpreadPoint {
    /// The round.
    pub round: f64,
    /// The least value.
    pub least: f64,
    /// The median.
    pub median: f64,
    /// The largest value.
    pub most: f64,
}

/// The figure of a sweep.
#[derive(Clone, Debug, PartialEq)]
pub struct SpreadFigure {
    /// What is shown.
    pub title: String,
    /// How to read it.
    pub subtitle: String,
    /// The name of the values.
    pub values: String,
    /// Whether values are shown in powers of ten.
    pub is_logarithmic: bool,
    /// The groups of runs; there are colours for [`SpreadFigure::MOST_GROUPS`].
    pub groups: Vec<SpreadGroup>,
}

impl SpreadFigure {
    /// Groups that can be told apart.
    pub const MOST_GROUPS: usize = PALETTE.len();

    fn legend_height(&self) -> u32 {
        (self.groups.len() as u32).div_ceil(2) * LEGEND_LINE + 8
    }

    /// Where a value stands on the axis.
    fn place(&self, value: f64) -> f64 {
        if self.is_logarithmic { value.log10() } else { value }
    }
}

/// The axis of values.
enum SpreadAxis {
    Decades(Decades),
    Linear(RangedCoordf64),
}

impl Ranged for SpreadAxis {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        match self {
            Self::Decades(axis) => axis.map(value, limit),
            Self::Linear(axis) => axis.map(value, limit),
        }
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        match self {
            Self::Decades(axis) => axis.key_points(hint),
            Self::Linear(axis) => axis.key_points(hint),
        }
    }

    fn range(&self) -> Range<f64> {
        match self {
            Self::Decades(axis) => axis.range(),
            Self::Linear(axis) => axis.range(),
        }
    }
}

impl SpreadFigure {
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

impl Drawing for SpreadFigure {
    fn size(&self) -> (u32, u32) {
        (WIDTH, HEAD + self.legend_height() + CHART_HEIGHT)
    }

    fn draw<B: DrawingBackend>(&self, area: &DrawingArea<B, Shift>, scale: u32) -> Result<(), DrawingFailure>
    where
        B::ErrorType: 'static,
    {
        let unit = |units: u32| units * scale;
        area.fill(&WHITE)?;
        let left = unit(LEFT) as i32;
        let title = ("sans-serif", unit(19)).into_font().color(&INK);
        let subtitle = ("sans-serif", unit(13)).into_font().color(&INK.mix(0.75));
        area.draw_text(&self.title, &title, (left, unit(16) as i32))?;
        area.draw_text(&self.subtitle, &subtitle, (left, unit(42) as i32))?;
        let label = ("sans-serif", unit(13)).into_font().color(&INK);
        let beside = label.pos(Pos::new(HPos::Left, VPos::Center));
        let column_width = (WIDTH - LEFT) / 2;
        for (at, (group, colour)) in self.groups.iter().zip(PALETTE).enumerate() {
            let at = at as u32;
            let start = left + unit(column_width * (at % 2)) as i32;
            let middle = unit(HEAD + LEGEND_LINE * (at / 2) + LEGEND_LINE / 2) as i32;
            let stroke = [(start, middle), (start + unit(20) as i32, middle)];
            area.draw(&PathElement::new(stroke, colour.stroke_width(3 * scale)))?;
            area.draw_text(&group.name, &beside, (start + unit(26) as i32, middle))?;
        }

        let (_, chart_area) = area.split_vertically(unit(HEAD + self.legend_height()));
        let points = || self.groups.iter().flat_map(|group| &group.points);
        let last = points().map(|point| point.round).fold(1.0, f64::max);
        let values = || points().flat_map(|point| [point.least, point.median, point.most]);
        let axis = if self.is_logarithmic {
            SpreadAxis::Decades(Decades::around(values()))
        } else {
            let finite = || values().filter(|value| value.is_finite());
            let (low, high) =
                (finite().fold(f64::INFINITY, f64::min), finite().fold(f64::NEG_INFINITY, f64::max));
            let (low, high) = if low < high { (low, high) } else { (0.0, 1.0) };
            SpreadAxis::Linear((low..high).into())
        };
        let Range { start: lowest, end: highest } = axis.range();
        let mut chart = ChartBuilder::on(&chart_area)
            .margin_left(unit(14))
            .margin_right(unit(40))
            .margin_top(unit(8))
            .set_label_area_size(LabelAreaPosition::Left, unit(LEFT - 14))
            .set_label_area_size(LabelAreaPosition::Bottom, unit(42))
            .build_cartesian_2d(0.0..last, axis)?;
        let shown = |value: &f64| {
            if self.is_logarithmic {
                power_of_ten(*value)
            } else {
                format!("{}", (value * 1e3).round() / 1e3)
            }
        };
        chart
            .configure_mesh()
            .axis_style(INK.stroke_width(scale))
            .bold_line_style(FAINT.stroke_width(scale))
            .light_line_style(TRANSPARENT)
            .label_style(label.clone())
            .axis_desc_style(label)
            .y_desc(&self.values)
            .x_desc("round")
            .x_labels(8)
            .x_label_formatter(&|round| {
                if round.fract() == 0.0 { format!("{round:.0}") } else { String::new() }
            })
            .y_label_formatter(&shown)
            .draw()?;
        // A value without a logarithm lies at the lower end.
        let place = |round: f64, value: f64| {
            let place = self.place(value);
            (round, if place.is_nan() { highest } else { place.clamp(lowest, highest) })
        };
        for (group, colour) in self.groups.iter().zip(PALETTE) {
            let upper = group.points.iter().map(|point| place(point.round, point.most));
            let lower = group.points.iter().rev().map(|point| place(point.round, point.least));
            let band: Vec<_> = upper.chain(lower).collect();
            chart.draw_series([Polygon::new(band, colour.mix(0.15))])?;
        }
        for (group, colour) in self.groups.iter().zip(PALETTE) {
            let line = group.points.iter().map(|point| place(point.round, point.median));
            chart.draw_series(LineSeries::new(line, colour.stroke_width(2 * scale)))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::svg;

    #[test]
    fn every_group_has_a_line_a_band_and_a_name() {
        let points = [(0.0, 1.0), (10.0, 1e-2)].map(|(round, value)| SpreadPoint {
            round,
            least: value / 2.0,
            median: value,
            most: value * 2.0,
        });
        let group = |name: &str| SpreadGroup { name: name.to_owned(), points: points.to_vec() };
        let mut figure = SpreadFigure {
            title: "two".to_owned(),
            subtitle: "median and range".to_owned(),
            values: "distance".to_owned(),
            is_logarithmic: true,
            groups: vec![group("loss = 0"), group("loss = 0.5")],
        };
        for is_logarithmic in [true, false] {
            figure.is_logarithmic = is_logarithmic;
            let svg = svg(&figure).unwrap();
            assert_eq!(svg.matches("<polygon").count(), 2, "{svg}");
            for words in ["two", "median and range", "loss = 0", "loss = 0.5", "distance", "round"] {
                assert!(svg.contains(words), "{words}");
            }
        }
    }
}
