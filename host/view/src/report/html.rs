//! A page of HTML. All text is escaped here and nowhere else.

use serde_json::Value;
use std::fmt::Write as _;

const STYLE: &str = include_str!("report.css");

/// A page that is being written.
pub(super) struct Page {
    text: String,
}

impl Page {
    pub(super) fn new(title: &str) -> Self {
        let title = escaped(title);
        let text = format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
             <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n"
        );
        Self { text }
    }

    pub(super) fn paragraph(&mut self, text: &str) {
        let _ = writeln!(self.text, "<p>{}</p>", escaped(text));
    }

    /// Adds a table. The first cell of a row names it.
    pub(super) fn table(
        &mut self,
        title: &str,
        header: &[&str],
        rows: impl IntoIterator<Item = Vec<String>>,
    ) {
        let _ = writeln!(self.text, "<section>\n<h2>{}</h2>\n<div class=\"wide\"><table>", escaped(title));
        if !header.is_empty() {
            let cells: String =
                header.iter().map(|cell| format!("<th scope=\"col\">{}</th>", escaped(cell))).collect();
            let _ = writeln!(self.text, "<thead><tr>{cells}</tr></thead>");
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

    /// Adds a section with markup of ours.
    pub(super) fn section(&mut self, title: &str, markup: &str) {
        let _ = writeln!(self.text, "<section>\n<h2>{}</h2>\n{markup}\n</section>", escaped(title));
    }

    /// Adds a text that is shown on request.
    pub(super) fn details(&mut self, title: &str, text: &str) {
        let (title, text) = (escaped(title), escaped(text));
        let _ = writeln!(self.text, "<details>\n<summary>{title}</summary>\n<pre>{text}</pre>\n</details>");
    }

    pub(super) fn finish(mut self) -> String {
        self.text.push_str("</body>\n</html>\n");
        self.text
    }
}

/// `text` as it appears in a page, whatever it holds.
pub(super) fn escaped(text: &str) -> String {
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

/// A value as people read it: few digits, and groups of three.
pub(super) fn number(value: &Value) -> String {
    if let Some(whole) = value.as_u64() {
        let digits = whole.to_string();
        let groups: Vec<&str> =
            digits.as_bytes().rchunks(3).rev().filter_map(|group| str::from_utf8(group).ok()).collect();
        return groups.join(" ");
    }
    match value {
        Value::Null => "–".to_owned(),
        Value::String(text) => text.clone(),
        Value::Number(value) => {
            let value = value.as_f64().unwrap_or(f64::NAN);
            match value.abs() {
                0.0 => "0".to_owned(),
                // Four digits that mean something.
                size @ 1e-3..1e5 => {
                    let digits = (3 - size.log10().floor() as i32).max(0);
                    format!("{value:.*}", digits as usize)
                }
                _ => format!("{value:.3e}"),
            }
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn numbers_are_short() {
        let shown = [
            json!(1_234_567),
            json!(999),
            json!(0.0),
            json!(0.0012345678),
            json!(2491.4773),
            json!(1.5e-9),
            json!("converged"),
        ];
        let shown = shown.map(|value| number(&value));
        assert_eq!(shown, ["1 234 567", "999", "0", "0.001235", "2491", "1.500e-9", "converged"]);
    }
}
