//! Sums by column: gradients of biases, gains and shifts.
#![allow(
    unsafe_op_in_unsafe_fn,
    reason = "each function here is a launch under the conditions of `Kernels::launch`"
)]

use super::kernels::{Arg, blocks};
use super::ops::{PassLaunch, number};
use crate::device::Result;
use crate::program::op::NormShape;
use crate::program::{Function, Op, View};

/// Blocks that keep a GPU busy: rows of a sum by column are split until there are as many.
const BUSY_BLOCKS: usize = 400;
/// Fewer rows than this are not worth adding splits up for, in all and for one block.
const FEW_ROWS: usize = 256;
const ROWS_PER_SPLIT: usize = 64;
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

/// Words in which splits of the sums of `op` wait to be added up; `wide` is the most words a thread takes at once, which makes
/// for the fewest blocks across and so for the most splits.
pub(super) fn partial_words(op: &Op, agents: usize, wide: usize) -> usize {
    let (sums, rows, columns) = match *op {
        Op::BiasGradient { rows, columns, .. } => (1, rows, columns),
        Op::NormGradient { shape, .. } => (2, shape.rows * shape.area, shape.columns),
        _ => return 0,
    };
    match splits(blocks(columns, 32 * wide), rows, agents) {
        1 => 0,
        splits => sums * agents * splits * columns,
    }
}

impl PassLaunch<'_> {
    /// Sums of `d` by column, times a function's derivative first where there is one.
    ///
    /// # Safety
    /// As for [`PassLaunch::all`].
    pub(super) unsafe fn bias_gradient(
        &self,
        d: View,
        function: Option<(View, Function)>,
        bias: usize,
        rows: usize,
        columns: usize,
    ) -> Result<()> {
        let views: Vec<View> = function.iter().map(|&(saved, _)| saved).chain([d]).collect();
        let lane = self.lane(columns, &views);
        let name = if lane > 1 { "bias_gradient_wide" } else { "bias_gradient_single" };
        let across = blocks(columns, 32 * lane);
        let splits = splits(across, rows, self.pass.agents);
        let saved = function.map_or([Arg::At(0), Arg::Long(0)], |(saved, _)| self.spot(saved));
        let function = function.map_or(0, |(_, function)| number(function));
        let out = if splits > 1 {
            [Arg::At(self.pass.partial.pointer), Arg::Long(splits * columns)]
        } else {
            [self.gradient(Some(bias)), Arg::Long(self.stride)]
        };
        let rest = [rows, columns, splits].map(Arg::Int);
        let args = [&self.spot(d)[..], &saved, &[Arg::Int(function)], &out, &rest].concat();
        self.launch(name, across * splits, [32, 16], &args)?;
        self.sum_splits([bias, bias], 1, columns, splits)
    }

    /// Sums of `d · normal` and of `d` by column: gradients of gain and shift.
    ///
    /// # Safety
    /// As for [`PassLaunch::all`].
    pub(super) unsafe fn norm_gradient(
        &self,
        d: View,
        normal: View,
        gain: usize,
        shift: usize,
        shape: NormShape,
    ) -> Result<()> {
        let (rows, columns) = (shape.rows * shape.area, shape.columns);
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
        self.sum_splits([gain, shift], 2, columns, splits)
    }

    /// Adds the sums of all splits up, when there is more than one, for the first `sums` of two parameters.
    ///
    /// # Safety
    /// As for [`PassLaunch::all`].
    unsafe fn sum_splits(
        &self,
        offsets: [usize; 2],
        sums: usize,
        columns: usize,
        splits: usize,
    ) -> Result<()> {
        if splits == 1 {
            return Ok(());
        }
        let [first, second] = offsets.map(|offset| self.gradient(Some(offset)));
        let partial = Arg::At(self.pass.partial.pointer);
        let sizes = [columns, splits, self.pass.agents].map(Arg::Int);
        let args = [&[partial, first, second, Arg::Long(self.stride)][..], &sizes].concat();
        self.launch("sum_splits", blocks(columns, 128) * sums, [128, 1], &args)
    }
}
