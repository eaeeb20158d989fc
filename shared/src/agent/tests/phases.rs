//! Gathering and descending in turn.

use super::*;
use crate::fab::Phases;

const PHASES: Phases = Phases { gather_rounds: 8, descend_rounds: 5 };

fn ring() -> Vec<Small> {
    let steps = Steps { x: 0.4, y: 0.08, z: 0.08, momentum: 0.5 };
    let config = |id| config(id).with_phases(PHASES).with_steps(steps).with_self_weight(0.5);
    let links = |id: usize| {
        let of = |other: usize| {
            let mut set = MemberSet::default();
            set.insert((other % AGENTS) as u16);
            set
        };
        Links::Known { audience: of(id + 1), senders: of(id + AGENTS - 1) }
    };
    (0..AGENTS).map(|id| agent(config(id).with_links(links(id)))).collect()
}

/// Mass that an agent gives away while it gathers waits for whoever missed it. While it descends, no sum changes.
#[test]
fn agents_push_and_descend_in_different_rounds() {
    let mut agents = ring();
    for now in 0..130 {
        let sums: Vec<Vec<i32>> = agents.iter().map(|agent| agent.sigma().to_vec()).collect();
        let is_moving = agents.iter().any(|agent| agent.accumulator().iter().any(|&m| m != 0.0));
        assert_eq!(is_moving, (8..13).contains(&(now % 21)), "round {now}");
        round(&mut agents, |receiver, sender| (sender + 1) % AGENTS == receiver && (now + sender) % 5 != 0);
        check_invariant(&agents);
        let has_pushed = agents.iter().zip(&sums).any(|(agent, sums)| agent.sigma() != sums);
        assert_eq!(has_pushed, (now + 1) % 21 < 8, "round {now}");
    }
}

/// Decisions agree while nobody descends, and then stand still while trackers travel.
#[test]
fn decisions_come_together_after_a_descent_and_then_stand_still() {
    let mut agents = ring();
    let hears = |receiver: usize, sender: usize| (sender + 1) % AGENTS == receiver;
    (0..13).for_each(|_| round(&mut agents, hears));
    let before = spread(&agents);
    (0..8).for_each(|_| round(&mut agents, hears));
    assert!(before > 0.0 && spread(&agents) < 0.2 * before, "{before} {}", spread(&agents));
    let decisions =
        |agents: &[Small]| agents.iter().flat_map(|agent| agent.decision().to_vec()).collect::<Vec<_>>();
    let gathered = decisions(&agents);
    (0..8).for_each(|_| round(&mut agents, hears));
    assert_eq!(decisions(&agents), gathered);
    round(&mut agents, hears);
    assert_ne!(decisions(&agents), gathered);
}
