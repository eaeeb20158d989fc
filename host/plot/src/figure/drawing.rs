//! The SVG of a figure, from top to bottom.

use std::fmt::Write as _;

use super::{Bars, Panel, Threshold};
use crate::{GRID, INK, PALETTE, escaped};

const MARGIN: f64 = 16.0;
/// Space around the frame of a panel.
const LEFT: f64 = 72.0;
const RIGHT: f64 = 36.0;
const BELOW: f64 = 46.0;
pub(super) const TITLE_SIZE: f64 = 18.0;
pub(super) const TEXT_SIZE: f64 = 13.0;
const LEGEND_LINE: f64 = 22.0;
/// Width of a letter relative to the size of its font, rather too wide than too narrow: fonts differ.
const LETTER: f64 = 0.54;

/// A figure that is being drawn from top to bottom.
pub(super) struct Drawing {
    pub(super) svg: String,
    /// Top of the next part.
    pub(super) bottom: f64,
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
    pub(super) fn paragraph(&mut self, text: &str, size: f64, width: f64) {
        for line in wrapped(text, ((width - 2.0 * MARGIN) / (LETTER * size)) as usize) {
            self.bottom += size * 1.4;
            self.text((MARGIN, self.bottom), "start", &format!(" font-size=\"{size}\""), &line);
        }
    }

    /// Names in as many columns as have room.
    pub(super) fn legend(&mut self, entries: &[(&str, usize)], width: f64) {
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
            // The end of a path says more than its beginning.
            let hidden = name.chars().count().saturating_sub(most_letters);
            let name: String = name.chars().skip(hidden).collect();
            let name = if hidden > 0 { format!("…{name}") } else { name };
            self.text((left + BEFORE_NAME, middle + 4.5), "start", "", &name);
        }
        self.bottom += entries.len().div_ceil(columns) as f64 * LEGEND_LINE;
    }

    pub(super) fn panel(&mut self, panel: &Panel, left: f64, width: f64) {
        let above = if panel.title.is_empty() { 12.0 } else { 28.0 };
        let frame = PlotFrame {
            panel,
            left: left + LEFT,
            top: self.bottom + above,
            width: width - LEFT - RIGHT,
            height: panel.height - above - BELOW,
        };
        self.axes(&frame);
        // A nested picture clips what leaves it, without a name unique on a page. One unit more on each side is for thick lines.
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

    fn threshold(&mut self, threshold: &Threshold, frame: &PlotFrame<'_>) {
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
    fn axes(&mut self, frame: &PlotFrame<'_>) {
        let PlotFrame { panel, left, top, width, height } = *frame;
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

    fn bars(&mut self, bars: &Bars, frame: &PlotFrame<'_>) {
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

/// The rectangle of a panel in which lines are drawn.
struct PlotFrame<'a> {
    panel: &'a Panel,
    left: f64,
    top: f64,
    width: f64,
    height: f64,
}

impl PlotFrame<'_> {
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

    #[test]
    fn polyline_breaks_at_non_finite_points() {
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
    fn titles_wrap() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("", 7), Vec::<String>::new());
    }
}
