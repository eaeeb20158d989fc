//! Machines that boards run on, processes of this host or real boards on serial ports, and the packets between them and the host.

mod board_link;
pub(crate) mod boot_check;
mod cable;
pub(crate) mod cable_faults;
pub(crate) mod child_process;
mod packet_stream;
mod pico;
pub(crate) mod power_switch;
mod process;
mod qemu;
pub(crate) mod rig;
mod sensor_line;
pub mod serial;
pub(crate) mod temp_dir;

pub(crate) use board_link::BoardLink;

use crate::firmware::Firmware;
use cable_faults::CableFaults;
use fabswarm_diagnostic::Diagnostic;
use fabswarm_sim::task::SimulatedSensor;
use mio::{Poll, Token};
use packet_stream::PacketStream;
use std::path::Path;
use std::time::Duration;

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

/// Runs a board, below its packets. The defaults are those of a real board without a rig, whose power and log are out of the host's reach.
pub(crate) trait Machine: std::fmt::Debug {
    /// The number of the chip that it must be: only real boards have one.
    fn chip(&self) -> Option<u64> {
        None
    }

    /// Returns a new connection to the board, if there is one.
    fn connect(&mut self) -> Result<Option<PacketStream>, Diagnostic>;

    /// Cuts the power, and erases the stored state unless `keeps_memory`. Returns whether it could.
    fn kill(&mut self, _keeps_memory: bool) -> Result<bool, Diagnostic> {
        Ok(false)
    }

    /// Turns the power on after [`Machine::kill`].
    fn restart(&mut self) -> Result<(), Diagnostic> {
        Ok(())
    }

    fn pause(&self, _is_paused: bool) {}

    /// The exit status of its process, once that has ended.
    fn exit_status(&mut self) -> Option<String> {
        None
    }

    /// The processor time that its process has used.
    fn cpu_time(&self) -> Option<Duration> {
        None
    }

    /// Where its processor is, if its emulator can tell.
    fn processor_place(&self) -> Option<String> {
        None
    }

    /// The firmware that the host has started it with.
    fn firmware(&self) -> Option<&Firmware> {
        None
    }

    /// The last error in its log, with the places in its code that it names, or else what its process printed.
    fn last_message(&self) -> String {
        String::new()
    }

    /// Decodes what was added to its log and returns the warnings, or everything if the log is followed.
    fn read_log(&mut self, _is_followed: bool) -> Vec<String> {
        Vec::new()
    }
}

pub(crate) fn log_name(agent: u16) -> String {
    format!("agent-{agent}.log")
}

/// The file for the decisions that a board passes on.
pub(crate) fn decisions_name(agent: u16) -> String {
    format!("agent-{agent}.mavlink")
}
