//! A swarm as an observer sees it between two rounds.

use super::DigestCounts;
use super::links::LinkTable;
use crate::air::Air;
use fabswarm_shared::packet::Telemetry;
use fabswarm_shared::scalar::Scalar;
use std::ops::Range;

/// Swarms up to this size are seen with every link; of larger ones only links that carried something, and not all of those.
pub const MOST_AGENTS_IN_FULL: usize = 32;

/// Agents beyond this number are not seen: no map has room for them.
pub const MOST_AGENTS_SEEN: usize = 4096;

/// Links that are seen of a larger swarm.
const MOST_LINKS: usize = 2000;

/// The details that an observer asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ViewRequest {
    /// Agents whose links are all wanted, however large the swarm.
    pub agents: Vec<usize>,
}

/// A swarm between two rounds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SwarmView {
    /// Rounds done.
    pub round: u64,
    /// The first agents of the swarm, in order.
    pub agents: Vec<AgentView>,
    /// Links, in ascending order of receivers and then senders.
    pub links: Vec<LinkView>,
    /// Links that carried something in the last slot and are not listed.
    pub links_left_out: usize,
}

/// Whether an agent takes part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AgentCondition {
    /// It computes and communicates.
    #[default]
    Running,
    /// It computes, and its radio is off.
    Silent,
    /// It is suspended.
    Frozen,
    /// It has crashed, or its board is lost.
    Down,
}

/// One agent, as an observer sees it. What a swarm does not know of its agents is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AgentView {
    /// Whether it takes part.
    pub condition: AgentCondition,
    /// Where it is, in m from a corner of the area.
    pub position: Option<[f32; 3]>,
    /// Its own round.
    pub round: u64,
    /// Its epoch; 0 while it is joining.
    pub epoch: Option<u32>,
    /// How often it started.
    pub boot: Option<u32>,
    /// The digest of its state.
    pub digest: Option<u32>,
    /// How far its decision is from the mean of all, relative to the mean.
    pub deviation: Option<f32>,
    /// Its board, where it runs on one.
    pub board: Option<BoardView>,
}

/// The board of an agent.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BoardView {
    /// How often it was compared with its shadow.
    pub digests: DigestCounts,
    /// Milliseconds that its last round took it, its cable included.
    pub answer_ms: Option<f32>,
    /// Its last report.
    pub telemetry: Option<Telemetry>,
}

/// A directed link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkView {
    /// The sender.
    pub sender: u32,
    /// The receiver.
    pub receiver: u32,
    /// Whether a copy arrived over it in the last slot.
    pub is_up: bool,
    /// Copies it carried so far.
    pub copies: u64,
    /// Those it lost.
    pub lost: u64,
    /// The sender's round of what the receiver collected last.
    pub collected_round: Option<u32>,
}

impl SwarmView {
    /// The view of agents and links that `air` has after `slots` slots.
    pub fn of_air(air: &Air, slots: u32, request: &ViewRequest) -> Self {
        let mut view = Self { round: slots.into(), ..Self::default() };
        view.add_agents_of(air, slots);
        view.add_links_of(air, request);
        view
    }

    /// Agents after `round` rounds without an air; `heard[i]` lists whom agent i hears.
    pub fn of_graph(heard: &[Vec<usize>], round: u64, request: &ViewRequest) -> Self {
        let (agents, total) = (heard.len(), heard.iter().map(Vec::len).sum());
        let heard = heard.iter().map(|senders| senders.iter().copied()).enumerate();
        Self::of_perfect_links([agents, total], heard, round, request)
    }

    /// Agents after `round` rounds without an air, with links from a table, which is that of the coming round.
    pub(super) fn of_table(links: &LinkTable, round: u64, request: &ViewRequest) -> Self {
        let total = links.listeners().iter().map(|&count| count as usize).sum();
        Self::of_perfect_links([links.listeners().len(), total], links.rows(), round, request)
    }

    /// Adds what `air` knows of agents after `slots` slots.
    fn add_agents_of(&mut self, air: &Air, slots: u32) {
        let (slot, outages) = (slots.saturating_sub(1), air.outages());
        self.agents.extend((0..air.agents().min(MOST_AGENTS_SEEN)).map(|agent| AgentView {
            condition: match () {
                () if outages.is_down(agent, slot) => AgentCondition::Down,
                () if outages.is_frozen(agent, slot) => AgentCondition::Frozen,
                () if outages.is_silent(agent, slot) => AgentCondition::Silent,
                () => AgentCondition::Running,
            },
            position: air.position(agent, slot),
            round: slots.into(),
            ..AgentView::default()
        }));
    }

    /// Adds the links of `air`.
    fn add_links_of(&mut self, air: &Air, request: &ViewRequest) {
        let mut up: Vec<(u32, u32)> = Vec::new();
        let sample = LinkSample::new(air.arrivals().count(), air.agents(), request);
        for (receiver, sender) in air.arrivals() {
            if sample.contains(receiver, sender) {
                up.push((receiver as u32, sender as u32));
            } else {
                self.links_left_out += 1;
            }
        }
        up.sort_unstable();
        up.dedup();
        let counters = air.counters();
        let mut add = |receiver: u32, sender: u32, is_up| {
            let (copies, lost) = counters.link(receiver as usize, sender as usize);
            if is_up || copies > 0 {
                self.links.push(LinkView { sender, receiver, is_up, copies, lost, collected_round: None });
            }
        };
        let agents = air.agents() as u32;
        if air.agents() <= MOST_AGENTS_IN_FULL {
            for receiver in 0..agents {
                for sender in (0..agents).filter(|&sender| sender != receiver) {
                    add(receiver, sender, up.binary_search(&(receiver, sender)).is_ok());
                }
            }
        } else {
            up.iter().for_each(|&(receiver, sender)| add(receiver, sender, true));
        }
    }

    /// As many agents and links, over which each agent hears its senders.
    fn of_perfect_links(
        [agents, links]: [usize; 2],
        heard: impl Iterator<Item = (usize, impl Iterator<Item = usize>)>,
        round: u64,
        request: &ViewRequest,
    ) -> Self {
        let agent = AgentView { round, ..AgentView::default() };
        let mut view = Self { round, agents: vec![agent; agents.min(MOST_AGENTS_SEEN)], ..Self::default() };
        let sample = LinkSample::new(links, agents, request);
        for (receiver, senders) in heard {
            for sender in senders.filter(|&sender| sender != receiver) {
                if sample.contains(receiver, sender) {
                    let (sender, receiver) = (sender as u32, receiver as u32);
                    view.links.push(LinkView { sender, receiver, is_up: true, ..LinkView::default() });
                } else {
                    view.links_left_out += 1;
                }
            }
        }
        view
    }

    /// Adds how far each agent is from the mean of all. `decisions` are packed, `words` per agent; `exchanged` of these are common.
    pub(super) fn add_deviations<S: Scalar>(
        &mut self,
        decisions: &[S],
        words: usize,
        exchanged: Range<usize>,
    ) {
        let rows = decisions.chunks_exact(words).map(|row| &row[exchanged.clone()]);
        let mut mean = vec![0.0; exchanged.len()];
        let count = rows.len() as f64;
        for row in rows.clone() {
            mean.iter_mut().zip(row).for_each(|(mean, word)| *mean += word.to_f64() / count);
        }
        let size = mean.iter().map(|mean| mean * mean).sum::<f64>().sqrt();
        for (agent, row) in self.agents.iter_mut().zip(rows) {
            let squares = row.iter().zip(&mean).map(|(word, mean)| (word.to_f64() - mean).powi(2));
            let distance = squares.sum::<f64>().sqrt();
            agent.deviation = (size > 0.0).then_some((distance / size) as f32);
        }
    }
}

/// Which links of a large swarm are seen: always the same ones, so that a picture of them is steady.
struct LinkSample<'a> {
    /// A link is seen if the 32 bits drawn for it are at most this number.
    limit: u32,
    request: &'a ViewRequest,
}

impl<'a> LinkSample<'a> {
    fn new(links: usize, agents: usize, request: &'a ViewRequest) -> Self {
        let is_whole = links <= MOST_LINKS || agents <= MOST_AGENTS_IN_FULL;
        let share = if is_whole { 1.0 } else { MOST_LINKS as f64 / links as f64 };
        Self { limit: (share * f64::from(u32::MAX)) as u32, request }
    }

    fn contains(&self, receiver: usize, sender: usize) -> bool {
        if receiver.max(sender) >= MOST_AGENTS_SEEN {
            return false;
        }
        let wanted = &self.request.agents;
        mixed(receiver as u32, sender as u32) <= self.limit
            || (!wanted.is_empty() && (wanted.contains(&receiver) || wanted.contains(&sender)))
    }
}

/// A number that looks random, for a pair of numbers (the finaliser of MurmurHash3).
const fn mixed(receiver: u32, sender: u32) -> u32 {
    let mut bits = receiver.wrapping_mul(0x9e37_79b1) ^ sender.wrapping_mul(0x85eb_ca77);
    bits = (bits ^ (bits >> 16)).wrapping_mul(0x85eb_ca6b);
    bits = (bits ^ (bits >> 13)).wrapping_mul(0xc2b2_ae35);
    bits ^ (bits >> 16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Crash, Crashes, Outage, OutageList, Scenario, TopologyKind};
    use crate::trial;

    fn view_after(rounds: u32, request: &ViewRequest, change: impl FnOnce(&mut Scenario)) -> SwarmView {
        let mut scenario = Scenario::default();
        change(&mut scenario);
        let mut swarm = trial::build(&scenario).unwrap();
        for _ in 0..rounds {
            swarm.step().unwrap();
        }
        swarm.view(request)
    }

    fn of(view: &SwarmView, sender: u32, receiver: u32) -> Option<&LinkView> {
        view.links.iter().find(|link| (link.sender, link.receiver) == (sender, receiver))
    }

    #[test]
    fn a_ring_is_seen_link_by_link() {
        let ring = |scenario: &mut Scenario| {
            // Few enough to descend from the first round on.
            scenario.swarm.agents = 4;
            scenario.network.topology = TopologyKind::Ring;
        };
        let view = view_after(7, &ViewRequest::default(), ring);
        assert_eq!((view.round, view.agents.len(), view.links.len()), (7, 4, 4));
        for link in &view.links {
            assert!(link.is_up && link.copies == 7 && link.lost == 0, "{link:?}");
            assert_eq!(link.collected_round, Some(6));
        }
        let agent = view.agents[0];
        assert_eq!((agent.round, agent.epoch, agent.boot), (7, Some(1), Some(1)));
        assert!(agent.digest.is_some() && agent.deviation.is_some());
    }

    #[test]
    fn a_link_that_loses_everything_is_not_up() {
        let silent = |scenario: &mut Scenario| {
            scenario.network.topology = TopologyKind::Complete;
            scenario.faults.radio_off = OutageList(vec![Outage { agent: 3, from: 4, rounds: 4 }]);
            let crash = Crash { agent: 5, round: 6, down_rounds: 10, keeps_memory: true };
            scenario.faults.crashes = Crashes(vec![crash]);
        };
        let view = view_after(7, &ViewRequest::default(), silent);
        assert!(!of(&view, 2, 3).unwrap().is_up);
        assert_eq!(of(&view, 2, 3).unwrap().collected_round, Some(3));
        assert!(of(&view, 2, 4).unwrap().is_up);
        assert_eq!(view.agents[3].condition, AgentCondition::Silent);
        assert_eq!(view.agents[5].condition, AgentCondition::Down);
        assert_eq!(view.agents[4].condition, AgentCondition::Running);
    }

    #[test]
    fn a_large_swarm_is_thinned_but_for_those_who_are_asked_for() {
        let large = |scenario: &mut Scenario| {
            scenario.swarm.agents = 120;
            scenario.network.topology = TopologyKind::Complete;
        };
        let view = view_after(2, &ViewRequest { agents: vec![7] }, large);
        assert_eq!(view.links.len() + view.links_left_out, 120 * 119);
        assert!((1000..3000).contains(&view.links.len()), "{}", view.links.len());
        let of_seven = view.links.iter().filter(|link| link.receiver == 7 || link.sender == 7).count();
        assert_eq!(of_seven, 2 * 119);
        assert!(view.links.is_sorted_by_key(|link| (link.receiver, link.sender)));
    }

    #[test]
    fn every_kind_of_swarm_shows_its_links() {
        use crate::scenario::AlgorithmKind;
        let plain = view_after(3, &ViewRequest::default(), |scenario| {
            scenario.algorithm.kind = AlgorithmKind::Fab;
            scenario.network.topology = TopologyKind::Ring;
        });
        assert_eq!((plain.agents.len(), plain.links.len()), (10, 10));
        let unguarded = view_after(3, &ViewRequest::default(), |scenario| {
            scenario.algorithm.kind = AlgorithmKind::Fab;
            scenario.faults.iid_loss = 0.5;
        });
        assert!(unguarded.links.iter().any(|link| link.lost > 0));
        let arrays = view_after(2, &ViewRequest::default(), |scenario| {
            scenario.swarm.agents = 1100;
            scenario.network.topology = TopologyKind::Ring;
        });
        assert_eq!((arrays.agents.len(), arrays.links.len()), (1100, 1100));
    }

    #[test]
    fn flying_agents_have_a_place() {
        let view = view_after(3, &ViewRequest::default(), |scenario| {
            scenario.network.topology = TopologyKind::Motion;
        });
        let [x, y, z] = view.agents[4].position.unwrap();
        assert!((0.0..=200.0).contains(&x) && (0.0..=200.0).contains(&y) && z >= 0.0, "{x} {y} {z}");
    }
}
