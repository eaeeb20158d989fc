//! Methods that are a rule on an oracle.

use std::rc::Rc;

use fabswarm_sim::method::{
    Arrays, Hypergradient, InnerLoop, Network, Oracle, Rule, RuleKind, SobaDirection,
};
use fabswarm_sim::task::Task;
use fabswarm_sim::trial::BuildError;

use super::{ErrorMeasures, Method, MethodStart};
use crate::bellman::BellmanError;
use crate::experiment_config::ExperimentConfig;

/// x*, and the second derivative of F* in x, which is constant.
#[derive(Clone, Debug)]
pub(super) struct KnownSolution {
    solution: Vec<f64>,
    /// By columns.
    hessian: Vec<Vec<f64>>,
}

impl KnownSolution {
    pub(super) fn of(task: &Rc<Task<f64>>) -> Self {
        let solution = task.solution().unwrap_or_default().to_vec();
        let bellman = BellmanError::new(Rc::clone(task));
        // F* is quadratic and agents differ in its linear part only, so differences of one agent's gradients are exact. Round 0
        // for all of them: their noise cancels.
        let column = |bellman: &BellmanError, at: usize| {
            let mut unit = vec![0.0; solution.len()];
            let base = bellman.gradient(0, 0, &unit);
            unit[at] = 1.0;
            bellman.gradient(0, 0, &unit).iter().zip(base).map(|(moved, base)| moved - base).collect()
        };
        let hessian = bellman.iter().flat_map(|bellman| (0..solution.len()).map(|at| column(bellman, at)));
        Self { hessian: hessian.collect(), solution }
    }

    /// `‖∇F*(x̄)‖²`.
    fn stationarity(&self, mean: &[f64]) -> Option<f64> {
        let mut gradient = vec![0.0; mean.len()];
        for ((column, mean), best) in self.hessian.iter().zip(mean).zip(&self.solution) {
            gradient.iter_mut().zip(column).for_each(|(sum, entry)| *sum += entry * (mean - best));
        }
        (!self.hessian.is_empty()).then(|| gradient.iter().map(|entry| entry * entry).sum())
    }

    /// Measures rows of `words` words that begin with x.
    pub(super) fn measure(&self, rows: &[f64], words: usize) -> ErrorMeasures {
        let agents = (rows.len() / words) as f64;
        let size = |v: &[f64]| v.iter().map(|v| v * v).sum::<f64>().sqrt();
        let mut mean = vec![0.0; self.solution.len()];
        let mut distances = 0.0;
        for row in rows.chunks_exact(words) {
            mean.iter_mut().zip(row).for_each(|(mean, x)| *mean += x / agents);
            let away: f64 = row.iter().zip(&self.solution).map(|(x, best)| (x - best).powi(2)).sum();
            distances += away.sqrt();
        }
        let spread: f64 = rows
            .chunks_exact(words)
            .flat_map(|row| row.iter().zip(&mean))
            .map(|(x, mean)| (x - mean).powi(2))
            .sum();
        let consensus = (spread / agents).sqrt() / size(&mean).max(f64::MIN_POSITIVE);
        let error = distances / agents / size(&self.solution);
        ErrorMeasures { error, consensus, stationarity: self.stationarity(&mean) }
    }
}

/// A rule at work on an oracle.
pub(super) struct RuleOnOracle<O> {
    pub(super) ops: Arrays<O>,
    pub(super) rule: Rule<Vec<f64>>,
    steps: Vec<f64>,
    decay: f64,
    iterations: u32,
    target: KnownSolution,
}

impl<O: Oracle> RuleOnOracle<O> {
    /// At rest with every agent at `row`, with the step size of each word.
    pub(super) fn new(
        start: &MethodStart<'_>,
        network: Network,
        rule: RuleKind,
        oracle: O,
        steps: Vec<f64>,
        row: &[f64],
    ) -> Self {
        let v = row.repeat(network.agents());
        let mut ops = Arrays::new(network, oracle, steps.clone());
        let rule = Rule::start(rule, start.setting.momentum, &mut ops, v);
        let target = KnownSolution::of(&start.task);
        Self { ops, rule, steps, decay: start.setting.decay, iterations: 0, target }
    }
}

impl RuleOnOracle<BellmanError> {
    /// A method of one level on the task's form of one level.
    pub(super) fn single_level(rule: RuleKind, start: &MethodStart<'_>) -> Result<Self, BuildError> {
        let words = start.task.shape().x;
        let steps = vec![start.steps.upper; words];
        Ok(Self::new(start, start.network()?, rule, start.bellman(), steps, &vec![0.0; words]))
    }
}

impl RuleOnOracle<SobaDirection> {
    /// PushPull_SOBA, the paper's Algorithm 4: push-pull on directions that need products with second derivatives of g.
    pub(super) fn soba(start: &MethodStart<'_>) -> Result<Self, BuildError> {
        let shape = start.task.shape();
        let mut steps = vec![start.steps.upper; shape.x];
        steps.resize(shape.words(), start.steps.lower);
        let oracle = SobaDirection::new(Rc::clone(&start.task), start.setting.agents);
        Ok(Self::new(start, start.network()?, RuleKind::PushPull, oracle, steps, &start.first_row()))
    }
}

impl RuleOnOracle<Hypergradient> {
    /// A double loop, as the paper makes bilevel methods of methods of one level.
    pub(super) fn double_loop(rule: RuleKind, start: &MethodStart<'_>) -> Result<Self, BuildError> {
        let ExperimentConfig { agents, momentum, inner_rounds, .. } = *start.setting;
        let inner = InnerLoop { rule, momentum, rounds: inner_rounds, step: start.steps.lower };
        let oracle = Hypergradient::new(Rc::clone(&start.task), agents, inner);
        let words = start.task.shape().x;
        let steps = vec![start.steps.upper; words];
        Ok(Self::new(start, start.network()?, rule, oracle, steps, &vec![0.0; words]))
    }
}

impl<O: Oracle> Method for RuleOnOracle<O> {
    fn iterate(&mut self) {
        if self.decay > 0.0 {
            let scale = 1.0 / (1.0 + self.decay * f64::from(self.iterations));
            self.ops.steps = self.steps.iter().map(|step| scale * step).collect();
        }
        self.iterations += 1;
        self.ops.begin_round();
        self.rule.step(&mut self.ops);
    }

    fn measure(&self) -> ErrorMeasures {
        self.target.measure(self.rule.estimate(), self.ops.oracle.words())
    }

    fn rounds(&self) -> u32 {
        self.ops.network.round()
    }

    fn floats(&self) -> u64 {
        self.ops.network.floats()
    }
}
