//! A small swarm on a hostile air: bytes are a program of rounds on bad links, restarts, power cuts, pauses, recordings and forgeries.

use core::num::NonZeroU32;
use fabswarm_shared::agent::{Agent, Config, Mode, Origin, PeerSlot, Received, read_from};
use fabswarm_shared::fab::Steps;
use fabswarm_shared::heapless;
use fabswarm_shared::problem::PolicyEvaluation;
use fabswarm_shared::wire::seal::Opener;

/// Founders. One more agent may come later.
pub const AGENTS: usize = 4;
const WORDS: usize = 3;
const MOST_ROUNDS: u32 = 600;
/// Rounds on good links after which all agents are one swarm again.
const QUIET_ROUNDS: u32 = 400;
/// Rounds from one restart to the next: on a ring nobody can confirm anything while two are away.
const RESTART_EVERY: u32 = 40;
/// Links on which each agent hears the one before it.
const RING: u16 = 0b0001_1000_0100_0010;

type SmallAgent = Agent<PolicyEvaluation<'static, f32>, heapless::Vec<PeerSlot<WORDS>, AGENTS>, WORDS>;

/// An agent that opens each frame once.
pub struct Station {
    pub agent: SmallAgent,
    opener: Opener<{ AGENTS + 1 }>,
    pub config: Config,
    sent: u32,
    is_paused: bool,
}

/// A frame, and who sealed it in which boot, as its how many-th.
#[derive(Clone)]
pub struct Recorded {
    pub sender: usize,
    boot: u32,
    counter: u32,
    pub frame: Vec<u8>,
}

impl Station {
    pub fn new(config: Config) -> Self {
        Self { agent: start(config), opener: Opener::new(), config, sent: 0, is_paused: false }
    }

    pub fn restart(&mut self, keeps_memory: bool) {
        let config = Config { boot: self.config.boot + 1, ..self.config };
        let before = std::mem::replace(self, Self::new(config));
        if keeps_memory {
            self.agent.restore(read_from(&saved(&before.agent))).expect("its own state");
            (0..)
                .zip(before.opener.boots())
                .for_each(|(sender, boot)| self.opener.restore_boot(sender, boot));
        }
    }

    /// Takes a frame, unless its replay window refuses it.
    pub fn hear(&mut self, recorded: &Recorded) -> Option<Received> {
        let &Recorded { sender, boot, counter, .. } = recorded;
        self.opener.admit(sender as u16, boot, counter).ok().map(|()| self.take(recorded))
    }

    /// Takes a frame as one that keeps no replay window.
    fn take(&mut self, &Recorded { sender, boot, ref frame, .. }: &Recorded) -> Received {
        let (was_waiting, epoch, round) = (self.agent.is_waiting(), self.agent.epoch(), self.agent.round());
        let received = self.agent.receive(Origin::Sealed { sender: sender as u16, boot }, frame);
        if !was_waiting && !self.agent.is_waiting() {
            assert!(self.agent.epoch() >= epoch && self.agent.round() >= round, "agents only go forward");
            assert!(self.agent.members().contains(self.agent.id()));
        }
        received
    }
}

pub fn config(id: usize, boot: u32, mode: Mode) -> Config {
    let steps = Steps { x: 0.2, y: 0.05, z: 0.05, momentum: 0.5 };
    let give_up_after = NonZeroU32::new(500);
    Config { boot, mode, steps, give_up_after, ..Config::founder(id as u16, AGENTS as u16) }
}

fn start(config: Config) -> SmallAgent {
    const REWARDS: [[f32; 1]; AGENTS + 1] = [[1.0], [0.5], [-0.25], [0.75], [0.25]];
    let rewards = &REWARDS[usize::from(config.id)];
    let problem = PolicyEvaluation { regularisation: 0.1, ..PolicyEvaluation::new(&[1.0], &[0.5], rewards) };
    Agent::new(config, problem, &[0.0; WORDS], heapless::Vec::new()).expect("a problem that fits")
}

fn saved(agent: &SmallAgent) -> Vec<u32> {
    let mut words = Vec::new();
    let Ok(()) = agent.save(|part| {
        words.extend_from_slice(part);
        Ok::<_, core::convert::Infallible>(())
    });
    words
}

/// Bit `AGENTS * sender + receiver` of `links` says who is heard.
fn on_links(links: u16) -> impl Fn(usize, usize) -> bool {
    move |receiver, sender| links >> (AGENTS * sender + receiver) & 1 == 1
}

/// One round in which `hears(receiver, sender)` decides. All of its frames are on the tape then.
pub fn round(stations: &mut [Station], hears: impl Fn(usize, usize) -> bool, tape: &mut Vec<Recorded>) {
    let heard_from = tape.len();
    for (sender, station) in stations.iter_mut().enumerate().filter(|(_, station)| !station.is_paused) {
        let mut frame = [0; 256];
        while let Ok(Some(length)) = station.agent.poll_frame(&mut frame) {
            station.sent += 1;
            let (boot, counter) = (station.config.boot, station.sent);
            tape.push(Recorded { sender, boot, counter, frame: frame[..length].to_vec() });
        }
    }
    for (receiver, station) in stations.iter_mut().enumerate().filter(|(_, station)| !station.is_paused) {
        for recorded in &tape[heard_from..] {
            if receiver != recorded.sender && hears(receiver, recorded.sender) {
                let _ = station.hear(recorded);
            }
        }
        assert_eq!(station.agent.end_on_beat().fault, None);
    }
}

/// Whatever is replayed, to agents that keep no replay window, a swarm in lock-step ends every round in the states of one that is left alone.
pub fn swarm(bytes: &[u8]) -> bool {
    let stations = || (0..AGENTS).map(|id| Station::new(config(id, 1, Mode::LockStep))).collect::<Vec<_>>();
    let (mut attacked, mut alone) = (stations(), stations());
    let (mut tape, mut unused) = (Vec::new(), Vec::new());
    let mut program = bytes.iter().copied();
    let (mut rounds, mut restarted_in, mut replays) = (0, None, 0);
    while let Some(operation) = program.next() {
        let mut next = || u16::from(program.next().unwrap_or(0));
        let chosen = usize::from(operation >> 4) % AGENTS;
        match operation % 8 {
            0..3 if rounds < MOST_ROUNDS => {
                // A ring at least.
                let links = RING | next() | next() << 8;
                round(&mut attacked, on_links(links), &mut tape);
                round(&mut alone, on_links(links), &mut unused);
                rounds += 1;
                for (one, other) in attacked.iter().zip(&alone) {
                    assert_eq!(one.agent.digest(), other.agent.digest(), "round {rounds}");
                    assert_eq!(one.agent.members(), other.agent.members(), "round {rounds}");
                }
            }
            3..7 if !tape.is_empty() => {
                let _ = attacked[chosen].take(&tape[usize::from(next() | next() << 8) % tape.len()]);
                replays += 1;
            }
            7 if restarted_in.is_none_or(|round| rounds >= round + RESTART_EVERY) => {
                restarted_in = Some(rounds);
                let keeps_memory = operation & 8 == 0;
                attacked[chosen].restart(keeps_memory);
                alone[chosen].restart(keeps_memory);
            }
            _ => {}
        }
    }
    rounds > 0 && replays > 0
}

/// Whatever is lost, restarted or replayed: agents go forward only, and on good links they become one swarm whose ledger balances.
pub fn membership(bytes: &[u8]) -> bool {
    let Some((&first, bytes)) = bytes.split_first() else { return false };
    let mode = if first & 1 == 0 { Mode::LockStep } else { Mode::FreeRunning };
    let mut stations: Vec<Station> = (0..AGENTS).map(|id| Station::new(config(id, 1, mode))).collect();
    let (mut program, mut tape, mut rounds) = (bytes.iter().copied(), Vec::new(), 0);
    while let Some(operation) = program.next() {
        let mut next = || u16::from(program.next().unwrap_or(0));
        let chosen = usize::from(operation >> 4) % AGENTS;
        match operation % 8 {
            0..3 => {
                let links = next() | next() << 8;
                let repeats = if operation & 8 == 0 { 1 } else { next().into() };
                for _ in 0..repeats.min(MOST_ROUNDS - rounds) {
                    round(&mut stations, on_links(links), &mut tape);
                    rounds += 1;
                }
            }
            3 | 4 if !tape.is_empty() => {
                let recorded = tape[usize::from(next() | next() << 8) % tape.len()].clone();
                let _ = stations[chosen].hear(&recorded);
            }
            5 => stations[chosen].restart(operation & 8 == 0),
            6 => stations[chosen].is_paused ^= true,
            7 => stations.iter_mut().for_each(|station| station.restart(false)),
            _ => {}
        }
    }
    stations.iter_mut().for_each(|station| station.is_paused = false);
    for _ in 0..QUIET_ROUNDS {
        round(&mut stations, |_, _| true, &mut tape);
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

/// Frames that are not sealed, real ones with changes or none at all, make no agent panic; what is refused changes nothing.
pub fn receive(bytes: &[u8]) -> bool {
    let mut agents: Vec<SmallAgent> = (0..AGENTS).map(|id| start(config(id, 1, Mode::LockStep))).collect();
    let mut program = bytes.iter().copied();
    let mut recording: Vec<Vec<u8>> = Vec::new();
    let (mut rounds, mut taken) = (0, false);
    while let Some(operation) = program.next() {
        let mut next = || program.next().unwrap_or(0);
        let victim = usize::from(operation >> 4) % AGENTS;
        let mut frame = match operation % 4 {
            0 if rounds < MOST_ROUNDS => {
                rounds += 1;
                agents.iter_mut().for_each(|agent| {
                    agent.end_round();
                });
                for agent in &mut agents {
                    let mut out = [0; 256];
                    while let Ok(Some(length)) = agent.poll_frame(&mut out) {
                        recording.push(out[..length].to_vec());
                    }
                }
                continue;
            }
            1 => (0..next() % 64).map(|_| next()).collect(),
            _ if recording.is_empty() => continue,
            _ => recording[recording.len() - 1 - usize::from(next()) % recording.len()].clone(),
        };
        for _ in 0..operation >> 2 & 3 {
            let (at, change) = (usize::from(next()), next());
            if let Some(byte) = frame.get_mut(at) {
                *byte ^= change;
            }
        }
        let origin = match next() {
            0..128 => Origin::Clear,
            sealed => Origin::Sealed { sender: u16::from(sealed) % AGENTS as u16, boot: 1 },
        };
        let agent = &mut agents[victim];
        let before = agent.digest();
        let received = agent.receive(origin, &frame);
        assert!(!matches!(received, Received::Refused(_)) || agent.digest() == before, "{received:?}");
        taken |= received == Received::Taken;
    }
    taken
}
