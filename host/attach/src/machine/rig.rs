//! A rig of real boards: which port, probe and power switch belong to which chip.

use super::serial::{self, FoundBoard};
use fabswarm_diagnostic::Diagnostic;
use fabswarm_sim::scenario::Scenario;
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{fs, io};

/// The file of `swarm.rig`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rig {
    chip: Vec<RigChip>,
}

/// A `[[chip]]` of the file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RigChip {
    /// In hexadecimal digits, as `boards list` prints it.
    number: String,
    /// Where its board must be.
    port: Option<PathBuf>,
    /// A part of the name of its debug probe.
    probe: Option<String>,
    off: Option<String>,
    on: Option<String>,
}

impl Rig {
    /// Reads the rig that a scenario names, if it names one.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn of(scenario: &Scenario) -> Result<Option<Self>, Diagnostic> {
        let file = &scenario.swarm.rig;
        if file.is_empty() { Ok(None) } else { Self::read(Path::new(file)).map(Some) }
    }

    fn read(path: &Path) -> Result<Self, Diagnostic> {
        let read = || {
            let rig: Self = toml_edit::de::from_str(&fs::read_to_string(path)?).map_err(io::Error::other)?;
            for RigChip { number, off, on, .. } in &rig.chip {
                let refuse = |what| Err(io::Error::other(format!("chip {number:?} {what}")));
                if u64::from_str_radix(number, 16).is_err() {
                    return refuse("is not a number in hexadecimal digits");
                }
                if off.is_some() != on.is_some() {
                    return refuse("has only one of `off` and `on`");
                }
            }
            Ok(rig)
        };
        read().map_err(|error: io::Error| {
            Diagnostic::new(
                format!("cannot use the rig {}: {}", path.display(), error.to_string().trim()),
                "each `[[chip]]` has a text `number`, and `port`, `probe` or both of `off` and `on` if you like; see docs/real-boards.md",
            )
        })
    }

    /// The ports to look at: those that `pattern` matches, or else those of the rig, if each of its chips has one.
    #[must_use]
    pub fn ports(rig: Option<&Self>, pattern: Option<&str>) -> Vec<PathBuf> {
        let of_rig = || rig?.chip.iter().map(|chip| chip.port.clone()).collect::<Option<_>>();
        match pattern {
            None => of_rig().unwrap_or_else(|| serial::ports(None)),
            Some(_) => serial::ports(pattern),
        }
    }

    /// The number of the chip behind the debug probe of this name.
    #[must_use]
    pub fn chip_behind(&self, probe: &str) -> Option<u64> {
        let is_its = |chip: &&RigChip| chip.probe.as_ref().is_some_and(|part| probe.contains(part));
        self.chip.iter().find(is_its).and_then(RigChip::number)
    }

    /// Whether any chip has a probe.
    #[must_use]
    pub fn has_probes(&self) -> bool {
        self.chip.iter().any(|chip| chip.probe.is_some())
    }

    /// The switch of a board, which must be on its port; `None` if its chip has none.
    pub(crate) fn switch(&self, board: &FoundBoard) -> Result<Option<PowerSwitch>, Diagnostic> {
        let (number, path) = (board.chip.unwrap_or_default(), board.path.display());
        let Some(chip) = self.chip.iter().find(|chip| chip.number() == board.chip) else {
            return Err(Diagnostic::new(
                format!("the rig has no chip {number:016x}, which is on {path}"),
                format!(
                    "add a `[[chip]]` with `number = \"{number:016x}\"`, or match other ports by `serial:PATTERN`"
                ),
            ));
        };
        match &chip.port {
            Some(port) if fs::canonicalize(port).ok() != fs::canonicalize(&board.path).ok() => {
                Err(Diagnostic::new(
                    format!("chip {number:016x} is on {path}, and the rig has it on {}", port.display()),
                    "plug its board in there, or correct `port`: its power switch may be another board's",
                ))
            }
            port => {
                let commands = chip.off.clone().zip(chip.on.clone());
                Ok(commands.map(|(off, on)| PowerSwitch { off, on, port: port.clone() }))
            }
        }
    }
}

impl RigChip {
    fn number(&self) -> Option<u64> {
        u64::from_str_radix(&self.number, 16).ok()
    }
}

/// Commands that cut the power of a board and restore it.
#[derive(Clone, Debug)]
pub(crate) struct PowerSwitch {
    pub(super) off: String,
    pub(super) on: String,
    /// The port, if the file names it: a board may get another name when it is back.
    pub(super) port: Option<PathBuf>,
}

/// Runs a command of the user's to its end.
pub(super) fn run(command: &str) -> Result<(), Diagnostic> {
    let failed = |reason: &str| {
        let what = format!("the rig's command `{command}` failed: {reason}");
        Diagnostic::new(what, "run it by hand, and correct the rig")
    };
    let output = Command::new("sh").args(["-c", command]).stdin(Stdio::null()).output();
    let output = output.map_err(|error| failed(&error.to_string()))?;
    if output.status.success() {
        return Ok(());
    }
    Err(failed(&format!("{}, {}", output.status, String::from_utf8_lossy(&output.stderr).trim())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rig(text: &str) -> Result<Rig, Diagnostic> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rig.toml");
        fs::write(&path, text).unwrap();
        Rig::read(&path)
    }

    #[test]
    fn ports_and_probes_are_those_of_the_chips() {
        let one = "[[chip]]\nnumber = \"a1\"\nport = \"/dev/one\"\nprobe = \"J-Link 0001\"\n";
        let other = "[[chip]]\nnumber = \"00000000000000A2\"\nport = \"/dev/two\"\n";
        let both = rig(&format!("{one}{other}")).unwrap();
        assert_eq!(Rig::ports(Some(&both), None), ["/dev/one", "/dev/two"].map(PathBuf::from));
        assert_eq!(Rig::ports(Some(&both), Some("./Cargo.*")), [PathBuf::from("./Cargo.toml")]);
        assert!(both.has_probes());
        assert_eq!(both.chip_behind("SEGGER J-Link 0001"), Some(0xA1));
        assert_eq!(both.chip_behind("SEGGER J-Link 0002"), None);
        // A chip may be on any port.
        let some = rig(&format!("{one}[[chip]]\nnumber = \"a3\"\n")).unwrap();
        assert_eq!(Rig::ports(Some(&some), None), serial::ports(None));
        assert!(!rig(other).unwrap().has_probes());
    }

    #[test]
    fn what_is_no_rig_is_refused() {
        for (text, reason) in [
            ("[[chip]]\nnumber = \"x\"", "is not a number"),
            ("[[chip]]\nnumber = \"a1\"\noff = \"true\"", "only one of"),
            ("[[chip]]\nnumber = \"a1\"\nprobes = \"\"", "unknown field"),
            ("[[chip]]\nport = \"\"", "missing field"),
        ] {
            let refusal = rig(text).unwrap_err().to_string();
            assert!(refusal.contains(reason), "{refusal}");
        }
    }
}
