//! Keeps the first token of every sequence: what a classifier reads off a BERT.

use super::{Backward, Layer};
use crate::program::{Op, ProgramBuilder, View};

#[derive(Debug)]
pub(crate) struct FirstToken {
    sequence: usize,
    columns: usize,
}

impl FirstToken {
    pub(crate) fn new(sequence: usize, columns: usize) -> Self {
        FirstToken { sequence, columns }
    }
}

impl Layer for FirstToken {
    fn lay(&self, builder: &mut ProgramBuilder, x: View) -> (View, Backward) {
        let &FirstToken { sequence, columns } = self;
        let out = builder.buffer(builder.samples() * columns);
        builder.push(Op::FirstRows { x, out, sequence, columns });
        let backward = move |builder: &mut ProgramBuilder, d: View, wants_input: bool| {
            wants_input.then(|| {
                let dx = builder.buffer(builder.samples() * sequence * columns);
                builder.push(Op::FirstRowsBackward { d, dx, sequence, columns });
                dx
            })
        };
        (out, Box::new(backward))
    }
}
