//! Membership of a small swarm: bytes are a program of rounds on bad links, restarts, power cuts, pauses and recordings.

use crate::swarm::{AGENTS, SmallAgent, saved, start};
use fabswarm_shared::agent::{Mode, Origin, read_from};
use fabswarm_shared::wire::seal::Opener;

const MOST_ROUNDS: u32 = 600;
/// Rounds on good links after which all agents are one swarm again.
const QUIET_ROUNDS: u32 = 400;

struct Station {
    agent: SmallAgent,
    opener: Opener<AGENTS>,
    mode: Mode,
    boot: u32,
    sent: u32,
    is_paused: bool,
}

/// A frame, and who sealed it in which boot, as its how many-th.
#[derive(Clone)]
struct Recorded {
    sender: usize,
    boot: u32,
    counter: u32,
    frame: Vec<u8>,
}

impl Station {
    fn new(id: usize, boot: u32, mode: Mode) -> Self {
        let agent = start(id, boot, mode);
        Self { agent, opener: Opener::new(), mode, boot, sent: 0, is_paused: false }
    }

    fn restart(&mut self, keeps_memory: bool) {
        let id = usize::from(self.agent.id());
        let before = std::mem::replace(self, Self::new(id, self.boot + 1, self.mode));
        if keeps_memory {
            self.agent.restore(read_from(&saved(&before.agent))).expect("its own state");
            (0..)
                .zip(before.opener.boots())
                .for_each(|(sender, boot)| self.opener.restore_boot(sender, boot));
        }
    }

    fn hear(&mut self, recorded: &Recorded) {
        let &Recorded { sender, boot, counter, ref frame } = recorded;
        if sender == usize::from(self.agent.id()) || self.opener.admit(sender as u16, boot, counter).is_err()
        {
            return;
        }
        let (was_waiting, epoch, round) = (self.agent.is_waiting(), self.agent.epoch(), self.agent.round());
        let _ = self.agent.receive(Origin::Sealed { sender: sender as u16, boot }, frame);
        if !was_waiting && !self.agent.is_waiting() {
            assert!(self.agent.epoch() >= epoch && self.agent.round() >= round, "agents only go forward");
            assert!(self.agent.members().contains(self.agent.id()));
        }
    }
}

/// One round, in which bit `AGENTS * sender + receiver` of `links` says who is heard.
fn round(stations: &mut [Station], links: u16, tape: &mut Vec<Recorded>) {
    let heard_from = tape.len();
    for (sender, station) in stations.iter_mut().enumerate().filter(|(_, station)| !station.is_paused) {
        let mut frame = [0; 256];
        while let Ok(Some(length)) = station.agent.poll_frame(&mut frame) {
            station.sent += 1;
            let (boot, counter) = (station.boot, station.sent);
            tape.push(Recorded { sender, boot, counter, frame: frame[..length].to_vec() });
        }
    }
    for (receiver, station) in stations.iter_mut().enumerate().filter(|(_, station)| !station.is_paused) {
        for recorded in &tape[heard_from..] {
            if links >> (AGENTS * recorded.sender + receiver) & 1 == 1 {
                station.hear(recorded);
            }
        }
        assert_eq!(station.agent.end_on_beat().fault, None);
    }
}

/// Whatever is lost, restarted or replayed: agents go forward only, and on good links they become one swarm whose ledger balances.
pub fn membership(bytes: &[u8]) -> bool {
    let Some((&first, bytes)) = bytes.split_first() else { return false };
    let mode = if first & 1 == 0 { Mode::LockStep } else { Mode::FreeRunning };
    let mut stations: Vec<Station> = (0..AGENTS).map(|id| Station::new(id, 1, mode)).collect();
    let (mut program, mut tape, mut rounds) = (bytes.iter().copied(), Vec::new(), 0);
    while let Some(operation) = program.next() {
        let mut next = || u16::from(program.next().unwrap_or(0));
        let chosen = usize::from(operation >> 4) % AGENTS;
        match operation % 8 {
            0..3 => {
                let links = next() | next() << 8;
                let repeats = if operation & 8 == 0 { 1 } else { next().into() };
                for _ in 0..repeats.min(MOST_ROUNDS - rounds) {
                    round(&mut stations, links, &mut tape);
                    rounds += 1;
                }
            }
            3 | 4 if !tape.is_empty() => {
                let recorded = tape[usize::from(next() | next() << 8) % tape.len()].clone();
                stations[chosen].hear(&recorded);
            }
            5 => stations[chosen].restart(operation & 8 == 0),
            6 => stations[chosen].is_paused ^= true,
            7 => stations.iter_mut().for_each(|station| station.restart(false)),
            _ => {}
        }
    }
    stations.iter_mut().for_each(|station| station.is_paused = false);
    for _ in 0..QUIET_ROUNDS {
        round(&mut stations, u16::MAX, &mut tape);
    }
    assert_is_one_swarm(&stations, mode);
    rounds > 0
}

fn assert_is_one_swarm(stations: &[Station], mode: Mode) {
    let words = stations[0].agent.trackers().len();
    let mut defect = vec![0_i32; words];
    let mut add = |sums: &[i32], times: i32| {
        defect.iter_mut().zip(sums).for_each(|(sum, word)| *sum = sum.wrapping_add(word.wrapping_mul(times)));
    };
    for Station { agent, .. } in stations {
        let round = if mode == Mode::LockStep { agent.round() } else { 0 };
        let state = (agent.epoch(), agent.members().len(), agent.is_waiting(), round);
        let first = &stations[0].agent;
        let expected = (first.epoch(), AGENTS as u32, false, if round == 0 { 0 } else { first.round() });
        assert_eq!(state, expected, "agent {}", agent.id());
        add(agent.trackers(), 1);
        add(agent.tracked_gradients(), -1);
        add(agent.sigma(), agent.audience() as i32);
        agent.collected().for_each(|collection| add(collection.rho, -1));
    }
    assert!(defect.iter().all(|&word| word == 0), "{defect:?}");
}
