//! Convolution as one matrix product over patches: an image row-major in height, width, channel makes the output of the
//! product the next image, and bias and pooling see plain rows.
//!
//! The matrix of patches is up to `kernel²` times the image, so it is rebuilt in the backward pass instead of kept.

use super::Layer;
use super::linear::LinearWeights;
use crate::program::{Function, Geometry, Op, ProgramBuilder, View};

#[derive(Debug)]
pub struct Conv2d {
    name: String,
    geometry: Geometry,
    filters: usize,
    function: Function,
    weights: LinearWeights,
    saved: Option<(View, View)>,
}

impl Conv2d {
    pub fn new(name: impl Into<String>, geometry: Geometry, filters: usize, function: Function) -> Self {
        Conv2d {
            name: name.into(),
            geometry,
            filters,
            function,
            weights: LinearWeights::default(),
            saved: None,
        }
    }

    fn patches(&self, builder: &mut ProgramBuilder, x: View) -> View {
        let patches = builder.buffer(self.geometry.rows() * self.geometry.patch());
        builder.push(Op::Patches { x, patches, geometry: self.geometry });
        patches
    }
}

impl Layer for Conv2d {
    fn forward(&mut self, builder: &mut ProgramBuilder, x: View) -> View {
        let sizes = [self.geometry.rows(), self.geometry.patch(), self.filters];
        self.weights = LinearWeights::add(builder, &self.name, sizes);
        let patches = self.patches(builder, x);
        let u = self.weights.multiply(builder, patches);
        self.saved = Some((x, u));
        self.weights.activate(builder, u, self.function)
    }

    fn backward(&self, builder: &mut ProgramBuilder, d: View, wants_input: bool) -> Option<View> {
        let (x, saved) = self.saved.expect("forward is laid before backward");
        self.weights.activate_backward(builder, saved, d, self.function);
        self.weights.bias_gradient(builder, d);
        let patches = self.patches(builder, x);
        self.weights.matrix_gradient(builder, patches, d);
        wants_input.then(|| {
            let Geometry { images, height, width, channels, .. } = self.geometry;
            let dx = builder.buffer(images * height * width * channels);
            // The patches have been read for the last time: their gradient takes their place.
            self.weights.write_input_gradient(builder, d, patches, 0.0);
            builder.push(Op::PatchesBackward { patches, dx, geometry: self.geometry });
            dx
        })
    }
}
