//! The boot packet of a board: whether it is the expected one, and why it started.

use super::{Error, board_machine::BoardMachine};
use fabswarm_shared::BUILD_ID;
use fabswarm_shared::packet::{self, Boot};

/// Why a board started, and how its last run ended.
pub(super) fn start_cause(boot: &Boot) -> String {
    let panic = boot.panic.map(|message| format!("; its last run ended in a panic: {message}"));
    format!("started {}{}", boot.reset, panic.unwrap_or_default())
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
