//! The convergence plot, as SVG and PNG.

mod decades;

use std::sync::Once;

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{FontStyle, register_font};

use super::folder::RunFolder;
use super::{Curve, Error, Metrics};
use decades::Decades;

/// What stands above the plot.
#[derive(Clone, Debug)]
pub struct Caption {
    /// What was run.
    pub title: String,
    /// With which constants.
    pub subtitle: String,
}

const WIDTH: u32 = 960;
const HEIGHT: u32 = 620;
/// Pixels of the PNG for one unit of the SVG.
const PNG_SCALE: u32 = 2;
/// Each pixel of the PNG is the mean of this many squared: plotters does not smooth thick lines.
const OVERSAMPLING: u32 = 2;

// Okabe and Ito's colours: told apart by colour-blind readers too.
const BLUE: RGBColor = RGBColor(0, 114, 178);
const VERMILION: RGBColor = RGBColor(213, 94, 0);
const GREEN: RGBColor = RGBColor(0, 158, 115);
const INK: RGBColor = RGBColor(40, 40, 40);
const FAINT: RGBColor = RGBColor(228, 228, 228);

type Failure = Box<dyn std::error::Error>;

/// Draws `curve` into `convergence.svg` and `convergence.png`.
pub(super) fn write(
    folder: &RunFolder,
    caption: &Caption,
    one_percent: Option<u64>,
    curve: &Curve,
) -> Result<(), Error> {
    let undrawable = |name: &str| {
        let path = folder.path().join(name);
        move |error: Failure| Error::Undrawable { path, reason: error.to_string() }
    };
    let figure = Figure { caption, one_percent, curve };
    let svg = figure.svg().map_err(undrawable("convergence.svg"))?;
    folder.write("convergence.svg", svg.as_bytes())?;
    let png = figure.png().map_err(undrawable("convergence.png"))?;
    folder.write("convergence.png", &png)
}

struct Figure<'a> {
    caption: &'a Caption,
    one_percent: Option<u64>,
    curve: &'a Curve,
}

/// One curve of a panel.
struct Line {
    name: &'static str,
    colour: RGBColor,
    value: fn(&Metrics) -> f64,
}

impl Figure<'_> {
    fn svg(&self) -> Result<String, Failure> {
        let mut svg = String::new();
        self.draw(SVGBackend::with_string(&mut svg, (WIDTH, HEIGHT)).into_drawing_area(), 1)?;
        Ok(svg)
    }

    fn png(&self) -> Result<Vec<u8>, Failure> {
        let scale = PNG_SCALE * OVERSAMPLING;
        let (width, height) = (WIDTH * scale, HEIGHT * scale);
        let mut fine = vec![255; (width * height * 3) as usize];
        self.draw(BitMapBackend::with_buffer(&mut fine, (width, height)).into_drawing_area(), scale)?;

        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(&mut bytes, WIDTH * PNG_SCALE, HEIGHT * PNG_SCALE);
        encoder.set_color(png::ColorType::Rgb);
        let mut writer = encoder.write_header()?;
        writer.write_image_data(&shrink(&fine, width as usize))?;
        writer.finish()?;
        Ok(bytes)
    }

    /// Draws errors in the upper panel and the tracking defect in the lower: they are decades apart.
    fn draw<B: DrawingBackend>(&self, area: DrawingArea<B, Shift>, scale: u32) -> Result<(), Failure>
    where
        B::ErrorType: 'static,
    {
        register_fonts();
        let unit = |units: u32| units * scale;
        area.fill(&WHITE)?;
        let title = ("sans-serif", unit(19)).into_font().color(&INK);
        let subtitle = ("sans-serif", unit(13)).into_font().color(&INK.mix(0.75));
        let left = unit(76) as i32;
        area.draw_text(&self.caption.title, &title, (left, unit(16) as i32))?;
        area.draw_text(&self.caption.subtitle, &subtitle, (left, unit(42) as i32))?;
        let (_, panels) = area.split_vertically(unit(66));
        let (upper, lower) = panels.split_vertically(unit(374));
        self.panel(
            &upper,
            scale,
            "relative to the solution",
            None,
            &[
                Line {
                    name: "error: mean distance to the solution",
                    colour: BLUE,
                    value: |metrics| metrics.error,
                },
                Line {
                    name: "consensus error: distance between agents",
                    colour: VERMILION,
                    value: |metrics| metrics.consensus_error,
                },
            ],
        )?;
        self.panel(
            &lower,
            scale,
            "relative",
            Some("round"),
            &[Line {
                name: "tracking defect: trackers against gradients",
                colour: GREEN,
                value: |metrics| metrics.tracking_defect,
            }],
        )?;
        area.present()?;
        Ok(())
    }

    fn panel<B: DrawingBackend>(
        &self,
        area: &DrawingArea<B, Shift>,
        scale: u32,
        y_title: &str,
        x_title: Option<&str>,
        lines: &[Line],
    ) -> Result<(), Failure>
    where
        B::ErrorType: 'static,
    {
        let unit = |units: u32| units * scale;
        let last_round = self.curve.points().last().map_or(1, |last| last.round.max(1)) as f64;
        let decades = Decades::around(lines.iter().flat_map(|line| self.curve.points().map(line.value)));
        let (lowest, highest) = decades.ends();
        let mut chart = ChartBuilder::on(area)
            .margin_right(unit(28))
            .margin_top(unit(6))
            .set_label_area_size(LabelAreaPosition::Left, unit(76))
            .set_label_area_size(
                LabelAreaPosition::Bottom,
                if x_title.is_some() { unit(50) } else { unit(12) },
            )
            .build_cartesian_2d(0.0..last_round, decades)?;
        let label = ("sans-serif", unit(13)).into_font().color(&INK);
        let mut mesh = chart.configure_mesh();
        mesh.axis_style(INK.stroke_width(scale))
            .bold_line_style(FAINT.stroke_width(scale))
            .light_line_style(TRANSPARENT)
            .label_style(label.clone())
            .axis_desc_style(label.clone())
            .y_desc(y_title)
            .x_labels(if x_title.is_some() { 8 } else { 8 })
            .y_label_formatter(&|log| decades::power_of_ten(*log))
            .x_label_formatter(&|round| format!("{round:.0}"));
        if let Some(x_title) = x_title {
            mesh.x_desc(x_title);
        } else {
            mesh.x_label_formatter(&|_| String::new());
        }
        mesh.draw()?;

        if x_title.is_none() && (lowest..=highest).contains(&-2.0) {
            chart.draw_series(DashedLineSeries::new(
                [(0.0, -2.0), (last_round, -2.0)],
                unit(6),
                unit(4),
                INK.stroke_width(scale),
            ))?;
            let text =
                ("sans-serif", unit(12)).into_font().color(&INK).pos(Pos::new(HPos::Left, VPos::Bottom));
            chart.draw_series(std::iter::once(
                EmptyElement::at((0.0, -2.0)) + Text::new("1 %", (unit(6) as i32, -(unit(3) as i32)), text),
            ))?;
            if let Some(round) = self.one_percent {
                let text =
                    ("sans-serif", unit(12)).into_font().color(&BLUE).pos(Pos::new(HPos::Left, VPos::Bottom));
                chart.draw_series(std::iter::once(
                    EmptyElement::at((round as f64, -2.0))
                        + Circle::new((0, 0), unit(4), BLUE.filled())
                        + Text::new(format!("round {round}"), (unit(7) as i32, -(unit(5) as i32)), text),
                ))?;
            }
        }
        for line in lines {
            // Zero has no logarithm: the curve pauses there.
            let points: Vec<(f64, f64)> = self
                .curve
                .points()
                .map(|metrics| (metrics.round as f64, (line.value)(metrics).log10()))
                .filter(|(_, log)| log.is_finite())
                .map(|(round, log)| (round, log.max(lowest)))
                .collect();
            let colour = line.colour;
            chart
                .draw_series(LineSeries::new(points, colour.stroke_width(2 * scale)))?
                .label(line.name)
                .legend(move |(x, y)| {
                    PathElement::new([(x, y), (x + unit(18) as i32, y)], colour.stroke_width(2 * scale))
                });
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperRight)
            .legend_area_size(unit(24))
            .margin(unit(6))
            .background_style(WHITE.mix(0.85))
            .label_font(label)
            .draw()?;
        Ok(())
    }
}

/// Averages squares of pixels into one each.
fn shrink(fine: &[u8], width: usize) -> Vec<u8> {
    let side = OVERSAMPLING as usize;
    let mut coarse = Vec::with_capacity(fine.len() / (side * side));
    for rows in fine.chunks_exact(width * 3 * side) {
        for column in 0..width / side {
            for channel in 0..3 {
                let at = |row: usize, offset: usize| {
                    rows[(row * width + column * side + offset) * 3 + channel] as usize
                };
                let sum: usize = (0..side).flat_map(|row| (0..side).map(move |offset| at(row, offset))).sum();
                coarse.push((sum / (side * side)) as u8);
            }
        }
    }
    coarse
}

/// Registers the bundled font, so that plots look the same on a machine that has none.
fn register_fonts() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        const FONT: &[u8] = include_bytes!("font/DejaVuSans-subset.ttf");
        assert!(
            register_font("sans-serif", FontStyle::Normal, FONT).is_ok(),
            "the bundled font is a valid font"
        );
    });
}
