//! Dropout whose mask is a function of seed, agent, round and layer: nothing is stored, and a resumed run repeats it.

use super::Layer;
use crate::program::{Op, ProgramBuilder, View};

#[derive(Debug)]
pub struct Dropout {
    words: usize,
    rate: f64,
    layer: u32,
}

impl Dropout {
    pub fn new(words: usize, rate: f64) -> Self {
        Dropout { words, rate, layer: 0 }
    }
}

impl Layer for Dropout {
    fn forward(&mut self, builder: &mut ProgramBuilder, x: View) -> View {
        self.layer = builder.dropout_layer();
        // Not in place: the layer before may need its output for its own derivative.
        let out = builder.buffer(self.words);
        builder.push(Op::Dropout { x, out, words: self.words, rate: self.rate, layer: self.layer });
        out
    }

    fn backward(&self, builder: &mut ProgramBuilder, d: View, wants_input: bool) -> Option<View> {
        builder.push(Op::Dropout { x: d, out: d, words: self.words, rate: self.rate, layer: self.layer });
        wants_input.then_some(d)
    }
}
