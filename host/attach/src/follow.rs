//! Boards behind their shadows: who may go on, and what becomes of those who do not.

use super::{
    Boards, Error,
    board::Board,
    dump::Dump,
    machine::TOKENS_EACH,
    parting::{Difference, Parting},
    script::Speech,
};
use std::{io, num::NonZero, thread, time::Duration};

/// How often processes are asked whether they still run while nothing comes from them.
const CHECK_EVERY: Duration = Duration::from_millis(100);

/// Rounds that shadows go ahead of their boards.
const AHEAD: usize = 16;
/// Boards that compute at once, for each core of the host: enough to keep it busy, and few enough to let each go far.
const BUSY_BOARDS_PER_CORE: usize = 4;

/// How many boards may compute at once here.
pub(super) fn busy_boards() -> usize {
    BUSY_BOARDS_PER_CORE * thread::available_parallelism().map_or(1, NonZero::get)
}

impl Boards {
    /// Lets boards follow their shadows, which have gone through a slot of the air, until none is too far behind.
    ///
    /// # Errors
    /// Where a board ended, fell silent, talks nonsense, or is not what its shadow is.
    pub(super) fn follow(&mut self) -> Result<(), Error> {
        self.slot += 1;
        self.wait("to end a round", |board| board.script.rounds_behind() < AHEAD)
    }

    /// Waits until every board has come as far as its shadow and said what it has to say there.
    ///
    /// # Errors
    /// The same.
    pub(super) fn catch_up(&mut self) -> Result<(), Error> {
        self.wait("to begin a round", |board| {
            board.is_up() && board.script.rounds_behind() == 0 && board.other_words().is_none()
        })
    }

    /// Sets boards to work until `is_done` holds for every one that is there.
    fn wait(&mut self, what_for: &str, is_done: impl Fn(&Board) -> bool) -> Result<(), Error> {
        loop {
            self.boards.iter_mut().for_each(Board::confirm);
            let parting = self.first_parting();
            // Boards that are behind may yet part from their shadows in an earlier slot.
            self.set_to_work(parting.as_ref().map_or(u32::MAX, |(_, parting)| parting.slot));
            let is_idle = !self.boards.iter().any(Board::is_awaited);
            match (parting, self.boards.iter().find(|board| !board.is_away() && !is_done(board))) {
                (None, None) => return Ok(()),
                (Some((agent, parting)), _) if is_idle => return Err(self.explain(agent, parting)),
                (None, Some(board)) if is_idle => return Err(self.stall(board.agent)),
                (Some((agent, parting)), _) => {
                    // What is known already says more than that another board was lost over it.
                    if self.serve(what_for).is_err() {
                        return Err(self.explain(agent, parting));
                    }
                }
                (None, Some(_)) => self.serve(what_for)?,
            }
        }
    }

    /// Why the board of `agent` does not go on, though nobody owes the host a word.
    fn stall(&self, agent: u16) -> Error {
        let other =
            |board: &Board| board.other_words().map(|(round, words)| (board.agent, round, words.to_owned()));
        match self.boards.iter().find_map(other) {
            Some((agent, round, words)) => Error::OtherWords { agent, round, words },
            None => Error::Stalled { agent },
        }
    }

    /// Sends what waits to be sent and takes what comes next.
    fn serve(&mut self, what_for: &str) -> Result<(), Error> {
        for board in &mut self.boards {
            board.machine.flush(&self.poll);
        }
        match self.poll.poll(&mut self.events, Some(CHECK_EVERY)) {
            // Ctrl-C lets the boards catch up; the run then ends in order.
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
            outcome => outcome.map_err(Error::Wait)?,
        }
        for event in &self.events {
            let index = event.token().0 / TOKENS_EACH;
            if let Some(board) = self.boards.get_mut(index) {
                board.serve(event.token(), &self.poll, &mut self.hands)?;
            }
        }
        if self.events.is_empty() { self.find_the_lost(what_for) } else { Ok(()) }
    }

    /// Names a board that will not answer any more.
    fn find_the_lost(&mut self, what_for: &str) -> Result<(), Error> {
        for board in self.boards.iter_mut().filter(|board| board.is_awaited()) {
            if let Some(how) = board.machine.ended() {
                board.machine.read_log(&self.programs, &mut self.warnings);
                return Err(Error::Ended { agent: board.agent, how, messages: board.machine.last_words() });
            }
            if board.waited() > self.patience {
                let when = format!("when it was {what_for}");
                return Err(Error::Silent { agent: board.agent, after: self.patience, when });
            }
            board.ask_again();
        }
        Ok(())
    }

    /// Sets boards to work, those first that can go furthest, and none beyond slot `last`. Who said something else than its shadow
    /// goes to the end of the round, to see whether it comes to something else too.
    fn set_to_work(&mut self, last: u32) {
        let mut busy = self.boards.iter().filter(|board| board.script.is_under_way()).count();
        while busy < self.busy {
            let has_spoken = |speech: Speech| self.boards[speech.board].has_spoken(speech.air_round);
            let idle = self.boards.iter().enumerate().filter(|(_, board)| {
                board.is_up() && !board.is_away() && !board.script.is_under_way() && board.parting.is_none()
            });
            let able = idle.map(|(place, board)| {
                let most = if board.other_words().is_some() { 1 } else { AHEAD };
                (board.script.ready(last, has_spoken).min(most), scatter(place), place)
            });
            let Some((turns, _, place)) = able.max().filter(|&(turns, ..)| turns > 0) else { return };
            self.boards[place].grant(turns);
            self.boards[place].machine.flush(&self.poll);
            busy += 1;
        }
    }

    /// Who was the first not to be what its shadow is.
    fn first_parting(&self) -> Option<(u16, Parting)> {
        let partings = self.boards.iter().filter_map(|board| Some((board.agent, board.parting.clone()?)));
        partings.min_by_key(|(_, parting)| parting.slot)
    }

    /// Says how the board of `agent` parted from its shadow. Where it is held in another state, both states are kept for the run
    /// folder.
    fn explain(&mut self, agent: u16, Parting { round, difference, .. }: Parting) -> Error {
        match difference {
            Difference::Words(words) => Error::OtherWords { agent, round, words },
            Difference::State { board, shadow } => {
                let told = self.state_of(agent);
                let expected = self.find(agent).map(|board| board.shadow().to_vec()).unwrap_or_default();
                let dump = Dump { agent, round, board: told, shadow: expected };
                let difference = dump.to_string();
                self.dumps.push(dump);
                Error::Mismatch { agent, round, board, shadow, difference }
            }
        }
    }

    /// What the board of `agent` says its state is.
    fn state_of(&mut self, agent: u16) -> Result<Vec<u32>, Error> {
        let mut state = Vec::new();
        loop {
            if let Some(board) = self.find_mut(agent) {
                board.ask_for_state(state.len() as u32);
            }
            while !self.boards.iter().all(Board::has_told) {
                self.serve("to tell its state")?;
            }
            match self.find_mut(agent).and_then(Board::take_told) {
                Some(words) if !words.is_empty() => state.extend(words),
                _ => return Ok(state),
            }
        }
    }
}

/// An order in which neighbours are far apart: of boards that can go equally far, those that start together should not wait for
/// each other's words.
const fn scatter(place: usize) -> u32 {
    (place as u32).wrapping_mul(0x9E37_79B1)
}
