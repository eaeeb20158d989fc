//! What stands above the charts of a figure: its title, and a name for each colour.

use fabswarm_plot::{DrawingFailure, INK};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

const LINE: u32 = 22;
const HEAD: u32 = 40;
const MARGIN: u32 = 16;
/// Least room for a name, and what a letter and what stands before a name take.
const COLUMN: u32 = 230;
const LETTER: u32 = 6;
const BEFORE_NAME: u32 = 40;

/// The head of a figure, `width` units wide.
#[derive(Debug)]
pub(crate) struct Legend<'a> {
    pub(crate) title: &'a str,
    pub(crate) width: u32,
    /// Names with their colours, each once.
    pub(crate) entries: Vec<(&'a str, RGBColor)>,
}

impl Legend<'_> {
    /// Room for each name.
    fn column(&self) -> u32 {
        let longest = self.entries.iter().map(|(label, _)| label.chars().count() as u32).max();
        COLUMN.max(BEFORE_NAME + LETTER * longest.unwrap_or(0))
    }

    fn columns(&self) -> u32 {
        ((self.width - 2 * MARGIN) / self.column()).max(1)
    }

    /// Where the charts begin.
    pub(crate) fn height(&self) -> u32 {
        HEAD + (self.entries.len() as u32).div_ceil(self.columns()) * LINE + 8
    }

    /// The colour of a name.
    pub(crate) fn colour(&self, label: &str) -> RGBColor {
        self.entries.iter().find(|(name, _)| *name == label).map_or(INK, |(_, colour)| *colour)
    }

    pub(crate) fn draw<B: DrawingBackend>(
        &self,
        area: &DrawingArea<B, Shift>,
        scale: u32,
    ) -> Result<(), DrawingFailure>
    where
        B::ErrorType: 'static,
    {
        let unit = |units: u32| units * scale;
        let title = ("sans-serif", unit(17)).into_font().color(&INK);
        area.draw_text(self.title, &title, (unit(MARGIN) as i32, unit(12) as i32))?;
        let text = ("sans-serif", unit(12)).into_font().color(&INK).pos(Pos::new(HPos::Left, VPos::Center));
        for (at, (label, colour)) in (0..).zip(&self.entries) {
            let (line, column) = (at / self.columns(), at % self.columns());
            let left = unit(MARGIN + self.column() * column) as i32;
            let middle = unit(HEAD + LINE * line + LINE / 2) as i32;
            let stroke = [(left, middle), (left + unit(20) as i32, middle)];
            area.draw(&PathElement::new(stroke, colour.stroke_width(3 * scale)))?;
            area.draw_text(label, &text, (left + unit(26) as i32, middle))?;
        }
        Ok(())
    }
}
