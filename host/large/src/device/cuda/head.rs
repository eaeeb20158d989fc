//! A classifier's last layer, of few classes, with the function before it in one kernel each way.
//!
//! Its sums have another order than cuBLAS's, so a device that computes in full f32 keeps to products.
#![allow(
    unsafe_op_in_unsafe_fn,
    reason = "each function here is a launch under the conditions of `Kernels::launch`"
)]

use super::Precision;
use super::kernels::{Arg, PLAIN_SHARED_BYTES, blocks};
use super::launch::{PassLaunch, number};
use crate::device::Result;
use crate::program::Op;
use crate::program::op::Activation;

/// `MOST_CLASSES` of `head.cu`.
const CLASSES: usize = 16;

impl PassLaunch<'_> {
    /// Bias and function, the product with the last matrix and the loss, when `ops` begin with them; returns how many operations
    /// that were.
    pub(super) unsafe fn head(&self, ops: &[Op]) -> Result<usize> {
        let &[
            Op::Activate { x, out, activation: Activation { bias: Some(bias), rows, columns, function } },
            Op::Gemm(product),
            Op::CrossEntropy { logits, bias: head_bias, classes },
            ..,
        ] = ops
        else {
            return Ok(0);
        };
        let is_one = x == out && product.a.view == x && product.c.view == logits;
        if !is_one || !self.is_small_head([rows, columns, classes]) {
            return Ok(0);
        }
        let pass = self.pass;
        let parameters = [bias, product.b.view.offset, head_bias].map(|offset| self.parameter(Some(offset)));
        let batch = [pass.labels.pointer, pass.weights.pointer, pass.losses.pointer, pass.hits.pointer];
        let args = [
            &self.spot(x)[..],
            &parameters,
            &[Arg::Long(self.stride)],
            &self.spot(logits),
            &batch.map(Arg::At),
            &[rows, columns, classes, number(function)].map(Arg::Int),
        ]
        .concat();
        self.launch_sharing("head", blocks(rows, 8), [128, 1], matrix_bytes(columns, classes), &args)?;
        Ok(3)
    }

    /// The way back, down to the gradient of the bias before the function; returns how many operations that were.
    pub(super) unsafe fn head_backward(&self, ops: &[Op]) -> Result<usize> {
        let &[
            Op::BiasGradient { d, bias: head_bias, rows, columns: classes },
            Op::Gemm(matrix),
            Op::Gemm(input),
            Op::ActivateBackward {
                saved,
                d: dx,
                activation: Activation { bias: None, columns, function, .. },
            },
            Op::BiasGradient { d: summed, bias, .. },
            ..,
        ] = ops
        else {
            return Ok(0);
        };
        let is_one = [matrix.b.view, input.a.view] == [d; 2] && [input.c.view, summed] == [dx; 2];
        if !is_one || matrix.a.view != saved || !self.is_small_head([rows, columns, classes]) {
            return Ok(0);
        }
        let gradients = [matrix.c.view.offset, head_bias, bias].map(|offset| self.gradient(Some(offset)));
        let args = [
            &self.spot(saved)[..],
            &self.spot(d),
            &[self.parameter(Some(input.b.view.offset)), Arg::Long(self.stride)],
            &self.spot(dx),
            &gradients,
            &[rows, columns, classes, number(function)].map(Arg::Int),
        ]
        .concat();
        self.launch("head_backward", blocks(columns + 1, 32), [32, 16], &args)?;
        Ok(5)
    }

    fn is_small_head(&self, [rows, columns, classes]: [usize; 3]) -> bool {
        self.device.precision != Precision::F32
            && rows == self.pass.program.samples
            && classes <= CLASSES
            && matrix_bytes(columns, classes) <= PLAIN_SHARED_BYTES
    }
}

/// Shared memory for the matrix, whose rows `head.cu` spreads over an odd number of fours.
fn matrix_bytes(columns: usize, classes: usize) -> usize {
    columns * (classes.div_ceil(4) | 1) * 16
}
