//! The boot packet of a board: whether it is the expected one, and why it started.

use super::BoardLink;
use crate::error;
use fabswarm_diagnostic::Diagnostic;
use fabswarm_shared::BUILD_ID;
use fabswarm_shared::packet::{self, Boot, ResetCause};
use fabswarm_shared::provisioning;

/// The message of the panic that ended a board's last run, if one did, in one line: it comes from memory that may hold anything.
pub(crate) fn last_panic(boot: &Boot) -> Option<String> {
    boot.panic.map(printable)
}

/// A text of a board in one line, without what a terminal would obey.
#[must_use]
pub fn printable(text: &str) -> String {
    text.chars().map(|character| if character.is_control() { ' ' } else { character }).collect()
}

/// Why a board started, and how its last run ended.
pub(crate) fn start_cause(boot: &Boot) -> String {
    let panic = last_panic(boot).map(|message| format!("; its last run ended in a panic: {message}"));
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
        let what = format!(
            "the board of agent {agent} has packet schema {:#010x}, the host {:#010x}",
            boot.schema,
            packet::SCHEMA
        );
        return Err(Diagnostic::new(what, error::SAME_SOURCES));
    }
    if boot.board != link.board {
        let (found, expected) = (boot.board, &link.board);
        return Err(Diagnostic::new(
            format!("the board of agent {agent} runs firmware of `{found}` instead of `{expected}`"),
            format!("build the firmware in boards/{expected}"),
        ));
    }
    if boot.build != BUILD_ID {
        return Err(Diagnostic::new(
            format!(
                "the board of agent {agent} runs build {:016x}, the host build {BUILD_ID:016x}",
                boot.build
            ),
            "build both from the same sources",
        ));
    }
    if link.chip().is_some_and(|chip| boot.chip != Some(chip)) {
        return Err(error::other_board(agent));
    }
    let identity = boot.page.map_err(|source| refused(agent, link.is_serial(), source))?;
    if identity.page_crc != link.page_crc {
        return Err(Diagnostic::new(
            format!("the board of agent {agent} has another provisioning record than this run wrote"),
            "check that no other program writes to TMPDIR, and run again",
        ));
    }
    Ok(())
}

/// The error for a board that refused its page. A board that is not real gets its page from the run itself.
fn refused(agent: u16, is_real: bool, source: provisioning::Error) -> Diagnostic {
    let remedy = match source {
        provisioning::Error::Missing
        | provisioning::Error::Truncated
        | provisioning::Error::Checksum
        | provisioning::Error::Malformed
        | provisioning::Error::Storage
            if !is_real =>
        {
            "run again: the record of this board is a file that each run writes to TMPDIR; check that its disk is not full and nothing else writes there"
        }
        provisioning::Error::OtherProblem => {
            "build the board's image with its problem: a Cargo feature for each of ours, or FABSWARM_PROBLEM for one of your own"
        }
        provisioning::Error::OldKey { .. } => {
            "make its record anew with the newest key of the swarm: `fabswarm boards provision --swarm FILE`"
        }
        provisioning::Error::OtherChip => {
            "a record is bound to one chip: make one for this board with `fabswarm boards provision --swarm FILE`"
        }
        provisioning::Error::OtherBoard => "flash the image and the record of this kind of board",
        provisioning::Error::TooLarge => {
            "lower swarm.agents or the sizes of the problem, or build the firmware for more scalars"
        }
        provisioning::Error::Storage => "erase the board's flash and provision it anew, or replace the board",
        provisioning::Error::Missing
        | provisioning::Error::Truncated
        | provisioning::Error::Checksum
        | provisioning::Error::Misaligned
        | provisioning::Error::Malformed
        | provisioning::Error::InService => {
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
