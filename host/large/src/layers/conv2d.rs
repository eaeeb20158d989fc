//! Convolution as one matrix product over patches: an image row-major in height, width, channel makes the output of the
//! product the next image, and bias and pooling see plain rows.
//!
//! The matrix of patches is up to `kernel²` times the image, so it is rebuilt in the backward pass instead of kept.

use super::linear::LinearWeights;
use super::{Backward, Layer};
use crate::program::{Function, Geometry, Op, ProgramBuilder, View};

#[derive(Debug)]
pub(crate) struct Conv2d {
    name: String,
    geometry: Geometry,
    filters: usize,
    function: Function,
}

impl Conv2d {
    pub(crate) fn new(
        name: impl Into<String>,
        geometry: Geometry,
        filters: usize,
        function: Function,
    ) -> Self {
        Conv2d { name: name.into(), geometry, filters, function }
    }
}

fn patches_of(builder: &mut ProgramBuilder, x: View, geometry: Geometry) -> View {
    let patches = builder.buffer(geometry.rows() * geometry.patch());
    builder.push(Op::Patches { x, patches, geometry });
    patches
}

impl Layer for Conv2d {
    fn lay(&self, builder: &mut ProgramBuilder, x: View) -> (View, Backward) {
        let &Conv2d { ref name, geometry, filters, function } = self;
        let weights = LinearWeights::add(builder, name, [geometry.rows(), geometry.patch(), filters]);
        let patches = patches_of(builder, x, geometry);
        let u = weights.multiply(builder, patches);
        let backward = move |builder: &mut ProgramBuilder, d: View, wants_input: bool| {
            weights.activate_backward(builder, u, d, function);
            weights.bias_gradient(builder, d);
            let patches = patches_of(builder, x, geometry);
            weights.matrix_gradient(builder, patches, d);
            wants_input.then(|| {
                let Geometry { images, height, width, channels, .. } = geometry;
                let dx = builder.buffer(images * height * width * channels);
                // The patches have been read for the last time: their gradient takes their place.
                weights.write_input_gradient(builder, d, patches, 0.0);
                builder.push(Op::PatchesBackward { patches, dx, geometry });
                dx
            })
        };
        (weights.activate(builder, u, function), Box::new(backward))
    }
}
