//! Users' problems, which compute in single precision, for methods in double precision.

use super::own::{AnyOwnTask, OwnProblem, OwnShare};
use super::{Score, Task};
use crate::scenario::{ProblemKind, Scenario};
use fabswarm_diagnostic::Diagnostic;
use fabswarm_shared::problem::{Mismatch, NoiseKey, Problem, Shape};
use std::sync::Arc;

impl Task<f64> {
    /// As for `f32`. Values and gradients of a program's own problem are those of single precision.
    pub fn load_with(scenario: &Scenario, own: Option<&OwnProblem>) -> Result<Self, Diagnostic> {
        if scenario.problem.kind != ProblemKind::Own {
            return Self::load(scenario);
        }
        match Task::<f32>::load_with(scenario, own)? {
            Task::Own { task, source } => Ok(Self::Own { task: Arc::new(WidenedTask(task)), source }),
            _ => Self::load(scenario),
        }
    }
}

#[derive(Debug)]
struct WidenedTask(Arc<dyn AnyOwnTask<f32>>);

impl AnyOwnTask<f64> for WidenedTask {
    fn share(&self, agent: usize) -> OwnShare<'_, f64> {
        self.0.share(agent).map(|problem| Box::new(WidenedProblem(problem)))
    }

    fn start(&self, v: &mut [f64]) {
        let mut narrow = vec![0.0; v.len()];
        self.0.start(&mut narrow);
        widen(&narrow, v);
    }

    fn keeps_x_non_negative(&self) -> bool {
        self.0.keeps_x_non_negative()
    }

    fn scores(&self, decisions: &[f64]) -> Vec<Score> {
        self.0.scores(&narrowed(decisions))
    }
}

struct WidenedProblem<'a>(Box<dyn Problem<f32> + 'a>);

fn narrowed(words: &[f64]) -> Vec<f32> {
    words.iter().map(|&word| word as f32).collect()
}

fn widen(from: &[f32], to: &mut [f64]) {
    to.iter_mut().zip(from).for_each(|(to, &from)| *to = from.into());
}

impl WidenedProblem<'_> {
    /// Calls `gradient` with x, y, room for its two parts, and working memory.
    fn gradient(
        &self,
        [x, y]: [&[f64]; 2],
        dx: &mut [f64],
        dy: &mut [f64],
        gradient: impl FnOnce(&[f32], &[f32], &mut [f32], &mut [f32], &mut [f32]),
    ) {
        let (mut by_x, mut by_y) = (vec![0.0; dx.len()], vec![0.0; dy.len()]);
        let mut scratch = vec![0.0; self.0.oracle_words()];
        gradient(&narrowed(x), &narrowed(y), &mut by_x, &mut by_y, &mut scratch);
        widen(&by_x, dx);
        widen(&by_y, dy);
    }
}

impl Problem<f64> for WidenedProblem<'_> {
    fn shape(&self) -> Shape {
        self.0.shape()
    }

    fn check(&self) -> Result<(), Mismatch> {
        self.0.check()
    }

    fn oracle_words(&self) -> usize {
        0
    }

    fn upper_value(&self, x: &[f64], y: &[f64], _: &mut [f64]) -> f64 {
        self.0.upper_value(&narrowed(x), &narrowed(y), &mut vec![0.0; self.0.oracle_words()]).into()
    }

    fn lower_value(&self, x: &[f64], y: &[f64], _: &mut [f64]) -> f64 {
        self.0.lower_value(&narrowed(x), &narrowed(y), &mut vec![0.0; self.0.oracle_words()]).into()
    }

    fn upper_gradient(&self, x: &[f64], y: &[f64], dx: &mut [f64], dy: &mut [f64], _: &mut [f64]) {
        self.gradient([x, y], dx, dy, |x, y, dx, dy, scratch| self.0.upper_gradient(x, y, dx, dy, scratch));
    }

    fn lower_gradient(
        &self,
        at: NoiseKey,
        x: &[f64],
        y: &[f64],
        dx: &mut [f64],
        dy: &mut [f64],
        _: &mut [f64],
    ) {
        self.gradient([x, y], dx, dy, |x, y, dx, dy, scratch| {
            self.0.lower_gradient(at, x, y, dx, dy, scratch)
        });
    }

    fn project(&self, x: &mut [f64]) {
        let before = narrowed(x);
        let mut projected = before.clone();
        self.0.project(&mut projected);
        // A value that stays in its set keeps its precision.
        for ((x, before), projected) in x.iter_mut().zip(before).zip(projected) {
            if projected != before {
                *x = projected.into();
            }
        }
    }
}
