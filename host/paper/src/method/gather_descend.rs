//! Gather and descend in turn, for graphs that mix slowly (not in the paper).
//!
//! On a directed ring of n agents pull and push turn the same way, and the slowest mode of FAB leaves the unit circle unless
//! steps are of order 1/n². Apart from each other they are stable with the steps of a well-connected graph:
//!
//! - *gather*: decisions are pulled and trackers pushed, nobody descends, for as many rounds as the graph takes to spread
//!   what one agent knows evenly over all;
//! - *descend*: trackers stay but for `d⁺ − d`, and decisions descend along them with momentum, $m \leftarrow \beta m + t$.
//!
//! Trackers travel through the broadcast ledger, half of each in a round of gathering: a sender adds its share to a running
//! sum, and whoever hears the sum takes what it has not taken yet, so a lost frame costs time and no mass.

use std::rc::Rc;

use fabswarm_sim::task::Task;

use super::composed::Target;
use super::{Measurement, Method, StepSizes};
use crate::links::{Links, Matrix};
use crate::network::Network;
use crate::oracle::{Oracle, PenaltyGradient};
use crate::row_ops::descended;
use crate::setting::{GraphKind, Setting};

/// Rounds of descending between two gathers: momentum needs about half of them to halve the error five times.
const DESCEND_ROUNDS: u32 = 300;
/// β.
const MOMENTUM: f64 = 0.7;
/// What an agent keeps of its tracker in a round of gathering.
const SELF_WEIGHT: f64 = 0.5;
/// A gather is long enough when no agent is farther from the others than this, relative to their mean.
const EVENNESS: f64 = 0.02;
/// Graphs that take longer than this do not connect the swarm.
const LONGEST_GATHER: u32 = 1_000_000;

/// All agents.
pub(super) struct GatherDescend {
    oracle: PenaltyGradient,
    network: Network,
    target: Target,
    words: usize,
    steps: Vec<f64>,
    gather_rounds: u32,
    /// How many may ever hear an agent.
    audience: f64,
    v: Vec<f64>,
    t: Vec<f64>,
    d: Vec<f64>,
    m: Vec<f64>,
    /// σ of each agent.
    sums: Vec<f64>,
    /// ρ: what each receiver has taken of each sender it ever heard.
    taken: Vec<Vec<(usize, Vec<f64>)>>,
}

impl GatherDescend {
    pub(super) fn new(task: Rc<Task<f64>>, setting: &Setting, steps: StepSizes, seed: u64) -> Self {
        let (shape, agents) = (task.shape(), setting.agents);
        let mut packed = vec![setting.lambda * steps.upper; shape.x];
        packed.resize(shape.words(), steps.lower);
        let links = || Network::new(setting.drawn_links(seed), setting.loss, seed);
        let mut network = links();
        let mut oracle = PenaltyGradient::new(Rc::clone(&task), setting.lambda);
        let v = vec![0.0; agents * shape.words()];
        let d = oracle.gradients(&mut network, &v);
        Self {
            target: Target::of(&task),
            oracle,
            gather_rounds: rounds_to_spread(&mut links()),
            network,
            words: shape.words(),
            steps: packed,
            audience: if setting.graph == GraphKind::Ring { 1.0 } else { (agents - 1) as f64 },
            t: d.clone(),
            d,
            m: vec![0.0; v.len()],
            sums: vec![0.0; v.len()],
            taken: vec![Vec::new(); agents],
            v,
        }
    }

    /// Adds to each tracker what its agent hears and has not taken yet.
    fn collect(&mut self, links: &Links) {
        for receiver in 0..self.network.agents() {
            let tracker = &mut self.t[receiver * self.words..][..self.words];
            for sender in links.heard_by(receiver) {
                let sums = &self.sums[sender * self.words..][..self.words];
                let known = self.taken[receiver].iter().position(|(of, _)| *of == sender);
                let at = known.unwrap_or_else(|| {
                    self.taken[receiver].push((sender, vec![0.0; self.words]));
                    self.taken[receiver].len() - 1
                });
                for ((t, rho), sum) in tracker.iter_mut().zip(&mut self.taken[receiver][at].1).zip(sums) {
                    *t += sum - *rho;
                    *rho = *sum;
                }
            }
        }
    }
}

/// Rounds that this network takes to spread what one agent knows evenly over all.
fn rounds_to_spread(network: &mut Network) -> u32 {
    let mut known = vec![0.0; network.agents()];
    known[0] = 1.0;
    for round in 0..LONGEST_GATHER {
        let (least, most) = known.iter().fold((f64::INFINITY, 0.0f64), |(a, b), &k| (a.min(k), b.max(k)));
        if most - least <= EVENNESS * 0.5 * (most + least) {
            return round;
        }
        known = network.next_round().mix(Matrix::Pull, &known, 1, 0);
    }
    LONGEST_GATHER
}

impl Method for GatherDescend {
    fn iterate(&mut self) {
        let is_gathering = self.network.round() % (self.gather_rounds + DESCEND_ROUNDS) < self.gather_rounds;
        let links = self.network.next_round();
        self.network.count(&links, 2 * self.words);
        let before = self.t.clone();
        if is_gathering {
            let share = (1.0 - SELF_WEIGHT) / self.audience;
            for (t, sum) in self.t.iter_mut().zip(&mut self.sums) {
                let given = share * *t;
                *sum += given;
                *t -= self.audience * given;
            }
        }
        self.collect(&links);
        self.v = links.mix(Matrix::Pull, &self.v, self.words, 0);
        if is_gathering {
            self.m.fill(0.0);
        } else {
            self.m.iter_mut().zip(&before).for_each(|(m, t)| *m = MOMENTUM * *m + t);
            self.v = descended(&self.steps, &self.v, &self.m, 1.0);
        }
        let newest = self.oracle.gradients(&mut self.network, &self.v);
        for ((t, d), new) in self.t.iter_mut().zip(&self.d).zip(&newest) {
            *t += new - d;
        }
        self.d = newest;
    }

    fn measure(&self) -> Measurement {
        self.target.measure(&self.v, self.words)
    }

    fn rounds(&self) -> u32 {
        self.network.round()
    }

    fn floats(&self) -> u64 {
        self.network.floats()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ring(agents: usize, loss: f64) -> Setting {
        Setting { graph: GraphKind::Ring, agents, loss, ..Setting::default() }
    }

    #[test]
    fn a_gather_is_as_long_as_the_graph_needs() {
        let rounds =
            |setting: &Setting| rounds_to_spread(&mut Network::new(setting.drawn_links(1), setting.loss, 1));
        // The slowest mode of a ring shrinks by cos(π/n) a round.
        for agents in [10, 30] {
            let shrink = (std::f64::consts::PI / agents as f64).cos().ln();
            let expected = (EVENNESS / 4.0).ln() / shrink;
            let rounds = f64::from(rounds(&ring(agents, 0.0)));
            assert!((rounds / expected - 1.0).abs() < 0.1, "{rounds} {expected}");
        }
        assert!(rounds(&ring(10, 0.3)) > rounds(&ring(10, 0.0)));
        assert_eq!(rounds(&Setting { graph: GraphKind::Complete, ..Setting::default() }), 1);
    }

    // Σt + Σ(σ − ρ) over all links = Σd, whatever is lost.
    #[test]
    fn no_mass_is_lost_with_frames() {
        let setting = ring(6, 0.3);
        let task = Rc::new(Task::draw(&setting.scenario(2)));
        let mut swarm =
            GatherDescend::new(task, &setting, StepSizes { upper: 0.01, lower: 0.06, twin: None }, 2);
        for _ in 0..500 {
            swarm.iterate();
        }
        for word in 0..swarm.words {
            let sum = |state: &[f64]| state.iter().skip(word).step_by(swarm.words).sum::<f64>();
            let taken: f64 = swarm.taken.iter().flatten().map(|(_, rho)| rho[word]).sum();
            let waiting = sum(&swarm.sums) - taken;
            assert!((sum(&swarm.t) + waiting - sum(&swarm.d)).abs() < 1e-10);
        }
    }
}
