//! Small swarms in memory, under everything the air can do.

extern crate std;

mod construction;
mod ledgers;
mod lives;
mod membership;
mod recordings;
mod restarts;
mod state_words;
mod trust;

use super::*;
use crate::fab::{Order, Steps};
use crate::ledger;
use crate::problem::{Penalty, PenaltyForm, PolicyEvaluation, Shape};
use crate::rng::{Purpose, Stream};
use crate::wire::SCHEMA;
use crate::wire::frame::{DataHeader, Frame, Hello, MembersHeader};
use core::num::NonZeroU32;
use std::vec::Vec;

/// An epoch of the first founding.
const fn numbered(number: u32) -> Epoch {
    Epoch { number, ..Epoch::NONE }
}

const WORDS: usize = 10;
const AGENTS: usize = 4;

// Two features, four states; each agent has its own rewards.
const FEATURES: [f32; 8] = [0.9, 0.1, 0.4, 0.7, 0.3, 0.8, 0.6, 0.2];
const SUCCESSORS: [f32; 8] = [0.45, 0.4, 0.5, 0.42, 0.38, 0.47, 0.41, 0.44];
const REWARDS: [[f32; 4]; 5] = [
    [0.1, 0.9, 0.3, 0.5],
    [0.8, 0.2, 0.6, 0.4],
    [0.5, 0.5, 0.9, 0.1],
    [0.3, 0.7, 0.2, 0.8],
    [0.6, 0.1, 0.4, 0.9],
];

type Peers4 = heapless::Vec<PeerSlot<WORDS>, 8>;
type Ledger = LedgerState<Peers4, WORDS>;
type Small = Agent<PolicyEvaluation<'static, f32>, Peers4, WORDS>;

fn config(id: usize) -> Config {
    Config {
        steps: Steps { x: 0.4, y: 0.08, z: 0.08, momentum: 0.0 },
        penalty: Penalty { lambda: 20.0, normalise: true, form: PenaltyForm::OneSided },
        self_weight: 0.9,
        ..Config::founder(id as u16, AGENTS as u16)
    }
}

/// The links of a ring, on which agent i gives to agent i + 1. Both ends know them.
fn ring_links(id: usize) -> Links {
    let set = |member: usize| {
        let mut set = MemberSet::default();
        assert!(set.insert((member % AGENTS) as u16));
        set
    };
    Links::Known { audience: set(id + 1), senders: set(id + AGENTS - 1) }
}

fn problem(id: usize) -> PolicyEvaluation<'static, f32> {
    PolicyEvaluation { regularisation: 0.1, ..PolicyEvaluation::new(&FEATURES, &SUCCESSORS, &REWARDS[id]) }
}

fn agent(config: Config) -> Small {
    let problem = problem(config.id.into());
    Agent::new(config, problem, &[0.0; WORDS], Peers4::new()).unwrap()
}

fn swarm() -> Vec<Small> {
    (0..AGENTS).map(|id| agent(config(id))).collect()
}

/// All frames that are due, with their senders.
fn frames(agents: &mut [Small]) -> Vec<(usize, Vec<u8>)> {
    let mut frames = Vec::new();
    for (sender, agent) in agents.iter_mut().enumerate() {
        let mut out = [0; 256];
        while let Some(length) = agent.poll_frame(&mut out).unwrap() {
            frames.push((sender, out[..length].to_vec()));
        }
    }
    frames
}

/// One round in which `hears(receiver, sender)` decides. Returns its frames, with their senders.
fn exchange(agents: &mut [Small], mut hears: impl FnMut(usize, usize) -> bool) -> Vec<(usize, Vec<u8>)> {
    let sent = frames(agents);
    for (sender, frame) in &sent {
        for (receiver, agent) in agents.iter_mut().enumerate() {
            if receiver != *sender && hears(receiver, *sender) {
                let _ = agent.receive(Origin::Clear, frame);
            }
        }
    }
    for agent in agents.iter_mut() {
        assert_eq!(agent.end_on_beat().fault, None);
    }
    sent
}

/// As [`exchange`].
fn round(agents: &mut [Small], hears: impl FnMut(usize, usize) -> bool) {
    exchange(agents, hears);
}

/// A swarm after some rounds in which everybody hears everybody.
fn swarm_after(rounds: u32) -> Vec<Small> {
    let mut agents = swarm();
    (0..rounds).for_each(|_| round(&mut agents, |_, _| true));
    agents
}

/// `t + a·σ − Σρ = d` for each agent, and so `Σt + Σ(σ − ρ) = Σd` for all: no mass is lost or made.
fn check_balance<'l>(ledgers: impl IntoIterator<Item = &'l Ledger>) {
    for ledger in ledgers {
        let mut defect = ledger.t;
        ledger::add(&mut defect, &ledger.d, -1);
        ledger::add(&mut defect, &ledger.sigma, ledger.share_weights.audience() as i32);
        let collecting = ledger.peers.in_order().filter(|peer| peer.is_collecting);
        collecting.for_each(|peer| ledger::add(&mut defect, &peer.rho, -1));
        assert_eq!(defect, [0; WORDS]);
    }
}

/// As [`check_balance`].
fn check_invariant(agents: &[Small]) {
    check_balance(agents.iter().map(|agent| &agent.ledger));
}

/// The largest difference between two decisions.
fn gap(one: &Small, other: &Small) -> f32 {
    let pairs = one.decision().iter().zip(other.decision());
    pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

fn spread(agents: &[Small]) -> f32 {
    agents.iter().map(|agent| gap(agent, &agents[0])).fold(0.0, f32::max)
}

#[test]
fn swarms_agree_and_stop_moving_whatever_is_lost() {
    let [mut perfect, mut taking_turns, mut lossy] = [(); 3].map(|()| swarm());
    let mut stream = Stream::new(3, 0, 0, Purpose::Air);
    for now in 0..4000 {
        round(&mut perfect, |_, _| true);
        // Each hears one other a round, and all others in turn.
        round(&mut taking_turns, |receiver, sender| (sender + 1 + now % 3) % AGENTS == receiver);
        round(&mut lossy, |_, _| stream.uniform_f64() < 0.5);
    }
    assert!(spread(&taking_turns) < 1e-3, "{}", spread(&taking_turns));
    for agents in [&mut taking_turns, &mut lossy] {
        check_invariant(agents);
        assert!(gap(&agents[1], &perfect[1]) < 5e-3, "{}", gap(&agents[1], &perfect[1]));
    }
    let before = taking_turns[0].clone();
    (0..100).for_each(|_| round(&mut taking_turns, |_, _| true));
    assert!(gap(&taking_turns[0], &before) < 1e-3);
}

#[test]
fn a_frame_of_the_next_round_waits_for_it() {
    let (mut ahead, mut punctual) = (swarm(), swarm());
    // Agent 1 runs one round ahead of agent 0; in the other swarm both are in step.
    let first = frames(&mut ahead);
    for (sender, frame) in &first {
        (0..AGENTS).filter(|receiver| receiver != sender).for_each(|receiver| {
            assert_eq!(ahead[receiver].receive(Origin::Clear, frame), Received::Taken);
        });
    }
    for agent in &mut ahead[1..] {
        agent.end_round();
    }
    for (sender, frame) in frames(&mut ahead[1..]) {
        assert_eq!(ahead[0].receive(Origin::Clear, &frame), Received::Early, "from {}", sender + 1);
        assert_eq!(ahead[0].receive(Origin::Clear, &frame), Received::Stale);
    }
    ahead[0].end_round();
    ahead[0].end_round();
    round(&mut punctual, |_, _| true);
    round(&mut punctual, |receiver, _| receiver == 0);
    assert_eq!(ahead[0].digest(), punctual[0].digest());
}

#[test]
fn an_agent_one_round_behind_catches_up_on_the_next_beat() {
    let mut agents = swarm_after(5);
    // Agent 0 is off for one beat and keeps its memory.
    round(&mut agents[1..], |_, _| true);
    assert_eq!((agents[0].round(), agents[1].round()), (5, 6));
    round(&mut agents, |receiver, sender| receiver == 0 || sender == 0 || receiver != sender);
    assert!(agents.iter().all(|agent| agent.round() == 7));
    let heard = frames(&mut agents).into_iter().filter(|(sender, _)| *sender == 0);
    for (_, frame) in heard.collect::<Vec<_>>() {
        assert_eq!(agents[1].receive(Origin::Clear, &frame), Received::Taken);
    }
    check_invariant(&agents);
}

fn saved(agent: &Small) -> Vec<u32> {
    let mut saved = Vec::new();
    let Ok(()) = agent.save(|words| {
        saved.extend_from_slice(words);
        Ok::<_, core::convert::Infallible>(())
    });
    saved
}

#[test]
fn members_join_leave_and_are_given_up() {
    let patient = |id| Config { give_up_after: NonZeroU32::new(40), ..config(id) };
    let mut agents: Vec<Small> = (0..AGENTS).map(|id| agent(patient(id))).collect();
    (0..10).for_each(|_| round(&mut agents, |_, _| true));
    agents.push(agent(patient(4)));
    (0..10).for_each(|_| round(&mut agents, |_, _| true));
    check_invariant(&agents);
    assert!(agents.iter().all(|agent| agent.members().len() == 5 && agent.epoch() == agents[0].epoch()));

    agents[4].leave();
    (0..10).for_each(|_| round(&mut agents, |_, _| true));
    assert!(agents[..4].iter().all(|agent| agent.members().len() == 4 && agent.epoch() == agents[0].epoch()));

    // Agent 3 falls silent and comes back.
    (0..60).for_each(|_| round(&mut agents, |receiver, sender| receiver != 3 && sender != 3));
    assert!(agents[..3].iter().all(|agent| !agent.members().contains(3)));
    check_invariant(&agents[..3]);
    (0..30).for_each(|_| round(&mut agents, |_, _| true));
    assert!(
        agents[..4].iter().all(|agent| agent.members().contains(3) && agent.epoch() == agents[0].epoch())
    );
    check_invariant(&agents[..4]);
}

/// Without a key anybody may open an epoch of more members than an agent has room for.
#[test]
fn a_peer_too_many_is_refused() {
    let mut agent = agent(config(0));
    let epoch = numbered(2);
    let header = MembersHeader { sender: 1, epoch, round: 0, rounds_left: 9 };
    let opened = agent.receive(Origin::Clear, &encoded(Frame::Members(header, &[0xFF, 3])));
    assert_eq!(opened, Received::NewEpoch);
    let payload = [0; 1 + 8 * WORDS];
    let received = (1..10).map(|sender| {
        let header = DataHeader { sender, epoch: epoch.tag(), round: 0 };
        agent.receive(Origin::Clear, &encoded(Frame::Data(header, &payload)))
    });
    let mut expected = [Received::Taken; 9];
    expected[8] = Received::Refused(Refusal::NoRoom);
    assert_eq!(received.collect::<Vec<_>>(), expected);
}

#[test]
fn a_fault_says_what_is_wrong() {
    let fault = |x| {
        let steps = Steps { x, y: 0.1, z: 0.1, momentum: 0.0 };
        let mut agent = agent(Config { steps, order: Order::CombineFirst, ..config(2) });
        let fault = (0..5).find_map(|_| agent.end_round().fault);
        assert_eq!((agent.end_round().fault, agent.fault()), (fault, fault));
        assert_eq!(agent.receive(Origin::Clear, &[]), Received::Refused(Refusal::Stopped));
        fault.map(|fault| fault.cause)
    };
    assert_eq!(fault(f32::INFINITY), Some(FaultCause::DecisionNotFinite));
    assert_eq!(fault(1e6), Some(FaultCause::GradientOutOfRange));
}

#[test]
fn a_reset_forgets_everything() {
    let fresh = agent(config(2));
    let is_as_new = |agent: &mut Small| {
        agent.reset(&[0.0; WORDS]).unwrap();
        let mut out = [0; 256];
        assert_eq!(agent.fault(), None);
        assert_eq!(saved(agent), saved(&fresh));
        assert!(agent.poll_frame(&mut out).unwrap().is_some(), "it sends again");
    };
    let mut swarm = swarm_after(5);
    swarm[2].leave();
    is_as_new(&mut swarm[2]);

    let steps = Steps { x: f32::INFINITY, y: 0.1, z: 0.1, momentum: 0.0 };
    let mut stopped = agent(Config { steps, order: Order::CombineFirst, ..config(2) });
    assert!(stopped.end_round().fault.is_some());
    is_as_new(&mut stopped);

    // Regression: an agent that had just sent was silent for up to seven rounds after its reset.
    let mut quiet = agent(Config { send_threshold: 1e3, ..config(2) });
    assert!(!frames(core::slice::from_mut(&mut quiet)).is_empty());
    quiet.end_round();
    assert!(frames(core::slice::from_mut(&mut quiet)).is_empty(), "nothing has moved");
    is_as_new(&mut quiet);
}

/// A hello of an agent with the problem of these tests.
fn hello(sender: u16, boot: u32, epoch: Epoch, round: u32) -> Hello {
    Hello { sender, boot, epoch, round, schema: SCHEMA, x: 2, y: 4, ..Hello::default() }
}

/// A frame as bytes.
fn encoded(frame: Frame<'_>) -> Vec<u8> {
    let mut out = [0; 256];
    let length = frame.encode(&mut out).unwrap();
    out[..length].to_vec()
}

/// Every frame that `agents` exchanged over some rounds, with its sender.
fn recorded(agents: &mut [Small], rounds: u32) -> Vec<(usize, Vec<u8>)> {
    (0..rounds).flat_map(|_| exchange(agents, |_, _| true)).collect()
}

fn distance(agents: &[Small], others: &[Small]) -> f32 {
    let x = |agent: &Small| [agent.decision()[0], agent.decision()[1]];
    let pairs = agents.iter().zip(others).map(|(agent, other)| (x(agent), x(other)));
    let gaps = pairs.map(|(x, best)| (x[0] - best[0]).hypot(x[1] - best[1]) / best[0].hypot(best[1]));
    gaps.fold(0.0, f32::max)
}
