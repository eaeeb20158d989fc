//! Why boards could not be started, or why the run on them failed.

use super::flight::FlightFault;
use super::serial::SerialError;
use fabswarm_shared::provisioning;
use fabswarm_sim::air::radio::RadioKind;
use fabswarm_sim::swarm::SwarmError;
use std::{io, path::PathBuf, time::Duration};

/// What went wrong with the boards of a swarm. Every message ends with a `help:` line.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// QEMU is not installed.
    #[error(
        "qemu-system-arm is not on the PATH, and emulated boards need it\n\
         help: run `apt-get install qemu-system-arm` (version 7.2 or newer) or `cargo xtask install qemu`"
    )]
    NoQemu,
    /// Node is not installed.
    #[error(
        "node is not on the PATH, and emulated Picos need it\n\
         help: run `apt-get install nodejs npm` (version 18 or newer), then `cargo xtask install rp2040js`"
    )]
    NoNode,
    /// The emulator of Picos is not installed.
    #[error(
        "npm's rp2040js is not in {}, and emulated Picos need it\n\
         help: run `cargo xtask install rp2040js`, or `npm ci` in that folder",
        folder.display()
    )]
    NoRp2040js {
        /// The folder of the script that uses it.
        folder: PathBuf,
    },
    /// There is no such board.
    #[error("there is no board `{board}`\nhelp: the boards are {}; docs/boards.md says how to add one", boards.join(", "))]
    NoBoard {
        /// What it was called.
        board: String,
        /// Those there are.
        boards: Vec<String>,
    },
    /// Slots were planned for another radio.
    #[error(
        "{board} has {has}, and the slots of the scenario are planned for {planned}\n\
         help: set radio.kind, and for lora spreading, bandwidth_khz and duty_percent, to what [radio] of boards/{board}/board.toml says"
    )]
    OtherRadio {
        /// The board.
        board: String,
        /// Its radio.
        has: RadioKind,
        /// What was planned for.
        planned: RadioKind,
    },
    /// A board's `board.toml` cannot be used.
    #[error("cannot use {}: {reason}\nhelp: run fabswarm where its source tree is, with the file as it was", path.display())]
    BoardFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// `setpriv` is not installed.
    #[error(
        "setpriv is not on the PATH, and boards are started with it\nhelp: run `apt-get install util-linux`"
    )]
    NoSetpriv,
    /// A board's firmware does not build.
    #[error("the firmware of boards/{board} does not build: {messages}")]
    Build {
        /// The board's name.
        board: String,
        /// What the compiler printed, and a `help:` line.
        messages: String,
    },
    /// An image is not firmware of its board.
    #[error("{} is not firmware of {board}: {reason}\nhelp: delete it; the next run builds it again", path.display())]
    Image {
        /// The board's name.
        board: String,
        /// The image.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A program could not be started.
    #[error("cannot start {}: {source}\nhelp: check that the file exists and may be executed", program.display())]
    Start {
        /// The program.
        program: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file or socket could not be used.
    #[error("cannot use {}: {source}\nhelp: check its permissions and the space left on its disk", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The boards' sockets could not be polled.
    #[error("cannot poll the boards' sockets: {0}\nhelp: raise the limit on open files with `ulimit -n`")]
    Wait(#[source] io::Error),
    /// A board's process ended.
    #[error(
        "the board of agent {agent} ended ({status}){}{messages}\n\
         help: see agent-{agent}.log in the run's folder boards/",
        if messages.is_empty() { "" } else { ": " }
    )]
    Ended {
        /// The agent.
        agent: u16,
        /// Its exit status.
        status: String,
        /// Its last error, or what it printed.
        messages: String,
    },
    /// A board does not answer.
    #[error(
        "the board of agent {agent} was to {purpose} and has been silent for {} s\n\
         help: check that its image is fabswarm's, or run fewer boards if the machine is overloaded",
        after.as_secs()
    )]
    Silent {
        /// The agent.
        agent: u16,
        /// How long the host waited.
        after: Duration,
        /// What it waited for.
        purpose: &'static str,
    },
    /// A board hangs: its firmware runs or sleeps, and does not answer.
    #[error(
        "the board of agent {agent} hangs{place}: it has been silent for {} s\n\
         help: see agent-{agent}.log in the run's folder boards/; its image is there too",
        after.as_secs()
    )]
    Hung {
        /// The agent.
        agent: u16,
        /// How long it has been silent.
        after: Duration,
        /// Where its processor is, if its emulator can tell.
        place: String,
    },
    /// A board refused its page.
    #[error(
        "the board of agent {agent} refused its provisioning page: {source}\nhelp: {}",
        page_remedy(source, *is_real)
    )]
    Page {
        /// The agent.
        agent: u16,
        /// Whether it is a real board, and no emulator or process whose page the run has written itself.
        is_real: bool,
        /// Why.
        source: provisioning::Error,
    },
    /// A board's firmware has another packet format than the host.
    #[error(
        "the board of agent {agent} has packet schema {board:#010x}, the host {host:#010x}\n\
         help: build host and firmware from the same sources"
    )]
    Schema {
        /// The agent.
        agent: u16,
        /// The board's schema.
        board: u32,
        /// The host's schema.
        host: u32,
    },
    /// A board's firmware was built from other sources of `fabswarm-shared` than the host: their bits need not be the same.
    #[error(
        "the board of agent {agent} runs build {board:016x}, the host build {host:016x}\nhelp: build both from the same sources"
    )]
    BuildId {
        /// The agent.
        agent: u16,
        /// The board's build id.
        board: u64,
        /// The host's build id.
        host: u64,
    },
    /// The firmware is that of another board.
    #[error(
        "the board of agent {agent} runs firmware of `{found}` instead of `{expected}`\n\
         help: build the firmware in boards/{expected}"
    )]
    WrongFirmware {
        /// The agent.
        agent: u16,
        /// The board that the firmware is for.
        found: String,
        /// The board that was started.
        expected: String,
    },
    /// Another process listens on the socket of a board.
    #[error(
        "the socket {} is already in use\nhelp: end the process that uses it, or delete the file",
        path.display()
    )]
    SocketTaken {
        /// The socket.
        path: PathBuf,
    },
    /// A board has another page than the host wrote.
    #[error(
        "the board of agent {agent} has another provisioning page than this run wrote\n\
         help: check that no other program writes to TMPDIR, and run again"
    )]
    WrongPage {
        /// The agent.
        agent: u16,
    },
    /// A board restarted, though the scenario did not ask for it.
    #[error(
        "the board of agent {agent} restarted by itself in round {air_round}; it {cause}\n\
         help: see agent-{agent}.log in the run's folder boards/, or set swarm.lost_boards to \"rejoin\""
    )]
    Restarted {
        /// The agent.
        agent: u16,
        /// The air's round.
        air_round: u32,
        /// Why it started, and how its last run ended.
        cause: String,
    },
    /// A board was unplugged, though the scenario says that this ends the run, or before it began.
    #[error(
        "the board of agent {agent} was unplugged in round {air_round}\n\
         help: check its cable, or set swarm.lost_boards to \"rejoin\""
    )]
    Unplugged {
        /// The agent.
        agent: u16,
        /// The air's round.
        air_round: u32,
    },
    /// Its line has destroyed a packet.
    #[error(
        "a frame from or to the board of agent {agent} was damaged on its line in round {air_round}\n\
         help: check its cable and baud rate, or set swarm.lost_boards to \"rejoin\""
    )]
    Disturbed {
        /// The agent.
        agent: u16,
        /// The air's round.
        air_round: u32,
    },
    /// Another board than before is on a port.
    #[error(
        "another board is on the port of the board of agent {agent}\n\
         help: plug each board into the port it was on, or name ports by /dev/serial/by-id"
    )]
    OtherBoard {
        /// The agent.
        agent: u16,
    },
    /// Boards that keep their own time cannot be followed, or differ.
    #[error(transparent)]
    Flight(#[from] FlightFault),
    /// Real boards cannot be found or prepared.
    #[error("{0}")]
    Serial(#[from] SerialError),
    /// Faults that a real board cannot have.
    #[error(
        "faults.crashes lets agent {agent} keep its memory, and a board on a serial port cannot be cut off its power\n\
         help: write `forgets` behind its crash, or place the agent elsewhere"
    )]
    Unforgettable {
        /// The agent.
        agent: usize,
    },
    /// No board can go on, though none owes the host a packet.
    #[error(
        "the board of agent {agent} is behind its shadow and cannot go on\n\
         help: this is a bug in fabswarm; please report it with the run's scenario.toml"
    )]
    Stalled {
        /// The agent.
        agent: u16,
    },
    /// A board's socket carries something other than its packets.
    #[error(
        "the board of agent {agent} sent an invalid packet\n\
         help: build host and firmware from the same sources"
    )]
    InvalidPacket {
        /// The agent.
        agent: u16,
    },
    /// The task is larger than firmware is built for.
    #[error(
        "the task takes {words} words, and boards are built for up to {}\n\
         help: lower the sizes of the problem (its features, classes or states), or set swarm.boards to \"in-process\"",
        super::MOST_WORDS
    )]
    TooLarge {
        /// Words of its decision, or of its scratch memory.
        words: usize,
    },
    /// The swarm is larger than firmware is built for.
    #[error(
        "the swarm has {agents} agents, and boards are built for {}\n\
         help: lower swarm.agents, or set swarm.boards to \"in-process\"",
        provisioning::BOARD_MEMBERS_LARGE
    )]
    TooMany {
        /// Its agents.
        agents: usize,
    },
    /// The temporary folder for sockets, flash and logs cannot be used.
    #[error(
        "cannot keep the sockets and flash of boards in {}: {source}\n\
         help: set TMPDIR to a folder that can be written to, with a path of less than 80 bytes",
        path.display()
    )]
    TempDir {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A board's state differs from its shadow's.
    #[error(
        "the board of agent {agent} differs from its shadow after round {round}: digest {board:#010x} instead of \
         {shadow:#010x}; {difference}\n\
         help: suspect the board's memory, its arithmetic, or firmware from other sources"
    )]
    StateMismatch {
        /// The agent.
        agent: u16,
        /// The first round that differs.
        round: u32,
        /// The board's digest.
        board: u32,
        /// The shadow's digest.
        shadow: u32,
        /// The first word that differs, and the files with both states.
        difference: String,
    },
    /// A board took other frames than its shadow.
    #[error(
        "the board of agent {agent} took other frames than its shadow in round {round}: {difference}\n\
         help: suspect the link to the board, which loses or damages packets, or its receive buffer"
    )]
    ReceptionMismatch {
        /// The agent.
        agent: u16,
        /// The first round that differs.
        round: u32,
        /// What it heard and refused.
        difference: String,
    },
    /// A board sent other frames than its shadow.
    #[error(
        "the board of agent {agent} sent other frames than its shadow in round {round}: {difference}\n\
         help: suspect the board's key, its stored state, or firmware from other sources"
    )]
    FrameMismatch {
        /// The agent.
        agent: u16,
        /// The first round that differs.
        round: u32,
        /// The first difference.
        difference: String,
    },
    /// The run was interrupted while boards did not answer.
    #[error(
        "interrupted while waiting for the boards of agents {agents}\n\
         help: see their logs in the run's folder boards/"
    )]
    Interrupted {
        /// The agents, as a list.
        agents: String,
    },
    /// The problem of an agent has more of something than a page can say.
    #[error("the page of agent {agent} cannot be written: {source}\nhelp: lower the sizes of the problem")]
    PageCount {
        /// The agent.
        agent: u16,
        /// Of what.
        source: provisioning::WriteError,
    },
    /// The page of an agent is larger than the page region of a board.
    #[error(
        "the page of agent {agent} takes more than the {room} bytes a board has for it\n\
         help: give the agent fewer samples"
    )]
    PageTooLarge {
        /// The agent.
        agent: u16,
        /// Bytes there are.
        room: u64,
    },
}

impl Error {
    /// Wraps the error for a [`Swarm`](fabswarm_sim::swarm::Swarm).
    pub(super) fn into_swarm_error(self) -> SwarmError {
        match self {
            Self::Interrupted { .. } => SwarmError::Interrupted,
            error => SwarmError::Boards(Box::new(error)),
        }
    }
}

/// What to do about a page that a board refused.
fn page_remedy(error: &provisioning::Error, is_real: bool) -> &'static str {
    match error {
        provisioning::Error::Missing
        | provisioning::Error::Truncated
        | provisioning::Error::Checksum
        | provisioning::Error::Malformed
        | provisioning::Error::Storage
            if !is_real =>
        {
            "run again: the page of this board is a file that each run writes to TMPDIR; check that its disk is not full and nothing else writes there"
        }
        provisioning::Error::OtherProblem => {
            "build the board's image with its problem: a Cargo feature for each of ours, or FABSWARM_PROBLEM for one of your own"
        }
        provisioning::Error::OldKey { .. } => {
            "make its page anew with the newest key of the swarm: `fabswarm boards provision --swarm FILE`"
        }
        provisioning::Error::OtherChip => {
            "a page is bound to one chip: make one for this board with `fabswarm boards provision --swarm FILE`"
        }
        provisioning::Error::OtherBoard => "flash the image and the page of this kind of board",
        provisioning::Error::TooLarge => {
            "lower swarm.agents or the sizes of the problem, or build the firmware for more words"
        }
        provisioning::Error::Storage => "erase the board's flash and provision it anew, or replace the board",
        provisioning::Error::Missing
        | provisioning::Error::Truncated
        | provisioning::Error::Checksum
        | provisioning::Error::Misaligned
        | provisioning::Error::Malformed
        | provisioning::Error::InService => "write its page again: `fabswarm boards provision --swarm FILE`",
        _ => "build host and firmware from the same sources",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_page_has_the_remedy_for_its_cause() {
        let told = |source: provisioning::Error| Error::Page { agent: 3, is_real: true, source }.to_string();
        let damaged = told(provisioning::Error::Checksum);
        assert!(damaged.contains("fabswarm boards provision"), "{damaged}");
        // Nobody can provision a process.
        let source = provisioning::Error::Checksum;
        let emulated = Error::Page { agent: 3, is_real: false, source }.to_string();
        assert!(emulated.contains("TMPDIR") && !emulated.contains("provision "), "{emulated}");
        let old = told(provisioning::Error::OldKey { page: 1, used: 2 });
        assert!(old.contains("key number 1") && old.contains("newest key"), "{old}");
        let other = told(provisioning::Error::OtherChip);
        assert!(other.contains("another chip") && other.contains("bound to one chip"), "{other}");
        let format = told(provisioning::Error::Version { page: 1, firmware: 2 });
        assert!(format.ends_with("build host and firmware from the same sources"), "{format}");
    }
}
