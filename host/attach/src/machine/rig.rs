//! A rig of real boards: which port and power switch belong to which chip.

use super::power_switch::PowerSwitch;
use super::serial::FoundBoard;
use fabswarm_diagnostic::Diagnostic;
use serde::Deserialize;
use std::path::Path;
use std::{fs, io};

/// The file of `swarm.rig`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rig {
    chip: Vec<PowerSwitch>,
}

impl Rig {
    /// Reads the file at `path`.
    pub(crate) fn read(path: &Path) -> Result<Self, Diagnostic> {
        let read = || toml_edit::de::from_str(&fs::read_to_string(path)?).map_err(io::Error::other);
        read().map_err(|error| {
            Diagnostic::new(
                format!("cannot use the rig {}: {}", path.display(), error.to_string().trim()),
                "each `[[chip]]` has texts `number`, `off`, `on`, and `port` if you like; see docs/real-boards.md",
            )
        })
    }

    /// The switch of a board, which must be on its port.
    pub(crate) fn switch(&self, board: &FoundBoard) -> Result<Box<PowerSwitch>, Diagnostic> {
        let number = |switch: &PowerSwitch| u64::from_str_radix(&switch.number, 16).ok();
        let (chip, path) = (board.chip.unwrap_or_default(), board.path.display());
        let Some(switch) = self.chip.iter().find(|switch| number(switch) == board.chip) else {
            return Err(Diagnostic::new(
                format!("the rig has no power switch for chip {chip:016x} on {path}"),
                format!(
                    "add a `[[chip]]` with `number = \"{chip:016x}\"`, or match other ports by `serial:PATTERN`"
                ),
            ));
        };
        match switch.port() {
            Some(port) if fs::canonicalize(port).ok() != fs::canonicalize(&board.path).ok() => {
                Err(Diagnostic::new(
                    format!("chip {chip:016x} is on {path}, and the rig has it on {}", port.display()),
                    "plug its board in there, or correct `port`: its power switch may be another board's",
                ))
            }
            _ => Ok(Box::new(switch.clone())),
        }
    }
}
