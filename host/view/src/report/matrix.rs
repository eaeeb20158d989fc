//! The loss of each link as a matrix: a square per directed link.

use serde_json::Value;
use std::fmt::Write as _;

/// Squares of larger swarms would be too small.
const MOST_AGENTS: usize = 64;

/// The matrix of the links of a view, or why there is none.
pub(super) fn of_view(view: &Value) -> String {
    let agents = view["agents"]["condition"].as_str().unwrap_or_default().len();
    let numbers: Vec<i64> =
        view["links"].as_array().into_iter().flatten().map(|value| value.as_i64().unwrap_or(-1)).collect();
    if agents > MOST_AGENTS {
        return format!("<p>A matrix of {agents} agents would not be readable; the log has the links.</p>");
    }
    if numbers.is_empty() {
        return "<p>The log holds no links.</p>".to_owned();
    }
    const CELL: usize = 12;
    const MARGIN: usize = 30;
    let side = MARGIN + agents * CELL;
    let mut text = format!(
        "<p>Share of copies that each link lost lately: a row per receiver, a column per sender. A dot is a link over which a copy \
         arrived in the last slot; an empty square is a link that never came up.</p>\n\
         <svg class=\"matrix\" viewBox=\"0 0 {side} {side}\" role=\"img\">\n"
    );
    for agent in (0..agents).step_by(agents.div_ceil(16).max(1)) {
        let at = MARGIN + agent * CELL + CELL / 2;
        let _ = writeln!(text, "<text x=\"{at}\" y=\"{}\" text-anchor=\"middle\">{agent}</text>", MARGIN - 6);
        let _ =
            writeln!(text, "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{agent}</text>", MARGIN - 6, at + 4);
    }
    for link in numbers.chunks_exact(5) {
        let &[sender, receiver, is_up, loss, _] = link else { continue };
        let (Ok(sender), Ok(receiver)) = (usize::try_from(sender), usize::try_from(receiver)) else {
            continue;
        };
        if sender >= agents || receiver >= agents {
            continue;
        }
        let (x, y) = (MARGIN + sender * CELL, MARGIN + receiver * CELL);
        let loss = loss.clamp(0, 100);
        // From teal over yellow to red; the lightness alone tells colour-blind readers the loss.
        let hue = 170 - 170 * loss / 100;
        let light = 72 - 30 * loss / 100;
        let _ = writeln!(
            text,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{0}\" height=\"{0}\" fill=\"hsl({hue} 60% {light}%)\"><title>{sender} → {receiver}: {loss} % lost</title></rect>",
            CELL - 1
        );
        if is_up == 1 {
            let centre = CELL / 2;
            let _ = writeln!(
                text,
                "<circle cx=\"{}\" cy=\"{}\" r=\"2\" fill=\"#1c2430\"/>",
                x + centre,
                y + centre
            );
        }
    }
    text.push_str("</svg>");
    text
}
