//! Boards that keep their own time: the host listens, and follows on shadows.
//!
//! Nothing that the host sends ends a round or holds a board up. Boards with a radio hear each other; for others the host carries the
//! frames, as an air does. Each board reports per round which senders' frames it took, and its digest. Shadows that take the same
//! frames must reach the same digests, now or from the record of the run. The cable of a real board may be unplugged: the board
//! flies on, and its reports are missing.

mod launch;
mod record;
mod replay;
mod slot_board;
mod verify;

pub use verify::{FlightVerdict, verify};

use crate::error;
use crate::fleet::Fleet;
use crate::machine::serial::{on_all, wait_for_page};
use fabswarm_diagnostic::Diagnostic;
use fabswarm_shared::packet::Packet;
use fabswarm_shared::rng::{Purpose, Stream};
use fabswarm_sim::air::{FrameCounts, Intruder};
use fabswarm_sim::scenario::LostBoards;
use fabswarm_sim::swarm::{
    AgentView, Answer, BoardReports, BoardView, BoardWarning, DigestCounts, LinkView, Meter, Metrics, States,
    Swarm, SwarmError, SwarmView, ViewRequest,
};
use fabswarm_sim::task::{Score, Task};
use record::{FlightEntry, write};
use replay::{FlightFault, FlightReplay};
use slot_board::{SlotBoard, SlotReport};
use std::io;
use std::path::Path;
use std::sync::{Arc, atomic::Ordering};
use std::time::{Duration, Instant};

/// How long the host waits for packets before it checks the boards.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// How long shadows may wait for an entry before it counts as lost.
const STUCK_AFTER: Duration = Duration::from_secs(10);

/// How long boards may take, at the end of a flight, to report that they wait for a page. The next run reports the others.
const LAND_WITHIN: Duration = Duration::from_secs(3);

/// The file in a run's folder `boards/` that holds the record of a flight.
const RECORD: &str = "flight.csv";

/// A swarm in flight, with its shadows.
#[derive(Debug)]
pub(crate) struct SlotBoards {
    fleet: Fleet<SlotBoard>,
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
    intruder: Option<Intruder>,
}

impl SlotBoards {
    /// Waits for packets for a while, and carries and notes what arrives.
    fn serve(&mut self) -> Result<(), Diagnostic> {
        let Some(tokens) = self.fleet.poll(LOOK_EVERY)? else { return Ok(()) };
        for token in tokens {
            let (index, is_unplugged) = self.fleet.receive(token)?;
            self.fleet.boards[index].heard_at = Instant::now();
            self.process_packets(index)?;
            if is_unplugged {
                let error = error::unplugged(
                    self.fleet.boards[index].link.agent,
                    self.replay.tracks[index].reported(),
                );
                self.lose(index, "was unplugged", error)?;
            }
        }
        self.fleet.flush();
        self.check_boards()
    }

    fn process_packets(&mut self, index: usize) -> Result<(), Diagnostic> {
        let mut packet = Vec::new();
        while self.fleet.boards[index].link.pop(&mut packet)? {
            match self.fleet.boards[index].process(&packet)? {
                SlotReport::Nothing => {}
                SlotReport::Frame(frame) => self.carry(index, frame),
                SlotReport::Round(entry) => self.note(index, entry)?,
                SlotReport::Restarted(cause) => {
                    self.replay.tracks[index].restart();
                    let agent = self.fleet.boards[index].link.agent;
                    let error = error::restarted(agent, self.replay.tracks[index].reported(), &cause);
                    self.lose(index, &format!("restarted by itself ({cause})"), error)?;
                }
            }
        }
        Ok(())
    }

    /// Looks after boards that have ended, are silent or were unplugged.
    fn check_boards(&mut self) -> Result<(), Diagnostic> {
        let limit = self.fleet.silence_limit;
        for index in 0..self.fleet.boards.len() {
            self.fleet.check_process(index)?;
            let SlotBoard { link, heard_at, is_present, .. } = &self.fleet.boards[index];
            if *is_present && heard_at.elapsed() > limit {
                let silent = error::silent(link.agent, limit, "end a round");
                self.lose(index, "no longer answers", silent)?;
            }
        }
        self.fleet
            .recall(|board, poll| if board.link.is_unplugged() { board.link.connect(poll) } else { Ok(()) })
    }

    /// Goes on without the reports of a real board. If the board is a process, or the scenario says so, the run ends with `error`.
    fn lose(&mut self, index: usize, what: &str, error: Diagnostic) -> Result<(), Diagnostic> {
        let board = &mut self.fleet.boards[index];
        if !board.link.is_serial() || self.fleet.lost_boards == LostBoards::Fail {
            return Err(error);
        }
        let (agent, round) = (board.link.agent, self.replay.tracks[index].reported());
        if !board.lose() {
            let text = format!("its board {what} in round {round}; the run goes on without its reports");
            self.fleet.warn(agent, text);
        }
        self.fleet.events.push(round, Some(agent), "lost", what.to_owned());
        Ok(())
    }

    fn note(&mut self, index: usize, entry: FlightEntry) -> Result<(), Diagnostic> {
        let board = &mut self.fleet.boards[index];
        let (agent, round) = (board.link.agent, entry.round);
        let is_back = std::mem::take(&mut board.is_away);
        let missed_from =
            self.replay.tracks[index].missed_before(round, std::mem::take(&mut board.may_have_missed));
        if let Some(from) = missed_from {
            self.follow_entry(FlightEntry::missed(agent, from))?;
        }
        if is_back || missed_from.is_some() {
            let missing = match missed_from {
                None => "none are missing".to_owned(),
                Some(from) if from < round => format!("those of rounds {from} to {} are missing", round - 1),
                Some(_) => "it cannot be followed from what it was before".to_owned(),
            };
            let detail = format!("reports from round {round} on; {missing}");
            self.fleet.warn(agent, format!("its board {detail}"));
            self.fleet.events.push(round, Some(agent), if is_back { "returned" } else { "missed" }, detail);
        }
        self.follow_entry(entry)?;
        self.fleet.boards[index].is_present |= self.replay.tracks[index].reported() >= self.round;
        Ok(())
    }

    fn follow_entry(&mut self, entry: FlightEntry) -> Result<(), Diagnostic> {
        self.record.push(entry.clone());
        Ok(self.replay.push(entry)?)
    }

    /// Passes a frame on to the other boards, except where the air loses it. An intruder sends once in as many frames as there are boards.
    fn carry(&mut self, sender: usize, frame: &[u8]) {
        self.counts.sent += 1;
        let number = self.counts.sent as u32;
        let boards = &mut self.fleet.boards;
        for (receiver, board) in boards.iter_mut().enumerate() {
            if receiver == sender {
                continue;
            }
            let mut air = Stream::new(self.seed, receiver as u32, number, Purpose::Air);
            if air.uniform_f64() < self.loss {
                self.counts.lost += 1;
            } else {
                board.link.push(&Packet::Frame(frame));
            }
        }
        let Some(intruder) = &mut self.intruder else { return };
        intruder.overhear(number, std::iter::once((sender, frame)));
        if !number.is_multiple_of(boards.len() as u32) {
            return;
        }
        let replayed = intruder.replays(number).into_iter().map(|replay| replay.bytes.to_vec());
        let forged = intruder.forges(number).into_iter().map(|(_, bytes)| bytes);
        for bytes in replayed.chain(forged) {
            boards.iter_mut().for_each(|board| board.link.push(&Packet::Frame(&bytes)));
        }
    }

    /// Whether the shadow of `agent` has the state of its board.
    fn is_followed(&self, agent: usize) -> bool {
        let track = &self.replay.tracks[agent];
        !track.is_lost && track.ended >= self.round
    }

    /// Packed decisions of all agents. Of one that cannot be followed only the x that it reported last is known.
    fn decisions(&self) -> Vec<f32> {
        let words = self.task.shape().words();
        let decision = |(agent, board): (usize, &SlotBoard)| match self.is_followed(agent) {
            true => self.replay.shadows[agent].decision().to_vec(),
            false => {
                let mut known = board.x.clone();
                known.resize(words, f32::NAN);
                known
            }
        };
        self.fleet.boards.iter().enumerate().flat_map(decision).collect()
    }

    /// Packed gradients of all agents that can be followed.
    fn gradients(&self) -> Vec<f32> {
        let gradient = |agent: usize| match self.is_followed(agent) {
            true => self.replay.shadows[agent].gradient().to_vec(),
            false => vec![f32::NAN; self.task.shape().words()],
        };
        (0..self.fleet.boards.len()).flat_map(gradient).collect()
    }
}

/// Ends the flight: real boards would otherwise fly on for all rounds of their pages, under a key that is gone.
impl Drop for SlotBoards {
    fn drop(&mut self) {
        let flying = self.fleet.boards.iter_mut().filter_map(|board| board.link.hang_up());
        let landed = on_all(flying, |board| wait_for_page(&board.path, board.baud, board.lines, LAND_WITHIN));
        // The next run reports those that have not landed.
        drop(landed);
    }
}

impl Swarm for SlotBoards {
    /// Follows the boards until all of them that report have ended the next round.
    fn step(&mut self) -> Result<(), SwarmError> {
        loop {
            self.replay.follow().map_err(|fault| {
                self.mismatches += u64::from(matches!(fault, FlightFault::Digest(_)));
                Diagnostic::from(fault)
            })?;
            if self.progressed.0 != self.replay.checks {
                self.progressed = (self.replay.checks, Instant::now());
            }
            // A board that its computer has no time for reports late; what it reports then is not missing.
            let is_late = self.progressed.1.elapsed() > STUCK_AFTER;
            let is_whole = self.fleet.boards.iter().all(|board| board.is_present);
            if let Some(fault) = self.replay.stuck().filter(|_| is_late && is_whole) {
                return Err(Diagnostic::from(fault).into());
            }
            let tracks = self.fleet.boards.iter().zip(&self.replay.tracks);
            let present = tracks.filter(|(board, _)| board.is_present);
            if present.map(|(_, track)| track.reported()).min().is_some_and(|rounds| rounds > self.round) {
                self.round += 1;
                return Ok(());
            }
            if self.fleet.interrupted.load(Ordering::Relaxed) {
                return Err(SwarmError::Interrupted);
            }
            self.serve()?;
        }
    }

    fn metrics(&self) -> Metrics {
        // Shadows of boards in flight keep no books: the frames under way are not known.
        let defect = vec![f64::NAN; self.task.shape().exchanged().len()];
        let (v, d) = (self.decisions(), self.gradients());
        self.meter.measure(self.round(), States { task: &self.task, v: &v, d: &d, defect: &defect })
    }

    fn round(&self) -> u64 {
        self.round.into()
    }

    fn counts(&self) -> FrameCounts {
        let refused =
            self.fleet.boards.iter().filter_map(|board| board.telemetry).map(|last| u64::from(last.refused));
        FrameCounts { refused: refused.sum(), ..self.counts }
    }

    fn answer(&self) -> Answer {
        Answer::new(self.task.shape(), &self.decisions())
    }

    fn scores(&self) -> Vec<Score> {
        let is_known = (0..self.fleet.boards.len()).all(|agent| self.is_followed(agent));
        if is_known { self.task.scores(&self.decisions()) } else { Vec::new() }
    }

    fn view(&self, _: &ViewRequest) -> SwarmView {
        let mut view = SwarmView { round: self.round.into(), ..SwarmView::default() };
        for (index, board) in self.fleet.boards.iter().enumerate() {
            view.agents.push(AgentView {
                round: board.telemetry.map_or(0, |last| last.round.into()),
                digest: board.telemetry.map(|last| last.digest),
                board: Some(BoardView {
                    // A digest that differs ends the run.
                    digests: DigestCounts { checks: self.replay.tracks[index].checks, mismatches: 0 },
                    answer_ms: None,
                    telemetry: board.telemetry,
                }),
                ..AgentView::default()
            });
            let links = board.heard.iter().map(|&sender| LinkView {
                sender: sender.into(),
                receiver: board.link.agent.into(),
                is_up: true,
                ..LinkView::default()
            });
            view.links.extend(links);
        }
        view
    }

    fn boards(&mut self) -> Option<&mut dyn BoardReports> {
        Some(self)
    }
}

impl BoardReports for SlotBoards {
    fn digests(&self) -> DigestCounts {
        DigestCounts { checks: self.replay.checks, mismatches: self.mismatches }
    }

    fn deepest_stack_bytes(&self) -> Option<u32> {
        self.fleet.boards.iter().filter_map(|board| board.telemetry?.deepest_stack_bytes).max()
    }

    fn follow_log(&mut self, agent: usize) {
        self.fleet.follow_log(agent);
    }

    fn take_warnings(&mut self) -> Vec<BoardWarning> {
        self.fleet.take_warnings()
    }

    fn keep_logs(&mut self, folder: &Path) -> io::Result<()> {
        self.fleet.keep_logs(folder)?;
        write(&self.record, &folder.join(RECORD))
    }
}

#[cfg(test)]
mod tests;
