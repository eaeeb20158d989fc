//! LT-ADMM (Ren, Bastianello, Johansson and Parisini, 2025), on undirected graphs and one level: between two exchanges each
//! agent takes τ steps on its own cost, pulled towards its neighbours by one variable z_ij per neighbour,
//!
//! $$\phi^{l+1} = \phi^l - \gamma\nabla f_i(\phi^l) - \beta\Bigl(r\,d_i\,x_i - \sum_j z_{ij}\Bigr),\qquad
//!   z_{ij} \leftarrow \tfrac12 z_{ij} + \tfrac12\,(2r\,x_j - z_{ji})$$
//!
//! with φ⁰ = x_i, x_i ← φ^τ, and $2r\,x_j - z_{ji}$ the frame of j. A lost frame leaves z_ij as it is, which changes no fixed
//! point: that is why the method shrugs off loss.

use fabswarm_sim::trial::BuildError;

use super::rule_on_oracle::KnownSolution;
use super::{ErrorMeasures, Method, MethodStart};
use crate::network::Network;
use crate::oracle::BellmanError;

/// τ, the local steps between two exchanges.
const LOCAL_STEPS: u32 = 5;
/// r, the penalty on disagreement.
const PENALTY: f64 = 1.0;

/// All agents, their edge variables by neighbour.
pub(super) struct LtAdmm {
    oracle: BellmanError,
    network: Network,
    words: usize,
    /// γ.
    step: f64,
    /// β.
    coupling: f64,
    pub(super) x: Vec<f64>,
    /// z_ij at `(i·n + j)·words`; the graph is complete.
    z: Vec<f64>,
    target: KnownSolution,
}

impl LtAdmm {
    pub(super) fn new(start: &MethodStart<'_>) -> Result<Self, BuildError> {
        let (words, agents) = (start.task.shape().x, start.setting.agents);
        Ok(Self {
            target: KnownSolution::of(&start.task),
            oracle: start.bellman(),
            network: start.network()?,
            words,
            step: start.steps.upper,
            coupling: start.steps.lower / agents as f64,
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
        for agent in 0..agents {
            let row = agent * self.words..(agent + 1) * self.words;
            let mut pull: Vec<f64> = self.x[row.clone()].iter().map(|x| PENALTY * degree * x).collect();
            for sender in (0..agents).filter(|&sender| sender != agent) {
                let z = &self.z[self.place(agent, sender)];
                pull.iter_mut().zip(z).for_each(|(pull, z)| *pull -= z);
            }
            for _ in 0..LOCAL_STEPS {
                let d = self.oracle.gradient(agent, self.network.round(), &self.x[row.clone()]);
                for ((x, d), pull) in self.x[row.clone()].iter_mut().zip(d).zip(&pull) {
                    *x -= self.step * d + self.coupling * pull;
                }
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
