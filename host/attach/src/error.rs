//! Why boards could not be started, or why the run on them failed.

use fabswarm_diagnostic::Diagnostic;
use std::{io, path::Path, time::Duration};

pub(crate) fn file(path: &Path, source: io::Error) -> Diagnostic {
    let what = format!("cannot use {}: {source}", path.display());
    Diagnostic::new(what, "check its permissions and the space left on its disk")
}

/// The temporary folder for sockets, flash and logs cannot be used.
pub(crate) fn temp_dir(path: &Path, source: io::Error) -> Diagnostic {
    let what = format!("cannot keep the sockets and flash of boards in {}: {source}", path.display());
    Diagnostic::new(what, "set TMPDIR to a folder that can be written to, with a path of less than 80 bytes")
}

pub(crate) fn wait(source: io::Error) -> Diagnostic {
    let what = format!("cannot poll the boards' sockets: {source}");
    Diagnostic::new(what, "raise the limit on open files with `ulimit -n`")
}

pub(crate) fn image(board: &str, path: &Path, reason: &str) -> Diagnostic {
    let what = format!("{} is not firmware of {board}: {reason}", path.display());
    Diagnostic::new(what, "delete it; the next run builds it again")
}

/// A board that was to do something is silent.
pub(crate) fn silent(agent: u16, after: Duration, purpose: &str) -> Diagnostic {
    let seconds = after.as_secs();
    Diagnostic::new(
        format!("the board of agent {agent} was to {purpose} and has been silent for {seconds} s"),
        "check that its image is fabswarm's, or run fewer boards if the machine is overloaded",
    )
}

pub(crate) fn restarted(agent: u16, air_round: u32, cause: &str) -> Diagnostic {
    Diagnostic::new(
        format!("the board of agent {agent} restarted by itself in round {air_round}; it {cause}"),
        format!("see agent-{agent}.log in the run's folder boards/, or set swarm.lost_boards to \"rejoin\""),
    )
}

/// A board was unplugged, though the scenario says that this ends the run, or before it began.
pub(crate) fn unplugged(agent: u16, air_round: u32) -> Diagnostic {
    let what = format!("the board of agent {agent} was unplugged in round {air_round}");
    Diagnostic::new(what, "check its cable, or set swarm.lost_boards to \"rejoin\"")
}

pub(crate) fn other_board(agent: u16) -> Diagnostic {
    let what = format!("another board is on the port of the board of agent {agent}");
    Diagnostic::new(what, "plug each board into the port it was on, or name ports by /dev/serial/by-id")
}

/// A board's socket carries something other than its packets.
pub(crate) fn invalid_packet(agent: u16) -> Diagnostic {
    Diagnostic::new(format!("the board of agent {agent} sent an invalid packet"), SAME_SOURCES)
}

/// The remedy for firmware of another version.
pub(crate) const SAME_SOURCES: &str = "build host and firmware from the same sources";
