//! The maximum of disjoint squares.

use super::Layer;
use crate::program::{Op, ProgramBuilder, View};

#[derive(Debug)]
pub struct Pool {
    images: usize,
    height: usize,
    width: usize,
    channels: usize,
    size: usize,
    saved: Option<View>,
}

impl Pool {
    /// `height` and `width` must be multiples of `size`: a remainder would be ignored by the forward pass.
    pub fn new(images: usize, [height, width, channels]: [usize; 3], size: usize) -> Self {
        assert!(
            height % size == 0 && width % size == 0,
            "{height} x {width} is not made of squares of {size}"
        );
        Pool { images, height, width, channels, size, saved: None }
    }
}

impl Layer for Pool {
    fn forward(&mut self, builder: &mut ProgramBuilder, x: View) -> View {
        let &mut Pool { images, height, width, channels, size, .. } = self;
        let out = builder.buffer(images * (height / size) * (width / size) * channels);
        builder.push(Op::Pool { x, out, images, height, width, channels, size });
        self.saved = Some(x);
        out
    }

    fn backward(&self, builder: &mut ProgramBuilder, d: View, wants_input: bool) -> Option<View> {
        let x = self.saved.expect("forward is laid before backward");
        let &Pool { images, height, width, channels, size, .. } = self;
        wants_input.then(|| {
            let dx = builder.buffer(images * height * width * channels);
            builder.push(Op::PoolBackward { x, d, dx, images, height, width, channels, size });
            dx
        })
    }
}
