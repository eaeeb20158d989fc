//! A page of HTML that needs nothing but itself. All text is escaped here and nowhere else.

use std::fmt::Write as _;

use super::{DARK_PALETTE, escaped};

const STYLE: &str = include_str!("page.css");

/// A page that is being written.
#[derive(Debug)]
pub struct HtmlPage {
    text: String,
}

impl HtmlPage {
    /// A page with a title and nothing else.
    pub fn new(title: &str) -> Self {
        let title = escaped(title);
        let colour =
            |(at, colour)| format!(".s{at}.line {{ stroke: {colour}; }} .s{at}.area {{ fill: {colour}; }}\n");
        let dark: String = DARK_PALETTE.iter().enumerate().map(colour).collect();
        let text = format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
             <title>{title}</title>\n<style>\n{STYLE}@media (prefers-color-scheme: dark) {{\n{dark}}}\n</style>\n</head>\n<body>\n\
             <h1>{title}</h1>\n"
        );
        Self { text }
    }

    /// Adds links to chapters of this page: their anchors and titles.
    pub fn contents<'a>(&mut self, chapters: impl IntoIterator<Item = (&'a str, &'a str)>) {
        let link =
            |(anchor, title)| format!("<li><a href=\"#{}\">{}</a></li>", escaped(anchor), escaped(title));
        let links: String = chapters.into_iter().map(link).collect();
        let _ = writeln!(self.text, "<ul>{links}</ul>");
    }

    /// Begins a chapter that can be linked to.
    pub fn chapter(&mut self, anchor: &str, title: &str) {
        let _ =
            writeln!(self.text, "<h2 id=\"{}\" class=\"chapter\">{}</h2>", escaped(anchor), escaped(title));
    }

    /// Adds a paragraph.
    pub fn paragraph(&mut self, text: &str) {
        let _ = writeln!(self.text, "<p>{}</p>", escaped(text));
    }

    /// Adds a list.
    pub fn list<'a>(&mut self, items: impl IntoIterator<Item = &'a String>) {
        let items: String = items.into_iter().map(|item| format!("<li>{}</li>", escaped(item))).collect();
        let _ = writeln!(self.text, "<ul>{items}</ul>");
    }

    /// Adds a table. The first cell of a row names it.
    pub fn table<'a>(
        &mut self,
        title: &str,
        header: impl IntoIterator<Item = &'a str>,
        rows: impl IntoIterator<Item = Vec<String>>,
    ) {
        let _ = writeln!(self.text, "<section>\n<h2>{}</h2>\n<div class=\"wide\"><table>", escaped(title));
        let head = header.into_iter().map(|cell| format!("<th scope=\"col\">{}</th>", escaped(cell)));
        let head: String = head.collect();
        if !head.is_empty() {
            let _ = writeln!(self.text, "<thead><tr>{head}</tr></thead>");
        }
        self.text.push_str("<tbody>\n");
        for row in rows {
            let cells = row.iter().enumerate().map(|(column, cell)| match column {
                0 => format!("<th scope=\"row\">{}</th>", escaped(cell)),
                _ => format!("<td>{}</td>", escaped(cell)),
            });
            let _ = writeln!(self.text, "<tr>{}</tr>", cells.collect::<String>());
        }
        self.text.push_str("</tbody></table></div>\n</section>\n");
    }

    /// Adds a figure.
    pub fn figure(&mut self, svg: &str) {
        let _ = writeln!(self.text, "<section>\n{svg}</section>");
    }

    /// Adds a section with markup of ours.
    pub fn section(&mut self, title: &str, markup: &str) {
        let _ = writeln!(self.text, "<section>\n<h2>{}</h2>\n{markup}\n</section>", escaped(title));
    }

    /// Adds a text that is shown on request.
    pub fn details(&mut self, title: &str, text: &str) {
        let (title, text) = (escaped(title), escaped(text));
        let _ = writeln!(self.text, "<details>\n<summary>{title}</summary>\n<pre>{text}</pre>\n</details>");
    }

    /// The whole page.
    #[must_use]
    pub fn finish(mut self) -> String {
        self.text.push_str("</body>\n</html>\n");
        self.text
    }
}
