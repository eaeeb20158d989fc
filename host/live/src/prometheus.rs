//! The newest row of the metrics, as Prometheus reads it.

use serde_json::Value;
use std::fmt::Write as _;

/// The lines for a row that a run published.
pub(crate) fn text(row: &str) -> String {
    let mut text = String::new();
    let Ok(Value::Object(row)) = serde_json::from_str(row) else { return text };
    for (name, value) in &row {
        match value {
            Value::Number(number) => {
                let _ = writeln!(text, "# TYPE fabswarm_{name} gauge\nfabswarm_{name} {number}");
            }
            Value::Object(frames) if name == "frames" => {
                let _ = writeln!(text, "# TYPE fabswarm_frames_total counter");
                for (outcome, count) in frames {
                    let _ = writeln!(text, "fabswarm_frames_total{{outcome=\"{}\"}} {count}", label(outcome));
                }
            }
            _ => {}
        }
    }
    text
}

/// A label's value, in which a quote would end it.
fn label(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    #[test]
    fn numbers_become_gauges_and_frames_a_counter() {
        let row =
            r#"{"type":"metrics","round":7,"gradient_norm":0.5,"x_norm":null,"frames":{"sent":70,"a\"b":1}}"#;
        assert_eq!(
            super::text(row),
            "# TYPE fabswarm_frames_total counter\n\
             fabswarm_frames_total{outcome=\"a\\\"b\"} 1\nfabswarm_frames_total{outcome=\"sent\"} 70\n\
             # TYPE fabswarm_gradient_norm gauge\nfabswarm_gradient_norm 0.5\n\
             # TYPE fabswarm_round gauge\nfabswarm_round 7\n"
        );
        assert_eq!(super::text("nonsense"), "");
    }
}
