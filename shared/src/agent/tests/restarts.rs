//! Agents that stop and come back, with and without their memory.

use super::*;

/// Each agent of a directed ring hears one other, so no answer comes back the way that the question took.
#[test]
fn parts_founded_apart_merge_on_a_directed_ring() {
    let rounds_apart = [0, 1, 2, 100].map(|apart| (Mode::LockStep, apart));
    let cases = rounds_apart.into_iter().flat_map(|case| [(case, [2, 3]), (case, [5, 3])]);
    for ((mode, apart), boots) in cases.chain([((Mode::FreeRunning, 100), [2, 3])]) {
        let make = |id: usize, boot| agent(Config { boot, mode, ..config(id) });
        let mut agents: Vec<Small> = (0..AGENTS).map(|id| make(id, boots[0])).collect();
        for now in 0..250 {
            if now == apart {
                [2, 3].into_iter().for_each(|id| agents[id] = make(id, boots[1]));
            }
            round(&mut agents, |receiver, sender| (receiver < 2) == (sender < 2));
        }
        let [one, other] = [0, 2].map(|id| (agents[id].epoch(), agents[id].round()));
        assert!(!one.0.is_of_founding(other.0) && one.1 == other.1 + apart, "{one:?} {other:?}");
        for _ in 0..300 {
            round(&mut agents, |receiver, sender| (sender + 1) % AGENTS == receiver);
            check_invariant(&agents);
        }
        let state = |agent: &Small| (agent.epoch(), agent.members().len(), agent.is_waiting());
        let together = (agents[0].epoch(), 4, false);
        assert!(agents.iter().all(|agent| state(agent) == together), "{mode:?}, {boots:?}, {apart}");
        assert!(mode == Mode::FreeRunning || agents.iter().all(|agent| agent.round() == agents[0].round()));
    }
}

/// Byte payloads of an odd number of words have two lengths, in turn.
#[test]
fn an_agent_that_was_away_catches_up_on_narrow_frames() {
    const ODD: usize = 11;
    // Until words change little enough for narrow payloads.
    const TOGETHER: u32 = 600;
    const WIDE: [f32; 12] = [0.9, 0.1, 0.4, 0.7, 0.3, 0.8, 0.6, 0.2, 0.5, 0.1, 0.9, 0.4];
    let make = |id: usize| {
        let rewards = &REWARDS[id];
        let problem = PolicyEvaluation { features: &WIDE, successors: &WIDE, rewards, ..problem(id) };
        let config = Config { width: Width::Byte, founders: 2, ..config(id) };
        let peers = heapless::Vec::<PeerSlot<ODD>, 4>::new();
        Agent::<_, _, ODD>::new(config, problem, &[0.0; ODD], peers).unwrap()
    };
    let mut lengths = std::collections::BTreeSet::new();
    for away in 3..20 {
        let (mut sleeper, mut sender) = (make(0), make(1));
        let mut out = [0; 256];
        let mut last = 0;
        for now in 0..=TOGETHER + away {
            last = sender.poll_frame(&mut out).unwrap().unwrap();
            if now <= TOGETHER {
                let _ = sleeper.receive(Origin::Clear, &out[..last]);
                sleeper.end_round();
            }
            if now < TOGETHER + away {
                sender.end_round();
            }
        }
        assert_eq!(sleeper.receive(Origin::Clear, &out[..last]), Received::Taken, "after {away} rounds");
        assert_eq!(sleeper.round(), sender.round());
        lengths.insert(last);
    }
    assert!(lengths.len() > 2, "full payloads and byte payloads of two lengths: {lengths:?}");
}

#[test]
fn a_restart_with_memory_goes_on_where_it_was() {
    let mut agents = swarm_after(50);
    let saved = saved(&agents[2]);
    let mut restored = agent(Config { boot: 2, ..config(2) });
    restored.restore(read_from(&saved)).unwrap();
    assert_eq!((restored.digest(), restored.membership.heard_epoch), (agents[2].digest(), None));
    agents[2] = restored;
    for _ in 0..50 {
        round(&mut agents, |_, _| true);
        check_invariant(&agents);
    }
    assert!(agents.iter().all(|agent| agent.epoch() == Epoch::FIRST));
    let mut other = agent(config(1));
    assert_eq!(other.restore(read_from(&saved)), Err(Error::Memory));
    for cut in 0..saved.len() {
        assert_eq!(agent(config(2)).restore(read_from(&saved[..cut])), Err(Error::Memory));
    }
    let longer = [&saved[..], &[0]].concat();
    let mut spoiled = agent(config(2));
    assert_eq!(spoiled.restore(read_from(&longer)), Err(Error::Memory));
    spoiled.reset(&[0.0; WORDS]).unwrap();
    let fresh = agent(config(2));
    assert_eq!((spoiled.digest(), spoiled.epoch()), (fresh.digest(), Epoch::FIRST));
    assert!(spoiled.collected().all(|collection| collection.rho == [0; WORDS]));
    assert_eq!(agents[2].save(|_| Err("full")), Err("full"));
}
