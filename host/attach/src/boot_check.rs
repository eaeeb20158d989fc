//! The boot packet of a board: whether it is the expected one, and why it started.

use super::{Error, board_machine::BoardMachine};
use fabswarm_shared::BUILD_ID;
use fabswarm_shared::packet::{self, Boot, ResetCause};

/// What the panic said that ended a board's last run, if one did, in one line: it comes out of memory that may hold anything.
#[must_use]
pub fn last_panic(boot: &Boot) -> Option<String> {
    let in_line = |character: char| if character.is_control() { ' ' } else { character };
    Some(boot.panic?.chars().map(in_line).collect())
}

/// Why a board started, and how its last run ended.
pub(super) fn start_cause(boot: &Boot) -> String {
    let panic = last_panic(boot).map(|message| format!("; its last run ended in a panic: {message}"));
    format!("started {}{}", boot.reset, panic.unwrap_or_default())
}

/// Whether its firmware is why it started.
pub(super) const fn has_failed(boot: &Boot) -> bool {
    boot.panic.is_some() || matches!(boot.reset, ResetCause::Watchdog | ResetCause::LockUp)
}

/// Checks that this is the board that was started, with the page that was written.
pub(super) fn check_boot(agent: u16, machine: &BoardMachine, boot: &Boot) -> Result<(), Error> {
    if boot.schema != packet::SCHEMA {
        return Err(Error::Schema { agent, board: boot.schema, host: packet::SCHEMA });
    }
    if boot.board != machine.board() {
        let (found, expected) = (boot.board.to_owned(), machine.board().to_owned());
        return Err(Error::WrongFirmware { agent, found, expected });
    }
    if boot.build != BUILD_ID {
        return Err(Error::BuildId { agent, board: boot.build, host: BUILD_ID });
    }
    if machine.chip().is_some_and(|chip| boot.chip != Some(chip)) {
        return Err(Error::OtherBoard { agent });
    }
    let is_real = machine.is_real();
    let identity = boot.page.map_err(|source| Error::Page { agent, is_real, source })?;
    if identity.page_crc != machine.page_crc() {
        return Err(Error::WrongPage { agent });
    }
    Ok(())
}
