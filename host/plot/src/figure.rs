//! A figure: a title, a legend, and panels with lines, bands and bars.

use std::fmt::Write as _;

use super::scale::Scale;
use super::{GRID, INK, PALETTE, escaped};

const MARGIN: f64 = 16.0;
/// Space around the frame of a panel.
const LEFT: f64 = 72.0;
const RIGHT: f64 = 36.0;
const BELOW: f64 = 46.0;
const TITLE_SIZE: f64 = 18.0;
const TEXT_SIZE: f64 = 13.0;
const LEGEND_LINE: f64 = 22.0;
/// Width of a letter relative to the size of its font, rather too wide than too narrow: fonts differ.
const LETTER: f64 = 0.54;
/// A line has settled when it stays within this share of the panel's height.
const SETTLED: f64 = 0.02;

/// Panels in rows, under a title and one legend.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// What is shown.
    pub title: String,
    /// How to read it.
    pub subtitle: String,
    /// Panels per row.
    pub columns: usize,
    /// Width of one panel, labels included.
    pub panel_width: f64,
    /// The panels, row by row.
    pub panels: Vec<Panel>,
}

/// One pair of scales with what is drawn in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    /// What it shows; may be empty.
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
    #[must_use]
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
    /// Where it begins.
    pub left: f64,
    /// Where it ends.
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
    /// Where the first line reached it, and what is written there.
    pub reached: Option<(f64, String)>,
}

impl Panel {
    /// A panel with `lines` over `x_label` from 0 on. Where no line changes any more for half of its width or longer, it ends
    /// before, and its label says so.
    #[must_use]
    pub fn new(title: &str, x_label: &str, y: Scale, lines: Vec<PlotLine>) -> Self {
        let last = lines.iter().filter_map(|line| line.points.last()).map(|point| point.x);
        let last = last.fold(f64::MIN_POSITIVE, f64::max);
        let settled = 1.25 * lines.iter().filter_map(|line| line.settled(&y)).fold(0.0, f64::max);
        let x = if settled > 0.0 && settled < 0.5 * last {
            let end = Scale::linear("", 0.0, last).name(last);
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
        let moves = |point: &&LinePoint| {
            !is_near(point.y, last.y) || !is_near(point.low, last.low) || !is_near(point.high, last.high)
        };
        Some(self.points.iter().rev().find(moves).map_or(0.0, |point| point.x))
    }
}

impl Figure {
    /// Kinds of lines that can be told apart.
    pub const MOST_COLOURS: usize = PALETTE.len();

    /// A figure with panels below each other.
    #[must_use]
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
    #[must_use]
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

    /// Names and colours of what is drawn, each once; nothing where there is nothing to tell apart.
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

/// A figure that is being drawn from top to bottom.
struct Drawing {
    svg: String,
    /// Where the next part begins.
    bottom: f64,
}

impl Drawing {
    fn text(&mut self, (x, y): (f64, f64), anchor: &str, more: &str, words: &str) {
        let words = escaped(words);
        let _ = writeln!(
            self.svg,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\"{more}>{words}</text>"
        );
    }

    /// Text over as many lines as it takes.
    fn paragraph(&mut self, text: &str, size: f64, width: f64) {
        for line in wrapped(text, ((width - 2.0 * MARGIN) / (LETTER * size)) as usize) {
            self.bottom += size * 1.4;
            self.text((MARGIN, self.bottom), "start", &format!(" font-size=\"{size}\""), &line);
        }
    }

    /// Names in as many columns as have room.
    fn legend(&mut self, entries: &[(&str, usize)], width: f64) {
        const BEFORE_NAME: f64 = 28.0;
        let room = width - 2.0 * MARGIN;
        let longest = entries.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0) as f64;
        let column = (BEFORE_NAME + LETTER * TEXT_SIZE * longest + 20.0).min(room);
        let columns = ((room / column) as usize).max(1);
        let most_letters = ((column - BEFORE_NAME) / (LETTER * TEXT_SIZE)) as usize;
        self.bottom += 8.0;
        for (at, (name, colour)) in entries.iter().enumerate() {
            let left = MARGIN + column * (at % columns) as f64;
            let middle = self.bottom + LEGEND_LINE * ((at / columns) as f64 + 0.5);
            let _ = writeln!(
                self.svg,
                "<path class=\"line {}\" stroke=\"{}\" stroke-width=\"3\" d=\"M{left:.1} {middle:.1}h20\"/>",
                class(*colour),
                hex(*colour)
            );
            // Of a path its end says more.
            let hidden = name.chars().count().saturating_sub(most_letters);
            let name: String = name.chars().skip(hidden).collect();
            let name = if hidden > 0 { format!("…{name}") } else { name };
            self.text((left + BEFORE_NAME, middle + 4.5), "start", "", &name);
        }
        self.bottom += entries.len().div_ceil(columns) as f64 * LEGEND_LINE;
    }

    fn panel(&mut self, panel: &Panel, left: f64, width: f64) {
        let above = if panel.title.is_empty() { 12.0 } else { 28.0 };
        let frame = Frame {
            panel,
            left: left + LEFT,
            top: self.bottom + above,
            width: width - LEFT - RIGHT,
            height: panel.height - above - BELOW,
        };
        self.axes(&frame);
        // A nested picture clips what leaves it, without a name that must be unique on a page. One unit more on each side is
        // for the thickness of lines at the very edge.
        let (x, y, width, height) =
            (frame.left - 1.0, frame.top - 1.0, frame.width + 2.0, frame.height + 2.0);
        let _ = writeln!(
            self.svg,
            "<svg x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" \
             viewBox=\"{x:.1} {y:.1} {width:.1} {height:.1}\" overflow=\"hidden\">"
        );
        panel.bars.iter().for_each(|bars| self.bars(bars, &frame));
        for line in panel.lines.iter().filter(|line| line.points.iter().any(|point| point.low < point.high)) {
            let upper = line.points.iter().map(|point| frame.place(point.x, point.high));
            // Zero on a logarithmic scale is below the panel.
            let lower = line.points.iter().rev().map(|point| {
                let (x, y) = frame.place(point.x, point.low);
                (x, y.min(frame.top + 2.0 * frame.height))
            });
            self.path("area", line.colour, " fill-opacity=\"0.15\"", &band(upper, lower));
        }
        for line in &panel.lines {
            let points: Vec<_> = line.points.iter().map(|point| frame.place(point.x, point.y)).collect();
            self.path("line", line.colour, " stroke-width=\"2\"", &polyline(&points));
        }
        self.svg.push_str("</svg>\n");
        if let Some(threshold) = &panel.threshold {
            self.threshold(threshold, &frame);
        }
    }

    fn threshold(&mut self, threshold: &Threshold, frame: &Frame<'_>) {
        if !(0.0..=1.0).contains(&frame.panel.y.share(threshold.value)) {
            return;
        }
        let (left, right) = (frame.left, frame.left + frame.width);
        let (_, y) = frame.place(0.0, threshold.value);
        let _ = writeln!(
            self.svg,
            "<path class=\"axis\" stroke=\"{INK}\" stroke-dasharray=\"6 4\" d=\"M{left:.1} {y:.1}H{right:.1}\"/>"
        );
        self.text((right + 5.0, y + 4.0), "start", "", &threshold.name);
        let Some((x, words)) = &threshold.reached else { return };
        let (x, hex) = (frame.place(*x, 0.0).0, hex(0));
        if x > right {
            return;
        }
        let _ = writeln!(
            self.svg,
            "<circle class=\"area s0\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\" fill=\"{hex}\"/>"
        );
        let (anchor, beside) = if x > right - 120.0 { ("end", -7.0) } else { ("start", 7.0) };
        self.text((x + beside, y - 7.0), anchor, &format!(" class=\"area s0\" fill=\"{hex}\""), words);
    }

    /// Title, grid, ticks and labels.
    fn axes(&mut self, frame: &Frame<'_>) {
        let Frame { panel, left, top, width, height } = *frame;
        let (right, bottom) = (left + width, top + height);
        self.text((left, top - 9.0), "start", " font-weight=\"600\"", &panel.title);
        let mut grid = String::new();
        for (share, name) in panel.x.ticks() {
            let x = left + share * width;
            let _ = write!(grid, "M{x:.1} {top:.1}V{bottom:.1}");
            self.text((x, bottom + 17.0), "middle", "", &name);
        }
        for (share, name) in panel.y.ticks() {
            let y = bottom - share * height;
            let _ = write!(grid, "M{left:.1} {y:.1}H{right:.1}");
            self.text((left - 7.0, y + 4.0), "end", "", &name);
        }
        let axes = format!("M{left:.1} {top:.1}V{bottom:.1}H{right:.1}");
        for (class, colour, path) in [("grid", GRID, grid), ("axis", INK, axes)] {
            let _ = writeln!(
                self.svg,
                "<path class=\"{class}\" fill=\"none\" stroke=\"{colour}\" d=\"{path}\"/>"
            );
        }
        self.text((left + width / 2.0, bottom + 36.0), "middle", "", &panel.x.label);
        let (x, y) = (left - 52.0, top + height / 2.0);
        self.text((x, y), "middle", &format!(" transform=\"rotate(-90 {x:.1} {y:.1})\""), &panel.y.label);
    }

    fn bars(&mut self, bars: &Bars, frame: &Frame<'_>) {
        for bar in &bars.bars {
            let (left, end) = frame.place(bar.left, bar.height);
            let (right, zero) = frame.place(bar.right, 0.0);
            let _ = writeln!(
                self.svg,
                "<rect class=\"area {}\" x=\"{left:.2}\" y=\"{:.2}\" width=\"{:.2}\" height=\"{:.2}\" fill=\"{}\"><title>{}</title></rect>",
                class(bars.colour),
                end.min(zero),
                (right - left - 1.0).max(0.5),
                (end - zero).abs(),
                hex(bars.colour),
                bar.height.abs()
            );
        }
    }

    fn path(&mut self, kind: &str, colour: usize, more: &str, path: &str) {
        let (class, hex) = (class(colour), hex(colour));
        let colours = match kind {
            "line" => format!("fill=\"none\" stroke=\"{hex}\""),
            _ => format!("fill=\"{hex}\""),
        };
        let _ = writeln!(self.svg, "<path class=\"{kind} {class}\" {colours}{more} d=\"{path}\"/>");
    }
}

/// Where the lines of a panel are drawn.
struct Frame<'a> {
    panel: &'a Panel,
    left: f64,
    top: f64,
    width: f64,
    height: f64,
}

impl Frame<'_> {
    fn place(&self, x: f64, y: f64) -> (f64, f64) {
        let (x, y) = (self.panel.x.share(x), self.panel.y.share(y));
        (self.left + x * self.width, self.top + (1.0 - y) * self.height)
    }
}

fn class(colour: usize) -> String {
    format!("s{}", colour % PALETTE.len())
}

fn hex(colour: usize) -> &'static str {
    PALETTE[colour % PALETTE.len()]
}

/// A line through all points that have a place.
fn polyline(points: &[(f64, f64)]) -> String {
    let mut path = String::new();
    for part in points.split(|(x, y)| !x.is_finite() || !y.is_finite()) {
        for (at, (x, y)) in thinned(part).into_iter().enumerate() {
            let _ = write!(path, "{}{x:.2} {y:.2}", if at == 0 { 'M' } else { 'L' });
        }
        if part.len() == 1 {
            // A round cap makes a dot of it.
            path.push_str("h0");
        }
    }
    path
}

/// The area between two edges.
fn band(upper: impl Iterator<Item = (f64, f64)>, lower: impl Iterator<Item = (f64, f64)>) -> String {
    let edges: Vec<(f64, f64)> = upper.chain(lower).filter(|(x, y)| x.is_finite() && y.is_finite()).collect();
    let edges = thinned(&edges).into_iter().map(|(x, y)| format!("{x:.2} {y:.2}"));
    format!("M{}Z", edges.collect::<Vec<_>>().join("L"))
}

/// The points that make the picture: in each column of pixels the first, the lowest, the highest and the last. No peak is lost.
fn thinned(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut kept = Vec::new();
    for column in points.chunk_by(|a, b| a.0.floor() == b.0.floor()) {
        let by_height = |a: &usize, b: &usize| column[*a].1.total_cmp(&column[*b].1);
        let places = || 0..column.len();
        let mut at: Vec<usize> =
            [Some(0), places().min_by(by_height), places().max_by(by_height), places().last()]
                .into_iter()
                .flatten()
                .collect();
        at.sort_unstable();
        at.dedup();
        kept.extend(at.into_iter().map(|at| column[at]));
    }
    kept
}

/// `text` in lines of at most `letters`.
fn wrapped(text: &str, letters: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= letters => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
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
    fn lines_pause_where_a_value_has_no_place() {
        let places = [(0.0, 1.0), (1.0, f64::NAN), (2.0, 3.0), (3.0, f64::INFINITY), (4.0, 5.0), (5.0, 6.25)];
        assert_eq!(polyline(&places), "M0.00 1.00h0M2.00 3.00h0M4.00 5.00L5.00 6.25");
    }

    #[test]
    fn no_peak_is_lost_where_points_are_closer_than_pixels() {
        let mut points: Vec<(f64, f64)> = (0..100_000).map(|at| (f64::from(at) / 100.0, 1.0)).collect();
        (points[5_050].1, points[70_001].1) = (-9.0, 7.0);
        let kept = thinned(&points);
        assert!(kept.len() <= 4 * 1000 && kept.first() == points.first() && kept.last() == points.last());
        assert!(kept.contains(&points[5_050]) && kept.contains(&points[70_001]));
        assert_eq!(thinned(&points[..2]), points[..2]);
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
    }

    #[test]
    fn titles_wrap() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("", 7), Vec::<String>::new());
    }
}
