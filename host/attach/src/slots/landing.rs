//! The end of a flight: real boards would fly on for all rounds of their pages, under a key that nobody has any more.

use super::{Flight, LOOK_EVERY};
use crate::machine::board_machine::TOKENS_PER_BOARD;
use fabswarm_shared::packet::Packet;
use mio::Poll;
use std::time::{Duration, Instant};

/// How long boards may take to say that they wait for a page. Those that do not are told to the next run.
const LAND_WITHIN: Duration = Duration::from_secs(3);

/// How often a board that has just restarted is asked to wait for a page: it may not listen yet.
const ASK_EVERY: Duration = Duration::from_millis(50);

impl Drop for Flight {
    fn drop(&mut self) {
        let is_plugged = |index: &usize| {
            let machine = &self.boards[*index].machine;
            machine.is_serial() && !machine.is_unplugged()
        };
        let mut flying: Vec<usize> = (0..self.boards.len()).filter(is_plugged).collect();
        self.tell(&flying, &Packet::Reset);
        let land_until = Instant::now() + LAND_WITHIN;
        let mut asked = Instant::now();
        while !flying.is_empty() && Instant::now() < land_until {
            if asked.elapsed() >= ASK_EVERY {
                asked = Instant::now();
                self.tell(&flying, &Packet::Service);
            }
            self.hear_landed(&mut flying);
        }
    }
}

impl Flight {
    fn tell(&mut self, boards: &[usize], packet: &Packet) {
        let poll: &Poll = &self.poll;
        for &index in boards {
            let machine = &mut self.boards[index].machine;
            machine.push(packet);
            machine.flush(poll);
        }
    }

    /// Takes those out of `flying` that wait for a page, or are gone.
    fn hear_landed(&mut self, flying: &mut Vec<usize>) {
        if self.poll.poll(&mut self.events, Some(ASK_EVERY.min(LOOK_EVERY))).is_err() {
            return;
        }
        let mut packet = Vec::new();
        for token in self.events.iter().map(mio::event::Event::token) {
            let index = token.0 / TOKENS_PER_BOARD;
            let machine = &mut self.boards[index].machine;
            let mut is_down = machine.fill(&mut self.chunk);
            while let Ok(true) = machine.pop(&mut packet) {
                is_down |= matches!(Packet::decode(&packet), Ok(Packet::Boot(boot)) if boot.page.is_err());
            }
            flying.retain(|&flying| flying != index || !is_down);
        }
    }
}
