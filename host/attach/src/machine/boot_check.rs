//! The boot packet of a board: whether it is the expected one, and why it started.

use super::BoardLink;
use crate::error;
use fabswarm_diagnostic::Diagnostic;
use fabswarm_shared::BUILD_ID;
use fabswarm_shared::packet::{self, Boot, ResetCause};
use fabswarm_shared::provisioning;

/// A text of a board in one line, without what a terminal would obey. A panic's comes from memory that may hold anything.
#[must_use]
pub fn printable(text: &str) -> String {
    text.chars().map(|character| if character.is_control() { ' ' } else { character }).collect()
}

/// Why a board started, and how its last run ended.
pub(crate) fn start_cause(boot: &Boot) -> String {
    let panic = boot.panic.map(|message| format!("; its last run ended in a panic: {}", printable(message)));
    format!("started {}{}", boot.reset, panic.unwrap_or_default())
}

/// Whether a fault of its firmware made it start.
pub(crate) const fn has_failed(boot: &Boot) -> bool {
    boot.panic.is_some() || matches!(boot.reset, ResetCause::Watchdog | ResetCause::LockUp)
}

/// Checks that this is the board that was started, with the page that was written.
pub(crate) fn check_boot(link: &BoardLink, boot: &Boot) -> Result<(), Diagnostic> {
    let agent = link.agent;
    if boot.schema != packet::SCHEMA {
        let (board, host) = (boot.schema, packet::SCHEMA);
        let what =
            format!("the board of agent {agent} has packet schema {board:#010x}, the host {host:#010x}");
        return Err(Diagnostic::new(what, error::SAME_SOURCES));
    }
    if boot.board != link.board {
        let (found, expected) = (boot.board, &link.board);
        let what = format!("the board of agent {agent} runs firmware of `{found}` instead of `{expected}`");
        return Err(Diagnostic::new(what, format!("build the firmware in boards/{expected}")));
    }
    if boot.build != BUILD_ID {
        let build = boot.build;
        let what =
            format!("the board of agent {agent} runs build {build:016x}, the host build {BUILD_ID:016x}");
        return Err(Diagnostic::new(what, "build both from the same sources"));
    }
    if link.chip().is_some_and(|chip| boot.chip != Some(chip)) {
        return Err(error::other_board(agent));
    }
    let identity = boot.page.map_err(|source| refused(agent, link.is_serial(), source))?;
    if identity.page_crc != link.page_crc {
        let what = format!("the board of agent {agent} has another provisioning record than this run wrote");
        return Err(Diagnostic::new(what, "check that no other program writes to TMPDIR, and run again"));
    }
    Ok(())
}

/// The error for a board that refused its page. A board that is not real gets its page from the run itself.
fn refused(agent: u16, is_real: bool, source: provisioning::Error) -> Diagnostic {
    use provisioning::Error::{
        Checksum, InService, Malformed, Misaligned, Missing, OldKey, OtherBoard, OtherChip, OtherProblem,
        Storage, TooLarge, Truncated,
    };
    let remedy = match source {
        Missing | Truncated | Checksum | Malformed | Storage if !is_real => {
            "run again: the record of this board is a file that each run writes to TMPDIR; check that its disk is not full and nothing else writes there"
        }
        OtherProblem => {
            "build the board's image with its problem: a Cargo feature for each of ours, or FABSWARM_PROBLEM for one of your own"
        }
        OldKey { .. } => {
            "make its record anew with the newest key of the swarm: `fabswarm boards provision --swarm FILE`"
        }
        OtherChip => {
            "a record is bound to one chip: make one for this board with `fabswarm boards provision --swarm FILE`"
        }
        OtherBoard => "flash the image and the record of this kind of board",
        TooLarge => "lower swarm.agents or the sizes of the problem, or build the firmware for more scalars",
        Storage => "erase the board's flash and provision it anew, or replace the board",
        Missing | Truncated | Checksum | Misaligned | Malformed | InService => {
            "write its record again: `fabswarm boards provision --swarm FILE`"
        }
        _ => error::SAME_SOURCES,
    };
    Diagnostic::new(format!("the board of agent {agent} refused its provisioning record: {source}"), remedy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boards_write_no_commands_to_a_terminal() {
        assert_eq!(printable("pico\x1b[2J\n\u{9b}é"), "pico [2J  é");
    }

    #[test]
    fn a_refused_page_has_the_remedy_for_its_cause() {
        let told = |source: provisioning::Error| refused(3, true, source).to_string();
        let damaged = told(provisioning::Error::Checksum);
        assert!(damaged.contains("fabswarm boards provision"), "{damaged}");
        // Nobody can provision a process.
        let emulated = refused(3, false, provisioning::Error::Checksum).to_string();
        assert!(emulated.contains("TMPDIR") && !emulated.contains("provision "), "{emulated}");
        let old = told(provisioning::Error::OldKey { page: 1, used: 2 });
        assert!(old.contains("key number 1") && old.contains("newest key"), "{old}");
        let other = told(provisioning::Error::OtherChip);
        assert!(other.contains("another chip") && other.contains("bound to one chip"), "{other}");
        let format = told(provisioning::Error::Version { page: 1, firmware: 2 });
        assert!(format.ends_with("build host and firmware from the same sources"), "{format}");
    }
}
