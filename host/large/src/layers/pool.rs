//! The maximum of disjoint squares.

use super::{Backward, Layer};
use crate::program::{Op, ProgramBuilder, View};

#[derive(Debug)]
pub(crate) struct Pool {
    images: usize,
    height: usize,
    width: usize,
    channels: usize,
    size: usize,
}

impl Pool {
    /// `height` and `width` must be multiples of `size`: a remainder would be ignored by the forward pass.
    pub(crate) fn new(images: usize, [height, width, channels]: [usize; 3], size: usize) -> Self {
        assert!(
            height % size == 0 && width % size == 0,
            "{height} x {width} is not made of squares of {size}"
        );
        Pool { images, height, width, channels, size }
    }
}

impl Layer for Pool {
    fn lay(&self, builder: &mut ProgramBuilder, x: View) -> (View, Backward) {
        let &Pool { images, height, width, channels, size } = self;
        let out = builder.buffer(images * (height / size) * (width / size) * channels);
        builder.push(Op::Pool { x, out, images, height, width, channels, size });
        let backward = move |builder: &mut ProgramBuilder, d: View, wants_input: bool| {
            wants_input.then(|| {
                let dx = builder.buffer(images * height * width * channels);
                builder.push(Op::PoolBackward { x, d, dx, images, height, width, channels, size });
                dx
            })
        };
        (out, Box::new(backward))
    }
}
