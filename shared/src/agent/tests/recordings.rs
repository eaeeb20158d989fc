//! Somebody records all frames and sends them again, to agents that keep no replay window: as if each had just restarted.

use super::*;

/// Frames that were on the air, by sender.
type Recording = Vec<(usize, Vec<u8>)>;

/// One round in which `hears(receiver, sender)` decides. Before anything else everybody hears `count` frames of the recording.
fn replayed_round(
    agents: &mut [Small],
    recording: &mut Recording,
    count: u32,
    stream: &mut Stream,
    hears: impl FnMut(usize, usize) -> bool,
) {
    for _ in 0..count {
        let Some((sender, frame)) = recording.get(stream.below(recording.len() as u32) as usize) else {
            break;
        };
        for receiver in (0..agents.len()).filter(|receiver| receiver != sender) {
            let _ = agents[receiver].receive(Origin::Clear, frame);
        }
    }
    recording.extend(exchange(agents, hears));
}

#[test]
fn recordings_change_no_state_in_lock_step() {
    for (seed, keeps_memory) in (0..20).flat_map(|seed| [(seed, true), (seed, false)]) {
        let patient = |id| Config { give_up_after: NonZeroU32::new(60), ..config(id) };
        let [mut alone, mut attacked]: [Vec<Small>; 2] =
            core::array::from_fn(|_| (0..AGENTS).map(|id| agent(patient(id))).collect());
        let (mut recording, mut unused) = (Vec::new(), Vec::new());
        let mut intruder = Stream::new(seed, 1, 0, Purpose::Air);
        for now in 0..260u32 {
            // An agent that is down keeps no beat.
            let is_down = |id: usize| id == 2 && (60..90).contains(&now);
            for (agents, recording, count) in
                [(&mut alone, &mut unused, 0), (&mut attacked, &mut recording, 12)]
            {
                if now == 90 {
                    let saved = saved(&agents[2]);
                    agents[2] = agent(Config { boot: 2, ..patient(2) });
                    if keeps_memory {
                        agents[2].restore(read_from(&saved)).unwrap();
                    }
                }
                if now == 140 {
                    agents.push(agent(patient(4)));
                }
                let mut out = std::mem::take(agents);
                let sleeper = is_down(2).then(|| out.remove(2));
                let number = |place: usize| place + usize::from(sleeper.is_some() && place >= 2);
                let mut links = Stream::new(seed, 0, now, Purpose::Air);
                let is_up: Vec<bool> = (0..36).map(|_| links.uniform_f64() < 0.5).collect();
                replayed_round(&mut out, recording, count, &mut intruder, |receiver, sender| {
                    is_up[number(receiver) * 6 + number(sender)]
                });
                if let Some(sleeper) = sleeper {
                    out.insert(2, sleeper);
                }
                *agents = out;
                check_invariant(agents);
            }
            for (one, other) in alone.iter().zip(&attacked) {
                assert_eq!(one.digest(), other.digest(), "seed {seed}, round {now}, agent {}", one.id());
                assert_eq!(one.members(), other.members());
            }
        }
        assert!(alone.iter().all(|agent| agent.members().len() == 5 && agent.round() == 260));
    }
}

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
