//! The decisions of a swarm.

use fabswarm_shared::problem::Shape;
use fabswarm_shared::scalar::Scalar;

/// The decisions of all agents as they stand.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    shape: Shape,
    /// Packed decisions, one agent after the other. A word of `f32` is kept without loss.
    words: Vec<f64>,
    is_single: bool,
}

/// One variable of all agents, row by row.
#[derive(Clone, Debug, PartialEq)]
pub struct AnswerVariable {
    /// `x`, `y` or `z`.
    pub name: &'static str,
    /// Words per agent.
    pub width: usize,
    /// As many for each agent, in the order of agents.
    pub words: Vec<f64>,
}

impl Answer {
    /// The answer of agents with packed decisions of this shape.
    pub fn new<S: Scalar>(shape: Shape, decisions: &[S]) -> Self {
        let words = decisions.iter().map(|word| word.to_f64()).collect();
        Self { shape, words, is_single: size_of::<S>() == size_of::<f32>() }
    }

    /// Whether agents computed in `f32`.
    pub const fn is_single(&self) -> bool {
        self.is_single
    }

    /// How many agents there are.
    pub fn agents(&self) -> usize {
        self.words.len() / self.shape.words().max(1)
    }

    /// x, y and z.
    pub fn variables(&self) -> [AnswerVariable; 3] {
        let Shape { x, y, .. } = self.shape;
        [("x", 0, x), ("y", x, y), ("z", x + y, y)].map(|(name, start, width)| {
            let agents = self.words.chunks_exact(self.shape.words().max(1));
            AnswerVariable {
                name,
                width,
                words: agents.flat_map(|v| &v[start..start + width]).copied().collect(),
            }
        })
    }
}
