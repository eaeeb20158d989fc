//! Layer norm.

use super::Layer;
use crate::parameters::Start;
use crate::program::op::NormShape;
use crate::program::{Op, ProgramBuilder, View};

/// A norm with a learned gain and shift by column.
#[derive(Debug)]
pub struct Norm {
    name: String,
    shape: NormShape,
    gain: usize,
    shift: usize,
    saved: Option<NormSaved>,
}

#[derive(Clone, Copy, Debug)]
struct NormSaved {
    normal: View,
    inverse: View,
}

impl Norm {
    /// Normalises every row by itself.
    pub fn new(name: impl Into<String>, rows: usize, columns: usize, epsilon: f64) -> Self {
        let shape = NormShape { rows, columns, epsilon };
        Norm { name: name.into(), shape, gain: 0, shift: 0, saved: None }
    }

    /// The norm of `x + residual + bias`, in one operation.
    pub fn forward_after(
        &mut self,
        builder: &mut ProgramBuilder,
        x: View,
        residual: Option<View>,
        bias: Option<usize>,
    ) -> View {
        let shape = self.shape;
        builder.within(&self.name, |builder| {
            self.gain = builder.parameter("weight", &[shape.columns], Start::Constant(1.0));
            self.shift = builder.parameter("bias", &[shape.columns], Start::Constant(0.0));
        });
        let words = shape.rows * shape.columns;
        let (out, normal, inverse) =
            (builder.buffer(words), builder.buffer(words), builder.exact_buffer(shape.rows));
        builder.push(Op::Norm {
            x,
            residual,
            bias,
            gain: self.gain,
            shift: self.shift,
            out,
            normal,
            inverse,
            shape,
        });
        self.saved = Some(NormSaved { normal, inverse });
        out
    }
}

impl Layer for Norm {
    fn forward(&mut self, builder: &mut ProgramBuilder, x: View) -> View {
        self.forward_after(builder, x, None, None)
    }

    fn backward(&self, builder: &mut ProgramBuilder, d: View, wants_input: bool) -> Option<View> {
        let NormSaved { normal, inverse } = self.saved.expect("forward is laid before backward");
        let &Norm { shape, gain, shift, .. } = self;
        builder.push(Op::NormGradient { d, normal, gain, shift, shape });
        wants_input.then(|| {
            let dx = builder.buffer(shape.rows * shape.columns);
            builder.push(Op::NormBackward { d, normal, inverse, gain, dx, shape });
            dx
        })
    }
}
