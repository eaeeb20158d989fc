//! The networks of experiments.

use std::rc::Rc;

use fabswarm_diagnostic::Diagnostic;
use fabswarm_shared::graph::{Schedule as _, Weights, check_joint_connectivity};
use fabswarm_shared::rng::{Purpose, Stream};
use fabswarm_sim::air::LinkSource;
use fabswarm_sim::method::{LinkSequence, LinkWeights, Network};

/// Rounds among which a graph to keep is looked for.
const KEPT_AMONG: u32 = 1000;

/// The source of the links of each round.
#[derive(Clone, Debug)]
pub(crate) enum LinkRule {
    /// Others in each round, weights by degree.
    Degrees(Rc<LinkSource>),
    /// Constant links and weights.
    Fixed(Rc<LinkWeights>),
    /// A directed ring with weights by degree, of which every `turns`-th link is there in each round, in turn.
    RingInTurns {
        agents: usize,
        /// Rounds until a link is there again.
        turns: u32,
    },
    /// The weights of the first round for ever, while frames travel only over the links of each round.
    FirstWeights(Rc<LinkSource>),
}

/// The links of a rule, each frame lost with a probability.
#[derive(Debug)]
struct LossyLinks {
    rule: LinkRule,
    first: Rc<LinkWeights>,
    loss: f64,
    seed: u64,
}

impl LinkRule {
    /// The links of the first round whose graph is, or is not, strongly connected, for ever.
    pub(crate) fn kept(graphs: &LinkSource, is_connected: bool) -> Result<Self, Diagnostic> {
        let mut reached = vec![false; graphs.agents()];
        let mut fits = |round: &u32| {
            check_joint_connectivity(graphs, *round..*round + 1, &mut reached).is_ok() == is_connected
        };
        let round = (0..KEPT_AMONG).find(&mut fits).ok_or_else(|| {
            let which = if is_connected { "a connected" } else { "a split" };
            Diagnostic::bare(format!("none of the first {KEPT_AMONG} rounds has {which} graph"))
        })?;
        Ok(Self::Fixed(Rc::new(all_links(graphs, round))))
    }

    /// A network that loses each frame with probability `loss`.
    pub(crate) fn network(self, loss: f64, seed: u64) -> Network {
        let first = match &self {
            Self::Fixed(links) => Rc::clone(links),
            Self::Degrees(graphs) | Self::FirstWeights(graphs) => Rc::new(all_links(graphs, 0)),
            Self::RingInTurns { agents, turns } => Rc::new(ring_in_turns(*agents, *turns, 0)),
        };
        Network::new(first.agents(), LossyLinks { rule: self, first, loss, seed })
    }
}

fn all_links(graphs: &LinkSource, round: u32) -> LinkWeights {
    LinkWeights::of_round(graphs, round, Weights::Uniform, |_, _| false)
}

fn ring_in_turns(agents: usize, turns: u32, round: u32) -> LinkWeights {
    let hears = |agent: usize| (round as usize + agent).is_multiple_of(turns as usize);
    let before = |agent: usize| (agent + agents - 1) % agents;
    let heard: Vec<Vec<usize>> =
        (0..agents).map(|agent| hears(agent).then(|| before(agent)).into_iter().collect()).collect();
    let listeners: Vec<usize> = (0..agents).map(|agent| hears((agent + 1) % agents).into()).collect();
    LinkWeights::of_heard(&listeners, &heard, Weights::Uniform)
}

impl LinkSequence for LossyLinks {
    fn links(&mut self, round: u32) -> Rc<LinkWeights> {
        let of = |graphs: &LinkSource| {
            let lost = lose_independently(self.seed, round, self.loss);
            LinkWeights::of_round(graphs, round, Weights::Uniform, lost)
        };
        match &self.rule {
            LinkRule::Degrees(graphs) => Rc::new(of(graphs)),
            LinkRule::Fixed(links) => Rc::clone(links),
            LinkRule::RingInTurns { agents, turns } => Rc::new(ring_in_turns(*agents, *turns, round)),
            LinkRule::FirstWeights(graphs) => Rc::new(self.first.where_present(&of(graphs))),
        }
    }
}

/// Independent losses: each frame of `round` with this probability.
fn lose_independently(seed: u64, round: u32, probability: f64) -> impl FnMut(usize, usize) -> bool {
    let mut draws: Option<(usize, Stream)> = None;
    move |_, receiver| {
        if probability == 0.0 {
            return false;
        }
        let fresh = || (receiver, Stream::new(seed, receiver as u32, round, Purpose::Air));
        if draws.as_ref().is_none_or(|(of, _)| *of != receiver) {
            draws = Some(fresh());
        }
        draws.as_mut().is_some_and(|(_, stream)| stream.uniform_f64() < probability)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_of_a_ring_take_turns() {
        for (turns, counts) in [(1, [10; 3]), (5, [2; 3]), (10, [1; 3])] {
            let mut network = LinkRule::RingInTurns { agents: 10, turns }.network(0.0, 1);
            assert_eq!([(); 3].map(|()| network.next_round().count()), counts);
        }
        let mut network = LinkRule::RingInTurns { agents: 10, turns: 5 }.network(0.0, 1);
        let mut heard: Vec<usize> = (0..5)
            .flat_map(|_| {
                let links = network.next_round();
                (0..10).filter(|&agent| links.heard_by(agent).count() == 1).collect::<Vec<_>>()
            })
            .collect();
        heard.sort_unstable();
        assert_eq!(heard, Vec::from_iter(0..10), "all links in five rounds");
    }

    #[test]
    fn frames_are_lost_independently() {
        let mut lose = lose_independently(7, 0, 0.25);
        let lost = (0..4000).filter(|&frame| lose(frame % 5, frame / 5)).count();
        assert!((900..1100).contains(&lost), "{lost}");
    }
}
