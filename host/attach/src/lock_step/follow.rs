//! Lets boards follow their shadows, and reports the boards that do not.

use super::{
    LockStepBoards,
    board::{BoardLoss, LockStepBoard},
    round_queue::FrameSource,
};
use crate::compare::{Divergence, FramePair, ShadowDifference, state_pair};
use crate::error;
use crate::machine::BoardProcess;
use crate::notice::notify;
use fabswarm_diagnostic::Diagnostic;
use fabswarm_sim::scenario::LostBoards;
use fabswarm_sim::swarm::{BoardChange, SwarmError};
use std::{
    num::NonZero,
    sync::atomic::Ordering,
    thread,
    time::{Duration, Instant},
};

/// How often the host checks, while no packet arrives, whether the processes still run.
const CHECK_EVERY: Duration = Duration::from_millis(100);

/// How long no packet may arrive before the user is told which boards the host waits for.
const ANNOUNCE_AFTER: Duration = Duration::from_secs(1);

/// How long an interrupted host waits for the next packet: boards that still answer catch up with their shadows.
const INTERRUPT_GRACE: Duration = Duration::from_millis(500);

/// Faults of a board's firmware, one soon after the other, that end the run: the next would come too.
const FAULTS_IN_A_ROW: u32 = 4;

/// Agents that are listed by number; of more, only the first.
const LISTED_AGENTS: usize = 8;

const MAX_ROUNDS_BEHIND: usize = 16;

/// Boards that compute at once per core of the host: enough to keep it busy, few enough that each goes through many rounds.
const BUSY_BOARDS_PER_CORE: usize = 4;

pub(crate) fn busy_limit() -> usize {
    BUSY_BOARDS_PER_CORE * thread::available_parallelism().map_or(1, NonZero::get)
}

impl LockStepBoards {
    /// Counts a slot that the shadows have gone through, and runs boards until none is too far behind.
    pub(crate) fn follow(&mut self) -> Result<(), SwarmError> {
        self.slot += 1;
        if self.fleet.boards.iter().any(LockStepBoard::is_lost) {
            self.serve("return", Duration::ZERO)?;
        }
        self.wait("end a round", |board| board.queue.rounds_behind() < MAX_ROUNDS_BEHIND)
    }

    /// Runs boards until each is in the round of its shadow and has sent all frames of it.
    pub(crate) fn catch_up(&mut self) -> Result<(), SwarmError> {
        self.wait("begin a round", |board| {
            board.is_up() && board.queue.rounds_behind() == 0 && board.frame_difference().is_none()
        })
    }

    /// Runs boards until `is_done` holds for all that are neither killed nor frozen; `purpose` says what they are to do.
    fn wait(
        &mut self,
        purpose: &'static str,
        is_done: impl Fn(&LockStepBoard) -> bool,
    ) -> Result<(), SwarmError> {
        self.progressed = Instant::now();
        self.checked = self.progressed;
        loop {
            self.fleet.boards.iter_mut().for_each(LockStepBoard::check_frames);
            let divergence = self.first_divergence();
            // Boards that are further behind may yet diverge in an earlier slot.
            self.grant_rounds(divergence.as_ref().map_or(u32::MAX, |(_, divergence)| divergence.slot));
            let is_idle = !self.fleet.boards.iter().any(LockStepBoard::is_awaited);
            match (divergence, self.fleet.boards.iter().find(|board| !board.is_away() && !is_done(board))) {
                (None, None) => return Ok(()),
                (Some((agent, divergence)), _) if is_idle => {
                    return Err(self.report(agent, divergence).into());
                }
                (None, Some(board)) if is_idle => {
                    let agent = board.link.agent;
                    return Err(self.stall(agent).into());
                }
                (Some((agent, divergence)), _) => {
                    // The known divergence says more than the loss of another board after it.
                    if self.serve(purpose, CHECK_EVERY).is_err() {
                        return Err(self.report(agent, divergence).into());
                    }
                }
                (None, Some(_)) => self.serve(purpose, CHECK_EVERY)?,
            }
        }
    }

    /// Why the board of `agent` does not go on, though no board owes the host a packet.
    fn stall(&mut self, agent: u16) -> Diagnostic {
        let differing = |board: &LockStepBoard| {
            board.frame_difference().map(|(round, frames)| (board.link.agent, round, frames.clone()))
        };
        match self.fleet.boards.iter().find_map(differing) {
            Some((agent, round, frames)) => self.report_frames(agent, round, &frames),
            None => Diagnostic::new(
                format!("the board of agent {agent} is behind its shadow and cannot go on"),
                "this is a bug in fabswarm; please report it with the run's scenario.toml",
            ),
        }
    }

    /// The error for frames that differ, which are kept for the run folder.
    fn report_frames(&mut self, agent: u16, round: u32, frames: &FramePair) -> Diagnostic {
        let pair = frames.pair(agent, round, self.key.as_ref());
        let fault = Diagnostic::new(
            format!(
                "the board of agent {agent} sent other frames than its shadow in round {round}: {}",
                pair.difference
            ),
            "suspect the board's key, its stored state, or firmware from other sources",
        );
        self.differing.push(pair);
        fault
    }

    /// Sends what is queued and processes what arrives within `timeout`.
    fn serve(&mut self, purpose: &'static str, timeout: Duration) -> Result<(), SwarmError> {
        self.fleet.flush();
        let Some(tokens) = self.fleet.poll(timeout)? else { return Ok(()) };
        // Boards that are lost repeat their boot packets: others must not wait for the run because of that.
        let mut has_progress = false;
        for token in tokens {
            let (index, is_unplugged) = self.fleet.receive(token)?;
            let board = &mut self.fleet.boards[index];
            has_progress |= !board.is_lost();
            board.waited_since = Instant::now();
            if is_unplugged {
                board.loss = Some(BoardLoss::Unplugged);
            } else if let Some(boot) = board.process_packets()? {
                let (agent, cause) = (board.link.agent, std::mem::take(&mut board.start_cause));
                self.fleet.warn(agent, format!("its board is back in boot {boot}, {cause}"));
                self.fleet.events.push(self.slot, Some(agent), "returned", cause);
                self.changes.push(BoardChange::Returned { agent: agent.into(), boot });
            }
        }
        self.lose_boards()?;
        self.fleet.recall(LockStepBoard::recall)?;
        let now = Instant::now();
        if has_progress {
            (self.progressed, self.checked, self.is_wait_announced) = (now, now, false);
        } else if now - self.checked >= CHECK_EVERY {
            self.checked = now;
            self.check_awaited(purpose)?;
            self.check_interrupt()?;
        }
        Ok(())
    }

    /// Ends the wait if the run is interrupted. Otherwise tells the user, once, which boards the host waits for.
    fn check_interrupt(&mut self) -> Result<(), SwarmError> {
        let waited = self.progressed.elapsed();
        if waited > INTERRUPT_GRACE && self.fleet.interrupted.load(Ordering::Relaxed) {
            return Err(SwarmError::Interrupted);
        }
        if waited > ANNOUNCE_AFTER && !self.is_wait_announced {
            self.is_wait_announced = true;
            let (agents, seconds) = (self.awaited_agents(), waited.as_secs());
            notify(&format!("waiting for the boards of agents {agents} ({seconds} s)"));
        }
        Ok(())
    }

    /// The agents whose boards owe the host a packet, as a list.
    fn awaited_agents(&self) -> String {
        let awaited = self.fleet.boards.iter().filter(|board| board.is_awaited());
        let agents: Vec<String> = awaited.map(|board| board.link.agent.to_string()).collect();
        match agents.len().checked_sub(LISTED_AGENTS) {
            None | Some(0) => agents.join(", "),
            Some(more) => format!("{} and {more} more", agents[..LISTED_AGENTS].join(", ")),
        }
    }

    /// Reports an awaited board that has ended or is silent for too long; repeats what the others have not answered.
    fn check_awaited(&mut self, purpose: &'static str) -> Result<(), SwarmError> {
        let (limit, is_rejoining) = (self.fleet.silence_limit, self.fleet.lost_boards == LostBoards::Rejoin);
        for index in 0..self.fleet.boards.len() {
            if !self.fleet.boards[index].is_awaited() {
                continue;
            }
            self.fleet.check_process(index)?;
            let board = &mut self.fleet.boards[index];
            let (agent, waited) = (board.link.agent, board.waited_since.elapsed());
            if board.is_hung() {
                board.hang_place = board.link.process().and_then(BoardProcess::processor_place);
                if is_rejoining {
                    board.loss = Some(BoardLoss::Hung);
                    continue;
                }
                let (place, seconds) = (at_place(board.hang_place.take()), waited.as_secs());
                return Err(Diagnostic::new(
                    format!("the board of agent {agent} hangs{place}: it has been silent for {seconds} s"),
                    format!("see agent-{agent}.log in the run's folder boards/; its image is there too"),
                )
                .into());
            }
            let may_rejoin = is_rejoining && board.was_up;
            if waited > limit && board.cpu_time().is_none() {
                if !may_rejoin {
                    return Err(error::silent(agent, limit, purpose).into());
                }
                board.loss = Some(BoardLoss::Silent);
            } else {
                board.send_again();
            }
        }
        Ok(())
    }

    /// Gives up boards that were lost, or ends the run because of them.
    fn lose_boards(&mut self) -> Result<(), SwarmError> {
        for index in 0..self.fleet.boards.len() {
            let board = &mut self.fleet.boards[index];
            let Some(loss) = board.loss.take().filter(|_| !board.is_lost()) else { continue };
            let (agent, air_round) = (board.link.agent, board.queue.round);
            // A new process truncates the log.
            self.fleet.read_log(index);
            let board = &mut self.fleet.boards[index];
            let cause = std::mem::take(&mut board.start_cause);
            if self.fleet.lost_boards == LostBoards::Fail || !board.was_up {
                let error = match loss {
                    BoardLoss::Restarted | BoardLoss::Failed => error::restarted(agent, air_round, &cause),
                    BoardLoss::Unplugged => error::unplugged(agent, air_round),
                    BoardLoss::Silent | BoardLoss::Hung => {
                        error::silent(agent, self.fleet.silence_limit, "end a round")
                    }
                };
                return Err(error.into());
            }
            let what = match loss {
                BoardLoss::Restarted | BoardLoss::Failed => "restarted by itself".to_owned(),
                BoardLoss::Unplugged => "was unplugged".to_owned(),
                BoardLoss::Silent => "no longer answers".to_owned(),
                BoardLoss::Hung => format!("hangs{}", at_place(board.hang_place.take())),
            };
            let cause = if cause.is_empty() { cause } else { format!(" ({cause})") };
            if matches!(loss, BoardLoss::Hung | BoardLoss::Failed) && board.count_fault() == FAULTS_IN_A_ROW {
                let times = format!("in round {air_round}, {FAULTS_IN_A_ROW} times in a row");
                let what = format!("the board of agent {agent} {what}{cause} {times}");
                let log = format!("see agent-{agent}.log in the run's folder boards/");
                return Err(
                    Diagnostic::new(what, format!("{log}: the fault is in its firmware or problem")).into()
                );
            }
            self.fleet.warn(
                agent,
                format!("its board {what} in round {air_round}{cause}; it may rejoin, without its memory"),
            );
            self.fleet.events.push(air_round, Some(agent), "lost", what + &cause);
            self.fleet.boards[index].lose(loss)?;
            self.changes.push(BoardChange::Lost { agent: agent.into() });
        }
        Ok(())
    }

    /// Grants rounds to idle boards, first to those that can go through most, and none after slot `last`. A board whose frames
    /// differ from its shadow's gets one round, to see whether its state differs too.
    fn grant_rounds(&mut self, last: u32) {
        let mut busy = self.fleet.boards.iter().filter(|board| board.queue.is_busy()).count();
        while busy < self.busy_limit {
            let has_sent = |source: FrameSource| self.fleet.boards[source.board].has_sent(source.air_round);
            let idle = self.fleet.boards.iter().enumerate().filter(|(_, board)| {
                board.is_up() && !board.is_away() && !board.queue.is_busy() && board.divergence.is_none()
            });
            let able = idle.map(|(index, board)| {
                let most = if board.frame_difference().is_some() { 1 } else { MAX_ROUNDS_BEHIND };
                // Of boards that are equally far, those that start together should not wait for each other's frames: an order in
                // which neighbours are far apart.
                let place = (index as u32).wrapping_mul(0x9E37_79B1);
                (board.queue.ready(last, has_sent).min(most), place, index)
            });
            let Some((rounds, _, index)) = able.max().filter(|&(rounds, ..)| rounds > 0) else { return };
            self.fleet.boards[index].grant(rounds);
            self.fleet.boards[index].link.flush(&self.fleet.poll);
            busy += 1;
        }
    }

    fn first_divergence(&self) -> Option<(u16, Divergence)> {
        let divergences =
            self.fleet.boards.iter().filter_map(|board| Some((board.link.agent, board.divergence.clone()?)));
        divergences.min_by_key(|(_, divergence)| divergence.slot)
    }

    /// The error for a divergence. If the states differ, keeps both for the run folder.
    fn report(&mut self, agent: u16, Divergence { round, kind, .. }: Divergence) -> Diagnostic {
        match kind {
            ShadowDifference::Frames(frames) => self.report_frames(agent, round, &frames),
            ShadowDifference::Reception(difference) => Diagnostic::new(
                format!(
                    "the board of agent {agent} took other frames than its shadow in round {round}: {difference}"
                ),
                "suspect the link to the board, which loses or damages packets, or its receive buffer",
            ),
            ShadowDifference::State { board, shadow } => {
                let state = self.state_of(agent);
                let expected = self.find(agent).map(|board| board.shadow_state.clone()).unwrap_or_default();
                let pair = state_pair(agent, round, state, &expected);
                let difference = &pair.difference;
                let fault = Diagnostic::new(
                    format!(
                        "the board of agent {agent} differs from its shadow after round {round}: digest {board:#010x} instead of {shadow:#010x}; {difference}"
                    ),
                    "suspect the board's memory, its arithmetic, or firmware from other sources",
                );
                self.differing.push(pair);
                fault
            }
        }
    }

    fn state_of(&mut self, agent: u16) -> Result<Vec<u32>, SwarmError> {
        let mut state = Vec::new();
        loop {
            if let Some(board) = self.find_mut(agent) {
                board.request_state(state.len() as u32);
            }
            while !self.fleet.boards.iter().all(LockStepBoard::has_sent_state) {
                self.serve("send its state", CHECK_EVERY)?;
            }
            match self.find_mut(agent).and_then(LockStepBoard::take_state) {
                Some(words) if !words.is_empty() => state.extend(words),
                _ => return Ok(state),
            }
        }
    }
}

/// The place where a board hangs, as part of a sentence.
fn at_place(place: Option<String>) -> String {
    place.map(|place| format!(" at {place}")).unwrap_or_default()
}
