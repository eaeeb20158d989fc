//! The end of a flight. Real boards would otherwise fly on for all rounds of their pages, under a key that is gone.

use super::{LOOK_EVERY, SlotBoards};
use fabswarm_shared::packet::Packet;
use std::time::{Duration, Instant};

/// How long boards may take to report that they wait for a page. The next run reports the others.
const LAND_WITHIN: Duration = Duration::from_secs(3);

/// Interval at which a restarting board is asked to wait for a page: it may not listen yet.
const ASK_EVERY: Duration = Duration::from_millis(50);

impl Drop for SlotBoards {
    fn drop(&mut self) {
        let is_plugged = |index: &usize| {
            let link = &self.fleet.boards[*index].link;
            link.is_serial() && !link.is_unplugged()
        };
        let mut flying: Vec<usize> = (0..self.fleet.boards.len()).filter(is_plugged).collect();
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

impl SlotBoards {
    fn tell(&mut self, boards: &[usize], packet: &Packet) {
        for &index in boards {
            let link = &mut self.fleet.boards[index].link;
            link.push(packet);
            link.flush(&self.fleet.poll);
        }
    }

    /// Removes the boards from `flying` that wait for a page or are gone.
    fn hear_landed(&mut self, flying: &mut Vec<usize>) {
        let Ok(Some(tokens)) = self.fleet.poll(ASK_EVERY.min(LOOK_EVERY)) else { return };
        let mut packet = Vec::new();
        for token in tokens {
            let Ok((index, mut is_down)) = self.fleet.receive(token) else { continue };
            while let Ok(true) = self.fleet.boards[index].link.pop(&mut packet) {
                is_down |= matches!(Packet::decode(&packet), Ok(Packet::Boot(boot)) if boot.page.is_err());
            }
            flying.retain(|&flying| flying != index || !is_down);
        }
    }
}
