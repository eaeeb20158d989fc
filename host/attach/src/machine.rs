//! Machines that boards run on, processes of this host or real boards on serial ports, and the packets between them and the host.

mod board_link;
pub(crate) mod boot_check;
pub(crate) mod cable_faults;
pub(crate) mod child_process;
pub(crate) mod packet_stream;
mod process;
mod qemu;
pub(crate) mod rig;
pub mod serial;
pub(crate) mod temp_dir;

pub(crate) use board_link::BoardLink;
pub(crate) use process::BoardProcess;

use cable_faults::CableFaults;
use fabswarm_sim::task::SimulatedSensor;
use mio::{Poll, Token};
use std::path::Path;

/// Each board has one token for its listener and one for its stream.
pub(crate) const TOKENS_PER_BOARD: usize = 2;

/// The identity of a board, the folder of its files, and the poll that waits for its packets.
#[derive(Clone, Copy)]
pub(crate) struct LinkConfig<'a> {
    pub(crate) agent: u16,
    pub(crate) index: usize,
    pub(crate) folder: &'a Path,
    pub(crate) poll: &'a Poll,
    /// The readings of a simulated sensor.
    pub(crate) sensor: Option<&'a SimulatedSensor>,
    /// Faults of its cable.
    pub(crate) faults: Option<&'a CableFaults>,
}

impl LinkConfig<'_> {
    const fn listener_token(&self) -> Token {
        Token(self.index * TOKENS_PER_BOARD)
    }
}

pub(crate) fn log_name(agent: u16) -> String {
    format!("agent-{agent}.log")
}

/// The file for the decisions that a board passes on.
pub(crate) fn decisions_name(agent: u16) -> String {
    format!("agent-{agent}.mavlink")
}
