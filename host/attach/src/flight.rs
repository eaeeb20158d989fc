//! Boards that keep their own time: the host carries their frames as an air does, listens, and follows on shadows.
//!
//! Nothing that the host sends ends a round or holds a board up. Each board reports per round whose frames it took and what it
//! came to; shadows that take the same frames must come to the same bits, now or from the record of the run.

mod record;
mod replay;

pub use record::{FlightEntry, RecordError};
pub use replay::FlightFault;

use super::board::CHUNK_BYTES;
use super::board_machine::{self, BoardMachine, BoardSpec, TOKENS_PER_BOARD};
use super::boot_check::check_boot;
use super::firmware::Firmware;
use super::swarm_plan::{PlanError, SwarmPlan};
use super::temp_dir::LockedTempDir;
use super::{AgentLocation, Error, SILENCE_LIMIT, flash_file};
use fabswarm_shared::agent;
use fabswarm_shared::packet::{Packet, Telemetry};
use fabswarm_shared::provisioning::Page;
use fabswarm_shared::rng::{Purpose, Stream};
use fabswarm_sim::air::FrameCounts;
use fabswarm_sim::scenario::{self, Scenario};
use fabswarm_sim::swarm::{
    AgentView, Answer, BoardView, DigestCounts, LinkView, Meter, Metrics, States, Swarm, SwarmError,
    SwarmView, ViewRequest,
};
use fabswarm_sim::task::{OwnProblem, Score, Task};
use fabswarm_sim::trial::{self, ExactAgents};
use mio::{Events, Poll};
use record::{read, write};
use replay::FlightReplay;
use std::path::Path;
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};
use std::time::{Duration, Instant};
use std::{fs, io};
use zeroize::Zeroize;

/// How long the host waits for packets before it looks after the boards.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// The file in a run's folder `boards/` that holds the record of a flight.
const RECORD: &str = "flight.csv";

/// Why a flight cannot begin, or cannot be verified.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FlightError {
    /// The scenario describes no swarm of boards.
    #[error(transparent)]
    Trial(#[from] trial::BuildError),
    /// Its slots cannot be planned.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A board does not start.
    #[error(transparent)]
    Boards(#[from] Error),
    /// An agent cannot be made.
    #[error("an agent cannot be made: {0}\nhelp: lower the sizes of the problem")]
    Agent(agent::Error),
    /// The record cannot be read.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The scenario of the run cannot be read.
    #[error(transparent)]
    Scenario(#[from] scenario::Error),
    /// Some agents are to run in this process.
    #[error(
        "swarm.pace is \"slots\", and agents in this process keep no time of their own\n\
         help: set swarm.boards to \"qemu\" or \"native\", or swarm.pace to \"air\""
    )]
    InProcess,
}

/// A board in flight.
#[derive(Debug)]
struct FlyingBoard {
    agent: u16,
    machine: BoardMachine,
    /// Whose frames it took, and in which round: its telemetry follows.
    taken: Option<(u32, [Vec<u16>; 2])>,
    telemetry: Option<Telemetry>,
    /// Whose frames it took in the last round it reported.
    heard: Vec<u16>,
    /// Whose frames of its next round it has already.
    early: EarlySenders,
    heard_at: Instant,
}

/// How long shadows may wait for an entry before it counts as lost.
const STUCK_AFTER: Duration = Duration::from_secs(10);

/// A swarm in flight, with its shadows.
#[derive(Debug)]
pub(super) struct Flight {
    boards: Vec<FlyingBoard>,
    firmware: Vec<Firmware>,
    replay: FlightReplay,
    task: Arc<Task<f32>>,
    meter: Meter,
    round: u32,
    record: Vec<FlightEntry>,
    counts: FrameCounts,
    mismatches: u64,
    /// Digests compared, and when the last of them was.
    progressed: (u64, Instant),
    seed: u64,
    loss: f64,
    poll: Poll,
    events: Events,
    chunk: Vec<u8>,
    warnings: Vec<String>,
    interrupted: Arc<AtomicBool>,
    /// Holds sockets, flash and logs; removed when the boards are dropped, hence the last field.
    temp_dir: LockedTempDir,
}

impl Flight {
    /// Starts a board for each agent, with the slots of `scenario` in its page.
    pub(super) fn start(
        scenario: &Scenario,
        own: Option<&OwnProblem>,
        locations: &[AgentLocation],
        interrupted: &Arc<AtomicBool>,
    ) -> Result<Self, FlightError> {
        let parts = trial::exact_agents_with(scenario, own)?;
        let plan = SwarmPlan::of_agents(scenario, &parts)?;
        let ExactAgents { task, setup, rounds, .. } = parts;
        let needs = super::check_sizes(&task, locations.len())?;
        let mut start = vec![0.0; task.shape().words()];
        task.start(&mut start);
        let temp_dir = LockedTempDir::new()?;
        let poll = Poll::new().map_err(Error::Wait)?;
        let mut firmware: Vec<Firmware> = Vec::new();
        let mut boards = Vec::with_capacity(locations.len());
        for (agent, location) in locations.iter().enumerate() {
            let AgentLocation::Board(kind) = *location else { return Err(FlightError::InProcess) };
            let index = match firmware.iter().position(|firmware| firmware.kind == kind) {
                Some(found) => found,
                None => {
                    firmware.push(Firmware::prepare(kind, &needs)?);
                    firmware.len() - 1
                }
            };
            let mut page = Page {
                board: kind.board(),
                key: setup.key.as_ref().map(|key| *key.bytes()),
                key_number: 1,
                chip: None,
                boot_floor: 1,
                agent: setup.config_of(agent, setup.config.boot),
                pace: plan.pace,
                rounds,
                saves_state: false,
                start: &start,
                problem: task.problem(agent),
            };
            let bytes = flash_file::page_bytes(&page, firmware[index].layout.page_bytes);
            page.key.zeroize();
            let spec =
                BoardSpec { agent: agent as u16, index: agent, firmware: index, folder: temp_dir.path() };
            boards.push(FlyingBoard {
                agent: agent as u16,
                machine: BoardMachine::start(spec, &firmware[index], &bytes?, &poll)?,
                taken: None,
                telemetry: None,
                heard: Vec::new(),
                early: EarlySenders::default(),
                heard_at: Instant::now(),
            });
        }
        let task = Arc::new(task);
        let replay = FlightReplay::new(&task, &setup, locations.len()).map_err(FlightError::Agent)?;
        let mut meter = Meter::new(&task);
        meter.start(&replay.decisions(), &replay.gradients());
        Ok(Self {
            events: Events::with_capacity(2 * boards.len().max(16)),
            boards,
            firmware,
            replay,
            task,
            meter,
            round: 0,
            record: Vec::new(),
            counts: FrameCounts::default(),
            mismatches: 0,
            progressed: (0, Instant::now()),
            seed: scenario.network_seed(),
            loss: scenario.faults.iid_loss,
            poll,
            chunk: vec![0; CHUNK_BYTES],
            warnings: Vec::new(),
            interrupted: Arc::clone(interrupted),
            temp_dir,
        })
    }

    /// Waits for packets for a while, and carries and notes what arrives.
    fn serve(&mut self) -> Result<(), SwarmError> {
        match self.poll.poll(&mut self.events, Some(LOOK_EVERY)) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
            result => result.map_err(|error| Error::Wait(error).into_swarm_error())?,
        }
        let tokens: Vec<_> = self.events.iter().map(mio::event::Event::token).collect();
        let mut packet = Vec::new();
        for token in tokens {
            let index = token.0 / TOKENS_PER_BOARD;
            let board = &mut self.boards[index];
            let agent = board.agent;
            board.heard_at = Instant::now();
            board.machine.accept(token, &self.poll).map_err(Error::into_swarm_error)?;
            board.machine.fill(&mut self.chunk);
            let invalid = |_| Error::InvalidPacket { agent }.into_swarm_error();
            while self.boards[index].machine.pop(&mut packet).map_err(invalid)? {
                self.process(index, &packet)?;
            }
        }
        for board in &mut self.boards {
            board.machine.flush(&self.poll);
        }
        for FlyingBoard { agent, machine, heard_at, .. } in &mut self.boards {
            let agent = *agent;
            if let Some(status) = machine.exit_status() {
                let messages = machine.last_message(&self.firmware);
                return Err(Error::Ended { agent, status, messages }.into_swarm_error());
            }
            if heard_at.elapsed() > SILENCE_LIMIT {
                let after = SILENCE_LIMIT;
                return Err(Error::Silent { agent, after, purpose: "end a round" }.into_swarm_error());
            }
        }
        Ok(())
    }

    fn process(&mut self, index: usize, packet: &[u8]) -> Result<(), SwarmError> {
        let board = &mut self.boards[index];
        let agent = board.agent;
        match Packet::decode(packet) {
            Ok(Packet::Frame(frame)) => self.carry(index, frame),
            Ok(Packet::Boot(boot)) => {
                check_boot(agent, &board.machine, &boot).map_err(Error::into_swarm_error)?;
            }
            Ok(Packet::Taken { round, senders }) => {
                let (taken, early) = senders.split_at(senders.len() / 2);
                let taken = (round, [taken, early].map(FlightEntry::senders_of));
                // No telemetry has come for what it reported before: it left that round without ending it.
                if let Some(left) = board.taken.replace(taken) {
                    self.note(index, left, None)?;
                }
            }
            Ok(Packet::Telemetry(telemetry, _)) => {
                board.telemetry = Some(telemetry);
                // The last telemetry of a board is repeated without whose frames it took.
                if let Some(ended) = board.taken.take_if(|(round, _)| *round == telemetry.round) {
                    self.note(index, ended, Some(telemetry.digest))?;
                }
            }
            Ok(_) => {}
            Err(_) => return Err(Error::InvalidPacket { agent }.into_swarm_error()),
        }
        Ok(())
    }

    /// Notes what a board reported about a round.
    fn note(
        &mut self,
        index: usize,
        (round, [senders, early]): (u32, [Vec<u16>; 2]),
        digest: Option<u32>,
    ) -> Result<(), SwarmError> {
        let board = &mut self.boards[index];
        board.heard.clone_from(&senders);
        let entry = FlightEntry { agent: board.agent, round, digest, senders, early };
        self.record.push(entry.clone());
        follow_entry(&mut self.replay, entry, &mut board.early)
            .map_err(|fault| SwarmError::Boards(Box::new(fault)))
    }

    /// Passes a frame on to all other boards, but for those that lose it.
    fn carry(&mut self, sender: usize, frame: &[u8]) {
        self.counts.sent += 1;
        let number = self.counts.sent as u32;
        for (receiver, board) in self.boards.iter_mut().enumerate() {
            if receiver == sender {
                continue;
            }
            let mut air = Stream::new(self.seed, receiver as u32, number, Purpose::Air);
            if air.uniform_f64() < self.loss {
                self.counts.lost += 1;
            } else {
                board.machine.push(&Packet::Frame(frame));
            }
        }
    }

    /// Follows the boards until all of them have ended the next round.
    fn follow(&mut self) -> Result<(), SwarmError> {
        loop {
            self.replay.follow().map_err(|fault| {
                self.mismatches += u64::from(matches!(fault, FlightFault::Digest { .. }));
                SwarmError::Boards(Box::new(fault))
            })?;
            if self.progressed.0 != self.replay.checks {
                self.progressed = (self.replay.checks, Instant::now());
            }
            // A board that its computer has no time for reports late; what it reports then is not missing.
            if let Some(fault) = self.replay.stuck().filter(|_| self.progressed.1.elapsed() > STUCK_AFTER) {
                return Err(SwarmError::Boards(Box::new(fault)));
            }
            if self.replay.rounds() > self.round {
                self.round += 1;
                return Ok(());
            }
            if self.interrupted.load(Ordering::Relaxed) {
                return Err(SwarmError::Interrupted);
            }
            self.serve()?;
        }
    }
}

/// Senders whose frames of a round came in the round before.
#[derive(Clone, Debug, Default)]
struct EarlySenders {
    round: u32,
    senders: Vec<u16>,
}

/// Adds an entry to a replay, without the frames that came early.
fn follow_entry(
    replay: &mut FlightReplay,
    entry: FlightEntry,
    early: &mut EarlySenders,
) -> Result<(), FlightFault> {
    let next = EarlySenders { round: entry.round.saturating_add(1), senders: entry.early.clone() };
    let already = std::mem::replace(early, next);
    // An agent that leaves a round without ending it leaves what waited for the next one behind.
    let is_next = already.round == entry.round;
    replay.push(entry, if is_next { &already.senders } else { &[] })
}

impl Swarm for Flight {
    fn step(&mut self) -> Result<(), SwarmError> {
        self.follow()
    }

    fn metrics(&self) -> Metrics {
        // Shadows of boards in flight keep no books: what is on its way is known to nobody.
        let defect = vec![f64::NAN; self.task.shape().exchanged().len()];
        let (v, d) = (self.replay.decisions(), self.replay.gradients());
        self.meter.measure(self.round(), States { v: &v, d: &d, defect: &defect })
    }

    fn round(&self) -> u64 {
        self.round.into()
    }

    fn counts(&self) -> FrameCounts {
        let refused =
            self.boards.iter().filter_map(|board| board.telemetry).map(|last| u64::from(last.refused));
        FrameCounts { refused: refused.sum(), ..self.counts }
    }

    fn answer(&self) -> Answer {
        Answer::new(self.task.shape(), &self.replay.decisions())
    }

    fn scores(&self) -> Vec<Score> {
        self.task.scores(&self.replay.decisions())
    }

    fn view(&self, _: &ViewRequest, view: &mut SwarmView) {
        *view = SwarmView { round: self.round.into(), ..SwarmView::default() };
        for (index, board) in self.boards.iter().enumerate() {
            view.agents.push(AgentView {
                round: board.telemetry.map_or(0, |last| last.round.into()),
                digest: board.telemetry.map(|last| last.digest),
                board: Some(BoardView {
                    // A digest that differs ends the run.
                    digests: DigestCounts { checks: self.replay.ended(index).into(), mismatches: 0 },
                    stack_bytes: board.telemetry.and_then(|last| last.deepest_stack_bytes),
                    answer_ms: None,
                    refused: board.telemetry.map(|last| last.refused),
                }),
                ..AgentView::default()
            });
            let links = board.heard.iter().map(|&sender| LinkView {
                sender: sender.into(),
                receiver: board.agent.into(),
                is_up: true,
                ..LinkView::default()
            });
            view.links.extend(links);
        }
    }

    fn digests(&self) -> DigestCounts {
        DigestCounts { checks: self.replay.checks, mismatches: self.mismatches }
    }

    fn deepest_stack_bytes(&self) -> Option<u32> {
        self.boards.iter().filter_map(|board| board.telemetry?.deepest_stack_bytes).max()
    }

    fn take_warnings(&mut self) -> Vec<String> {
        for board in &mut self.boards {
            board.machine.read_log(&self.firmware, &mut self.warnings);
        }
        std::mem::take(&mut self.warnings)
    }

    fn keep_logs(&mut self, folder: &Path) -> io::Result<()> {
        fs::create_dir_all(folder)?;
        for board in &self.boards {
            let name = board_machine::log_name(board.agent);
            fs::copy(self.temp_dir.path().join(&name), folder.join(&name))?;
        }
        write(&self.record, &folder.join(RECORD))
    }
}

/// What a flight that was replayed comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlightVerdict {
    /// Rounds of the swarm.
    pub rounds: u32,
    /// Digests that were compared and are equal.
    pub checks: u64,
    /// Where the flight first differs from its shadows, or cannot be followed.
    pub fault: Option<FlightFault>,
}

/// Replays the flight in a run's folder on shadows.
///
/// # Errors
/// When the folder does not hold a flight that can be read.
pub fn verify(folder: &Path) -> Result<FlightVerdict, FlightError> {
    let entries = read(&folder.join("boards").join(RECORD))?;
    let scenario = scenario::resolve(Some(&folder.join("scenario.toml")), &[])?.scenario;
    let ExactAgents { task, setup, .. } = trial::exact_agents(&scenario)?;
    super::check_sizes(&task, scenario.swarm.agents)?;
    let mut replay =
        FlightReplay::new(&Arc::new(task), &setup, scenario.swarm.agents).map_err(FlightError::Agent)?;
    let mut fault = None;
    let mut early = vec![EarlySenders::default(); scenario.swarm.agents];
    for entry in entries {
        let agent = usize::from(entry.agent);
        let pushed = match early.get_mut(agent) {
            Some(early) => follow_entry(&mut replay, entry, early),
            None => Err(FlightFault::Stranger { agent: entry.agent, agents: scenario.swarm.agents }),
        };
        if let Err(found) = pushed.and_then(|()| replay.follow()) {
            fault = Some(found);
            break;
        }
    }
    let fault = fault.or_else(|| replay.stuck());
    Ok(FlightVerdict { rounds: replay.rounds(), checks: replay.checks, fault })
}

#[cfg(test)]
mod tests;
