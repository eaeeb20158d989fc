//! What can be wrong with the air of a scenario.

use fabswarm_shared::graph::Disconnected;
use std::path::PathBuf;

use super::{MOST_AGENTS, masks};

/// Why the air of a scenario cannot be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Some agents never hear of others.
    #[error(
        "the network is not connected: information from agent {} in rounds {} to {} does not reach agent {}\n\
         help: {remedy}, or raise network.connectivity_window (now {})",
        found.from, found.rounds.start, found.rounds.end - 1, found.to, found.rounds.end - found.rounds.start
    )]
    Disconnected {
        /// Who, and when.
        found: Disconnected,
        /// What brings agents together.
        remedy: String,
    },
    /// Graphs are to be read from nowhere.
    #[error(
        "network.topology is recorded, and network.graphs names no file\nhelp: name a CSV file with the columns round, sender and receiver, or a JSON file with `n` and `graphs`"
    )]
    NoTrace,
    /// The recorded graphs cannot be read.
    #[error("cannot read the recorded graphs {path}: {source}\nhelp: name a CSV or JSON file in network.graphs", path = path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It is not JSON, or a key is missing or has the wrong type.
    #[error("{path} is not a file of recorded graphs: {source}\nhelp: a list of links is a .csv file with the columns round, sender and receiver; JSON needs the keys `n` and `graphs`", path = path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// Where and why.
        source: serde_json::Error,
    },
    /// A line of a list of links is wrong.
    #[error("{path}:{line}: {what}\nhelp: {remedy}", path = path.display())]
    Edges {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        what: String,
        /// What to write there.
        remedy: String,
    },
    /// There are more blocks than agents.
    #[error(
        "network.blocks = {blocks} for {agents} agents leaves blocks without an agent\nhelp: set it to at most {agents}"
    )]
    TooManyBlocks {
        /// Blocks of the scenario.
        blocks: usize,
        /// Agents of the swarm.
        agents: usize,
    },
    /// There are fewer graphs than rounds, and they are not to be repeated.
    #[error("{path} has graphs of {recorded} rounds, and the run has {rounds}\nhelp: set swarm.rounds = {recorded}, or network.graphs_repeat = true", path = path.display())]
    TooFewGraphs {
        /// The file.
        path: PathBuf,
        /// Rounds of the graphs.
        recorded: usize,
        /// Rounds of the run.
        rounds: u64,
    },
    /// The recorded graphs are of another swarm.
    #[error("{path} has graphs of {recorded} agents, and the swarm has {agents}\nhelp: set swarm.agents = {recorded}", path = path.display())]
    OtherSize {
        /// The file.
        path: PathBuf,
        /// Agents of the graphs.
        recorded: usize,
        /// Agents of the swarm.
        agents: usize,
    },
    /// A recorded graph cannot be understood.
    #[error("{path}: {source}", path = path.display())]
    Masks {
        /// The file.
        path: PathBuf,
        /// Which, and why.
        source: masks::Error,
    },
    /// A formation does not fit its area.
    #[error(
        "a formation of {agents} agents is {width_m} m wide, and motion.area_m is {area_m}\n\
         help: lower motion.spacing_m (now {spacing_m}) or raise motion.area_m"
    )]
    FormationTooLarge {
        /// Agents of the swarm.
        agents: usize,
        /// The larger side of their grid.
        width_m: f64,
        /// Side of the area.
        area_m: f64,
        /// Distance between neighbours.
        spacing_m: f64,
    },
    /// So much loss cannot come in such short bursts.
    #[error(
        "faults.burst_loss = {loss} cannot come in bursts of {rounds} rounds: there is hardly a round between them\n\
         help: set faults.burst_rounds to at least {}", (10.0 * loss / (1.0 - loss)).ceil() / 10.0
    )]
    BurstsTooShort {
        /// The share of frames to lose.
        loss: f64,
        /// The mean length of a burst.
        rounds: f64,
    },
    /// An agent that is away and does not exist.
    #[error(
        "{key} names agent {agent}, and the swarm has agents 0 to {}\nhelp: correct the number, or raise swarm.agents", agents - 1
    )]
    NoSuchAgent {
        /// The key.
        key: &'static str,
        /// The agent.
        agent: usize,
        /// Agents of the swarm.
        agents: usize,
    },
    /// Two crashes of one agent at once.
    #[error(
        "faults.crashes lets agent {agent} crash in round {round}, while it is down\nhelp: let it start again before that"
    )]
    CrashedTwice {
        /// The agent.
        agent: usize,
        /// The second crash.
        round: u32,
    },
    /// More agents than links can be kept for.
    #[error(
        "swarm.agents = {agents} is too many to carry every frame\nhelp: take at most {MOST_AGENTS} agents"
    )]
    TooManyAgents {
        /// Agents of the swarm.
        agents: usize,
    },
}
