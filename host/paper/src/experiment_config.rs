//! The setting of a run: how many agents, over which links, with which noise and how long.

use std::rc::Rc;

use fabswarm_sim::Diagnostic;
use fabswarm_sim::air::LinkSource;
use fabswarm_sim::method::LinkWeights;
use fabswarm_sim::scenario::{ProblemKind, Scenario, TopologyKind};
use serde::{Deserialize, Serialize};

use crate::network::LinkRule;

/// Which graphs a swarm has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum GraphKind {
    /// The paper's three phases.
    Paper,
    /// Random links, drawn anew each round.
    ErdosRenyi,
    /// A directed ring with the weights of [`ExperimentConfig::ring_shares`].
    Ring,
    /// A directed ring whose links take turns, each there once in [`ExperimentConfig::turns`] rounds.
    RingInTurns,
    /// Everybody hears everybody.
    Complete,
    /// The graphs of [`ExperimentConfig::recording`], from the first one again where a run is longer.
    Recorded,
}

/// Everything a run depends on but the method, its steps and the seed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ExperimentConfig {
    /// Whether the problem is hyper-cleaning, which is not convex, instead of policy evaluation.
    pub(crate) hyper_cleaning: bool,
    /// n.
    pub(crate) agents: usize,
    pub(crate) graph: GraphKind,
    /// File with a problem and graphs in the golden schema, for [`GraphKind::Recorded`].
    pub(crate) recording: String,
    /// ν.
    pub(crate) edge_probability: f64,
    /// Weights that even and odd agents of a ring give to their neighbour.
    pub(crate) ring_shares: [f64; 2],
    /// C: any C successive rounds together have all links of a ring.
    pub(crate) turns: u32,
    /// Probability that a frame is lost.
    pub(crate) loss: f64,
    /// ω.
    pub(crate) reward_noise: f64,
    /// Weights of f and g of policy evaluation.
    pub(crate) level_weights: [f64; 2],
    /// λ, the μ of the paper's experiments.
    pub(crate) lambda: f64,
    /// T, the inner rounds of a double loop.
    pub(crate) inner_rounds: u32,
    /// β of Push-ASGD.
    pub(crate) momentum: f64,
    /// δ: steps shrink as `1/(1 + δk)`.
    pub(crate) decay: f64,
    /// Whether simulated agents step before they average decisions.
    pub(crate) adapt_first: bool,
    /// Whether z of simulated agents minimises g − f/λ.
    pub(crate) symmetric: bool,
    /// Movement below which agents with the ledger stay silent.
    pub(crate) send_threshold: f64,
    /// Rounds of communication that a run may use.
    pub(crate) rounds: u32,
    /// The error at which a run ends early; 0 never.
    pub(crate) stop_below: f64,
}

impl Default for ExperimentConfig {
    fn default() -> Self {
        Self {
            hyper_cleaning: false,
            agents: 10,
            graph: GraphKind::Paper,
            recording: String::new(),
            edge_probability: 0.5,
            ring_shares: [0.5; 2],
            turns: 1,
            loss: 0.0,
            reward_noise: 0.0,
            level_weights: [1.0; 2],
            lambda: 60.0,
            inner_rounds: 20,
            momentum: 0.02,
            decay: 0.0,
            adapt_first: false,
            symmetric: false,
            send_threshold: 0.0,
            rounds: 20_000,
            stop_below: 0.0,
        }
    }
}

impl ExperimentConfig {
    /// The scenario that draws the same problem and, where it has them, the same graphs.
    pub(crate) fn scenario(&self, seed: u64) -> Scenario {
        let mut scenario = Scenario { seed, ..Scenario::default() };
        scenario.swarm.agents = self.agents;
        scenario.swarm.rounds = self.rounds.into();
        if self.hyper_cleaning {
            scenario.problem.kind = ProblemKind::HyperCleaning;
        }
        let task = &mut scenario.policy_evaluation;
        task.reward_noise = self.reward_noise;
        [task.upper_weight, task.lower_weight] = self.level_weights;
        scenario.network.topology = match self.graph {
            GraphKind::Paper => TopologyKind::Paper,
            GraphKind::ErdosRenyi => TopologyKind::ErdosRenyi,
            GraphKind::Ring | GraphKind::RingInTurns => TopologyKind::Ring,
            GraphKind::Complete => TopologyKind::Complete,
            GraphKind::Recorded => TopologyKind::Recorded,
        };
        scenario.network.graphs.clone_from(&self.recording);
        scenario.policy_evaluation.file.clone_from(&self.recording);
        scenario.network.edge_probability = self.edge_probability;
        scenario.faults.iid_loss = self.loss;
        scenario.algorithm.lambda = self.lambda;
        scenario
    }

    pub(crate) fn graphs(&self, seed: u64) -> Result<Rc<LinkSource>, Diagnostic> {
        LinkSource::new(&self.scenario(seed)).map(Rc::new)
    }

    pub(crate) fn link_rule(&self, seed: u64) -> Result<LinkRule, Diagnostic> {
        Ok(match self.graph {
            GraphKind::Ring => {
                let links = LinkWeights::weighted_ring(self.agents, |agent| self.ring_shares[agent % 2]);
                LinkRule::Fixed(Rc::new(links))
            }
            GraphKind::RingInTurns => LinkRule::RingInTurns { agents: self.agents, turns: self.turns },
            _ => LinkRule::Degrees(self.graphs(seed)?),
        })
    }
}
