//! `out = relu(body(x) + skip(x))`, the block of a residual network.

use super::{Layer, Sequence};
use crate::program::{Function, Op, ProgramBuilder, View};

#[derive(Debug)]
pub struct Residual {
    body: Sequence,
    /// Empty when input and output have one shape.
    skip: Sequence,
    rows: usize,
    columns: usize,
    out: Option<View>,
}

impl Residual {
    /// `rows` × `columns` is the shape of the output.
    pub fn new(body: Sequence, skip: Sequence, rows: usize, columns: usize) -> Self {
        Residual { body, skip, rows, columns, out: None }
    }
}

impl Layer for Residual {
    fn forward(&mut self, builder: &mut ProgramBuilder, x: View) -> View {
        let out = self.body.forward(builder, x);
        let skip = self.skip.forward(builder, x);
        let (rows, columns) = (self.rows, self.columns);
        builder.push(Op::Add { x: out, y: skip, words: rows * columns });
        builder.push(Op::Activate { x: out, out, bias: None, rows, columns, function: Function::Relu });
        self.out = Some(out);
        out
    }

    fn backward(&self, builder: &mut ProgramBuilder, d: View, wants_input: bool) -> Option<View> {
        let saved = self.out.expect("forward is laid before backward");
        let (rows, columns, function) = (self.rows, self.columns, Function::Relu);
        builder.push(Op::ActivateBackward { saved, d, bias: None, rows, columns, function });
        // The body ends in a norm, which does not write into `d`; the skip path may still read it.
        let through_body = self.body.backward(builder, d, wants_input);
        let through_skip = self.skip.backward(builder, d, wants_input);
        let (x, y) = (through_body?, through_skip?);
        // With an empty skip `y` is `d`, which has the shape of the input.
        let words = if self.skip.0.is_empty() { rows * columns } else { builder.words(x) };
        builder.push(Op::Add { x, y, words });
        Some(x)
    }
}
