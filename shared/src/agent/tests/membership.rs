//! How single frames about members are answered: no agent, and nothing that computes.

use super::*;
use crate::agent::membership::{ALONE_ROUNDS, Membership};
use crate::wire::frame::{Admission, Challenge, SilenceHeader};

const SHAPE: Shape = Shape { x: 2, y: 4, x_is_local: false };

/// A membership with its agent's configuration.
struct Station {
    config: Config,
    membership: Membership,
}

impl Station {
    fn new(config: Config) -> Self {
        let mut membership = Membership::blank();
        membership.reset(&config);
        membership.begin_round(true, core::iter::empty());
        Self { config, membership }
    }

    /// Agent 0 of a swarm in round 20 that has sent its frames.
    fn in_round_20() -> Self {
        let mut station = Self::new(config(0));
        (0..20).for_each(|_| station.end_round());
        let _ = station.sent();
        station
    }

    fn round(&self) -> u32 {
        self.membership.rounds.own
    }

    fn end_round(&mut self) {
        self.membership.settle_alone();
        self.membership.end_round();
        self.membership.begin_round(true, core::iter::empty());
    }

    fn enter(&mut self, number: u32) {
        self.membership.enter(self.config.id, numbered(number), self.membership.members);
    }

    fn receive(&mut self, frame: Frame<'_>) -> Received {
        if !self.membership.hear(&self.config, &frame) {
            return Received::Stale;
        }
        match frame {
            Frame::Data(header, _) => self.membership.receive_other_epoch(header.epoch),
            _ => self.membership.receive(&self.config, &SHAPE, &frame, None).0,
        }
    }

    /// All frames that it has to send, as bytes; data is left out.
    fn sent(&mut self) -> Vec<Vec<u8>> {
        let mut out = [0; 256];
        let mut frames = Vec::new();
        for due in self.membership.due() {
            if due == Due::Data && !self.membership.is_waiting() {
                continue;
            }
            let length = self.membership.write_frame(due, &self.config, &SHAPE, &mut out).unwrap();
            frames.extend(length.map(|length| out[..length].to_vec()));
        }
        frames
    }

    /// Returns what `pick` takes of the frames that the agent has to send.
    fn picked<T>(&mut self, pick: impl Fn(Frame<'_>) -> Option<T>) -> Vec<T> {
        self.sent().iter().filter_map(|frame| pick(Frame::decode(frame).unwrap())).collect()
    }

    fn admissions(&mut self) -> Vec<Admission> {
        self.picked(|frame| if let Frame::Admission(admission) = frame { Some(admission) } else { None })
    }

    /// The epochs that it announces.
    fn announced(&mut self) -> Vec<u32> {
        self.picked(
            |frame| if let Frame::Members(header, _) = frame { Some(header.epoch.number) } else { None },
        )
    }
}

fn hello(sender: u16, epoch: u32, round: u32) -> Hello {
    super::hello(sender, 2, numbered(epoch), round)
}

/// A challenge of agent 2, put in `round` to agent `joiner` in its boot 5, as agent 3 passes it on.
fn admission(joiner: u16, round: u32) -> Admission {
    let challenge = Challenge { challenger: 2, boot: 1, round };
    Admission { sender: 3, epoch: Epoch::FIRST, round, challenge, joiner, joiner_boot: 5, hops: 2 }
}

fn members(number: u32, round: u32) -> Frame<'static> {
    let header = MembersHeader { sender: 3, epoch: numbered(number), round, rounds_left: 9 };
    Frame::Members(header, &[0xF])
}

#[test]
fn a_hello_of_the_present_round_is_answered_with_one_challenge() {
    for (at, answer) in [
        (19, Received::Stale),
        (20, Received::Unchanged),
        (21, Received::Unchanged),
        (22, Received::Refused(Refusal::Jump)),
    ] {
        let mut station = Station::in_round_20();
        assert_eq!(station.receive(Frame::Hello(hello(4, 1, at))), answer, "round {at}");
        let challenge = Challenge { challenger: 0, boot: 1, round: 20 };
        let joiner_boot = 2;
        let expected =
            Admission { sender: 0, challenge, joiner_boot, hops: AGENTS as u8, ..admission(4, 20) };
        let is_answered = answer == Received::Unchanged;
        assert_eq!(station.admissions(), [expected][..usize::from(is_answered)], "round {at}");
    }
    let mut station = Station::in_round_20();
    let beyond = hello(MemberSet::CAPACITY as u16, 1, 20);
    assert_eq!(station.receive(Frame::Hello(beyond)), Received::Refused(Refusal::NotMember));
    assert_eq!(station.receive(Frame::Hello(hello(4, 9 * 1024, 20))), Received::Refused(Refusal::Jump));
    assert!(station.sent().is_empty());
}

#[test]
fn a_challenge_is_sent_until_it_is_answered_and_not_changed() {
    let mut station = Station::in_round_20();
    let _ = station.receive(Frame::Hello(hello(4, 1, 20)));
    let first = station.admissions()[0].challenge;
    for now in 21..80 {
        station.end_round();
        assert_eq!(station.receive(Frame::Hello(hello(4, 1, now))), Received::Unchanged);
        let sent = station.admissions();
        assert_eq!((sent.len(), sent[0].challenge, sent[0].round), (1, first, now));
    }
    // Another boot of the same joiner is asked anew, and an answer to another question is none.
    let mut answer = |echo, boot, epoch, round| {
        let received = station.receive(Frame::Hello(Hello { echo, boot, ..hello(4, epoch, round) }));
        (received, station.membership.epoch, station.membership.members.len())
    };
    let unchanged = (Received::Unchanged, Epoch::FIRST, 4);
    assert_eq!(answer(None, 3, 1, 79), unchanged);
    assert_eq!(answer(Some(Challenge { round: 19, ..first }), 2, 1, 79), unchanged);
    assert_eq!(answer(Some(first), 2, 1, 79), (Received::NewEpoch, numbered(1024), 5));
    assert_eq!(answer(Some(first), 2, 1024, 79), (Received::Unchanged, numbered(1024), 5), "it counts once");
}

#[test]
fn a_hello_that_is_behind_hears_of_the_epoch_first() {
    let mut station = Station::in_round_20();
    station.enter(5 * 1024);
    (0..40).for_each(|_| station.end_round());
    let _ = station.sent();
    assert_eq!(station.receive(Frame::Hello(hello(4, 1024, 60))), Received::Unchanged);
    // No challenge. It goes on for a round more, and no longer.
    let frames = station.sent();
    assert!(
        matches!(&frames[..], [frame] if matches!(Frame::decode(frame), Ok(Frame::Members(header, _)) if header.epoch == numbered(5 * 1024)))
    );
    station.end_round();
    assert_eq!(station.announced(), [5 * 1024]);
    station.end_round();
    assert_eq!(station.announced(), []);
}

#[test]
fn who_waits_or_has_left_answers_no_hello() {
    let free = |id, boot| Config { mode: Mode::FreeRunning, boot, ..config(id) };
    let mut joiner = Station::new(free(1, 2));
    // After four announcements that it should have heard it lets others in.
    for (rounds, answers) in [(0, 0), (4 * 16 - 1, 0), (1, 1)] {
        (0..rounds).for_each(|_| joiner.end_round());
        let _ = joiner.sent();
        assert_eq!(joiner.receive(Frame::Hello(hello(4, 0, 0))), Received::Unchanged);
        assert_eq!(joiner.sent().len(), answers, "{rounds}");
    }

    let mut gone = Station::new(free(1, 1));
    assert!(gone.membership.leave(1));
    assert_eq!(gone.membership.heard_epoch, Some(numbered(1025)));
    for _ in 0..2 * ALONE_ROUNDS {
        gone.end_round();
        assert!(gone.sent().iter().all(|frame| frame[0] == 2), "only who is left");
        assert_eq!(gone.receive(Frame::Hello(hello(4, 2048, 0))), Received::Unchanged);
    }
    assert!(gone.admissions().is_empty());
    assert!(!gone.membership.leave(1), "nobody leaves twice");
}

#[test]
fn admissions_for_others_are_passed_on_for_some_rounds() {
    let mut station = Station::in_round_20();
    for now in 20..=24 {
        // Hearing it again does not prolong it.
        let heard = Admission { round: now, ..admission(9, 20) };
        assert_eq!(station.receive(Frame::Admission(heard)), Received::Unchanged);
        assert_eq!(station.admissions(), [Admission { sender: 0, hops: 1, ..heard }]);
        station.end_round();
    }
    assert_eq!(station.admissions(), []);
    let admission = admission(9, 20);
    let own = Challenge { challenger: 0, ..admission.challenge };
    for other in [
        Admission { hops: 0, ..admission },
        Admission { challenge: own, ..admission },
        Admission { joiner: 0, joiner_boot: 1, ..admission },
    ] {
        let mut station = Station::in_round_20();
        let _ = station.receive(Frame::Admission(other));
        assert_eq!(station.admissions(), [], "{other:?}");
    }
}

/// The station of round 20 after a restart with memory.
fn restarted(boot: u32) -> Station {
    let Membership { members, .. } = Station::in_round_20().membership;
    let words = Station::in_round_20().membership.to_words();
    let mut station = Station::new(Config { boot, ..config(0) });
    station.membership.restore(&station.config, words, members).unwrap();
    station
}

#[test]
fn a_challenge_to_another_boot_confirms_nothing() {
    let mut station = restarted(2);
    for (joiner_boot, is_waiting) in [(1, true), (3, true), (2, false)] {
        let _ = station.receive(Frame::Admission(Admission { joiner_boot, ..admission(0, 20) }));
        assert_eq!(station.membership.is_waiting(), is_waiting, "boot {joiner_boot}");
    }
    assert_eq!((station.round(), station.membership.epoch), (20, Epoch::FIRST));
}

#[test]
fn a_challenge_has_time_to_cross_a_large_swarm() {
    let mut station = Station::new(Config { founders: 20, ..config(0) });
    let _ = station.receive(Frame::Hello(hello(20, 1, 0)));
    for now in 0..100 {
        assert_eq!(station.admissions().len(), usize::from(now <= 4 * 20), "round {now}");
        station.end_round();
    }
}

/// The frames heard before it found the swarm's round were recorded, but the epoch that it remembers was not.
#[test]
fn who_finds_a_later_round_asks_with_the_epoch_it_was_in() {
    let joiner = Station::new(Config { boot: 2, ..config(0) });
    for (mut station, epoch) in [(joiner, Epoch::NONE), (restarted(1), Epoch::FIRST)] {
        for round in 100..103 {
            let _ = station.receive(Frame::Admission(Admission { hops: 0, ..admission(9, round) }));
            station.end_round();
        }
        assert_eq!(station.membership.heard_epoch, (epoch > Epoch::NONE).then_some(epoch));
        let alone_since = station.membership.alone_since;
        assert_eq!(alone_since, station.round() - 1, "it is not alone since it found the round");
        let hello = station.sent().pop().unwrap();
        let Ok(Frame::Hello(hello)) = Frame::decode(&hello) else { panic!("{hello:?} is no hello") };
        assert_eq!((hello.epoch, hello.round), (epoch, 103));
    }
}

#[test]
fn epochs_a_few_changes_ahead_are_entered_at_once() {
    for (epoch, answer) in [
        (1, Received::Unchanged),
        (8 * 1024 + 3, Received::NewEpoch),
        (8 * 1024 + 1023, Received::NewEpoch),
        (9 * 1024, Received::Refused(Refusal::Jump)),
    ] {
        let mut station = Station::in_round_20();
        assert_eq!(station.receive(members(epoch, 20)), answer, "epoch {epoch}");
        let entered = if answer == Received::NewEpoch { epoch } else { 1 };
        assert_eq!(station.membership.epoch.number, entered);
    }
    // One far ahead needs three rounds, and the very last ones are never believed.
    let last = u32::MAX - (1 << 20);
    for (epoch, is_believed) in [(100 * 1024, true), (last, true), (last + 1, false)] {
        let mut station = Station::in_round_20();
        for now in 20..23 {
            let received = station.receive(members(epoch, now));
            let expected =
                if now == 22 && is_believed { Received::NewEpoch } else { Received::Refused(Refusal::Jump) };
            assert_eq!(received, expected, "epoch {epoch} in round {now}");
            station.end_round();
        }
    }
    let next = |number, opener| numbered(number).next(opener).map(|epoch| epoch.number);
    assert_eq!((next(1, 3), next(1024 + 7, 3)), (Some(1024 + 3), Some(2048 + 3)));
    assert_eq!((next(last - 1024, 0), next(last, 0)), (Some(last / 1024 * 1024), None));
}

#[test]
fn who_is_behind_in_epochs_is_told() {
    let mut station = Station::in_round_20();
    station.enter(3 * 1024 + 1);
    (0..40).for_each(|_| station.end_round());
    let _ = station.sent();
    let data = DataHeader { sender: 2, epoch: numbered(3 * 1024).tag(), round: 60 };
    assert_eq!(station.receive(Frame::Data(data, &[0; 1])), Received::OtherEpoch);
    assert_eq!(station.announced(), [3 * 1024 + 1]);
    for (number, is_told) in [(3 * 1024 + 1, false), (3 * 1024, true)] {
        assert_eq!(station.receive(members(number, 60)), Received::Unchanged);
        assert_eq!(station.announced().len(), usize::from(is_told));
    }
}

#[test]
fn reports_on_agents_beyond_all_numbers_are_taken() {
    let mut station = Station::in_round_20();
    for first in [MemberSet::CAPACITY as u16 - 1, u16::MAX] {
        let header = SilenceHeader { sender: 1, epoch: Epoch::FIRST, round: 20, first };
        assert_eq!(station.receive(Frame::Silence(header, &[0; 4])), Received::Unchanged);
    }
}
