//! Derived from known links: whether agents gather and descend in turn, how long they gather, and how much of their trackers they keep.

use fabswarm_shared::fab::Phases;
use fabswarm_shared::graph::Schedule;

use crate::air::LinkSource;
use crate::scenario::{AlgorithmSection, ModeKind, Scenario};

/// κ of agents that gather: a directed ring mixes fastest with half.
pub(super) const SELF_WEIGHT: f64 = 0.5;
/// Rounds whose links are counted.
const COUNTED_ROUNDS: u32 = 100;
/// A gather is long enough when no agent knows more or less of another than this, relative to the mean.
const EVENNESS: f64 = 0.02;
/// Where a gather takes no longer than this without loss, agents descend in every round: a ring of 4 takes 15 rounds and is stable,
/// one of 5 takes 25 and is not. Loss slows a graph down and leaves it as stable.
const WELL_MIXED: u32 = 16;
/// Links that are followed before a graph counts as too slow to gather on.
const MOST_LINKS: usize = 40_000_000;
/// The largest [`gain`] with which agents work in phases.
const LARGEST_GAIN: f64 = 1.5;

/// The phases of agents that are heard by `audiences` others each, over links that are known.
pub(super) fn phases(scenario: &Scenario, source: &LinkSource, audiences: &[u32]) -> Phases {
    let descend_rounds = scenario.algorithm.descend_rounds;
    let is_lock_step = scenario.swarm.mode == ModeKind::LockStep;
    if scenario.algorithm.gather_rounds.is_some() || !source.is_foreseen() || !is_lock_step {
        return chosen_phases(scenario);
    }
    if (Gather { source, audiences, arriving: 1.0 })
        .rounds_to_spread()
        .is_some_and(|rounds| rounds <= WELL_MIXED)
    {
        return Phases::TOGETHER;
    }
    let mixing = Gather { source, audiences, arriving: arriving(scenario) };
    match mixing.rounds_to_spread() {
        Some(gather_rounds) if mixing.gain(gather_rounds) <= LARGEST_GAIN => {
            // One descent is enough to be near; the gather after it may not come to its end.
            let has_descent = u64::from(gather_rounds) + u64::from(descend_rounds) <= scenario.swarm.rounds;
            if has_descent { Phases { gather_rounds, descend_rounds } } else { Phases::TOGETHER }
        }
        _ => Phases::TOGETHER,
    }
}

/// The phases that a scenario states, whatever its graph.
pub(super) fn chosen_phases(scenario: &Scenario) -> Phases {
    match scenario.algorithm.gather_rounds {
        Some(gather_rounds @ 1..) if scenario.swarm.mode == ModeKind::LockStep => {
            Phases { gather_rounds, descend_rounds: scenario.algorithm.descend_rounds }
        }
        _ => Phases::TOGETHER,
    }
}

/// The fraction of frames that arrive.
fn arriving(scenario: &Scenario) -> f64 {
    (1.0 - scenario.faults.iid_loss) * (1.0 - scenario.faults.burst_loss)
}

/// κ of agents that descend in every round and are heard by `audiences` others each, from the scenario or else from the links.
///
/// A share waits until its listener hears it. Over links that carry a frame in every round agents keep half:
/// trackers mix fastest. Over rare links they keep more, or most of the mass would wait. The square was fitted to rounds to 1 % on
/// directed and undirected graphs of degree 2 and 3, without loss and with half of the frames lost.
pub fn self_weight(scenario: &Scenario, source: &LinkSource, audiences: &[u32]) -> f64 {
    if let Some(self_weight) = scenario.algorithm.self_weight {
        return self_weight;
    }
    let mut heard = 0u32;
    for round in 0..COUNTED_ROUNDS {
        (0..audiences.len()).for_each(|agent| source.heard_by(agent, round, |_| heard += 1));
    }
    let possible = COUNTED_ROUNDS * audiences.iter().sum::<u32>();
    let carried = arriving(scenario) * f64::from(heard) / f64::from(possible.max(1));
    (1.0 - 0.5 * carried * carried).clamp(SELF_WEIGHT, AlgorithmSection::USUAL_SELF_WEIGHT)
}

/// The effect of a gather on one number per agent, on average over lost frames.
struct Gather<'a, G> {
    source: &'a G,
    audiences: &'a [u32],
    /// Fraction of the frames that arrive.
    arriving: f64,
}

impl<G: Schedule> Gather<'_, G> {
    /// Rounds after which all agents know the first one equally well, unless that takes too long.
    fn rounds_to_spread(&self) -> Option<u32> {
        let mut known = vec![0.0; self.source.agents()];
        *known.first_mut()? = 1.0;
        let mut links = 0;
        for round in 0.. {
            let (least, most) =
                known.iter().fold((f64::INFINITY, 0.0f64), |(least, most), &k| (least.min(k), most.max(k)));
            if most - least <= EVENNESS * 0.5 * (most + least) {
                return Some(round);
            }
            links += self.pull(round, &mut known) + known.len();
            if links > MOST_LINKS {
                break;
            }
        }
        None
    }

    /// How far a descent takes the swarm, relative to what the mean gradient asks for: 1 where every agent is heard by as many
    /// others as it hears. Elsewhere trackers settle at different multiples of the mean, and decisions count differently in
    /// their average; from 2 on a swarm would overshoot more with every turn, as a star does.
    fn gain(&self, gather_rounds: u32) -> f64 {
        let mut moved = vec![1.0; self.source.agents()];
        (0..gather_rounds).for_each(|round| self.push(round, &mut moved));
        (0..gather_rounds).for_each(|round| {
            self.pull(round, &mut moved);
        });
        moved.into_iter().fold(0.0, f64::max)
    }

    /// Averages over what each agent hears, and returns over how many links.
    fn pull(&self, round: u32, values: &mut [f64]) -> usize {
        let before = values.to_vec();
        let mut links = 0;
        for (agent, value) in values.iter_mut().enumerate() {
            let (mut heard, mut change) = (0, 0.0);
            self.source.heard_by(agent, round, |sender| {
                heard += 1;
                change += before[sender] - before[agent];
            });
            *value += self.arriving * change / f64::from(heard + 1);
            links += heard as usize;
        }
        links
    }

    /// Moves shares; what nobody hears in this round stays.
    fn push(&self, round: u32, mass: &mut [f64]) {
        let before = mass.to_vec();
        for agent in 0..before.len() {
            self.source.heard_by(agent, round, |sender| {
                let listeners = self.audiences.get(sender).map_or(1, |&listeners| listeners.max(1));
                let share = self.arriving * (1.0 - SELF_WEIGHT) / f64::from(listeners) * before[sender];
                mass[sender] -= share;
                mass[agent] += share;
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::TopologyKind;
    use crate::trial::exact_agents;
    use fabswarm_shared::graph::{Graph, Topology, Trace};

    fn phases_of(agents: usize, change: impl FnOnce(&mut Scenario)) -> Phases {
        let mut scenario = Scenario::default();
        scenario.swarm.agents = agents;
        scenario.network.topology = TopologyKind::Ring;
        change(&mut scenario);
        exact_agents(&scenario).unwrap().setup.config.phases
    }

    #[test]
    fn a_gather_is_as_long_as_the_ring_needs() {
        // The slowest mode of a ring shrinks by cos(π/n) a round.
        for agents in [10, 30, 60] {
            let shrink = (std::f64::consts::PI / agents as f64).cos().ln();
            let expected = (EVENNESS / 4.0).ln() / shrink;
            let phases = phases_of(agents, |_| {});
            assert!((f64::from(phases.gather_rounds) / expected - 1.0).abs() < 0.1, "{phases:?} {expected}");
            assert_eq!(phases.descend_rounds, 300);
        }
        let lossless = phases_of(10, |_| {}).gather_rounds;
        assert!(phases_of(10, |scenario| scenario.faults.iid_loss = 0.3).gather_rounds > lossless);
    }

    #[test]
    fn agents_of_graphs_that_mix_well_descend_in_every_round() {
        assert_eq!(phases_of(4, |_| {}), Phases::TOGETHER);
        assert_ne!(phases_of(5, |_| {}), Phases::TOGETHER);
        for topology in [TopologyKind::Paper, TopologyKind::Complete, TopologyKind::ErdosRenyi] {
            assert_eq!(phases_of(30, |scenario| scenario.network.topology = topology), Phases::TOGETHER);
        }
        // Rings both ways in turn, and no other links.
        let both_ways = phases_of(30, |scenario| {
            scenario.network.topology = TopologyKind::Paper;
            scenario.network.edge_probability = 0.0;
        });
        assert!(both_ways.gather_rounds > 500, "{both_ways:?}");
        // A ring of 4 that loses frames spreads as slowly as one of 5 that loses none, and is stable all the same.
        assert_eq!(phases_of(4, |scenario| scenario.faults.iid_loss = 0.5), Phases::TOGETHER);
    }

    #[test]
    fn agents_keep_half_over_links_that_are_always_up_and_more_where_frames_are_lost() {
        let kept = |iid_loss, self_weight| {
            let mut scenario = Scenario::default();
            (scenario.swarm.agents, scenario.network.topology) = (4, TopologyKind::Ring);
            (scenario.faults.iid_loss, scenario.algorithm.self_weight) = (iid_loss, self_weight);
            exact_agents(&scenario).unwrap().setup.config.self_weight
        };
        assert_eq!(kept(0.0, None), 0.5);
        assert_eq!(kept(0.5, None), 0.875);
        assert_eq!(kept(0.9, None), 0.95);
        assert_eq!(kept(0.5, Some(0.6)), 0.6);
    }

    #[test]
    fn the_scenario_may_choose_and_a_short_run_does_not_only_gather() {
        let chosen = phases_of(10, |scenario| {
            (scenario.algorithm.gather_rounds, scenario.algorithm.descend_rounds) = (Some(7), 5);
        });
        assert_eq!(chosen, Phases { gather_rounds: 7, descend_rounds: 5 });
        assert_eq!(phases_of(10, |scenario| scenario.algorithm.gather_rounds = Some(0)), Phases::TOGETHER);
        assert_eq!(phases_of(10, |scenario| scenario.swarm.rounds = 400), Phases::TOGETHER);
        assert_ne!(phases_of(10, |scenario| scenario.swarm.rounds = 410), Phases::TOGETHER);
        assert_eq!(phases_of(1000, |_| {}), Phases::TOGETHER);
        let free = phases_of(10, |scenario| scenario.swarm.mode = ModeKind::FreeRunning);
        assert_eq!(free, Phases::TOGETHER);
    }

    /// A hub that everybody hears and that hears everybody.
    #[test]
    fn a_star_would_overshoot() {
        let rows: Vec<u64> = (0..10).map(|agent| if agent == 0 { 0b11_1111_1110 } else { 1 }).collect();
        let star = Trace::new(10, &rows).unwrap();
        let audiences: Vec<u32> = (0..10).map(|agent| if agent == 0 { 9 } else { 1 }).collect();
        let mixing = Gather { source: &star, audiences: &audiences, arriving: 1.0 };
        assert!(mixing.gain(20) > 2.0, "{}", mixing.gain(20));
        let ring = Graph { topology: Topology::Ring, agents: 10, seed: 0 };
        let mixing = Gather { source: &ring, audiences: &[1; 10], arriving: 0.8 };
        assert!((mixing.gain(50) - 1.0).abs() < 1e-9);
    }
}
