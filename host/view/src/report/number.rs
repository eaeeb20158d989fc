//! Formats numbers for a report.

use serde_json::Value;

/// Formats a value with few digits and groups of three.
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
