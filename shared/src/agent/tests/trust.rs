//! An agent's trust in others: who may collect, who is alive, and what no single frame can do.

use super::*;

#[test]
fn who_is_not_in_the_audience_takes_decisions_only() {
    let ring = || {
        (0..AGENTS).map(|id| agent(Config { links: ring_links(id), ..config(id) })).collect::<Vec<Small>>()
    };
    let (mut alone, mut overheard) = (ring(), ring());
    for _ in 0..4000 {
        round(&mut alone, |receiver, sender| (sender + 1) % AGENTS == receiver);
        // Agent 2 hears everybody.
        round(&mut overheard, |receiver, sender| receiver == 2 || (sender + 1) % AGENTS == receiver);
        check_invariant(&overheard);
    }
    assert!(overheard[2].collected().all(|collection| collection.sender == 1));
    let distance = distance(&overheard, &alone);
    assert!(distance < 0.01, "{distance}");
}

#[test]
fn two_members_that_die_together_are_both_given_up() {
    const ALL: usize = 5;
    let patient = |id| Config { give_up_after: NonZeroU32::new(40), founders: ALL as u16, ..config(id) };
    for seed in 0..20 {
        let mut agents: Vec<Small> = (0..ALL).map(|id| agent(patient(id))).collect();
        let mut stream = Stream::new(seed, 0, 0, Purpose::Air);
        let died_at = 20 + stream.below(40);
        let dead = (stream.below(2) as usize, 2 + stream.below(3) as usize);
        let is_alive = |id: usize| id != dead.0 && id != dead.1;
        for now in 0..died_at + 400 {
            round(&mut agents, |receiver, sender| {
                let are_up = now < died_at || (is_alive(receiver) && is_alive(sender));
                are_up && stream.uniform_f64() < 0.4
            });
        }
        for (id, agent) in agents.iter().enumerate().filter(|(id, _)| is_alive(*id)) {
            let is_living = |other: u16| is_alive(other.into()) == agent.members().contains(other);
            assert!(
                (0..ALL as u16).all(is_living),
                "seed {seed}: agent {id} has {:?}",
                agent.members().as_bytes()
            );
        }
    }
}

#[test]
fn a_recorded_hello_lets_no_ghost_in() {
    let mut agents = swarm();
    agents.push(agent(config(4)));
    let recording = recorded(&mut agents, 30);
    let hellos: Vec<_> =
        recording.iter().filter(|(sender, frame)| *sender == 4 && frame[0] == 1).cloned().collect();
    assert!(hellos.len() > 1 && agents[0].members().contains(4));
    agents[4].leave();
    (0..40).for_each(|_| round(&mut agents, |_, _| true));
    agents.pop();
    // These agents keep no replay window, so all of it reaches them as after a restart.
    for _ in 0..20 {
        for (_, hello) in &hellos {
            agents.iter_mut().for_each(|agent| {
                let _ = agent.receive(Origin::Sealed { sender: 4, boot: 1 }, hello);
            });
        }
        round(&mut agents, |_, _| true);
        check_invariant(&agents);
        assert!(agents.iter().all(|agent| !agent.members().contains(4)));
    }
}

#[test]
fn a_joiner_that_hears_recordings_keeps_its_round_and_forgets_no_ledger() {
    let mut agents = swarm();
    let mut recording = recorded(&mut agents, 50);
    // An epoch in which agent 2 has a ledger that it then loses.
    agents[1] = agent(Config { boot: 2, ..config(1) });
    recording.extend(recorded(&mut agents, 50));
    assert!(agents[2].epoch() > Epoch::FIRST && agents[2].members().contains(2));
    let before = agents[2].epoch();
    agents[2] = agent(Config { boot: 2, ..config(2) });
    for (own_round, replayed) in recording.chunks(9).enumerate() {
        for (_, frame) in replayed {
            let _ = agents[2].receive(Origin::Clear, frame);
            assert_eq!((agents[2].round(), agents[2].epoch()), (own_round as u32, Epoch::NONE));
        }
        agents[2].end_round();
    }
    // It is let in by those that are there, and into a new epoch.
    for _ in 0..40 {
        round(&mut agents, |_, _| true);
        check_invariant(&agents);
    }
    assert!(agents.iter().all(|agent| agent.epoch() == agents[0].epoch() && agent.epoch() > before));
    assert!(agents.iter().all(|agent| agent.round() == agents[0].round()));
}

#[test]
fn no_single_frame_of_a_member_moves_anybody() {
    let mut agents = swarm_after(20);
    let hello = hello(3, 1, Epoch::FIRST, 20);
    let mut payload = [0; 1 + 8 * WORDS];
    let data = |number, round, payload: &[u8]| {
        let epoch = numbered(number);
        encoded(Frame::Data(DataHeader { sender: 3, epoch: epoch.tag(), round }, payload))
    };
    let everybody = [0xF];
    let members = |number| {
        let epoch = numbered(number);
        encoded(Frame::Members(MembersHeader { sender: 3, epoch, round: 20, rounds_left: 9 }, &everybody))
    };
    let (jump, unreadable) = (Refusal::Jump, Refusal::Wire(crate::wire::Error::NotFinite));
    let mut bad = std::vec![
        (data(1, u32::MAX - 1, &payload), jump),
        (data(1, 20 + 65, &payload), jump),
        (members(u32::MAX), jump),
        (members(u32::MAX - (1 << 20)), jump),
        (members(9 * 1024 + 3), jump),
        (encoded(Frame::Hello(Hello { epoch: numbered(u32::MAX), ..hello })), jump),
        (encoded(Frame::Hello(Hello { sender: 2, ..hello })), Refusal::Impostor),
        (encoded(Frame::Hello(Hello { boot: 9, ..hello })), Refusal::Impostor),
        (encoded(Frame::Hello(Hello { schema: 5, ..hello })), Refusal::Schema { theirs: 5 }),
        (encoded(Frame::Hello(Hello { x: 3, ..hello })), Refusal::Shape),
    ];
    payload[1..5].copy_from_slice(&3e38f32.to_le_bytes());
    bad.push((data(1, 20, &payload), Refusal::Magnitude));
    payload[1..5].copy_from_slice(&f32::NAN.to_le_bytes());
    // An agent must not skip rounds for it.
    bad.push((data(1, 60, &payload), unreadable));
    let stranger = DataHeader { sender: 4, epoch: Epoch::FIRST.tag(), round: 20 };
    let stranger = encoded(Frame::Data(stranger, &[0; 1 + 8 * WORDS]));
    for agent in &mut agents[..3] {
        let before = saved(agent);
        for (frame, refusal) in &bad {
            let sealed = Origin::Sealed { sender: 3, boot: 1 };
            assert_eq!(agent.receive(sealed, frame), Received::Refused(*refusal));
        }
        assert_eq!(agent.receive(Origin::Clear, &stranger), Received::Refused(Refusal::NotMember));
        assert_eq!(saved(agent), before);
    }
    // A swarm that was never attacked goes on in the same way.
    let mut others = swarm_after(20);
    for _ in 0..10 {
        round(&mut agents, |_, _| true);
        round(&mut others, |_, _| true);
        assert!(agents.iter().zip(&others).all(|(agent, other)| agent.digest() == other.digest()));
    }
}

/// Trackers end at 2048: a round moves a word by 2048 η / (1 − β) at most, from a start that everybody knows to within 1.
#[test]
fn decisions_are_believed_up_to_what_steps_can_make_of_them() {
    let steps = Steps { x: 0.25, y: 0.05, z: 0.0625, momentum: 0.5 };
    for (after, largest) in [(0, 1.5 + 1024.0), (3, 1.5 + 4.0 * 1024.0)] {
        for (size, is_believed) in
            [(largest, true), (-largest, true), (largest + 1.0, false), (-largest - 1.0, false)]
        {
            let make =
                |id| Agent::new(Config { steps, ..config(id) }, problem(id), &[-0.5; WORDS], Peers4::new());
            let mut agents: Vec<Small> = (0..AGENTS).map(|id| make(id).unwrap()).collect();
            (0..after).for_each(|_| round(&mut agents, |_, _| true));
            let mut frame = frames(&mut agents)[1].1.clone();
            let start = frame.len() - Width::Full.payload_bytes(WORDS);
            frame[start + 1..start + 5].copy_from_slice(&f32::to_le_bytes(size));
            let received = agents[0].receive(Origin::Clear, &frame);
            let expected = if is_believed { Received::Taken } else { Received::Refused(Refusal::Magnitude) };
            assert_eq!(received, expected, "{size} in round {after}");
        }
    }
}

#[test]
fn a_silent_member_is_given_up_after_its_time_and_not_before() {
    let patient = |id| Config { give_up_after: NonZeroU32::new(40), ..config(id) };
    for heard in [0, 1, 20] {
        let mut agents: Vec<Small> = (0..AGENTS).map(|id| agent(patient(id))).collect();
        (0..heard).for_each(|_| round(&mut agents, |_, _| true));
        // A founder that is dead on arrival could have spoken in the first round.
        for silent in 0..41 + u32::from(heard == 0) {
            assert!(agents[0].members().contains(3), "heard {heard} times, silent for {silent} rounds");
            round(&mut agents[..3], |_, _| true);
        }
        assert!(agents[..3].iter().all(|agent| agent.members().len() == 3), "heard {heard} times");
        (0..3000).for_each(|_| round(&mut agents[..3], |_, _| true));
        let mut alone: Vec<Small> = (0..3).map(|id| agent(Config { founders: 3, ..config(id) })).collect();
        (0..3000).for_each(|_| round(&mut alone, |_, _| true));
        assert!(distance(&agents[..3], &alone) < 1e-3, "heard {heard} times");
    }
}

/// The joiner answers its challenge, is let in, and loses power before its first data frame.
#[test]
fn a_joiner_that_dies_before_its_first_data_frame_is_given_up() {
    for mode in [Mode::LockStep, Mode::FreeRunning] {
        let patient = |id| Config { mode, give_up_after: NonZeroU32::new(40), ..config(id) };
        let mut agents: Vec<Small> = (0..=AGENTS).map(|id| agent(patient(id))).collect();
        while agents[0].members().len() == 4 {
            round(&mut agents, |_, _| true);
        }
        agents.pop();
        (0..100).for_each(|_| round(&mut agents, |_, _| true));
        assert!(agents.iter().all(|agent| agent.members().len() == 4), "{mode:?}");
    }
}

/// Each agent hears one other. What it knows of the rest is what others tell.
#[test]
fn members_that_somebody_hears_are_not_given_up() {
    for mode in [Mode::LockStep, Mode::FreeRunning] {
        let patient = |id| Config { mode, give_up_after: NonZeroU32::new(40), ..config(id) };
        let mut agents: Vec<Small> = (0..AGENTS).map(|id| agent(patient(id))).collect();
        let ring = |receiver: usize, sender: usize| (sender + 1) % AGENTS == receiver;
        (0..500).for_each(|_| round(&mut agents, ring));
        assert!(agents.iter().all(|agent| agent.epoch() == Epoch::FIRST), "{mode:?}");
        // Agent 0 alone hears agent 3, and learns first that it is silent.
        agents.pop();
        (0..60).for_each(|_| round(&mut agents, |_, _| true));
        assert!(agents.iter().all(|agent| agent.members().len() == 3), "{mode:?}");
    }
}
