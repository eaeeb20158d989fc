//! Sums by column: gradients of biases, gains and shifts.
#![allow(
    unsafe_op_in_unsafe_fn,
    reason = "each function here is a launch under the conditions of `Kernels::launch`"
)]

use super::kernels::{Arg, blocks};
use super::launch::{PassLaunch, number};
use crate::device::Result;
use crate::program::op::{Activation, NormShape};
use crate::program::{Op, View};

/// Blocks that keep a GPU busy: rows of a sum by column are split until there are as many.
const BUSY_BLOCKS: usize = 400;
/// Fewer rows than this are not worth adding splits up for, in all and for one block.
const FEW_ROWS: usize = 256;
const ROWS_PER_SPLIT: usize = 64;
/// Blocks of a layer norm's way back that an H200 holds at once: it has 132 multiprocessors with registers for two each.
const NORM_BLOCKS: usize = 256;
/// Rows that a block of a layer norm's way back takes at least, four to a warp.
const ROWS_PER_BLOCK: usize = 16;
/// Blocks that share the rows of one sum, at most.
const MOST_SPLITS: usize = 64;

/// Blocks that share the rows of a sum by column, where one block for each of `across` would leave the GPU idle.
fn splits(across: usize, rows: usize, agents: usize) -> usize {
    if rows < FEW_ROWS {
        return 1;
    }
    let wanted = BUSY_BLOCKS.div_ceil(across * agents);
    wanted.clamp(1, (rows / ROWS_PER_SPLIT).min(MOST_SPLITS))
}

/// Blocks of four warps that share the rows of a layer norm's way back.
fn norm_splits(rows: usize, agents: usize) -> usize {
    NORM_BLOCKS.div_ceil(agents).clamp(1, rows.div_ceil(ROWS_PER_BLOCK)).min(MOST_SPLITS)
}

/// Words in which splits of the sums of `op` wait to be added up; `wide` is the most words a thread takes at once, which makes
/// for the fewest blocks across and so for the most splits.
pub(super) fn partial_words(op: &Op, agents: usize, wide: usize) -> usize {
    let (sums, rows, columns) = match *op {
        Op::BiasGradient { rows, columns, .. } => (1, rows, columns),
        Op::NormGradient { shape, .. } => (2, shape.rows, shape.columns),
        _ => return 0,
    };
    let plain = match splits(blocks(columns, 32 * wide), rows, agents) {
        1 => 0,
        splits => sums * agents * splits * columns,
    };
    match op {
        Op::NormGradient { .. } => plain.max(3 * agents * norm_splits(rows, agents) * columns),
        _ => plain,
    }
}

impl PassLaunch<'_> {
    /// Sums of `d` by column, after an [`Op::ActivateBackward`] with that saved view where there is one.
    pub(super) unsafe fn bias_gradient(
        &self,
        d: View,
        after: Option<(View, Activation)>,
        bias: usize,
        [rows, columns]: [usize; 2],
    ) -> Result<()> {
        let saved = after.map(|(saved, _)| saved);
        let (added, function) =
            after.map_or((None, 0), |(_, activation)| (activation.bias, number(activation.function)));
        let views: Vec<View> = saved.into_iter().chain([d]).collect();
        let lane = self.lane(columns, &views);
        let name = if lane > 1 { "bias_gradient_wide" } else { "bias_gradient_single" };
        let across = blocks(columns, 32 * lane);
        let splits = splits(across, rows, self.pass.agents);
        let saved = saved.map_or([Arg::At(0), Arg::Long(0)], |saved| self.spot(saved));
        let added = [self.parameter(added), Arg::Long(self.stride), Arg::Int(function)];
        let out = if splits > 1 {
            [Arg::At(self.pass.partial.pointer), Arg::Long(splits * columns)]
        } else {
            [self.gradient(Some(bias)), Arg::Long(self.stride)]
        };
        let rest = [rows, columns, splits].map(Arg::Int);
        let args = [&self.spot(d)[..], &saved, &added, &out, &rest].concat();
        self.launch(name, across * splits, [32, 16], &args)?;
        self.sum_splits(&[bias], columns, splits)
    }

    /// The gradient of a layer norm's input with the sums by column that `gradients` are: of `d · normal`, of `d`, and where there
    /// is a third of the input's gradient itself. Returns whether the norm has a shape for that.
    pub(super) unsafe fn norm_backward_sums(&self, op: &Op, gradients: &[usize]) -> Result<bool> {
        let Op::NormBackward { d, saved: [normal, inverse], dx, shape } = *op else { return Ok(false) };
        if !self.is_row(shape, &[d, normal, dx]) {
            return Ok(false);
        }
        let (rows, columns, agents) = (shape.rows, shape.columns, self.pass.agents);
        let splits = norm_splits(rows, agents);
        let sums = [Arg::At(self.pass.partial.pointer), Arg::Long(agents * splits * columns)];
        let args = [
            &self.spot(d)[..],
            &self.spot(normal),
            &self.spot(inverse),
            &[self.parameter(Some(shape.gain)), Arg::Long(self.stride)],
            &self.spot(dx),
            &sums,
            &[Arg::Long(splits * columns), Arg::Int(rows), Arg::Int(columns)],
        ]
        .concat();
        self.launch("layer_norm_backward_sums", splits, [128, 1], &args)?;
        self.add_splits(gradients, columns, splits)?;
        Ok(true)
    }

    /// Sums of `d · normal` and of `d` by column: gradients of gain and shift.
    pub(super) unsafe fn norm_gradient(&self, d: View, normal: View, shape: NormShape) -> Result<()> {
        let NormShape { gain, shift, rows, columns, .. } = shape;
        let lane = self.lane(columns, &[d, normal]);
        let name = if lane > 1 { "norm_gradient_wide" } else { "norm_gradient_single" };
        let across = blocks(columns, 32 * lane);
        let splits = splits(across, rows, self.pass.agents);
        let second = self.pass.partial.at(self.pass.agents * splits * columns);
        let out = if splits > 1 {
            [Arg::At(self.pass.partial.pointer), Arg::At(second), Arg::Long(splits * columns)]
        } else {
            [self.gradient(Some(gain)), self.gradient(Some(shift)), Arg::Long(self.stride)]
        };
        let args =
            [&self.spot(d)[..], &self.spot(normal), &out, &[rows, columns, splits].map(Arg::Int)].concat();
        self.launch(name, across * splits, [32, 16], &args)?;
        self.sum_splits(&[gain, shift], columns, splits)
    }

    /// Adds the sums of all splits up where there is more than one; a single one has written the gradients itself.
    pub(super) unsafe fn sum_splits(&self, offsets: &[usize], columns: usize, splits: usize) -> Result<()> {
        if splits == 1 { Ok(()) } else { self.add_splits(offsets, columns, splits) }
    }

    /// Adds the sums of splits up to the gradients of up to three parameters.
    unsafe fn add_splits(&self, offsets: &[usize], columns: usize, splits: usize) -> Result<()> {
        let to = [0, 1, 2].map(|sum| self.gradient(offsets.get(sum).copied()));
        let sizes = [columns, splits, self.pass.agents].map(Arg::Int);
        let args =
            [&[Arg::At(self.pass.partial.pointer)], &to[..], &[Arg::Long(self.stride)], &sizes].concat();
        self.launch("sum_splits", blocks(columns, 128) * offsets.len(), [128, 1], &args)
    }
}
