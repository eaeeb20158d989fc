//! Which kernel does which operation.
#![allow(
    unsafe_op_in_unsafe_fn,
    reason = "each function here is a launch under the conditions of `Kernels::launch`"
)]

use super::Cuda;
use super::gemm::Grid;
use super::kernels::{Arg, blocks};
use super::pass::{CudaPass, Spot};
use crate::device::Result;
use crate::program::op::{DistanceBias, NormShape};
use crate::program::{Function, Geometry, MemorySpace, Op, Pooling, View};

/// Columns a warp's registers hold in the layer norm kernels: `32 · WIDE · CHUNKS` of `norm.cu`, for f32.
const LAYER_NORM_COLUMNS: usize = 32 * 4 * 8;

/// A pass under way.
#[derive(Debug)]
pub(super) struct PassLaunch<'a> {
    pub device: &'a Cuda,
    pub pass: &'a CudaPass,
    pub group: usize,
    pub stride: usize,
    /// The group's parameters in f32, and as products read them.
    pub parameters: u64,
    pub products: u64,
    pub gradient: Option<u64>,
    pub dropout_key: u64,
}

/// A spot as the address and stride every kernel takes.
fn args(spot: Spot) -> [Arg; 2] {
    [Arg::At(spot.address), Arg::Long(spot.model)]
}

impl PassLaunch<'_> {
    /// Where a product's operand lies.
    pub(super) fn product_spot(&self, view: View) -> Spot {
        let (address, is_narrow) = match view.place {
            MemorySpace::Parameters => (self.products, self.products != self.parameters),
            MemorySpace::Gradient => (self.gradient.unwrap_or_default(), false),
            _ => return self.pass.spot(self.device, view),
        };
        let bytes = if is_narrow { 2 } else { 4 };
        Spot { address: address + (view.offset * bytes) as u64, model: self.stride, is_narrow }
    }

    pub(super) fn spot(&self, view: View) -> [Arg; 2] {
        args(self.pass.spot(self.device, view))
    }

    /// A parameter in f32, or zero for none.
    fn parameter(&self, offset: Option<usize>) -> Arg {
        Arg::At(offset.map_or(0, |offset| self.parameters + (offset * 4) as u64))
    }

    pub(super) fn gradient(&self, offset: Option<usize>) -> Arg {
        let start = self.gradient.unwrap_or_default();
        Arg::At(offset.map_or(0, |offset| start + (offset * 4) as u64))
    }

    /// Launches a kernel for all agents on the group's stream.
    ///
    /// # Safety
    /// As for [`super::kernels::Kernels::launch`].
    pub(super) unsafe fn launch(
        &self,
        name: &'static str,
        blocks: usize,
        block: [usize; 2],
        args: &[Arg],
    ) -> Result<()> {
        let stream = &self.device.streams[self.group % 2];
        self.device.kernels.launch(stream, name, [blocks, self.pass.agents], block, 0, args)
    }

    /// Words a thread can take at once: 16 bytes where every view starts and steps at a multiple, else one.
    pub(super) fn lane(&self, columns: usize, views: &[View]) -> usize {
        let wide = self.device.words_at_once();
        let fits = |view: &View| {
            let spot = self.pass.spot(self.device, *view);
            spot.address.is_multiple_of(16) && spot.model.is_multiple_of(wide)
        };
        if columns.is_multiple_of(wide) && views.iter().all(fits) { wide } else { 1 }
    }

    /// Enqueues operations in order.
    ///
    /// # Safety
    /// The operations are those of the pass's program, whose parameters, gradient and batch are alive until they have run.
    pub(super) unsafe fn all(&self, ops: &[Op], grids: &[Option<Grid>]) -> Result<()> {
        let mut at = 0;
        while at < ops.len() {
            match (&ops[at], ops.get(at + 1)) {
                // A function's derivative and the sums of its result by column go through memory once.
                (
                    &Op::ActivateBackward { saved, d, words, function },
                    Some(&Op::BiasGradient { d: summed, bias, rows, columns }),
                ) if d == summed && words == rows * columns => {
                    self.bias_gradient(d, Some((saved, function)), bias, rows, columns)?;
                    at += 2;
                    continue;
                }
                (Op::Gemm(gemm), _) => self.gemm(gemm, grids[at].as_ref())?,
                (op, _) => self.one(op)?,
            }
            at += 1;
        }
        Ok(())
    }

    /// # Safety
    /// As for [`PassLaunch::all`].
    unsafe fn one(&self, op: &Op) -> Result<()> {
        let step = Arg::Long(self.stride);
        match *op {
            Op::Gemm(_) => Ok(()),
            Op::Activate { x, out, bias, rows, columns, function } => {
                let (words, lane) = (rows * columns, self.lane(columns, &[x, out]));
                let name = if lane > 1 { "activate_wide" } else { "activate_single" };
                let rest = [
                    self.parameter(bias),
                    step,
                    Arg::Int(columns),
                    Arg::Long(words),
                    Arg::Int(number(function)),
                ];
                self.launch(
                    name,
                    blocks(words, 256 * lane),
                    [256, 1],
                    &[&self.spot(x)[..], &self.spot(out), &rest].concat(),
                )
            }
            Op::ActivateBackward { saved, d, words, function } => {
                let lane = self.lane(words, &[saved, d]);
                let name = if lane > 1 { "activate_backward_wide" } else { "activate_backward_single" };
                let rest = [Arg::Long(words), Arg::Int(number(function))];
                self.launch(
                    name,
                    blocks(words, 256 * lane),
                    [256, 1],
                    &[&self.spot(saved)[..], &self.spot(d), &rest].concat(),
                )
            }
            Op::BiasGradient { d, bias, rows, columns } => self.bias_gradient(d, None, bias, rows, columns),
            Op::Add { x, y, words } => {
                let lane = self.lane(words, &[x, y]);
                let name = if lane > 1 { "add_wide" } else { "add_single" };
                let args = [&self.spot(x)[..], &self.spot(y), &[Arg::Long(words)]].concat();
                self.launch(name, blocks(words, 256 * lane), [256, 1], &args)
            }
            Op::ClearGradient { offset, words } => self.launch(
                "clear",
                blocks(words, 1024),
                [256, 1],
                &[self.gradient(Some(offset)), step, Arg::Long(words)],
            ),
            Op::Patches { x, patches, geometry } => {
                let words = geometry.rows() * geometry.patch();
                self.image("patches", words, &[&self.spot(x)[..], &self.spot(patches)].concat(), geometry)
            }
            Op::PatchesBackward { patches, dx, geometry } => {
                let words = geometry.images * geometry.height * geometry.width * geometry.channels;
                self.image(
                    "patches_backward",
                    words,
                    &[&self.spot(patches)[..], &self.spot(dx)].concat(),
                    geometry,
                )
            }
            Op::Pool { x, out, images, height, width, channels, size, pooling } => {
                let spots = [&self.spot(x)[..], &self.spot(out)].concat();
                self.pool("pool", &spots, [images, height, width, channels, size], pooling)
            }
            Op::PoolBackward { x, d, dx, images, height, width, channels, size, pooling } => {
                let spots = [&self.spot(x)[..], &self.spot(d), &self.spot(dx)].concat();
                self.pool("pool_backward", &spots, [images, height, width, channels, size], pooling)
            }
            Op::Norm { x, residual, bias, gain, shift, out, normal, inverse, shape } => {
                let no_residual = [Arg::At(0), Arg::Long(0)];
                let args = [
                    &self.spot(x)[..],
                    &residual.map_or(no_residual, |residual| self.spot(residual)),
                    &[self.parameter(bias), self.parameter(Some(gain)), self.parameter(Some(shift)), step],
                    &self.spot(out),
                    &self.spot(normal),
                    &self.spot(inverse),
                ]
                .concat();
                let views: Vec<View> = residual.into_iter().chain([x, out, normal]).collect();
                self.norm(["layer_norm", "group_norm"], args, shape, &views, true)
            }
            Op::NormBackward { d, normal, inverse, gain, dx, shape } => {
                let args = [
                    &self.spot(d)[..],
                    &self.spot(normal),
                    &self.spot(inverse),
                    &[self.parameter(Some(gain)), step],
                    &self.spot(dx),
                ]
                .concat();
                self.norm(
                    ["layer_norm_backward", "group_norm_backward"],
                    args,
                    shape,
                    &[d, normal, dx],
                    false,
                )
            }
            Op::NormGradient { d, normal, gain, shift, shape } => {
                self.norm_gradient(d, normal, gain, shift, shape)
            }
            Op::Embed { words, positions, types, out, sequence, width, first_position } => {
                let rows = self.pass.program.samples * sequence;
                let args = [
                    &[Arg::At(self.pass.tokens.pointer), self.parameter(Some(words))][..],
                    &[self.parameter(Some(positions + first_position * width)), self.parameter(types), step],
                    &self.spot(out),
                    &[rows, sequence, width].map(Arg::Int),
                ]
                .concat();
                self.launch("embed", rows, [128, 1], &args)
            }
            Op::EmbedBackward { d, words, positions, types, sequence, width, first_position } => {
                let rows = self.pass.program.samples * sequence;
                let args = [
                    &self.spot(d)[..],
                    &[Arg::At(self.pass.tokens.pointer), self.gradient(Some(words))],
                    &[self.gradient(Some(positions + first_position * width)), self.gradient(types), step],
                    &[rows, sequence, width].map(Arg::Int),
                ]
                .concat();
                self.launch("embed_backward", rows, [128, 1], &args)
            }
            Op::AttentionSoftmax { scores, heads, sequence, distance_bias } => {
                let words = self.lane(sequence, &[scores]);
                let name = if words > 1 { "attention_softmax_wide" } else { "attention_softmax_single" };
                let table = self.parameter(distance_bias.map(|bias| bias.table));
                let head =
                    [&self.spot(scores)[..], &[Arg::At(self.pass.lengths.pointer), table, step]].concat();
                self.softmax(name, head, distance_bias, heads, sequence, words)
            }
            Op::AttentionSoftmaxBackward { p, d, heads, sequence, distance_bias } => {
                let words = self.lane(sequence, &[p, d]);
                let name = if words > 1 {
                    "attention_softmax_backward_wide"
                } else {
                    "attention_softmax_backward_single"
                };
                let table = self.gradient(distance_bias.map(|bias| bias.table));
                let head = [&self.spot(p)[..], &self.spot(d), &[table, step]].concat();
                self.softmax(name, head, distance_bias, heads, sequence, words)
            }
            Op::FirstRows { x, out, sequence, columns } => {
                let words = self.pass.program.samples * columns;
                let rest = [Arg::Long(words), Arg::Int(sequence), Arg::Int(columns)];
                self.launch(
                    "first_rows",
                    blocks(words, 256),
                    [256, 1],
                    &[&self.spot(x)[..], &self.spot(out), &rest].concat(),
                )
            }
            Op::FirstRowsBackward { d, dx, sequence, columns } => {
                let words = self.pass.program.samples * sequence * columns;
                let rest = [Arg::Long(words), Arg::Int(sequence), Arg::Int(columns)];
                let args = [&self.spot(d)[..], &self.spot(dx), &rest].concat();
                self.launch("first_rows_backward", blocks(words, 256), [256, 1], &args)
            }
            Op::Dropout { x, out, words, rate, layer } => {
                let first_model = self.group * self.pass.agents;
                let rest = [
                    Arg::Long(words),
                    Arg::Double(rate),
                    Arg::Float(1.0 / (1.0 - rate)),
                    Arg::At(self.dropout_key),
                    Arg::Int(first_model),
                    Arg::Int(layer as usize),
                ];
                self.launch(
                    "dropout",
                    blocks(words, 256),
                    [256, 1],
                    &[&self.spot(x)[..], &self.spot(out), &rest].concat(),
                )
            }
            Op::CrossEntropy { logits, bias, classes } => {
                let samples = self.pass.program.samples;
                let pass = self.pass;
                let batch =
                    [pass.labels.pointer, pass.weights.pointer, pass.losses.pointer, pass.hits.pointer];
                let args = [
                    &self.spot(logits)[..],
                    &[self.parameter(bias), step],
                    &batch.map(Arg::At),
                    &[Arg::Int(samples), Arg::Int(classes)],
                ]
                .concat();
                self.launch("cross_entropy", blocks(samples, 8), [256, 1], &args)
            }
        }
    }

    /// # Safety
    /// As for [`PassLaunch::all`].
    unsafe fn norm(
        &self,
        [rows, sets]: [&'static str; 2],
        mut args: Vec<Arg>,
        shape: NormShape,
        views: &[View],
        is_forward: bool,
    ) -> Result<()> {
        let NormShape { rows: count, area, columns, groups, epsilon } = shape;
        let is_row =
            area == 1 && groups == 1 && columns <= LAYER_NORM_COLUMNS && self.lane(columns, views) > 1;
        if is_row {
            args.extend([Arg::Int(count), Arg::Int(columns)]);
        } else {
            args.extend([area, columns, groups].map(Arg::Int));
        }
        if is_forward {
            args.push(Arg::Float(epsilon));
        }
        if is_row {
            self.launch(rows, blocks(count, 8), [256, 1], &args)
        } else {
            self.launch(sets, count * groups, [256, 1], &args)
        }
    }

    /// # Safety
    /// As for [`PassLaunch::all`].
    unsafe fn softmax(
        &self,
        name: &'static str,
        mut args: Vec<Arg>,
        bias: Option<DistanceBias>,
        heads: usize,
        sequence: usize,
        words: usize,
    ) -> Result<()> {
        let rows = self.pass.program.samples * heads * sequence;
        let (buckets, furthest) = bias.map_or((0, 0), |bias| (bias.buckets, bias.furthest));
        // As many lanes as a row has groups of `words`, up to a warp.
        let lanes = sequence.div_ceil(words).next_power_of_two().min(32);
        args.extend([buckets, furthest, rows, heads, sequence, lanes].map(Arg::Int));
        self.launch(name, blocks(rows * lanes, 256), [256, 1], &args)
    }

    /// # Safety
    /// As for [`PassLaunch::all`].
    unsafe fn image(&self, name: &'static str, words: usize, spots: &[Arg], g: Geometry) -> Result<()> {
        let sizes =
            [g.height, g.width, g.channels, g.kernel, g.stride, g.padding, g.out_height(), g.out_width()];
        self.launch(
            name,
            blocks(words, 256),
            [256, 1],
            &[spots, &[Arg::Long(words)], &sizes.map(Arg::Int)].concat(),
        )
    }

    /// # Safety
    /// As for [`PassLaunch::all`].
    unsafe fn pool(
        &self,
        name: &'static str,
        spots: &[Arg],
        [images, height, width, channels, size]: [usize; 5],
        pooling: Pooling,
    ) -> Result<()> {
        let words = images * (height / size) * (width / size) * channels;
        let sizes = [height, width, channels, size, usize::from(pooling == Pooling::Max)];
        self.launch(
            name,
            blocks(words, 256),
            [256, 1],
            &[spots, &[Arg::Long(words)], &sizes.map(Arg::Int)].concat(),
        )
    }
}

/// The number `pointwise.cu` knows a function by.
pub(super) fn number(function: Function) -> usize {
    match function {
        Function::Identity => 0,
        Function::Relu => 1,
        Function::Tanh => 2,
        Function::Gelu => 3,
    }
}
