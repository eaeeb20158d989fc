//! How single frames about members are answered.

use super::*;
use crate::wire::frame::{Admission, Challenge, SilenceHeader};

/// All frames that an agent has to send, as bytes.
fn sent(agent: &mut Small) -> Vec<Vec<u8>> {
    frames(core::slice::from_mut(agent)).into_iter().map(|(_, frame)| frame).collect()
}

fn admissions_of(agent: &mut Small) -> Vec<Admission> {
    let decoded = |frame: &Vec<u8>| match Frame::decode(frame) {
        Ok(Frame::Admission(admission)) => Some(admission),
        _ => None,
    };
    sent(agent).iter().filter_map(decoded).collect()
}

/// The epochs that an agent announces.
fn announced_by(agent: &mut Small) -> Vec<u32> {
    let decoded = |frame: &Vec<u8>| match Frame::decode(frame) {
        Ok(Frame::Members(header, _)) => Some(header.epoch.number),
        _ => None,
    };
    sent(agent).iter().filter_map(decoded).collect()
}

fn hello(sender: u16, epoch: u32, round: u32) -> Hello {
    Hello {
        sender,
        boot: 2,
        member_of: Epoch::NONE,
        rounds_left: 0,
        epoch: numbered(epoch),
        round,
        schema: SCHEMA,
        x: 2,
        y: 4,
        x_is_local: false,
        echo: None,
    }
}

fn receive_hello(agent: &mut Small, hello: Hello) -> Received {
    agent.receive(Origin::Clear, &encoded(Frame::Hello(hello)))
}

/// Agent 0 of a swarm in round 20 that has sent its frames.
fn in_round_20() -> Small {
    let mut agents = swarm();
    (0..20).for_each(|_| round(&mut agents, |_, _| true));
    let mut agent = agents.swap_remove(0);
    let _ = sent(&mut agent);
    agent
}

#[test]
fn a_hello_of_the_present_round_is_answered_with_one_challenge() {
    for (at, answer) in [
        (19, Received::Stale),
        (20, Received::Unchanged),
        (21, Received::Unchanged),
        (22, Received::Refused(Refusal::Jump)),
    ] {
        let mut agent = in_round_20();
        assert_eq!(receive_hello(&mut agent, hello(4, 1, at)), answer, "round {at}");
        let admissions = admissions_of(&mut agent);
        assert_eq!(admissions.len(), usize::from(answer == Received::Unchanged), "round {at}");
        for admission in admissions {
            let challenge = Challenge { challenger: 0, boot: 1, round: 20 };
            let expected = Admission {
                sender: 0,
                epoch: Epoch::FIRST,
                round: 20,
                challenge,
                joiner: 4,
                joiner_boot: 2,
                hops: AGENTS as u8,
            };
            assert_eq!(admission, expected);
        }
    }
    let mut agent = in_round_20();
    let beyond = hello(MemberSet::CAPACITY as u16, 1, 20);
    assert_eq!(receive_hello(&mut agent, beyond), Received::Refused(Refusal::NotMember));
    assert_eq!(receive_hello(&mut agent, hello(4, 9 * 1024, 20)), Received::Refused(Refusal::Jump));
    assert!(sent(&mut agent).is_empty());
}

#[test]
fn a_challenge_is_sent_until_it_is_answered_and_not_changed() {
    let mut agent = in_round_20();
    let _ = receive_hello(&mut agent, hello(4, 1, 20));
    let first = admissions_of(&mut agent)[0].challenge;
    for now in 21..80 {
        agent.end_round();
        assert_eq!(receive_hello(&mut agent, hello(4, 1, now)), Received::Unchanged);
        let admissions = admissions_of(&mut agent);
        assert_eq!(admissions.iter().map(|admission| admission.challenge).collect::<Vec<_>>(), [first]);
        assert_eq!(admissions[0].round, now);
    }
    // Another boot of the same joiner is asked anew, and an answer to another question is none.
    let _ = receive_hello(&mut agent, Hello { boot: 3, ..hello(4, 1, 79) });
    let wrong = Challenge { round: 19, ..first };
    assert_eq!(
        receive_hello(&mut agent, Hello { echo: Some(wrong), ..hello(4, 1, 79) }),
        Received::Unchanged
    );
    assert_eq!(agent.epoch(), Epoch::FIRST);
    assert_eq!(receive_hello(&mut agent, Hello { echo: Some(first), ..hello(4, 1, 79) }), Received::NewEpoch);
    assert_eq!((agent.epoch(), agent.members().len()), (numbered(1024), 5));
    // The answer counts once.
    agent.end_round();
    assert_eq!(
        receive_hello(&mut agent, Hello { echo: Some(first), ..hello(4, 1024, 80) }),
        Received::Unchanged
    );
    assert_eq!(agent.epoch(), numbered(1024));
}

#[test]
fn a_hello_that_is_behind_hears_of_the_epoch_first() {
    let mut agent = in_round_20();
    agent.enter(numbered(5 * 1024), agent.members);
    let _ = sent(&mut agent);
    (0..40).for_each(|_| assert_eq!(agent.end_round().fault, None));
    let _ = sent(&mut agent);
    assert_eq!(receive_hello(&mut agent, hello(4, 1024, 60)), Received::Unchanged);
    let frames = sent(&mut agent);
    assert_eq!(frames.len(), 1, "no challenge");
    assert!(
        matches!(Frame::decode(&frames[0]), Ok(Frame::Members(header, _)) if header.epoch == numbered(5 * 1024))
    );
    // It goes on for a round more, and no longer.
    agent.end_round();
    assert_eq!(announced_by(&mut agent), [5 * 1024]);
    agent.end_round();
    assert_eq!(announced_by(&mut agent), []);
}

#[test]
fn who_waits_or_has_left_answers_no_hello() {
    let free = |id, boot| Config { mode: Mode::FreeRunning, boot, ..config(id) };
    let mut joiner = agent(free(1, 2));
    let _ = sent(&mut joiner);
    assert_eq!(receive_hello(&mut joiner, hello(4, 0, 0)), Received::Unchanged);
    assert!(sent(&mut joiner).is_empty());
    // After four announcements that it should have heard it lets others in.
    for _ in 0..4 * 16 - 1 {
        joiner.end_round();
    }
    let _ = sent(&mut joiner);
    let _ = receive_hello(&mut joiner, hello(4, 0, 0));
    assert!(sent(&mut joiner).is_empty());
    joiner.end_round();
    let _ = sent(&mut joiner);
    let _ = receive_hello(&mut joiner, hello(4, 0, 0));
    assert_eq!(admissions_of(&mut joiner).len(), 1);

    let mut gone = agent(free(1, 1));
    gone.leave();
    assert_eq!(gone.heard_epoch, Some(numbered(1025)));
    for _ in 0..2 * ALONE_ROUNDS {
        gone.end_round();
        assert!(sent(&mut gone).iter().all(|frame| frame[0] == 2), "only who is left");
        assert_eq!(receive_hello(&mut gone, hello(4, 2048, 0)), Received::Unchanged);
    }
    assert!(admissions_of(&mut gone).is_empty());
    gone.leave();
    assert_eq!(gone.heard_epoch, Some(numbered(1025)), "nobody leaves twice");
}

#[test]
fn admissions_for_others_are_passed_on_for_some_rounds() {
    let challenge = Challenge { challenger: 2, boot: 1, round: 20 };
    let admission = Admission {
        sender: 3,
        epoch: Epoch::FIRST,
        round: 20,
        challenge,
        joiner: 9,
        joiner_boot: 5,
        hops: 2,
    };
    let receive = |agent: &mut Small, admission| {
        assert_eq!(agent.receive(Origin::Clear, &encoded(Frame::Admission(admission))), Received::Unchanged);
    };
    let mut agent = in_round_20();
    receive(&mut agent, admission);
    for now in 20..=24 {
        let expected = Admission { sender: 0, round: now, hops: 1, ..admission };
        assert_eq!(admissions_of(&mut agent), [expected]);
        agent.end_round();
        // Hearing it again does not prolong it.
        receive(&mut agent, Admission { round: now + 1, ..admission });
    }
    assert_eq!(admissions_of(&mut agent), []);
    for other in [
        Admission { hops: 0, ..admission },
        Admission { challenge: Challenge { challenger: 0, ..challenge }, ..admission },
        Admission { joiner: 0, joiner_boot: 1, ..admission },
    ] {
        let mut agent = in_round_20();
        receive(&mut agent, other);
        assert_eq!(admissions_of(&mut agent), [], "{other:?}");
    }
}

#[test]
fn a_challenge_to_another_boot_confirms_nothing() {
    let saved = saved(&in_round_20());
    let mut restarted = agent(Config { boot: 2, ..config(0) });
    restarted.restore(read_from(&saved)).unwrap();
    let challenge = Challenge { challenger: 2, boot: 1, round: 20 };
    for (joiner_boot, is_waiting) in [(1, true), (3, true), (2, false)] {
        let admission = Admission {
            sender: 3,
            epoch: Epoch::FIRST,
            round: 20,
            challenge,
            joiner: 0,
            joiner_boot,
            hops: 2,
        };
        let _ = restarted.receive(Origin::Clear, &encoded(Frame::Admission(admission)));
        assert_eq!(restarted.is_waiting(), is_waiting, "boot {joiner_boot}");
    }
    assert_eq!((restarted.round(), restarted.epoch()), (20, Epoch::FIRST));
}

#[test]
fn a_challenge_has_time_to_cross_a_large_swarm() {
    let mut agent = agent(Config { founders: 20, ..config(0) });
    let _ = receive_hello(&mut agent, hello(20, 1, 0));
    for now in 0..100 {
        assert_eq!(admissions_of(&mut agent).len(), usize::from(now <= 4 * 20), "round {now}");
        agent.end_round();
    }
}

/// The frames heard before it found the swarm's round were recorded, but the epoch that it remembers was not.
#[test]
fn who_finds_a_later_round_asks_with_the_epoch_it_was_in() {
    let saved = saved(&in_round_20());
    let (joiner, mut restored) = (Config { boot: 2, ..config(0) }, agent(config(0)));
    restored.restore(read_from(&saved)).unwrap();
    let challenge = Challenge { challenger: 2, boot: 1, round: 100 };
    for (mut agent, epoch) in [(agent(joiner), Epoch::NONE), (restored, Epoch::FIRST)] {
        for round in 100..103 {
            let admission = Admission {
                sender: 3,
                epoch: Epoch::FIRST,
                round,
                challenge,
                joiner: 9,
                joiner_boot: 5,
                hops: 0,
            };
            let _ = agent.receive(Origin::Clear, &encoded(Frame::Admission(admission)));
            agent.end_round();
        }
        assert_eq!(agent.heard_epoch, (epoch > Epoch::NONE).then_some(epoch));
        assert_eq!(agent.alone_since, agent.round() - 1, "it is not alone since it found the round");
        let hello = sent(&mut agent).pop().unwrap();
        assert!(
            matches!(Frame::decode(&hello), Ok(Frame::Hello(hello)) if (hello.epoch, hello.round) == (epoch, 103)),
            "{hello:?}"
        );
    }
}

#[test]
fn epochs_a_few_changes_ahead_are_entered_at_once() {
    let members = |number, round| {
        encoded(Frame::Members(
            MembersHeader { sender: 3, epoch: numbered(number), round, rounds_left: 9 },
            &[0xF],
        ))
    };
    for (epoch, answer) in [
        (1, Received::Unchanged),
        (8 * 1024 + 3, Received::NewEpoch),
        (8 * 1024 + 1023, Received::NewEpoch),
        (9 * 1024, Received::Refused(Refusal::Jump)),
    ] {
        let mut agent = in_round_20();
        assert_eq!(agent.receive(Origin::Clear, &members(epoch, 20)), answer, "epoch {epoch}");
        assert_eq!(agent.epoch().number, if answer == Received::NewEpoch { epoch } else { 1 });
    }
    // One far ahead needs three rounds, and the very last ones are never believed.
    let last = u32::MAX - (1 << 20);
    for (epoch, is_believed) in [(100 * 1024, true), (last, true), (last + 1, false)] {
        let mut agent = in_round_20();
        for now in 20..23 {
            let received = agent.receive(Origin::Clear, &members(epoch, now));
            let expected =
                if now == 22 && is_believed { Received::NewEpoch } else { Received::Refused(Refusal::Jump) };
            assert_eq!(received, expected, "epoch {epoch} in round {now}");
            agent.end_round();
        }
    }
    let next = |number, opener| numbered(number).next(opener).map(|epoch| epoch.number);
    assert_eq!((next(1, 3), next(1024 + 7, 3)), (Some(1024 + 3), Some(2048 + 3)));
    assert_eq!((next(last - 1024, 0), next(last, 0)), (Some(last / 1024 * 1024), None));
}

#[test]
fn who_is_behind_in_epochs_is_told() {
    let mut agent = in_round_20();
    agent.enter(numbered(3 * 1024 + 1), agent.members);
    (0..40).for_each(|_| assert_eq!(agent.end_round().fault, None));
    let _ = sent(&mut agent);
    let data = |number| {
        let header = DataHeader { sender: 2, epoch: numbered(number).tag(), round: 60 };
        encoded(Frame::Data(header, &[0; 1 + 8 * WORDS]))
    };
    assert_eq!(agent.receive(Origin::Clear, &data(3 * 1024)), Received::OtherEpoch);
    assert_eq!(announced_by(&mut agent), [3 * 1024 + 1]);
    let members = |number| {
        encoded(Frame::Members(
            MembersHeader { sender: 2, epoch: numbered(number), round: 60, rounds_left: 9 },
            &[0xF],
        ))
    };
    assert_eq!(agent.receive(Origin::Clear, &members(3 * 1024 + 1)), Received::Unchanged);
    assert_eq!(announced_by(&mut agent), []);
    assert_eq!(agent.receive(Origin::Clear, &members(3 * 1024)), Received::Unchanged);
    assert_eq!(announced_by(&mut agent), [3 * 1024 + 1]);
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

#[test]
fn reports_on_agents_beyond_all_numbers_are_taken() {
    let mut agent = in_round_20();
    for first in [MemberSet::CAPACITY as u16 - 1, u16::MAX] {
        let header = SilenceHeader { sender: 1, epoch: Epoch::FIRST, round: 20, first };
        let frame = encoded(Frame::Silence(header, &[0; 4]));
        assert_eq!(agent.receive(Origin::Clear, &frame), Received::Unchanged);
    }
}
