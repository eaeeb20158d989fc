//! Ledgers that are damaged on purpose: the books see it, and name who is concerned.

use super::*;
use crate::scenario::{Crash, Crashes, ModeKind, Scenario, TopologyKind, WidthKind};
use crate::trial::{ExactAgents, exact_agents};
use fabswarm_shared::agent::{Epoch, Links, Peers, Received, read_from};
use fabswarm_shared::ledger;
use fabswarm_shared::wire;
use fabswarm_shared::wire::frame::{DataHeader, Frame, Hello, MembersHeader};
use fabswarm_shared::wire::payload::Width;
use fabswarm_shared::wire::seal::{Key, Sealer, VolatileBoots};

type ExactSwarm = AgentSwarm<64>;

fn scenario(topology: TopologyKind) -> Scenario {
    let mut scenario = Scenario::default();
    scenario.network.topology = topology;
    scenario.swarm.agents = 6;
    scenario
}

fn swarm(scenario: &Scenario) -> ExactSwarm {
    let ExactAgents { task, setup, air, .. } = exact_agents(scenario).unwrap();
    AgentSwarm::new(task, air, scenario.swarm.agents, setup).unwrap()
}

/// A swarm in which everybody hears everybody, after some rounds.
fn complete_swarm() -> ExactSwarm {
    let mut swarm = swarm(&scenario(TopologyKind::Complete));
    (0..20).for_each(|_| swarm.step().unwrap());
    swarm
}

/// The fault of the books in the next rounds: an agent that was restored first has to find the round.
#[track_caller]
fn imbalance(swarm: &mut ExactSwarm) -> Imbalance {
    for _ in 0..10 {
        assert_eq!(swarm.metrics().tracking_defect, 0.0);
        let round = swarm.round() + 1;
        if let Err(SwarmError::Books(broken)) = swarm.step() {
            assert_eq!(broken.round, round);
            let defect = swarm.metrics().tracking_defect;
            assert!(defect > 0.0 && defect.is_finite(), "{defect}");
            return broken.what;
        }
    }
    panic!("the books hold")
}

fn rho(swarm: &ExactSwarm, sender: u16, receiver: usize) -> Vec<i32> {
    let mut collected = swarm.agents[receiver].agent.collected();
    collected.find(|collection| collection.sender == sender).unwrap().rho.to_vec()
}

/// Words of a ledger as numbers.
fn values(words: impl Iterator<Item = i32>) -> Vec<f64> {
    words.map(|word| f64::from(ledger::value(word))).collect()
}

#[test]
fn an_invented_sum_breaks_the_books() {
    let mut swarm = complete_swarm();
    let mut buffer = [0; 512];
    let length = swarm.agents[3].agent.poll_frame(&mut buffer).unwrap().unwrap();
    // The last word of the running sum comes last.
    buffer[length - 4] ^= 1;
    let sealed = swarm.agents[3].seal.seal(&buffer[..length]).to_vec();
    let SimAgent { agent, seal, .. } = &mut swarm.agents[5];
    let (origin, frame) = seal.open(&sealed).unwrap();
    assert_eq!(agent.receive(origin, frame), Received::Taken);
    assert_eq!(imbalance(&mut swarm), Imbalance::Invented { sender: 3, receiver: 5, sender_round: 20 });
    let sigma = swarm.agents[3].agent.sigma();
    assert_eq!(swarm.defect(), values(rho(&swarm, 3, 5).iter().zip(sigma).map(|(rho, sigma)| rho - sigma)));
}

#[test]
fn a_doubled_take_breaks_the_books() {
    // With clocks of their own, so that agent 5 goes on at once after it was restored.
    let mut scenario = scenario(TopologyKind::Complete);
    (scenario.swarm.mode, scenario.swarm.clock_spread) = (ModeKind::FreeRunning, 0.0);
    let [mut swarm, mut twin] = [swarm(&scenario), swarm(&scenario)];
    for _ in 0..20 {
        swarm.step().unwrap();
        twin.step().unwrap();
    }
    let before = rho(&twin, 3, 5);
    twin.step().unwrap();
    let after = rho(&twin, 3, 5);
    // Agent 5 forgets some of what it took, as much as it takes next.
    let mut state = saved(&swarm.agents[5].agent);
    let words: Vec<u32> = before.iter().map(|&word| word as u32).collect();
    let place = state.windows(words.len()).position(|window| window == words).unwrap();
    for (word, (before, after)) in state[place..].iter_mut().zip(before.iter().zip(&after)) {
        *word = before.wrapping_sub(after.wrapping_sub(*before)) as u32;
    }
    swarm.agents[5].agent.restore(read_from(&state)).unwrap();
    assert_eq!(imbalance(&mut swarm), Imbalance::Doubled { sender: 3, receiver: 5 });
    assert_eq!(swarm.defect(), values(after.iter().zip(&before).map(|(after, before)| after - before)));
}

#[test]
fn a_tracker_that_changes_by_itself_breaks_the_books() {
    let mut swarm = complete_swarm();
    let agent = &mut swarm.agents[4].agent;
    let trackers: Vec<u32> = agent.trackers().iter().map(|&word| word as u32).collect();
    let mut state = saved(agent);
    let place = state.windows(trackers.len()).position(|window| window == trackers).unwrap();
    state[place] = state[place].wrapping_add(1 << 9);
    agent.restore(read_from(&state)).unwrap();
    assert_eq!(imbalance(&mut swarm), Imbalance::Tracker { receiver: 4 });
    let (first, others) =
        swarm.defect().split_first().map(|(first, others)| (*first, others.to_vec())).unwrap();
    assert_eq!(first, 2.0_f64.powi(9 - 20));
    assert!(others.iter().all(|word| *word == 0.0), "{others:?}");
}

#[test]
fn a_listener_too_many_breaks_the_books() {
    let ring = exact_agents(&scenario(TopologyKind::Ring)).unwrap();
    let mut complete = exact_agents(&scenario(TopologyKind::Complete)).unwrap();
    complete.setup.audiences = ring.setup.audiences;
    let mut swarm = ExactSwarm::new(complete.task, complete.air, 6, complete.setup).unwrap();
    (0..20).for_each(|_| swarm.step().unwrap());
    // Agent 2 restarts with a page that lets it collect from everybody.
    let (task, mut config) = (swarm.task.clone(), swarm.setup.config_of(2, 1));
    let Links::Known { audience, .. } = config.links else { panic!("a ring has known links") };
    config.links = Links::Known { audience, senders: MemberSet::first(6).unwrap() };
    let start = task.start();
    let mut greedy =
        HeapAgent::new(config, AgentProblem::new(task, 2), &start, HeapPeers::default()).unwrap();
    greedy.restore(read_from(&saved(&swarm.agents[2].agent))).unwrap();
    *swarm.agents[2].agent = greedy;
    let strangers = |swarm: &ExactSwarm| [0, 3, 4, 5].map(|sender| rho(swarm, sender, 2));
    let before = strangers(&swarm);
    assert_eq!(imbalance(&mut swarm), Imbalance::Listener { sender: 0, receiver: 2 });
    // The mass that it made is the mass that it took from agents without a share for it.
    let after = strangers(&swarm);
    let made =
        |word: usize| after.iter().zip(&before).map(|(after, before)| after[word] - before[word]).sum();
    assert_eq!(swarm.defect(), values((0..swarm.shape.exchanged().len()).map(made)));
}

#[test]
fn an_agent_that_shares_with_too_many_breaks_the_books() {
    let ring = exact_agents(&scenario(TopologyKind::Ring)).unwrap().setup.audiences;
    let swarm = swarm(&scenario(TopologyKind::Complete));
    let mut books = Books::new(6, swarm.shape.exchanged().len(), ring);
    let balance = books.balance(4, &ledger_of(&swarm.agents[4].agent));
    assert_eq!(balance, Err(Imbalance::Audience { sender: 4, given: 5, listeners: 1 }));
}

#[test]
fn mass_that_waits_and_mass_that_nobody_will_collect_are_told_apart() {
    let mut scenario = scenario(TopologyKind::Complete);
    let mut well = swarm(&scenario);
    let crash = Crash { agent: 2, round: 30, down_rounds: 1000, keeps_memory: true };
    scenario.faults.crashes = Crashes(vec![crash]);
    let mut bereft = swarm(&scenario);
    for _ in 0..100 {
        well.step().unwrap();
        bereft.step().unwrap();
    }
    assert_eq!(well.uncollected_mass().owed_to_gone, 0.0);
    let mass = bereft.uncollected_mass();
    assert!(mass.owed_to_gone > 0.0 && mass.waiting > 0.0, "{mass:?}");
    assert!(mass.owed_to_gone > 10.0 * well.uncollected_mass().waiting, "{mass:?}");
}

/// A founder that is dead on arrival stays a member: nobody can give up whom nobody has heard.
#[test]
fn members_that_nobody_has_heard_are_named() {
    let mut scenario = scenario(TopologyKind::Ring);
    scenario.faults.crashes = Crashes(vec![
        Crash { agent: 2, round: 0, down_rounds: 1000, keeps_memory: true },
        Crash { agent: 4, round: 30, down_rounds: 1000, keeps_memory: true },
    ]);
    let mut swarm = swarm(&scenario);
    for _ in 0..100 {
        swarm.step().unwrap();
    }
    // On the ring only agent 2 could have heard agent 1. Agent 4 was heard before it died.
    assert_eq!(swarm.unheard_members(), Some(vec![1, 2]));
}

/// One frame each of a member whose key was stolen, over the air: refused, counted by cause, and nobody moves.
#[test]
fn frames_of_a_stolen_key_move_nobody() {
    let (mut swarm, mut twin) = (complete_swarm(), complete_swarm());
    let mut out = [0; 512];
    let words = swarm.shape.exchanged().len();
    let mut payload = vec![0; Width::Full.payload_bytes(words)];
    let shape = swarm.shape;
    let hello = Hello {
        sender: 3,
        boot: 1,
        epoch: Epoch { number: u32::MAX - 1, ..Epoch::FIRST },
        round: 20,
        schema: wire::SCHEMA,
        x: shape.x as u16,
        y: shape.y as u16,
        x_is_local: shape.x_is_local,
        ..Hello::default()
    };
    let mut crafted: Vec<Vec<u8>> = Vec::new();
    let mut craft = |frame: Frame<'_>| {
        let length = frame.encode(&mut out).unwrap();
        crafted.push(out[..length].to_vec());
    };
    craft(Frame::Data(DataHeader { sender: 3, epoch: Epoch::FIRST.tag(), round: u32::MAX - 2 }, &payload));
    for number in [u32::MAX - 1, 1 << 30] {
        let epoch = Epoch { number, ..Epoch::FIRST };
        craft(Frame::Members(MembersHeader { sender: 3, epoch, round: 20, rounds_left: 9 }, &[63]));
    }
    craft(Frame::Hello(hello));
    craft(Frame::Hello(Hello { sender: 4, epoch: Epoch::FIRST, ..hello }));
    payload[1..5].copy_from_slice(&3e38_f32.to_le_bytes());
    craft(Frame::Data(DataHeader { sender: 3, epoch: Epoch::FIRST.tag(), round: 20 }, &payload));
    let mut later = Sealer::start(3, 1, &mut VolatileBoots::after(u32::MAX - 9)).unwrap();
    let key = Key::new(swarm.setup.key.as_ref().unwrap().bytes());
    let sealed_length = later.seal(&key, &crafted[0], &mut out).unwrap();
    let of_a_later_boot = out[..sealed_length].to_vec();
    for frame in &crafted {
        let sealed = swarm.agents[3].seal.seal(frame).to_vec();
        swarm.air.transmit(swarm.slot, 3, &sealed);
    }
    swarm.air.transmit(swarm.slot, 3, &of_a_later_boot);
    for _ in 0..30 {
        swarm.step().unwrap();
        twin.step().unwrap();
        assert!(swarm.agents().zip(twin.agents()).all(|(own, other)| own.digest() == other.digest()));
    }
    // Each frame was heard by the five others.
    let refused = &swarm.air.counters().refused;
    let expected = [
        ("round or epoch far ahead", 4 * 5),
        ("encrypted by another sender", 5),
        ("decision out of range", 5),
        ("boot far ahead", 5),
    ];
    assert_eq!(refused, &expected.into_iter().collect());
}

#[test]
fn receptions_stay_listed_where_payloads_build_on_each_other() {
    for (width, active) in [(WidthKind::Full, 0), (WidthKind::Half, 5), (WidthKind::Byte, 5)] {
        let mut scenario = scenario(TopologyKind::Complete);
        scenario.frames.width = width;
        let mut swarm = swarm(&scenario);
        swarm.step().unwrap();
        let agent = &mut swarm.agents[0].agent;
        (0..2).for_each(|_| assert_eq!(agent.end_round().fault, None));
        assert_eq!(agent.peers().active().count(), active, "{width:?}");
    }
}
