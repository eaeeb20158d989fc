//! Layer norm.

use super::{Backward, Layer};
use crate::parameters::Start;
use crate::program::op::NormShape;
use crate::program::{Op, ProgramBuilder, View};

/// A norm with a learned gain and shift by column.
#[derive(Debug)]
pub(crate) struct Norm {
    name: String,
    shape: NormShape,
}

impl Norm {
    /// Normalises every row by itself.
    pub(crate) fn new(name: impl Into<String>, rows: usize, columns: usize, epsilon: f64) -> Self {
        Norm { name: name.into(), shape: NormShape { rows, columns, epsilon } }
    }

    /// The norm of `x + residual + bias`, in one operation.
    pub(crate) fn lay_after(
        &self,
        builder: &mut ProgramBuilder,
        x: View,
        residual: Option<View>,
        bias: Option<usize>,
    ) -> (View, Backward) {
        let shape = self.shape;
        let (gain, shift) = builder.within(&self.name, |builder| {
            let gain = builder.parameter("weight", &[shape.columns], Start::Constant(1.0));
            (gain, builder.parameter("bias", &[shape.columns], Start::Constant(0.0)))
        });
        let words = shape.rows * shape.columns;
        let (out, normal, inverse) =
            (builder.buffer(words), builder.buffer(words), builder.exact_buffer(shape.rows));
        builder.push(Op::Norm { x, residual, bias, gain, shift, out, normal, inverse, shape });
        let backward = move |builder: &mut ProgramBuilder, d: View, wants_input: bool| {
            builder.push(Op::NormGradient { d, normal, gain, shift, shape });
            wants_input.then(|| {
                let dx = builder.buffer(words);
                builder.push(Op::NormBackward { d, normal, inverse, gain, dx, shape });
                dx
            })
        };
        (out, Box::new(backward))
    }
}

impl Layer for Norm {
    fn lay(&self, builder: &mut ProgramBuilder, x: View) -> (View, Backward) {
        self.lay_after(builder, x, None, None)
    }
}
