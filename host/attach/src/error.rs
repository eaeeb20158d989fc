//! Why boards could not be attached, or had to be given up.

use fabswarm_shared::provisioning;
use fabswarm_sim::swarm::SwarmError;
use std::{io, path::PathBuf, time::Duration};

/// What went wrong with the boards of a swarm, and what to do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// QEMU is not installed.
    #[error(
        "qemu-system-arm is not on the PATH, and `--boards qemu` needs it: install it with \
         `apt-get install qemu-system-arm` (version 7.2 or newer), or run `cargo xtask install qemu`"
    )]
    NoQemu,
    /// `setpriv` is not installed.
    #[error("setpriv is not on the PATH: install it with `apt-get install util-linux`")]
    NoSetpriv,
    /// A board's firmware did not build.
    #[error("the firmware of boards/{board} did not build:\n{messages}")]
    Build {
        /// The board's name.
        board: &'static str,
        /// What the compiler said.
        messages: String,
    },
    /// An image is not what it should be.
    #[error("{} is no firmware of {board}: {why}", path.display())]
    Image {
        /// The board's name.
        board: &'static str,
        /// The image.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A program could not be started.
    #[error("cannot start {}: {source}", program.display())]
    Start {
        /// The program.
        program: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file or socket could not be used.
    #[error("cannot use {}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The operating system refused to wait for the boards' sockets.
    #[error("cannot wait for the boards: {0}")]
    Wait(#[source] io::Error),
    /// A board's process is gone.
    #[error("the board of agent {agent} ended ({how}){}{messages}", if messages.is_empty() { "" } else { ": " })]
    Ended {
        /// The agent.
        agent: u16,
        /// Its exit status.
        how: String,
        /// The last it said.
        messages: String,
    },
    /// A board does not answer.
    #[error(
        "the board of agent {agent} said nothing for {} s {when}: a wrong image, or a machine too busy for its boards",
        after.as_secs()
    )]
    Silent {
        /// The agent.
        agent: u16,
        /// How long the host waited.
        after: Duration,
        /// What it waited for.
        when: String,
    },
    /// A board refused its page.
    #[error("the board of agent {agent} refused its provisioning page: {source}")]
    Page {
        /// The agent.
        agent: u16,
        /// Why.
        source: provisioning::Error,
    },
    /// A board runs other firmware than the host was built with.
    #[error(
        "the board of agent {agent} speaks schema {board:#010x}, the host {host:#010x}: build its firmware anew"
    )]
    Schema {
        /// The agent.
        agent: u16,
        /// The board's schema.
        board: u32,
        /// The host's schema.
        host: u32,
    },
    /// The firmware is that of another board.
    #[error(
        "the board of agent {agent} runs firmware of `{found}` instead of `{expected}`: build the right one"
    )]
    OtherFirmware {
        /// The agent.
        agent: u16,
        /// The board that the firmware says it is for.
        found: String,
        /// The board that was started.
        expected: &'static str,
    },
    /// Something else listens where a board should find its host.
    #[error("the socket {} is taken: end the program that has it, or remove the file", path.display())]
    SocketTaken {
        /// The socket.
        path: PathBuf,
    },
    /// A board holds another page than the host wrote.
    #[error("the board of agent {agent} has another provisioning page than this run wrote: write it anew")]
    OtherPage {
        /// The agent.
        agent: u16,
    },
    /// A board restarted by itself.
    #[error("the board of agent {agent} restarted by itself in round {air_round}: its log tells why")]
    Restarted {
        /// The agent.
        agent: u16,
        /// The air's round.
        air_round: u32,
    },
    /// Every board waits for another one.
    #[error(
        "the board of agent {agent} has nothing to do and has not caught up with its shadow: this is a mistake of fabswarm"
    )]
    Stalled {
        /// The agent.
        agent: u16,
    },
    /// A socket carries something else than packets of a board.
    #[error("the board of agent {agent} sent bytes that are no packet")]
    Nonsense {
        /// The agent.
        agent: u16,
    },
    /// The task is larger than firmware is built for.
    #[error(
        "the task takes {words} words, and boards are built for {}: lower the sizes of the problem (its features, classes or \
         states), or set swarm.boards to \"in-process\"",
        provisioning::BOARD_WORDS
    )]
    TooLarge {
        /// Words of its decision, or of what it computes with.
        words: usize,
    },
    /// The swarm is larger than firmware is built for.
    #[error(
        "the swarm has {agents} agents, and boards are built for {}: lower swarm.agents, or set swarm.boards to \"in-process\"",
        provisioning::BOARD_MEMBERS_LARGE
    )]
    TooMany {
        /// Its agents.
        agents: usize,
    },
    /// There is no place for what boards have while they run.
    #[error(
        "cannot keep the sockets and flash of boards in {}: {source}\n\
         help: set TMPDIR to a folder that can be written to, with a path of less than 80 bytes",
        path.display()
    )]
    Desk {
        /// The place.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A board's state is not its shadow's.
    #[error(
        "the board of agent {agent} differs from its shadow after round {round}: digest {board:#010x} instead of \
         {shadow:#010x}; {difference}\n\
         help: the same frames gave other bits; suspect the board's memory, its arithmetic, or other firmware"
    )]
    Mismatch {
        /// The agent.
        agent: u16,
        /// The first round that differs.
        round: u32,
        /// The board's digest.
        board: u32,
        /// The shadow's digest.
        shadow: u32,
        /// Where their states begin to differ, and where they are to be found.
        difference: String,
    },
    /// A board said other frames than its shadow.
    #[error(
        "the board of agent {agent} did not say what its shadow said in round {round}: {words}\n\
         help: suspect the board's key, what it stored, or other firmware"
    )]
    OtherWords {
        /// The agent.
        agent: u16,
        /// The first round that differs.
        round: u32,
        /// What it said.
        words: String,
    },
    /// The page of an agent is larger than the board's page region.
    #[error(
        "the data of agent {agent} take more than the {room} bytes of a board's page: give it fewer samples"
    )]
    PageTooLarge {
        /// The agent.
        agent: u16,
        /// Bytes there are.
        room: usize,
    },
}

impl Error {
    /// Ends the run.
    pub(super) fn into_swarm_error(self) -> SwarmError {
        SwarmError::Boards(Box::new(self))
    }
}
