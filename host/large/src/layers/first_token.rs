//! Keeps the first token of every sequence: what a classifier reads off a BERT.

use super::Layer;
use crate::program::{Op, ProgramBuilder, View};

#[derive(Debug)]
pub struct FirstToken {
    sequence: usize,
    columns: usize,
}

impl FirstToken {
    pub fn new(sequence: usize, columns: usize) -> Self {
        FirstToken { sequence, columns }
    }
}

impl Layer for FirstToken {
    fn forward(&mut self, builder: &mut ProgramBuilder, x: View) -> View {
        let out = builder.buffer(builder.samples() * self.columns);
        builder.push(Op::FirstRows { x, out, sequence: self.sequence, columns: self.columns });
        out
    }

    fn backward(&self, builder: &mut ProgramBuilder, d: View, wants_input: bool) -> Option<View> {
        wants_input.then(|| {
            let dx = builder.buffer(builder.samples() * self.sequence * self.columns);
            builder.push(Op::FirstRowsBackward { d, dx, sequence: self.sequence, columns: self.columns });
            dx
        })
    }
}
