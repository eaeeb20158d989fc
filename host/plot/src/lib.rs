//! Figures as SVG, and the HTML pages that hold them: one palette, one rule for ticks, one function that escapes text.
//!
//! Every element of a figure has its colour as an attribute, for files, and a class, by which a page gives it another in dark mode.

mod figure;
mod page;
mod scale;

pub use figure::{Bar, Bars, Figure, LinePoint, Panel, PlotLine, Threshold};
pub use page::HtmlPage;
pub use scale::Scale;

/// Okabe and Ito's colours, which colour-blind readers can distinguish, and four more. Lines and bars name them by index.
pub const PALETTE: [&str; 10] = [
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#787878", "#6e3ca0", "#282828",
    "#8c564b",
];
/// The palette on a dark page.
const DARK_PALETTE: [&str; 10] = [
    "#5aaee8", "#f58d4a", "#3fcb9f", "#e5a5c8", "#f0bd45", "#9bd7f7", "#a8a8a8", "#b692e6", "#ececec",
    "#cb9c90",
];
const INK: &str = "#282828";
const GRID: &str = "#e4e4e4";

/// `text` as it appears in HTML and SVG, whatever it holds.
pub fn escaped(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut escaped, letter| {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            letter => escaped.push(letter),
        }
        escaped
    })
}
