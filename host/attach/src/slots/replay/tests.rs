//! Reports that are whole, and reports of which some are missing.

use super::*;
use fabswarm_sim::scenario::Scenario;
use fabswarm_sim::trial::{self, ExactAgents};

fn swarm() -> FlightReplay {
    let mut scenario = Scenario::default();
    scenario.swarm.agents = 3;
    let ExactAgents { task, setup, .. } = trial::exact_agents(&scenario).unwrap();
    FlightReplay::new(&Arc::new(task), &setup, 3).unwrap()
}

/// A round of one board, which takes the frames of `senders`, and its entry.
fn fly(boards: &mut FlightReplay, agent: u16, round: u32, senders: &[u16]) -> FlightEntry {
    for &sender in senders {
        let frame = boards.frame(round, sender).unwrap();
        boards.deliver(&frame, (round, sender), agent, Received::Taken).unwrap();
    }
    boards.frame(round, agent).unwrap();
    let board = &mut boards.shadows[usize::from(agent)];
    board.end_round();
    let fate = RoundFate::Ended(board.digest());
    FlightEntry { epoch: Some(board.epoch().number), ..entry(agent, round, fate, senders) }
}

fn entry(agent: u16, round: u32, fate: RoundFate, senders: &[u16]) -> FlightEntry {
    FlightEntry { fate, senders: senders.to_vec(), ..FlightEntry::missed(agent, round) }
}

/// The next round of all boards, in which agent i takes the frames of `senders[i]`, and its entries.
fn fly_all(boards: &mut FlightReplay, senders: [&[u16]; 3]) -> [FlightEntry; 3] {
    let round = boards.shadows[0].round();
    // Each board sends before any of them ends the round.
    (0..3).for_each(|agent| drop(boards.frame(round, agent).unwrap()));
    [0, 1, 2].map(|agent| fly(boards, agent, round, senders[usize::from(agent)]))
}

/// Agent 0 sends its frame of round 1, hears nobody until agent 1 is two rounds ahead, and follows it. Agent 2 reports last.
#[test]
fn frames_of_a_round_that_was_left_can_be_taken() {
    let mut boards = swarm();
    let mut entries = fly_all(&mut boards, ALL_HEAR_ALL).to_vec();
    boards.frame(1, 0).unwrap();
    entries.push(fly(&mut boards, 1, 1, &[0]));
    entries.push(fly(&mut boards, 1, 2, &[]));
    entries.push(entry(0, 1, RoundFate::Left, &[]));
    entries.push(fly(&mut boards, 0, 3, &[1]));
    entries.push(fly(&mut boards, 2, 1, &[0, 1]));
    entries.push(fly(&mut boards, 2, 2, &[1]));
    entries.push(fly(&mut boards, 2, 3, &[0, 1]));
    assert_eq!(replayed(entries), (9, 0, vec![]));
}

/// The reports of three boards in `rounds` rounds, in each of which agent i takes the frames of `senders[i]`.
fn reports(rounds: u32, senders: [&[u16]; 3]) -> Vec<FlightEntry> {
    let mut boards = swarm();
    (0..rounds).flat_map(|_| fly_all(&mut boards, senders)).collect()
}

/// Digests that are equal, digests that were not compared, and gaps.
fn replayed(entries: impl IntoIterator<Item = FlightEntry>) -> (u64, u64, Vec<ReportGap>) {
    let mut replay = swarm();
    for entry in entries {
        replay.push(entry).unwrap();
        replay.follow().unwrap();
    }
    replay.finish().unwrap();
    (replay.checks, replay.uncompared, replay.gaps)
}

const ALL_HEAR_ALL: [&[u16]; 3] = [&[1, 2], &[0, 2], &[0, 1]];

#[test]
fn what_cannot_be_known_behind_missing_reports_is_counted_and_not_compared() {
    let whole = reports(10, ALL_HEAR_ALL);
    assert_eq!(replayed(whole.clone()), (30, 0, vec![]));
    let is_missing = |entry: &FlightEntry| entry.agent == 1 && (3..6).contains(&entry.round);
    let missing = whole.iter().filter(|entry| !is_missing(entry)).cloned();
    // The frame of agent 1 in round 3 is known, so the others can be compared in that round.
    let gap = |to: Option<u32>| vec![ReportGap::Rounds { agent: 1, from: 3, to }];
    assert_eq!(replayed(missing), (3 * 3 + 2, 27 - 11, gap(Some(6))));
    assert_eq!(gap(Some(6))[0].to_string(), "agent 1 did not report rounds 3 to 5");
    // It never comes back.
    let ends = whole.iter().filter(|entry| entry.agent != 1 || entry.round < 3).cloned();
    assert_eq!(replayed(ends), (3 * 3 + 2, 23 - 11, gap(None)));
    assert_eq!(gap(None)[0].to_string(), "agent 1 reported nothing from round 3 on");
    // It began anew in a round that might as well be its next.
    let (before, after) = whole.split_at(9);
    let restarted = before.iter().cloned().chain([FlightEntry::missed(1, 3)]).chain(after.iter().cloned());
    assert_eq!(replayed(restarted), (3 * 3 + 2, 30 - 11, gap(Some(3))));
}

#[test]
fn boards_that_did_not_hear_the_one_that_was_missed_are_compared() {
    let whole = reports(10, [&[2], &[0], &[0]]);
    let missing = whole.iter().filter(|entry| entry.agent != 1 || entry.round != 4).cloned();
    let (equal, uncompared, gaps) = replayed(missing);
    assert_eq!((equal, uncompared), (2 * 10 + 4, 5));
    assert_eq!(gaps, [ReportGap::Rounds { agent: 1, from: 4, to: Some(5) }]);
    assert_eq!(gaps[0].to_string(), "agent 1 did not report round 4");
}

#[test]
fn an_agent_that_is_not_of_the_swarm_is_a_fault_and_no_gap() {
    let mut entries = reports(4, ALL_HEAR_ALL);
    entries[7].senders.push(9);
    let mut replay = swarm();
    let stranger = entries.into_iter().try_for_each(|entry| replay.push(entry));
    assert_eq!(stranger, Err(FlightFault::stranger(9, 3)));
}

/// A cable loses the digest of a round, and not whose frames were taken in it.
#[test]
fn a_digest_that_was_lost_on_the_cable_is_no_gap() {
    for senders in [ALL_HEAR_ALL, [&[1], &[], &[0]]] {
        let mut entries = reports(10, senders);
        let lost = entries.iter_mut().find(|entry| (entry.agent, entry.round) == (1, 4)).unwrap();
        lost.fate = RoundFate::Left;
        assert_eq!(replayed(entries), (29, 0, vec![]));
    }
}

/// After a restart agents change the members of their swarm by frames that are not reported.
#[test]
fn an_agent_in_another_epoch_cannot_be_followed() {
    let mut entries = reports(10, [&[2], &[0], &[0]]);
    for entry in entries.iter_mut().filter(|entry| entry.agent == 1 && entry.round >= 6) {
        (entry.fate, entry.epoch) = (RoundFate::Ended(7), Some(9));
    }
    let (equal, uncompared, gaps) = replayed(entries);
    assert_eq!((equal, uncompared), (26, 4));
    assert_eq!(gaps, [ReportGap::Epoch { agent: 1, round: 6, epoch: 9 }]);
}
