//! Frames that were held back, and swarms whose time stood still.

use super::*;

/// Whether agent 0 still has agent 3 as a member in `round`, when the last frames of agent 3, which died in round 60, reach it
/// one by one, 25 rounds apart.
fn is_kept_by_trickling_frames(mode: Mode, round: u32) -> bool {
    let patient = |id| Config { mode, give_up_after: NonZeroU32::new(40), ..config(id) };
    let mut agents: Vec<Small> = (0..AGENTS).map(|id| agent(patient(id))).collect();
    let mut held_back = Vec::new();
    for now in 0..round {
        let sent = frames(&mut agents);
        for (sender, frame) in &sent {
            if *sender == 3 && now >= 60 {
                continue;
            }
            if *sender == 3 && now >= 50 {
                held_back.push(frame.clone());
                continue;
            }
            agents.iter_mut().for_each(|agent| {
                let _ = agent.receive(Origin::Clear, frame);
            });
        }
        if now > 60 && now % 25 == 0 && !held_back.is_empty() {
            let frame = held_back.remove(0);
            agents[..3].iter_mut().for_each(|agent| {
                let _ = agent.receive(Origin::Sealed { sender: 3, boot: 1 }, &frame);
            });
        }
        agents.iter_mut().for_each(|agent| assert_eq!(agent.end_round().fault, None));
    }
    agents[0].members().contains(3)
}

#[test]
fn frames_that_trickle_in_keep_no_dead_member_alive() {
    for (mode, given_up) in [(Mode::LockStep, 92), (Mode::FreeRunning, 50 + 41 + 3 * 4)] {
        assert!(is_kept_by_trickling_frames(mode, 90));
        assert!(!is_kept_by_trickling_frames(mode, given_up), "{mode:?}");
    }
}

#[test]
fn a_whole_swarm_that_restarts_with_its_memory_goes_on() {
    let mut agents = swarm_after(50);
    for (id, place) in agents.iter_mut().enumerate() {
        // They stopped some rounds apart.
        (0..id).for_each(|_| assert_eq!(place.end_round().fault, None));
        let saved = saved(place);
        *place = agent(Config { boot: 2, ..config(id) });
        place.restore(read_from(&saved)).unwrap();
    }
    for _ in 0..100 {
        round(&mut agents, |receiver, sender| (sender + 1) % AGENTS == receiver);
        check_invariant(&agents);
    }
    assert!(agents.iter().all(|agent| agent.epoch() == Epoch::FIRST && agent.round() == agents[0].round()));
    assert!(agents.iter().all(|agent| !agent.is_waiting()));
}

#[test]
fn a_suspended_agent_that_was_given_up_comes_back() {
    let patient = |id| Config { give_up_after: NonZeroU32::new(40), ..config(id) };
    let mut agents: Vec<Small> = (0..AGENTS).map(|id| agent(patient(id))).collect();
    (0..20).for_each(|_| round(&mut agents, |_, _| true));
    // Its clock stands still.
    (0..100).for_each(|_| round(&mut agents[1..], |_, _| true));
    assert!(!agents[1].members().contains(0));
    for _ in 0..30 {
        round(&mut agents, |_, _| true);
        check_invariant(&agents);
    }
    assert!(agents.iter().all(|agent| agent.members().len() == 4 && agent.round() == agents[1].round()));
}
