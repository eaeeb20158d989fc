//! Ranges of numbers.

use std::fmt;

use toml_edit::Value;

/// The range of a number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Limit {
    /// A whole number from the first to the second.
    Whole(i64, i64),
    Above(f64),
    AtLeast(f64),
    /// From the first to the second.
    Within(f64, f64),
    /// From the first up to but not the second.
    Below(f64, f64),
    /// Any finite number.
    Finite,
}

impl Limit {
    /// Whether `value` keeps to it.
    pub(super) fn allows(self, value: &Value) -> bool {
        let number = value.as_float().or_else(|| value.as_integer().map(|whole| whole as f64));
        let Some(number) = number.filter(|number| number.is_finite()) else {
            return false;
        };
        match self {
            Self::Whole(least, most) => {
                value.as_integer().is_some_and(|whole| (least..=most).contains(&whole))
            }
            Self::Above(least) => number > least,
            Self::AtLeast(least) => number >= least,
            Self::Within(least, most) => (least..=most).contains(&number),
            Self::Below(least, end) => (least..end).contains(&number),
            Self::Finite => true,
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(least, most) => write!(f, "a whole number from {least} to {most}"),
            Self::Above(least) => write!(f, "a number above {least}"),
            Self::AtLeast(least) => write!(f, "a number of at least {least}"),
            Self::Within(least, most) => write!(f, "a number from {least} to {most}"),
            Self::Below(least, end) => write!(f, "a number of at least {least} and below {end}"),
            Self::Finite => f.write_str("a finite number"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::template::{ValueKind, keys};
    use crate::{Flag, resolve};

    #[test]
    fn every_number_has_a_limit_and_the_scenario_takes_what_it_allows() {
        for key in keys().iter().filter(|key| key.path != "version") {
            match key.kind {
                ValueKind::Integer => {
                    let Some(Limit::Whole(least, most)) = key.limit else { panic!("{}", key.path) };
                    for value in [least, most] {
                        // It panics where the type is too narrow for what the limit allows.
                        let flag = Flag { key, value: Value::from(value) };
                        assert!(resolve(None, &[flag]).is_ok(), "{} = {value}", key.path);
                    }
                }
                ValueKind::Float => assert!(key.limit.is_some(), "{}", key.path),
                ValueKind::Boolean | ValueKind::Text => {
                    assert_eq!(key.limit, None, "{}", key.path)
                }
            }
        }
    }
}
