//! Reverse-mode differentiation through rounds of a method: iterative differentiation (ITD) of a lower level.
//!
//! A [`Tape`] does what [`super::Arrays`] does and writes down each operation. [`Tape::differentiate`] then walks back: mixing by M
//! becomes mixing by Mᵀ, and a lower gradient becomes its products with the second derivatives of g,
//! $\bar y \mathrel{+}= \nabla^2_{yy} g\,\bar d$ and $\bar x \mathrel{+}= \nabla^2_{xy} g\,\bar d$.

use std::rc::Rc;

use super::links::{LinkWeights, Matrix};
use super::oracle::LowerLevel;
use super::row_ops::{RowOps, added, descended, divided};

/// A value on the tape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TapeValue(usize);

#[derive(Debug)]
enum Operation {
    Given,
    Mixed(Matrix, Rc<LinkWeights>, usize),
    Descended(usize, usize, f64),
    Added(usize, f64, usize),
    Divided(usize, Vec<f64>),
    Gradient(usize),
}

/// Rounds on the lower level at fixed x, written down.
#[derive(Debug)]
pub struct Tape<'a> {
    lower: &'a LowerLevel,
    x: &'a [f64],
    steps: &'a [f64],
    links: Rc<LinkWeights>,
    round: u32,
    values: Vec<Vec<f64>>,
    operations: Vec<Operation>,
}

impl<'a> Tape<'a> {
    /// An empty tape for the lower level at `x`, with the step of each word of y.
    pub fn new(lower: &'a LowerLevel, x: &'a [f64], steps: &'a [f64]) -> Self {
        let links = Rc::new(LinkWeights::none(lower.agents()));
        Self { lower, x, steps, links, round: 0, values: Vec::new(), operations: Vec::new() }
    }

    /// Goes on to a round with its links and its noise.
    pub fn begin_round(&mut self, links: Rc<LinkWeights>, round: u32) {
        self.links = links;
        self.round = round;
    }

    /// Puts a constant on the tape.
    pub fn give(&mut self, value: Vec<f64>) -> TapeValue {
        self.write(Operation::Given, value)
    }

    /// The numbers of a value.
    pub fn value(&self, value: TapeValue) -> &[f64] {
        &self.values[value.0]
    }

    fn write(&mut self, operation: Operation, value: Vec<f64>) -> TapeValue {
        self.operations.push(operation);
        self.values.push(value);
        TapeValue(self.values.len() - 1)
    }

    /// The derivative in x of a function whose derivative in `of` is `derivative`: $\bar x = (\partial y / \partial x)^\top \bar y$,
    /// across all agents and all rounds on the tape.
    pub fn differentiate(&self, of: TapeValue, derivative: Vec<f64>) -> Vec<f64> {
        let words = self.lower.words();
        let mut by_x = vec![0.0; self.x.len()];
        let mut by_value: Vec<Option<Vec<f64>>> = vec![None; of.0 + 1];
        by_value[of.0] = Some(derivative);
        let add_to = |by: &mut Option<Vec<f64>>, scale: f64, term: &[f64]| match by {
            Some(by) => by.iter_mut().zip(term).for_each(|(by, term)| *by += scale * term),
            None => *by = Some(term.iter().map(|term| scale * term).collect()),
        };
        for at in (0..=of.0).rev() {
            let Some(by) = by_value[at].take() else { continue };
            match &self.operations[at] {
                Operation::Given => {}
                Operation::Mixed(matrix, links, v) => {
                    add_to(&mut by_value[*v], 1.0, &links.mix_back(*matrix, &by, words));
                }
                Operation::Descended(v, t, scale) => {
                    let steps = self.steps.iter().cycle();
                    let by_t: Vec<f64> = by.iter().zip(steps).map(|(by, step)| step * by).collect();
                    add_to(&mut by_value[*t], -scale, &by_t);
                    add_to(&mut by_value[*v], 1.0, &by);
                }
                Operation::Added(v, scale, u) => {
                    add_to(&mut by_value[*u], *scale, &by);
                    add_to(&mut by_value[*v], 1.0, &by);
                }
                Operation::Divided(v, weights) => add_to(&mut by_value[*v], 1.0, &divided(&by, weights, 0)),
                Operation::Gradient(v) => {
                    let (through_x, through_y) = self.lower.second_derivatives(self.x, &self.values[*v], &by);
                    by_x.iter_mut().zip(through_x).for_each(|(by, term)| *by += term);
                    add_to(&mut by_value[*v], 1.0, &through_y);
                }
            }
        }
        by_x
    }
}

impl RowOps for Tape<'_> {
    type Value = TapeValue;

    fn mix(&mut self, matrix: Matrix, v: &TapeValue) -> TapeValue {
        let mixed = self.links.mix(matrix, &self.values[v.0], self.lower.words(), 0);
        self.write(Operation::Mixed(matrix, Rc::clone(&self.links), v.0), mixed)
    }

    fn push_weights(&mut self, w: &[f64]) -> Vec<f64> {
        self.links.mix(Matrix::Push, w, 1, 0)
    }

    fn descend(&mut self, v: &TapeValue, t: &TapeValue, scale: f64) -> TapeValue {
        let value = descended(self.steps, &self.values[v.0], &self.values[t.0], scale);
        self.write(Operation::Descended(v.0, t.0, scale), value)
    }

    fn add(&mut self, v: &TapeValue, scale: f64, u: &TapeValue) -> TapeValue {
        let value = added(&self.values[v.0], scale, &self.values[u.0]);
        self.write(Operation::Added(v.0, scale, u.0), value)
    }

    fn divide(&mut self, v: &TapeValue, w: &[f64]) -> TapeValue {
        let value = divided(&self.values[v.0], w, 0);
        self.write(Operation::Divided(v.0, w.to_vec()), value)
    }

    fn gradient(&mut self, v: &TapeValue) -> TapeValue {
        let value = self.lower.gradients_at(self.x, &self.values[v.0], self.round);
        self.write(Operation::Gradient(v.0), value)
    }

    fn agents(&self) -> usize {
        self.lower.agents()
    }
}
