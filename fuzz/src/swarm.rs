//! A small swarm on a hostile air: bytes are a program of rounds, restarts, replays and forgeries.

use core::num::NonZeroU32;
use fabswarm_shared::agent::{Agent, Config, Mode, Origin, PeerSlot, Received, read_from};
use fabswarm_shared::fab::Steps;
use fabswarm_shared::heapless;
use fabswarm_shared::problem::PolicyEvaluation;
use fabswarm_shared::wire::seal::{Key, OVERHEAD_MAX, Opener, Sealer, VolatileBoots};

pub const AGENTS: usize = 4;
const WORDS: usize = 3;
/// Rounds from one restart to the next: on a ring nobody can confirm anything while two are away.
const RESTART_EVERY: u32 = 40;
const MOST_ROUNDS: u32 = 300;

pub type SmallAgent = Agent<PolicyEvaluation<'static, f32>, heapless::Vec<PeerSlot<WORDS>, AGENTS>, WORDS>;

struct Member {
    agent: SmallAgent,
    boots: VolatileBoots,
    sealer: Sealer,
    opener: Opener<AGENTS>,
}

pub fn start(id: usize, boot: u32, mode: Mode) -> SmallAgent {
    const REWARDS: [[f32; 1]; AGENTS] = [[1.0], [0.5], [-0.25], [0.75]];
    let problem = PolicyEvaluation {
        features: &[1.0],
        successors: &[0.5],
        rewards: &REWARDS[id],
        upper_weight: 1.0,
        lower_weight: 1.0,
        regularisation: 0.1,
        reward_noise: 0.0,
        seed: 0,
    };
    let steps = Steps { x: 0.2, y: 0.05, z: 0.05, momentum: 0.5 };
    let give_up_after = NonZeroU32::new(500);
    let config = Config { boot, mode, steps, give_up_after, ..Config::founder(id as u16, AGENTS as u16) };
    Agent::new(config, problem, &[0.0; WORDS], heapless::Vec::new()).expect("a problem that fits")
}

pub fn saved(agent: &SmallAgent) -> Vec<u32> {
    let mut words = Vec::new();
    let Ok(()) = agent.save(|part| {
        words.extend_from_slice(part);
        Ok::<_, core::convert::Infallible>(())
    });
    words
}

impl Member {
    fn new(id: usize) -> Self {
        let mut boots = VolatileBoots::new();
        let sealer = Sealer::start(id as u16, 1, &mut boots).expect("a first boot");
        Self { agent: start(id, 1, Mode::LockStep), boots, sealer, opener: Opener::new() }
    }

    fn restart(&mut self, keeps_memory: bool) {
        let id = self.agent.id();
        self.sealer = Sealer::start(id, 1, &mut self.boots).expect("boots are not spent");
        let (state, boots) = (saved(&self.agent), self.opener.boots().collect::<Vec<_>>());
        (self.agent, self.opener) = (start(id.into(), self.sealer.boot(), Mode::LockStep), Opener::new());
        if keeps_memory {
            self.agent.restore(read_from(&state)).expect("its own state");
            boots
                .iter()
                .enumerate()
                .for_each(|(sender, &boot)| self.opener.restore_boot(sender as u16, boot));
        }
    }

    /// Opens a frame and takes it; what does not open changes nothing.
    fn receive(&mut self, key: &Key, sealed: &[u8]) -> Option<Received> {
        let mut out = [0; 256];
        let opened = self.opener.open(key, sealed, &mut out).ok()?;
        let origin = Origin::Sealed { sender: opened.sender, boot: opened.boot };
        Some(self.agent.receive(origin, opened.frame))
    }
}

/// A swarm whose frames are sealed.
struct Swarm {
    members: Vec<Member>,
    recording: Vec<Vec<u8>>,
}

impl Swarm {
    fn new() -> Self {
        Self { members: (0..AGENTS).map(Member::new).collect(), recording: Vec::new() }
    }

    /// One round on a ring, with further links by the bits of `links`.
    fn round(&mut self, key: &Key, links: u16) {
        let mut sent = Vec::new();
        for (sender, member) in self.members.iter_mut().enumerate() {
            let mut frame = [0; 256];
            while let Ok(Some(length)) = member.agent.poll_frame(&mut frame) {
                let mut sealed = vec![0; length + OVERHEAD_MAX];
                let end = member.sealer.seal(key, &frame[..length], &mut sealed).expect("room for a frame");
                sealed.truncate(end);
                sent.push((sender, sealed));
            }
        }
        for (sender, sealed) in &sent {
            for receiver in (0..AGENTS).filter(|receiver| receiver != sender) {
                if receiver == (sender + 1) % AGENTS || links >> (sender * AGENTS + receiver) & 1 == 1 {
                    let _ = self.members[receiver].receive(key, sealed);
                }
            }
        }
        for member in &mut self.members {
            assert_eq!(member.agent.end_on_beat().fault, None);
        }
        self.recording.extend(sent.into_iter().map(|(_, sealed)| sealed));
    }
}

/// Whatever is replayed, damaged or invented, a sealed swarm ends every round in the states of one that is left alone.
pub fn swarm(bytes: &[u8], key: &Key) -> bool {
    let (mut attacked, mut alone) = (Swarm::new(), Swarm::new());
    let mut program = bytes.iter().copied();
    let (mut rounds, mut restarted_in, mut replays) = (0, None, 0);
    while let Some(operation) = program.next() {
        let mut next = || usize::from(program.next().unwrap_or(0));
        let receiver = usize::from(operation >> 4) % AGENTS;
        match operation % 8 {
            0..3 if rounds < MOST_ROUNDS => {
                let links = (next() | next() << 8) as u16;
                attacked.round(key, links);
                alone.round(key, links);
                rounds += 1;
                for (one, other) in attacked.members.iter().zip(&alone.members) {
                    assert_eq!(one.agent.digest(), other.agent.digest(), "round {rounds}");
                    assert_eq!(one.agent.members(), other.agent.members(), "round {rounds}");
                }
            }
            3 | 4 if !attacked.recording.is_empty() => {
                let place = (next() | next() << 8) % attacked.recording.len();
                let frame = attacked.recording[place].clone();
                let _ = attacked.members[receiver].receive(key, &frame);
                replays += 1;
            }
            5 if !attacked.recording.is_empty() => {
                let place = next() % attacked.recording.len();
                let mut frame = attacked.recording[attacked.recording.len() - 1 - place].clone();
                let (at, change) = (next() % frame.len(), next() as u8);
                frame[at] ^= change;
                let before = attacked.members[receiver].agent.digest();
                let received = attacked.members[receiver].receive(key, &frame);
                assert!(change == 0 || received.is_none(), "a damaged frame opened");
                assert_eq!(attacked.members[receiver].agent.digest(), before);
            }
            6 => {
                let length = next() % 64;
                let invented: Vec<u8> = (0..length).map(|_| next() as u8).collect();
                assert_eq!(attacked.members[receiver].receive(key, &invented), None);
            }
            7 if restarted_in.is_none_or(|round| rounds >= round + RESTART_EVERY) => {
                restarted_in = Some(rounds);
                let keeps_memory = operation & 8 == 0;
                attacked.members[receiver].restart(keeps_memory);
                alone.members[receiver].restart(keeps_memory);
            }
            _ => {}
        }
    }
    rounds > 0 && replays > 0
}

/// Frames that are not sealed, real ones with changes or none at all, make no agent panic; what is refused changes nothing.
pub fn receive(bytes: &[u8]) -> bool {
    let mut agents: Vec<SmallAgent> = (0..AGENTS).map(|id| start(id, 1, Mode::LockStep)).collect();
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
