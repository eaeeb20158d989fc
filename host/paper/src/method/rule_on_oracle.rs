//! Methods that are a rule on an oracle.

use std::ops::Range;
use std::rc::Rc;

use fabswarm_sim::method::{
    Arrays, Hypergradient, InnerLoop, Network, Oracle, Rule, RuleKind, SobaDirection,
};
use fabswarm_sim::task::Task;
use fabswarm_sim::trial::BuildError;

use super::{ErrorMeasures, Method, MethodStart};
use crate::bellman::BellmanError;
use crate::experiment_config::ExperimentConfig;

/// The words of a row that errors are about, and x* where it is known.
#[derive(Clone, Debug)]
pub(super) struct MeasuredWords {
    solution: Vec<f64>,
    words: Range<usize>,
}

impl MeasuredWords {
    pub(super) fn of(task: &Task<f64>) -> Self {
        let solution = task.solution().unwrap_or_default().to_vec();
        let words = if solution.is_empty() { task.shape().exchanged() } else { 0..solution.len() };
        Self { solution, words }
    }

    /// Measures rows of `words` words that begin with x.
    pub(super) fn measure(&self, rows: &[f64], words: usize) -> ErrorMeasures {
        let agents = (rows.len() / words) as f64;
        let size = |v: &[f64]| v.iter().map(|v| v * v).sum::<f64>().sqrt();
        let apart = |v: &[f64], w: &[f64]| v.iter().zip(w).map(|(v, w)| (v - w).powi(2)).sum::<f64>();
        let parts = || rows.chunks_exact(words).map(|row| &row[self.words.clone()]);
        let mut mean = vec![0.0; self.words.len()];
        parts().for_each(|part| mean.iter_mut().zip(part).for_each(|(mean, word)| *mean += word / agents));
        let spread: f64 = parts().map(|part| apart(part, &mean)).sum();
        let away = || parts().map(|part| apart(part, &self.solution).sqrt()).sum::<f64>();
        ErrorMeasures {
            error: if self.solution.is_empty() { 1.0 } else { away() / agents / size(&self.solution) },
            consensus: (spread / agents).sqrt() / size(&mean).max(f64::MIN_POSITIVE),
        }
    }
}

/// A rule at work on an oracle.
pub(super) struct RuleOnOracle<O> {
    pub(super) ops: Arrays<O>,
    pub(super) rule: Rule<Vec<f64>>,
    steps: Vec<f64>,
    decay: f64,
    iterations: u32,
    target: MeasuredWords,
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
        let target = MeasuredWords::of(&start.task);
        Self { ops, rule, steps, decay: start.setting.decay, iterations: 0, target }
    }
}

impl RuleOnOracle<BellmanError> {
    /// A method of one level on the task's form of one level.
    pub(super) fn single_level(rule: RuleKind, start: &MethodStart<'_>) -> Result<Self, BuildError> {
        let words = start.task.shape().x;
        let steps = vec![start.steps.upper; words];
        let oracle = BellmanError::new(Rc::clone(&start.task));
        Ok(Self::new(start, start.network()?, rule, oracle, steps, &vec![0.0; words]))
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

    fn memory(&self) -> usize {
        self.rule.words_kept(self.ops.oracle.words())
    }

    fn stationarity(&mut self) -> Option<f64> {
        let Arrays { oracle, network, .. } = &mut self.ops;
        let (words, first) = (oracle.words(), oracle.first_exchanged());
        let mut rows = self.rule.estimate().clone();
        let agents = rows.len() / words;
        let mean =
            |rows: &[f64], word: usize| rows.iter().skip(word).step_by(words).sum::<f64>() / agents as f64;
        for word in first..words {
            let mean = mean(&rows, word);
            rows.iter_mut().skip(word).step_by(words).for_each(|value| *value = mean);
        }
        let d = self.target.solution.is_empty().then(|| oracle.gradients(network, &rows))?;
        let own = d.chunks_exact(words).flat_map(|row| &row[..first]);
        let own: f64 = own.map(|word| (word / agents as f64).powi(2)).sum();
        Some(own + (first..words).map(|word| mean(&d, word).powi(2)).sum::<f64>())
    }
}
