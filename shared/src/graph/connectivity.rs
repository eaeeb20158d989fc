//! Joint strong connectivity: within every window of C rounds, news from anybody reaches everybody.

use super::Schedule;
use core::ops::Range;

/// A window in which the union of all graphs is not strongly connected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no path leads from agent {from} to agent {to} in rounds {} to {}", rounds.start, rounds.end)]
pub struct Disconnected {
    /// The rounds of the window.
    pub rounds: Range<u32>,
    /// The agent that no path leads from.
    pub from: usize,
    /// The agent that no path from `from` leads to.
    pub to: usize,
}

/// Checks that the union of the graphs of `rounds` is strongly connected.
///
/// `reached` is working memory of one entry an agent.
///
/// # Errors
/// A pair of agents without a path.
pub fn check_joint_connectivity(
    schedule: &impl Schedule,
    rounds: Range<u32>,
    reached: &mut [bool],
) -> Result<(), Disconnected> {
    let agents = schedule.agents().min(reached.len());
    if agents == 0 {
        return Ok(());
    }
    let reached = &mut reached[..agents];
    spread(schedule, &rounds, reached, |sender, listener| (sender, listener));
    if let Some(to) = reached.iter().position(|&reached| !reached) {
        return Err(Disconnected { rounds, from: 0, to });
    }
    spread(schedule, &rounds, reached, |sender, listener| (listener, sender));
    match reached.iter().position(|&reached| !reached) {
        Some(from) => Err(Disconnected { rounds, from, to: 0 }),
        None => Ok(()),
    }
}

/// Marks all that agent 0 reaches, from the first to the second that `link` makes of a sender and its listener. Sweeps in alternating
/// order, so that rings of either direction take two.
fn spread(
    schedule: &impl Schedule,
    rounds: &Range<u32>,
    reached: &mut [bool],
    link: impl Fn(usize, usize) -> (usize, usize),
) {
    reached.fill(false);
    reached[0] = true;
    let agents = reached.len();
    let mut is_ascending = true;
    loop {
        let mut has_grown = false;
        for step in 0..agents {
            let agent = if is_ascending { step } else { agents - 1 - step };
            for round in rounds.clone() {
                schedule.heard_by(agent, round, |sender| {
                    let (from, to) = link(sender, agent);
                    if reached[from] && !reached[to] {
                        reached[to] = true;
                        has_grown = true;
                    }
                });
            }
        }
        if !has_grown {
            return;
        }
        is_ascending = !is_ascending;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{Graph, Topology, Trace};

    #[test]
    fn rings_are_connected_however_large() {
        for topology in [Topology::Ring, Topology::ReversedRing] {
            let graph = Graph { topology, agents: 500, seed: 0 };
            assert_eq!(check_joint_connectivity(&graph, 0..1, &mut [false; 500]), Ok(()));
        }
    }

    #[test]
    fn a_window_may_join_what_single_rounds_do_not() {
        // Round 0: 1 hears 0. Round 1: 0 hears 1.
        let rows = [0b00, 0b01, 0b10, 0b00];
        let trace = Trace::new(2, &rows).unwrap();
        assert_eq!(check_joint_connectivity(&trace, 0..2, &mut [false; 2]), Ok(()));
        let lone = check_joint_connectivity(&trace, 0..1, &mut [false; 2]);
        assert_eq!(lone, Err(Disconnected { rounds: 0..1, from: 1, to: 0 }));
        let lone = check_joint_connectivity(&trace, 1..2, &mut [false; 2]);
        assert_eq!(lone, Err(Disconnected { rounds: 1..2, from: 0, to: 1 }));
    }
}
