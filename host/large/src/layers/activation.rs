//! A function on its own, in place, where no bias goes before it.

use super::Layer;
use crate::program::{Function, Op, ProgramBuilder, View};

#[derive(Debug)]
pub struct Activation {
    rows: usize,
    columns: usize,
    function: Function,
    saved: Option<View>,
}

impl Activation {
    pub fn new(rows: usize, columns: usize, function: Function) -> Self {
        Activation { rows, columns, function, saved: None }
    }
}

impl Layer for Activation {
    fn forward(&mut self, builder: &mut ProgramBuilder, x: View) -> View {
        let (rows, columns) = (self.rows, self.columns);
        let out = if self.function == Function::Gelu { builder.buffer(rows * columns) } else { x };
        builder.push(Op::Activate { x, out, bias: None, rows, columns, function: self.function });
        self.saved = Some(x);
        out
    }

    fn backward(&self, builder: &mut ProgramBuilder, d: View, wants_input: bool) -> Option<View> {
        let saved = self.saved.expect("forward is laid before backward");
        let &Activation { rows, columns, function, .. } = self;
        builder.push(Op::ActivateBackward { saved, d, bias: None, rows, columns, function });
        wants_input.then_some(d)
    }
}
