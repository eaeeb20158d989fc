//! Curves as SVG, in the colours of the page.

use super::html::escaped;
use std::fmt::Write as _;

/// One curve.
pub(super) struct Series {
    pub(super) label: String,
    /// In ascending order of rounds, and at least two.
    pub(super) points: Vec<(f64, f64)>,
}

const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 260.0;
const LEFT: f64 = 62.0;
const BOTTOM: f64 = 28.0;
const TOP: f64 = 8.0;
const RIGHT: f64 = 12.0;

/// More points than the picture is wide show nothing more.
const MOST_POINTS: usize = 1200;

/// Colours that can be told apart.
const COLOURS: usize = 6;

/// A value of a curve that stands for those around it, and its height in the scale.
fn height(value: f64, is_logarithmic: bool) -> f64 {
    if is_logarithmic { value.log10() } else { value }
}

/// Draws `series`, which are not empty, with a legend where there are several.
pub(super) fn svg(series: &[Series], is_logarithmic: bool) -> String {
    let all = || series.iter().flat_map(|series| &series.points);
    let last_round = all().map(|point| point.0).fold(1.0, f64::max);
    let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
    for (_, value) in all() {
        let height = height(*value, is_logarithmic);
        (low, high) = (low.min(height), high.max(height));
    }
    if is_logarithmic {
        // An error of 1 and a rounding error should not add another power of ten.
        (low, high) = (low.floor(), (high - 0.01).ceil());
    }
    if high - low < 1e-12 {
        high = low + 1.0;
    }
    let x = |round: f64| LEFT + (WIDTH - LEFT - RIGHT) * round / last_round;
    let y = |height: f64| TOP + (HEIGHT - TOP - BOTTOM) * (high - height) / (high - low);

    let mut text = format!("<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\">\n");
    for tick in ticks(low, high, is_logarithmic) {
        let at = y(tick);
        let label = if is_logarithmic { format!("1e{tick:.0}") } else { short(tick) };
        let _ = writeln!(text, "<path class=\"grid\" d=\"M{LEFT} {at:.1}H{:.1}\"/>", WIDTH - RIGHT);
        let _ = writeln!(
            text,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>",
            LEFT - 6.0,
            at + 4.0
        );
    }
    for tick in ticks(0.0, last_round, false) {
        let at = x(tick);
        let _ = writeln!(text, "<path class=\"grid\" d=\"M{at:.1} {TOP}V{:.1}\"/>", HEIGHT - BOTTOM);
        let _ = writeln!(
            text,
            "<text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            HEIGHT - BOTTOM + 18.0,
            short(tick)
        );
    }
    for (number, series) in series.iter().enumerate() {
        let stride = series.points.len().div_ceil(MOST_POINTS);
        let last = series.points.len() - 1;
        let points = series.points.iter().enumerate().filter(|(at, _)| at % stride == 0 || *at == last);
        let points = points
            .map(|(_, (round, value))| format!("{:.1} {:.1}", x(*round), y(height(*value, is_logarithmic))));
        let points: Vec<String> = points.collect();
        let _ = writeln!(
            text,
            "<polyline class=\"curve s{}\" points=\"{}\"/>",
            number % COLOURS,
            points.join(" ")
        );
    }
    text.push_str("</svg>");
    if series.len() > 1 {
        text.push_str("\n<div class=\"legend\">");
        for (number, series) in series.iter().enumerate() {
            let label = escaped(&series.label);
            let _ = write!(text, "<span><span class=\"key s{}\"></span>{label}</span>", number % COLOURS);
        }
        text.push_str("</div>");
    }
    text
}

/// Round numbers between two ends; whole ones for powers of ten.
fn ticks(low: f64, high: f64, is_logarithmic: bool) -> Vec<f64> {
    let rough = (high - low) / 6.0;
    let power = 10_f64.powf(rough.log10().floor());
    let mut step = [1.0, 2.0, 5.0, 10.0]
        .map(|factor| factor * power)
        .into_iter()
        .find(|step| *step >= rough)
        .unwrap_or(power);
    if is_logarithmic {
        step = step.max(1.0).round();
    }
    let mut ticks = Vec::new();
    let mut tick = (low / step).ceil() * step;
    // As many as fit; a step that does not move the tick would go on for ever.
    while tick <= high + step * 1e-9 && ticks.len() < 20 {
        ticks.push(tick);
        tick += step;
    }
    ticks
}

/// A tick in few letters.
fn short(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        size if size >= 1e6 => format!("{}M", (value / 1e5).round() / 10.0),
        size if size >= 1e4 => format!("{}k", (value / 100.0).round() / 10.0),
        size if size >= 1e-3 => format!("{}", (value * 1e4).round() / 1e4),
        _ => format!("{value:.0e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_numbers() {
        assert_eq!(ticks(0.0, 366.0, false), [0.0, 100.0, 200.0, 300.0]);
        assert_eq!(ticks(-3.0, 0.0, true), [-3.0, -2.0, -1.0, 0.0]);
        assert!(ticks(0.0, 1e300, false).len() <= 20);
    }

    #[test]
    fn a_legend_says_which_curve_is_whose() {
        let series =
            |label: &str| Series { label: label.to_owned(), points: vec![(0.0, 1.0), (10.0, 0.001)] };
        let one = svg(&[series("a")], true);
        assert!(one.contains("1e-3") && !one.contains("legend"), "{one}");
        let two = svg(&[series("a"), series("<b>")], true);
        assert!(two.contains("&lt;b&gt;") && !two.contains("<b>"), "{two}");
    }

    #[test]
    fn flat_curves_have_a_scale_too() {
        let flat = Series { label: String::new(), points: vec![(0.0, 2.0), (1.0, 2.0)] };
        assert!(!svg(&[flat], false).contains("NaN"));
    }
}
