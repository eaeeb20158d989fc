//! Values of keys that are given outside a file: flags of the command line, and arguments of functions.

use std::num::IntErrorKind::{NegOverflow, PosOverflow};

use toml_edit::Value;

use super::command::ScenarioCommand;
use super::error::{Error, ValueSource};
use super::limits::Limit;
use super::settings::check;
use super::suggest::{FlagSuggestion, suggest_flag};
use super::template::{ScenarioKey, ValueKind};

/// A flag that was given on the command line.
#[derive(Clone, Debug)]
pub struct Flag {
    /// The key it sets.
    pub key: &'static ScenarioKey,
    /// The new value.
    pub value: Value,
}

impl Flag {
    /// Reads the value of a flag and checks it as one in a file is checked.
    ///
    /// # Errors
    /// When it is of another type than the key, is none of its words, or is out of its range.
    pub fn parse(key: &'static ScenarioKey, text: &str) -> Result<Self, Error> {
        let number = || text.parse::<f64>().map(Value::from).ok();
        let value = match key.kind {
            ValueKind::Integer => text.parse::<i64>().map(Value::from).ok().or_else(number),
            ValueKind::Float => number(),
            ValueKind::Boolean => text.parse::<bool>().map(Value::from).ok(),
            ValueKind::Text => None,
        };
        let origin = ValueSource::Flag(key.flag.to_owned());
        if let (Some(limit @ Limit::Whole(..)), Err(error)) = (key.limit, text.parse::<i64>())
            && matches!(error.kind(), PosOverflow | NegOverflow)
        {
            let what = format!("{} = {text} is out of range", key.path);
            return Err(origin.refuse(what, format!("give {limit}")));
        }
        let flag = Self { key, value: value.unwrap_or_else(|| Value::from(text)) };
        check(key, &flag.value, &origin)?;
        Ok(flag)
    }

    /// The flag of `command` called `name`, with underscores as an argument of a function has them.
    ///
    /// # Errors
    /// When the command has no such flag, or as [`Flag::parse`].
    pub fn named(command: ScenarioCommand, name: &str, value: Value) -> Result<Self, Error> {
        let origin = ValueSource::Argument(name.to_owned());
        // `lambda` is a keyword of Python.
        let flag = if name == "lam" { "lambda".to_owned() } else { name.replace('_', "-") };
        let Some(key) = command.keys().find(|key| key.flag == flag) else {
            let flags: Vec<&str> = command.keys().map(|key| key.flag).collect();
            let remedy = match suggest_flag(Some(command), &flags, &flag) {
                FlagSuggestion::Flags(names) => {
                    FlagSuggestion::question(&names, |name| name.replace('-', "_"))
                }
                FlagSuggestion::OtherCommand(other) => format!("`{}` has it", other.name()),
                FlagSuggestion::Unknown => {
                    format!(
                        "the flags of `fabswarm {} --help`, with underscores, are all there are",
                        command.name()
                    )
                }
            };
            return Err(origin.refuse("there is no such argument", remedy));
        };
        check(key, &value, &origin)?;
        Ok(Self { key, value })
    }
}
