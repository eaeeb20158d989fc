//! Dropout whose mask is a function of seed, agent, round and layer: nothing is stored, and a resumed run repeats it.

use super::{Backward, Layer};
use crate::program::{Op, ProgramBuilder, View};

#[derive(Debug)]
pub(crate) struct Dropout {
    words: usize,
    rate: f64,
}

impl Dropout {
    pub(crate) fn new(words: usize, rate: f64) -> Self {
        Dropout { words, rate }
    }
}

impl Layer for Dropout {
    fn lay(&self, builder: &mut ProgramBuilder, x: View) -> (View, Backward) {
        let &Dropout { words, rate } = self;
        let layer = builder.dropout_layer();
        // Not in place: the layer before may need its output for its own derivative.
        let out = builder.buffer(words);
        builder.push(Op::Dropout { x, out, words, rate, layer });
        let backward = move |builder: &mut ProgramBuilder, d: View, wants_input: bool| {
            builder.push(Op::Dropout { x: d, out: d, words, rate, layer });
            wants_input.then_some(d)
        };
        (out, Box::new(backward))
    }
}
