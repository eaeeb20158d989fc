//! An intruder without the key, beside boards in slots: it records every frame of every life of a swarm and plays any of it at any time
//! to anybody. What it plays is older than the superframe: to pass a frame on at once is a link that the swarm did not have.

use super::places::BENCH;
use super::simulation::{RadioAir, RadioEvent, RadioSwarmConfig};
use super::{RadioAgent, SharedTask};
use fabswarm_shared::agent::Origin;
use fabswarm_shared::rng::{Purpose, Stream};
use fabswarm_shared::slots::{SlotSchedule, Stamp};
use fabswarm_shared::wire::frame::Frame;
use fabswarm_shared::wire::seal::{Key, OVERHEAD_MAX, Opener, Sealer, VolatileBoots};
use fabswarm_sim::air::radio::{RadioConfig, RadioKind};
use fabswarm_sim::scenario::{Scenario, TopologyKind};

const AGENTS: usize = 4;

/// A frame on the tape, with the stamp that is sealed in it.
#[derive(Clone)]
struct Recorded {
    sender: usize,
    stamp: Stamp,
    sealed: Vec<u8>,
    at_s: f64,
}

struct Board {
    agent: RadioAgent,
    sealer: Sealer,
    opener: Opener<AGENTS>,
}

impl Board {
    fn new(task: &SharedTask, id: usize, boots: &mut VolatileBoots) -> Self {
        let sealer = Sealer::start(id as u16, 1, boots).unwrap();
        Self { agent: task.agent(id, sealer.boot()), sealer, opener: Opener::new() }
    }

    /// All frames of this round, sealed.
    fn frames(&mut self, key: &Key) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        let mut frame = [0; 512];
        while let Some(length) = self.agent.poll_frame(&mut frame).unwrap() {
            let mut sealed = vec![0; length + OVERHEAD_MAX];
            let end = self.sealer.seal(key, &frame[..length], &mut sealed).unwrap();
            sealed.truncate(end);
            frames.push(sealed);
        }
        frames
    }

    /// Takes a frame as the firmware does. Returns whether its stamp may tell the time.
    fn hear(&mut self, key: &Key, sealed: &[u8], slots: &mut SlotSchedule) -> bool {
        let mut plain = [0; 512];
        let Ok(opened) = self.opener.open(key, sealed, &mut plain) else { return false };
        let origin = Origin::Sealed { sender: opened.sender, boot: opened.boot };
        let was_waiting = self.agent.is_waiting();
        let received = self.agent.receive(origin, opened.frame);
        if was_waiting && !self.agent.is_waiting() {
            slots.doubt(self.agent.round());
        }
        self.agent.may_tell_time(&Frame::decode(opened.frame).unwrap(), Some(received))
    }
}

/// A swarm from the time when it is switched on until it loses power.
struct Life {
    key: Key,
    air: RadioAir,
    boards: Vec<Board>,
    /// Packets of each board in its last slot.
    on_air: Vec<Vec<Vec<u8>>>,
    tape: Vec<Recorded>,
    superframe_s: f64,
}

impl Life {
    fn new(task: &SharedTask, boots: &mut [VolatileBoots], seed: u64) -> Self {
        let needs = RadioConfig { agents: AGENTS as u16, frame_bytes: 120, ..RadioConfig::default() };
        let settings = RadioSwarmConfig::new(RadioKind::Ieee802154, &needs, BENCH);
        let superframe_s = settings.period_s();
        let air = RadioAir::all_on(RadioSwarmConfig { seed, loss: 0.2, ..settings });
        let boards = boots.iter_mut().enumerate().map(|(id, boots)| Board::new(task, id, boots)).collect();
        Self {
            key: Key::new(&[7; 32]),
            air,
            boards,
            on_air: vec![Vec::new(); AGENTS],
            tape: Vec::new(),
            superframe_s,
        }
    }

    /// Goes on for a number of superframes.
    fn run(&mut self, superframes: f64) {
        let Self { key, air, boards, on_air, tape, superframe_s } = self;
        let until_s = air.seconds() + superframes * *superframe_s;
        air.run_boards(until_s, &mut |event, at_s, slots| match event {
            RadioEvent::Sent { agent, stamp } => {
                on_air[agent] = boards[agent].frames(key);
                let recorded =
                    |sealed: &Vec<u8>| Recorded { sender: agent, stamp, sealed: sealed.clone(), at_s };
                tape.extend(on_air[agent].iter().map(recorded));
                false
            }
            RadioEvent::Delivered { sender, receiver } => on_air[sender]
                .iter()
                .fold(false, |any, sealed| boards[receiver].hear(key, sealed, slots) | any),
            RadioEvent::RoundEnded { agent } => {
                let agent = &mut boards[agent].agent;
                assert_eq!(agent.end_round().fault, None);
                while agent.is_behind() {
                    agent.end_round();
                }
                false
            }
        });
    }

    fn play(&mut self, recorded: &Recorded, receiver: usize) {
        let Recorded { sender, stamp, sealed, .. } = recorded;
        let Self { key, air, boards, .. } = self;
        air.inject(*sender, receiver, stamp, |slots| boards[receiver].hear(key, sealed, slots));
    }

    fn is_settled(&self) -> bool {
        let epoch = self.boards[0].agent.epoch();
        self.air.is_synchronised()
            && self.boards.iter().all(|board| board.agent.epoch() == epoch && !board.agent.is_waiting())
    }

    /// Waits until all are in one epoch: two swarms that are founded at once become one. Returns whether they did.
    fn settle(&mut self) -> bool {
        (0..400).any(|_| {
            self.run(1.0);
            self.is_settled()
        })
    }

    /// All that recordings must leave as it is.
    fn state(&self) -> impl PartialEq + core::fmt::Debug {
        let agents = self
            .boards
            .iter()
            .map(|Board { agent, .. }| (agent.digest(), agent.round(), agent.epoch(), *agent.members()));
        let slots = self.air.schedules().map(|slots| (slots.due(), slots.number(), slots.stamp().root));
        (agents.collect::<Vec<_>>(), slots.collect::<Vec<_>>())
    }
}

/// Lives through two lives, the second with and without the intruder.
fn attack(task: &SharedTask, seed: u64) {
    let mut boots = [VolatileBoots::after([0, 8190, 1 << 20][seed as usize % 3]); AGENTS];
    let mut first = Life::new(task, &mut boots, seed);
    first.run(80.0);
    let restarted = 1 + seed as usize % 3;
    first.boards[restarted] = Board::new(task, restarted, &mut boots[restarted]);
    first.air.switch_on(restarted, 0);
    first.run(80.0);
    assert!(first.is_settled(), "seed {seed}");
    let mut before = first.tape;

    let [mut alone, mut victims] = [boots; 2].map(|mut boots| Life::new(task, &mut boots, seed + 1));
    assert!(alone.settle() && victims.settle(), "seed {seed}: two swarms stay apart");
    before.iter_mut().for_each(|recorded| recorded.at_s = f64::NEG_INFINITY);
    let mut draw = Stream::new(seed, 7, 0, Purpose::Air);
    let mut below = |end: usize| draw.below(end as u32) as usize;
    // Besides single frames, it plays those of one sender one after the other, at their pace.
    let (mut next, mut offset) = (0, 0.0);
    for now in 0..120 {
        if now == 30 && seed.is_multiple_of(2) {
            // The root dies, and the intruder has all that it said.
            alone.air.switch_off(0);
            victims.air.switch_off(0);
        }
        let horizon_s = victims.air.seconds() - 2.0 * victims.superframe_s;
        let later = victims.tape.iter().take_while(|recorded| recorded.at_s < horizon_s);
        let tape: Vec<&Recorded> = before.iter().chain(later).collect();
        if below(8) == 0 {
            (next, offset) = (below(tape.len()), below(1000) as f64 / 1000.0);
        }
        let sender = tape[next % tape.len()].sender;
        let run = tape.iter().enumerate().skip(next + 1).find(|(_, recorded)| recorded.sender == sender);
        next = run.map_or(0, |(next, _)| next);
        let mut plays: Vec<_> =
            (0..below(9)).map(|_| (below(1000) as f64 / 1000.0, tape[below(tape.len())].clone())).collect();
        plays.push((offset, tape[next].clone()));
        plays.sort_by(|one, other| one.0.total_cmp(&other.0));
        let mut passed = 0.0;
        for (at, recorded) in plays {
            victims.run(at - passed);
            passed = at;
            let receivers = below(16);
            for receiver in (0..AGENTS).filter(|id| receivers >> id & 1 == 1 && *id != recorded.sender) {
                victims.play(&recorded, receiver);
            }
        }
        victims.run(1.0 - passed);
        alone.run(1.0);
        assert_eq!(alone.state(), victims.state(), "seed {seed}, superframe {now}");
    }
}

#[test]
fn no_schedule_of_recordings_changes_a_swarm_in_slots() {
    let mut scenario = Scenario::default();
    scenario.swarm.agents = AGENTS;
    scenario.network.topology = TopologyKind::Complete;
    (scenario.policy_evaluation.features, scenario.policy_evaluation.states) = (1, 2);
    let task = SharedTask::new(&scenario);
    let cases = if std::env::var_os("FABSWARM_LONG").is_some() { 2000 } else { 40 };
    (0..cases).for_each(|seed| attack(&task, seed));
}
