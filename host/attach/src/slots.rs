//! Boards that keep their own time: the host listens, and follows on shadows.
//!
//! Nothing that the host sends ends a round or holds a board up. Boards with a radio hear each other; of others the host carries the
//! frames, as an air does. Each board reports per round whose frames it took and what it came to; shadows that take the same frames
//! must come to the same bits, now or from the record of the run. The cable of a real board may be unplugged: the board flies on, and
//! what it does not report is not known.

mod flying_board;
mod landing;
mod launch;
mod record;
mod replay;
mod verify;

pub use record::{FlightEntry, RoundFate};
pub use replay::{FlightFault, ReportGap};
pub use verify::{FlightVerdict, verify};

use crate::firmware::Firmware;
use crate::fleet::events::EventLog;
use crate::machine::temp_dir::LockedTempDir;
use crate::machine::{board_machine, board_machine::TOKENS_PER_BOARD};
use crate::{error, error::Error};
use fabswarm_diagnostic::Diagnostic;
use fabswarm_shared::packet::Packet;
use fabswarm_shared::rng::{Purpose, Stream};
use fabswarm_sim::air::FrameCounts;
use fabswarm_sim::scenario::LostBoards;
use fabswarm_sim::swarm::{
    AgentView, Answer, BoardView, DigestCounts, LinkView, Meter, Metrics, States, Swarm, SwarmError,
    SwarmView, ViewRequest,
};
use fabswarm_sim::task::{Score, Task};
use flying_board::{FlightNews, FlyingBoard};
use mio::{Events, Poll};
use record::write;
use replay::FlightReplay;
use std::path::Path;
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};
use std::time::{Duration, Instant};
use std::{fs, io};

/// How long the host waits for packets before it looks after the boards.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// How often the host looks whether a board that was unplugged is there again.
const RECALL_EVERY: Duration = Duration::from_millis(300);

/// How long shadows may wait for an entry before it counts as lost.
const STUCK_AFTER: Duration = Duration::from_secs(10);

/// The file in a run's folder `boards/` that holds the record of a flight.
const RECORD: &str = "flight.csv";

/// A swarm in flight, with its shadows.
#[derive(Debug)]
pub(crate) struct Flight {
    boards: Vec<FlyingBoard>,
    firmware: Vec<Firmware>,
    replay: FlightReplay,
    task: Arc<Task<f32>>,
    meter: Meter,
    round: u32,
    record: Vec<FlightEntry>,
    event_log: EventLog,
    counts: FrameCounts,
    mismatches: u64,
    /// Digests compared, and when the last of them was.
    progressed: (u64, Instant),
    seed: u64,
    loss: f64,
    lost_boards: LostBoards,
    silence_limit: Duration,
    /// When the host last looked for boards that were unplugged.
    recalled: Instant,
    poll: Poll,
    events: Events,
    chunk: Vec<u8>,
    warnings: Vec<String>,
    interrupted: Arc<AtomicBool>,
    /// Holds sockets, flash and logs; removed when the boards are dropped, hence the last field.
    temp_dir: LockedTempDir,
}

impl Flight {
    /// Waits for packets for a while, and carries and notes what arrives.
    fn serve(&mut self) -> Result<(), Error> {
        match self.poll.poll(&mut self.events, Some(LOOK_EVERY)) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
            result => result.map_err(error::wait)?,
        }
        let tokens: Vec<_> = self.events.iter().map(mio::event::Event::token).collect();
        for token in tokens {
            let index = token.0 / TOKENS_PER_BOARD;
            let board = &mut self.boards[index];
            board.heard_at = Instant::now();
            board.machine.accept(token, &self.poll)?;
            let is_unplugged = board.machine.fill(&mut self.chunk);
            self.process_packets(index)?;
            if is_unplugged {
                let (agent, air_round) = (self.boards[index].agent, self.boards[index].ended());
                self.lose(index, "was unplugged", error::unplugged(agent, air_round))?;
            }
        }
        for board in &mut self.boards {
            board.machine.flush(&self.poll);
        }
        self.check_boards()
    }

    /// Processes what has arrived from a board.
    fn process_packets(&mut self, index: usize) -> Result<(), Error> {
        let mut packet = Vec::new();
        let agent = self.boards[index].agent;
        let invalid = |_| error::invalid_packet(agent);
        while self.boards[index].machine.pop(&mut packet).map_err(invalid)? {
            match self.boards[index].process(&packet)? {
                FlightNews::Nothing => {}
                FlightNews::Frame(frame) => self.carry(index, frame),
                FlightNews::Round(entry) => self.note(index, entry)?,
                FlightNews::Restarted(cause) => {
                    let air_round = self.boards[index].ended();
                    let what = format!("restarted by itself ({cause})");
                    self.lose(index, &what, error::restarted(agent, air_round, &cause))?;
                }
            }
        }
        Ok(())
    }

    /// Looks after boards that have ended, are silent or were unplugged.
    fn check_boards(&mut self) -> Result<(), Error> {
        for index in 0..self.boards.len() {
            let FlyingBoard { agent, machine, heard_at, is_present, .. } = &mut self.boards[index];
            let (agent, after) = (*agent, self.silence_limit);
            if let Some(status) = machine.exit_status() {
                let messages = machine.last_message(&self.firmware);
                return Err(error::ended(agent, &status, &messages).into());
            }
            if *is_present && heard_at.elapsed() > after {
                let silent = error::silent(agent, after, "end a round");
                self.lose(index, "no longer answers", silent)?;
            }
        }
        if self.recalled.elapsed() < RECALL_EVERY {
            return Ok(());
        }
        self.recalled = Instant::now();
        let poll = &self.poll;
        let unplugged = self.boards.iter_mut().filter(|board| board.machine.is_unplugged());
        Ok(unplugged.map(|board| &mut board.machine).try_for_each(|machine| machine.replug(poll))?)
    }

    /// Goes on without the reports of a real board; without a process, or where the scenario says so, the run ends with `error`.
    fn lose(&mut self, index: usize, what: &str, error: Diagnostic) -> Result<(), Diagnostic> {
        let board = &mut self.boards[index];
        if !board.machine.is_serial() || self.lost_boards == LostBoards::Fail {
            return Err(error);
        }
        let (agent, round) = (board.agent, board.ended());
        if !board.lose() {
            self.warnings.push(format!(
                "agent {agent}: its board {what} in round {round}; the run goes on without its reports"
            ));
        }
        self.event_log.push(round, Some(agent), "lost", what.to_owned());
        Ok(())
    }

    /// Notes what a board reported about a round.
    fn note(&mut self, index: usize, entry: FlightEntry) -> Result<(), Error> {
        let board = &mut self.boards[index];
        let (agent, round) = (board.agent, entry.round);
        let missed_from = board.report(&entry);
        board.is_present |= board.ended() >= self.round;
        let is_back = std::mem::take(&mut board.is_away);
        if let Some(from) = missed_from {
            self.follow_entry(index, FlightEntry::missed(agent, from))?;
        }
        if is_back || missed_from.is_some() {
            let missing = match missed_from {
                None => "none are missing".to_owned(),
                Some(from) if from < round => format!("those of rounds {from} to {} are missing", round - 1),
                Some(_) => "it cannot be followed from what it was before".to_owned(),
            };
            let detail = format!("reports from round {round} on; {missing}");
            self.warnings.push(format!("agent {agent}: its board {detail}"));
            self.event_log.push(round, Some(agent), if is_back { "returned" } else { "missed" }, detail);
        }
        self.follow_entry(index, entry)
    }

    fn follow_entry(&mut self, index: usize, entry: FlightEntry) -> Result<(), Error> {
        self.record.push(entry.clone());
        Ok(follow_entry(&mut self.replay, entry, &mut self.boards[index].early)?)
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

    /// The rounds that all boards have ended which report.
    fn reported(&self) -> Option<u32> {
        self.boards.iter().filter(|board| board.is_present).map(FlyingBoard::ended).min()
    }

    /// Follows the boards until all of them that report have ended the next round.
    fn follow(&mut self) -> Result<(), SwarmError> {
        loop {
            self.replay.follow().map_err(|fault| {
                self.mismatches += u64::from(matches!(fault, FlightFault::Digest(_)));
                Error::Flight(fault).into_swarm_error()
            })?;
            if self.progressed.0 != self.replay.checks {
                self.progressed = (self.replay.checks, Instant::now());
            }
            // A board that its computer has no time for reports late; what it reports then is not missing.
            let is_late = self.progressed.1.elapsed() > STUCK_AFTER;
            let is_whole = self.boards.iter().all(|board| board.is_present);
            if let Some(fault) = self.replay.stuck().filter(|_| is_late && is_whole) {
                return Err(Error::Flight(fault).into_swarm_error());
            }
            if self.reported().is_some_and(|rounds| rounds > self.round) {
                self.round += 1;
                return Ok(());
            }
            if self.interrupted.load(Ordering::Relaxed) {
                return Err(SwarmError::Interrupted);
            }
            self.serve().map_err(Error::into_swarm_error)?;
        }
    }

    /// Whether the shadow of `agent` has come as far as the swarm.
    fn is_followed(&self, agent: usize) -> bool {
        self.replay.has_followed(agent, self.round)
    }

    /// Packed decisions of all agents. Of one that cannot be followed only the x that it reported last is known.
    fn decisions(&self) -> Vec<f32> {
        let words = self.task.shape().words();
        let decision = |(agent, board): (usize, &FlyingBoard)| match self.is_followed(agent) {
            true => self.replay.decision(agent).to_vec(),
            false => {
                let mut known = board.x.clone();
                known.resize(words, f32::NAN);
                known
            }
        };
        self.boards.iter().enumerate().flat_map(decision).collect()
    }

    /// Packed gradients of all agents that can be followed.
    fn gradients(&self) -> Vec<f32> {
        let gradient = |agent: usize| match self.is_followed(agent) {
            true => self.replay.gradient(agent).to_vec(),
            false => vec![f32::NAN; self.task.shape().words()],
        };
        (0..self.boards.len()).flat_map(gradient).collect()
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
        let (v, d) = (self.decisions(), self.gradients());
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
        Answer::new(self.task.shape(), &self.decisions())
    }

    fn scores(&self) -> Vec<Score> {
        let is_known = (0..self.boards.len()).all(|agent| self.is_followed(agent));
        if is_known { self.task.scores(&self.decisions()) } else { Vec::new() }
    }

    fn view(&self, _: &ViewRequest, view: &mut SwarmView) {
        *view = SwarmView { round: self.round.into(), ..SwarmView::default() };
        for (index, board) in self.boards.iter().enumerate() {
            view.agents.push(AgentView {
                round: board.telemetry.map_or(0, |last| last.round.into()),
                digest: board.telemetry.map(|last| last.digest),
                board: Some(BoardView {
                    // A digest that differs ends the run.
                    digests: DigestCounts { checks: self.replay.checks_of(index), mismatches: 0 },
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
        self.event_log.write(folder)?;
        write(&self.record, &folder.join(RECORD))
    }
}

#[cfg(test)]
mod tests;
