//! A rule on an oracle, as the method of a swarm.

use super::method_swarm::{MethodFrames, MethodStates, RoundMethod};
use crate::method::{Arrays, LinkSequence, LinkWeights, Network, Oracle, RowOps, Rule, RuleKind};
use fabswarm_shared::graph::Weights;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

/// Links that were exchanged and not used yet.
#[derive(Clone, Debug, Default)]
struct ExchangedLinks(Rc<RefCell<VecDeque<Rc<LinkWeights>>>>);

impl LinkSequence for ExchangedLinks {
    fn links(&mut self, _: u32) -> Rc<LinkWeights> {
        self.0.borrow_mut().pop_front().expect("an iteration begins when all of its rounds were exchanged")
    }
}

/// A method of one level on an oracle, or with the hypergradient as its oracle a double loop.
#[derive(Debug)]
pub(crate) struct Baseline<O> {
    ops: Arrays<O>,
    rule: Rule<Vec<f64>>,
    links: ExchangedLinks,
    weights: Weights,
    /// Rounds of an iteration: of a double loop one more than its inner loop has.
    rounds: usize,
    states: MethodStates,
}

impl<O: Oracle> Baseline<O> {
    /// `agents` agents at rest at `row`, with the step size of each of its words. `rounds` are those of an iteration.
    pub(crate) fn new(
        kind: RuleKind,
        oracle: O,
        weights: Weights,
        rounds: usize,
        steps: Vec<f64>,
        row: &[f64],
        agents: usize,
    ) -> Self {
        let links = ExchangedLinks::default();
        let mut ops = Arrays::new(Network::new(agents, links.clone()), oracle, steps);
        // The gradient at the start comes before any exchange: there each agent runs its inner loop alone.
        let unlinked = Rc::new(LinkWeights::none(agents));
        let alone = || std::iter::repeat_n(Rc::clone(&unlinked), rounds - 1).collect();
        links.0.replace(alone());
        let rule = Rule::start(kind, 0.0, &mut ops, row.repeat(agents));
        if ops.d.is_empty() {
            links.0.replace(alone());
            ops.gradient(rule.estimate());
        }
        links.0.replace(VecDeque::new());
        let states = states(&ops, &rule);
        Self { ops, rule, links, weights, rounds, states }
    }
}

fn states<O: Oracle>(ops: &Arrays<O>, rule: &Rule<Vec<f64>>) -> MethodStates {
    let [v, d] = ops.oracle.packed(rule.estimate(), &ops.d);
    let mut defect = vec![0.0; ops.oracle.words()];
    if let Some([t, d]) = rule.trackers() {
        for (at, (t, d)) in t.iter().zip(d).enumerate() {
            defect[at % ops.oracle.words()] += t - d;
        }
    }
    MethodStates { v, d, defect }
}

impl<O: Oracle + std::fmt::Debug> RoundMethod for Baseline<O> {
    fn round(&mut self, MethodFrames { listeners, heard, .. }: &MethodFrames) {
        let links = Rc::new(LinkWeights::of_heard(listeners, heard, self.weights));
        self.links.0.borrow_mut().push_back(links);
        if self.links.0.borrow().len() == self.rounds {
            self.ops.begin_round();
            self.rule.step(&mut self.ops);
            self.states = states(&self.ops, &self.rule);
        }
    }

    fn states(&self) -> &MethodStates {
        &self.states
    }
}
