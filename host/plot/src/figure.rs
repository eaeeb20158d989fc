//! A figure: a title, a legend, and panels with lines, bands and bars.

mod drawing;

use super::scale::Scale;
use super::{INK, PALETTE};
use drawing::{Drawing, TEXT_SIZE, TITLE_SIZE};

/// A line has settled when it stays within this share of the panel's height.
const SETTLED: f64 = 0.02;

/// Panels in rows, under a title and one legend.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// The title.
    pub title: String,
    /// The line below the title.
    pub subtitle: String,
    /// Panels per row.
    pub columns: usize,
    /// Width of one panel, labels included.
    pub panel_width: f64,
    /// The panels, row by row.
    pub panels: Vec<Panel>,
}

/// One pair of scales with its lines and bars.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    /// Its title; may be empty.
    pub title: String,
    /// The scale from left to right.
    pub x: Scale,
    /// The scale from bottom to top.
    pub y: Scale,
    /// Its height, labels included.
    pub height: f64,
    /// Its lines.
    pub lines: Vec<PlotLine>,
    /// Its bars.
    pub bars: Vec<Bars>,
    /// A value to be reached.
    pub threshold: Option<Threshold>,
}

/// A line, in a band where its points have one.
#[derive(Clone, Debug, PartialEq)]
pub struct PlotLine {
    /// Its name in the legend.
    pub name: String,
    /// Its colour in [`PALETTE`].
    pub colour: usize,
    /// Its points, from left to right. It pauses where a point has no place on a scale.
    pub points: Vec<LinePoint>,
}

/// A point of a line, and the band around it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinePoint {
    /// Its place from left to right.
    pub x: f64,
    /// Its value.
    pub y: f64,
    /// The lower edge of the band.
    pub low: f64,
    /// The upper edge.
    pub high: f64,
}

impl LinePoint {
    /// A point without a band.
    pub const fn new(x: f64, y: f64) -> Self {
        Self { x, y, low: y, high: y }
    }
}

/// Bars of one kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Bars {
    /// Their name in the legend.
    pub name: String,
    /// Their colour in [`PALETTE`].
    pub colour: usize,
    /// The bars.
    pub bars: Vec<Bar>,
}

/// A bar from zero up or down.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bar {
    /// Its left edge.
    pub left: f64,
    /// Its right edge.
    pub right: f64,
    /// Its value; a negative one points down.
    pub height: f64,
}

/// A value that a line is to reach.
#[derive(Clone, Debug, PartialEq)]
pub struct Threshold {
    /// The value.
    pub value: f64,
    /// Its name, beside the panel.
    pub name: String,
    /// The point at which the first line reached it, and its label.
    pub reached: Option<(f64, String)>,
}

impl Panel {
    /// A panel with `lines` over `x_label` from 0 on. Where no line changes for half of its width, it ends early and says so.
    pub fn new(title: &str, x_label: &str, y: Scale, lines: Vec<PlotLine>) -> Self {
        let last = lines.iter().filter_map(|line| line.points.last()).map(|point| point.x);
        let last = last.fold(f64::MIN_POSITIVE, f64::max);
        let settled = 1.25 * lines.iter().filter_map(|line| line.settled(&y)).fold(0.0, f64::max);
        let x = if settled > 0.0 && settled < 0.5 * last {
            let fourth_digit = 10f64.powf(last.log10().floor() - 3.0);
            let end = Scale::linear("", 0.0, last).name((last / fourth_digit).round() * fourth_digit);
            Scale::linear(&format!("{x_label} (all lines stay level from here to {end})"), 0.0, settled)
        } else {
            Scale::linear(x_label, 0.0, last)
        };
        let is_whole = lines.iter().flat_map(|line| &line.points).all(|point| point.x.fract() == 0.0);
        let x = if is_whole { x.whole() } else { x };
        Self { title: title.to_owned(), x, y, height: 300.0, lines, bars: Vec::new(), threshold: None }
    }
}

impl PlotLine {
    /// From where on it stays near its last value, band included.
    fn settled(&self, y: &Scale) -> Option<f64> {
        let last = self.points.last()?;
        let is_near = |value: f64, end: f64| {
            let away = y.share(value) - y.share(end);
            // NaN where neither has a place.
            away.abs() < SETTLED || away.is_nan()
        };
        let moves = |point: &LinePoint| {
            !is_near(point.y, last.y) || !is_near(point.low, last.low) || !is_near(point.high, last.high)
        };
        let moving = self.points.iter().rposition(moves);
        // It is level from the next point on, which the last one is at the latest.
        Some(moving.map_or(0.0, |at| self.points[at + 1].x))
    }
}

impl Figure {
    /// Kinds of lines that can be told apart.
    pub const MOST_COLOURS: usize = PALETTE.len();

    /// A figure with panels below each other.
    pub fn new(title: &str, subtitle: &str, panels: Vec<Panel>) -> Self {
        Self {
            title: title.to_owned(),
            subtitle: subtitle.to_owned(),
            columns: 1,
            panel_width: 960.0,
            panels,
        }
    }

    /// The figure as SVG: a file, or a part of a page.
    pub fn to_svg(&self) -> String {
        let width = self.columns as f64 * self.panel_width;
        let mut drawing = Drawing { svg: String::new(), bottom: 8.0 };
        drawing.paragraph(&self.title, TITLE_SIZE, width);
        drawing.bottom += 2.0;
        drawing.paragraph(&self.subtitle, TEXT_SIZE, width);
        drawing.legend(&self.legend(), width);
        for row in self.panels.chunks(self.columns.max(1)) {
            for (column, panel) in row.iter().enumerate() {
                drawing.panel(panel, column as f64 * self.panel_width, self.panel_width);
            }
            drawing.bottom += row.iter().map(|panel| panel.height).fold(0.0, f64::max);
        }
        let Drawing { svg, bottom: height } = drawing;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"figure\" role=\"img\" width=\"{width:.0}\" height=\"{height:.0}\" \
             viewBox=\"0 0 {width:.0} {height:.0}\" font-family=\"sans-serif\" font-size=\"{TEXT_SIZE}\" fill=\"{INK}\" \
             stroke-linejoin=\"round\" stroke-linecap=\"round\">\n\
             <rect class=\"ground\" width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n{svg}</svg>\n"
        )
    }

    /// Names and colours of lines and bars, each once; empty where there is only one.
    fn legend(&self) -> Vec<(&str, usize)> {
        let mut entries: Vec<(&str, usize)> = Vec::new();
        for panel in &self.panels {
            let lines = panel.lines.iter().map(|line| (line.name.as_str(), line.colour));
            let bars = panel.bars.iter().map(|bars| (bars.name.as_str(), bars.colour));
            for entry in lines.chain(bars) {
                if !entries.contains(&entry) {
                    entries.push(entry);
                }
            }
        }
        if entries.len() > 1 { entries } else { Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(name: &str, values: impl IntoIterator<Item = f64>) -> PlotLine {
        let points = (0_u32..).zip(values).map(|(x, y)| LinePoint::new(x.into(), y));
        PlotLine { name: name.to_owned(), colour: 0, points: points.collect() }
    }

    fn panel(lines: Vec<PlotLine>) -> Panel {
        let values: Vec<f64> = lines.iter().flat_map(|line| &line.points).map(|point| point.y).collect();
        Panel::new("", "round", Scale::decades("error", values.into_iter()), lines)
    }

    #[test]
    fn lines_have_bands_names_and_joins_that_add_no_spikes() {
        let mut banded = line("loss = <0>", [1.0, 1e-2]);
        banded.points[1].high = 0.5;
        let plain = PlotLine { colour: 1, ..line("loss = 0.5", [1.0, 1e-1]) };
        let svg = Figure::new("two & more", "median", vec![panel(vec![banded, plain])]).to_svg();
        assert_eq!((svg.matches("fill-opacity").count(), svg.matches("stroke-width=\"2\"").count()), (1, 2));
        for part in [
            "two &amp; more",
            "median",
            "loss = &lt;0&gt;",
            "loss = 0.5",
            "error",
            "stroke-linejoin=\"round\"",
        ] {
            assert!(svg.contains(part), "{part}: {svg}");
        }
        let one = Figure::new("one", "", vec![panel(vec![line("alone", [1.0, 0.1])])]).to_svg();
        assert!(!one.contains("alone") && !one.contains("NaN"), "{one}");
    }

    #[test]
    fn a_panel_ends_where_nothing_changes_any_more_and_says_so() {
        let falling = |rounds: i32| (0..rounds).map(|round| 0.9_f64.powi(round));
        let stalled = line("stalled", std::iter::repeat_n(0.95, 5000));
        let short = panel(vec![line("falls", falling(60)), stalled]);
        assert_eq!(short.x.label, "round (all lines stay level from here to 4999)");
        let late = line("late", std::iter::repeat_n(0.95, 5000).chain([1e-3]));
        assert_eq!(panel(vec![line("falls", falling(60)), late]).x.label, "round");
        assert_eq!(panel(vec![line("flat", [1.0, 1.0, 1.0])]).x.label, "round");
        let mut sparse = line("of few points", [1.0, 1e-3]);
        (sparse.points[0].x, sparse.points[1].x) = (1.0, 50.0);
        assert_eq!(panel(vec![sparse]).x.label, "round");
    }
}
