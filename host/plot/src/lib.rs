//! Plots as SVG and PNG: the bundled font, colours, and an axis in powers of ten.

pub mod convergence;
mod decades;
pub mod spread;

pub use decades::{Decades, power_of_ten};

use std::sync::Once;

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::{FontStyle, register_font};

// Okabe and Ito's colours, which colour-blind readers can distinguish.
/// The first curve.
pub const BLUE: RGBColor = RGBColor(0, 114, 178);
/// The second.
pub const VERMILION: RGBColor = RGBColor(213, 94, 0);
/// The third.
pub const GREEN: RGBColor = RGBColor(0, 158, 115);
/// Text and axes.
pub const INK: RGBColor = RGBColor(40, 40, 40);
/// Grid lines.
pub const FAINT: RGBColor = RGBColor(228, 228, 228);

/// Pixels of the PNG for one unit of the SVG.
const PNG_SCALE: u32 = 2;
/// Each pixel of the PNG is the mean of this many squared: plotters does not smooth thick lines.
const OVERSAMPLING: u32 = 2;

/// Why a plot cannot be drawn.
pub type DrawingFailure = Box<dyn std::error::Error>;

/// Something that can be drawn at any scale. Drawings of this crate have methods `svg` and `png` of their own, so that drawing is
/// compiled here and not where they are used.
pub trait Drawing {
    /// Width and height in units.
    fn size(&self) -> (u32, u32);

    /// Draws it with `scale` pixels per unit.
    ///
    /// # Errors
    /// When the backend cannot draw.
    fn draw<B: DrawingBackend>(&self, area: &DrawingArea<B, Shift>, scale: u32) -> Result<(), DrawingFailure>
    where
        B::ErrorType: 'static;
}

/// The text of an SVG file.
///
/// # Errors
/// When it cannot be drawn.
pub fn svg(drawing: &impl Drawing) -> Result<String, DrawingFailure> {
    register_fonts();
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, drawing.size()).into_drawing_area();
        drawing.draw(&area, 1)?;
        area.present()?;
    }
    Ok(svg)
}

/// The bytes of a PNG file.
///
/// # Errors
/// When it cannot be drawn.
pub fn png(drawing: &impl Drawing) -> Result<Vec<u8>, DrawingFailure> {
    register_fonts();
    let scale = PNG_SCALE * OVERSAMPLING;
    let (units_wide, units_high) = drawing.size();
    let (width, height) = (units_wide * scale, units_high * scale);
    let mut fine = vec![255; (width * height * 3) as usize];
    {
        let area = BitMapBackend::with_buffer(&mut fine, (width, height)).into_drawing_area();
        drawing.draw(&area, scale)?;
        area.present()?;
    }
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, units_wide * PNG_SCALE, units_high * PNG_SCALE);
    encoder.set_color(png::ColorType::Rgb);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&shrink(&fine, width as usize))?;
    writer.finish()?;
    Ok(bytes)
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
