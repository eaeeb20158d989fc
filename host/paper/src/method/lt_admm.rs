//! LT-ADMM (Ren, Bastianello, Johansson and Parisini, 2025), on undirected graphs: between two exchanges each agent takes τ steps on its own cost, pulled towards its neighbours by one variable z_ij per neighbour,
//!
//! $$\phi^{l+1} = \phi^l - \gamma\nabla f_i(\phi^l) - \beta\Bigl(r\,d_i\,x_i - \sum_j z_{ij}\Bigr),\qquad
//!   z_{ij} \leftarrow \tfrac12 z_{ij} + \tfrac12\,(2r\,x_j - z_{ji})$$
//!
//! with φ⁰ = x_i, x_i ← φ^τ, and $2r\,x_j - z_{ji}$ the frame of j. A lost frame leaves z_ij as it is, which changes no fixed
//! point: that is why the method shrugs off loss. It solves the form of one level, or takes the place of push-pull under FAB: its
//! rows are then [x | y | z], and ∇f_i the gradient of the penalty function with a step for each part.

use std::rc::Rc;

use fabswarm_sim::method::{Network, Oracle, PenaltyGradient};
use fabswarm_sim::trial::BuildError;

use super::rule_on_oracle::MeasuredWords;
use super::{ErrorMeasures, Method, MethodStart};
use crate::bellman::BellmanError;

/// r, the penalty on disagreement.
const PENALTY: f64 = 1.0;
/// β on both levels, times the number of agents.
const COUPLING: f64 = 0.1;

/// All agents, their edge variables by neighbour.
pub(super) struct LtAdmm {
    oracle: Box<dyn Oracle>,
    network: Network,
    words: usize,
    /// τ, the local steps between two exchanges.
    local_steps: u32,
    /// γ, for each word of a row.
    steps: Vec<f64>,
    /// β.
    coupling: f64,
    pub(super) x: Vec<f64>,
    /// z_ij at `(i·n + j)·words`; the graph is complete.
    z: Vec<f64>,
    target: MeasuredWords,
}

impl LtAdmm {
    /// On the form of one level, where the second step of the setting is the coupling.
    pub(super) fn single_level(start: &MethodStart<'_>) -> Result<Self, BuildError> {
        let steps = vec![start.steps.upper; start.task.shape().x];
        let oracle = BellmanError::new(Rc::clone(&start.task));
        Self::new(start, Box::new(oracle), 5, steps, start.steps.lower)
    }

    /// On the penalty function of both levels.
    pub(super) fn bilevel(start: &MethodStart<'_>, local_steps: u32) -> Result<Self, BuildError> {
        let shape = start.task.shape();
        let mut steps = vec![start.setting.lambda * start.steps.upper; shape.x];
        steps.resize(shape.words(), start.steps.lower);
        let oracle = PenaltyGradient::new(Rc::clone(&start.task), start.penalty());
        Self::new(start, Box::new(oracle), local_steps, steps, COUPLING)
    }

    fn new(
        start: &MethodStart<'_>,
        oracle: Box<dyn Oracle>,
        local_steps: u32,
        steps: Vec<f64>,
        coupling: f64,
    ) -> Result<Self, BuildError> {
        let (words, agents) = (steps.len(), start.setting.agents);
        Ok(Self {
            target: MeasuredWords::of(&start.task),
            oracle,
            network: start.network()?,
            words,
            local_steps,
            steps,
            coupling: coupling / agents as f64,
            x: vec![0.0; agents * words],
            z: vec![0.0; agents * agents * words],
        })
    }

    fn place(&self, receiver: usize, sender: usize) -> std::ops::Range<usize> {
        let start = (receiver * self.network.agents() + sender) * self.words;
        start..start + self.words
    }
}

impl Method for LtAdmm {
    fn iterate(&mut self) {
        let agents = self.network.agents();
        let degree = (agents - 1) as f64;
        let mut pull: Vec<f64> = self.x.iter().map(|x| PENALTY * degree * x).collect();
        for (agent, pull) in pull.chunks_exact_mut(self.words).enumerate() {
            for sender in (0..agents).filter(|&sender| sender != agent) {
                let z = &self.z[self.place(agent, sender)];
                pull.iter_mut().zip(z).for_each(|(pull, z)| *pull -= z);
            }
        }
        for _ in 0..self.local_steps {
            let d = self.oracle.gradients(&mut self.network, &self.x);
            let steps = self.steps.iter().cycle();
            for (((x, d), pull), step) in self.x.iter_mut().zip(d).zip(&pull).zip(steps) {
                *x -= step * d + self.coupling * pull;
            }
        }
        let links = self.network.next_round();
        self.network.count(&links, self.words);
        let before = self.z.clone();
        for receiver in 0..agents {
            for sender in links.heard_by(receiver) {
                let (to, from) = (self.place(receiver, sender), self.place(sender, receiver));
                let x = &self.x[sender * self.words..][..self.words];
                for ((z, back), x) in self.z[to].iter_mut().zip(&before[from]).zip(x) {
                    *z = 0.5 * *z + 0.5 * (2.0 * PENALTY * x - back);
                }
            }
        }
    }

    fn measure(&self) -> ErrorMeasures {
        self.target.measure(&self.x, self.words)
    }

    fn rounds(&self) -> u32 {
        self.network.round()
    }

    fn floats(&self) -> u64 {
        self.network.floats()
    }
}
