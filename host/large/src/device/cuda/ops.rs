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

    /// A view as the address and stride every kernel takes.
    pub(super) fn spot(&self, view: View) -> [Arg; 2] {
        let Spot { address, model, .. } = self.pass.spot(self.device, view);
        [Arg::At(address), Arg::Long(model)]
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
        match *op {
            Op::Gemm(_) => Ok(()),
            Op::BiasGradient { d, bias, rows, columns } => self.bias_gradient(d, None, bias, rows, columns),
            Op::NormGradient { d, normal, gain, shift, shape } => {
                self.norm_gradient(d, normal, gain, shift, shape)
            }
            Op::Activate { .. }
            | Op::ActivateBackward { .. }
            | Op::Add { .. }
            | Op::ClearGradient { .. }
            | Op::Dropout { .. }
            | Op::CrossEntropy { .. } => self.pointwise(op),
            Op::Patches { .. } | Op::PatchesBackward { .. } | Op::Pool { .. } | Op::PoolBackward { .. } => {
                self.image(op)
            }
            Op::Norm { .. } | Op::NormBackward { .. } => self.norm(op),
            Op::Embed { .. }
            | Op::EmbedBackward { .. }
            | Op::AttentionSoftmax { .. }
            | Op::AttentionSoftmaxBackward { .. }
            | Op::FirstRows { .. }
            | Op::FirstRowsBackward { .. } => self.text(op),
        }
    }

    /// Launches a kernel that takes these views first, with a thread for every `lane` of so many words.
    ///
    /// # Safety
    /// As for [`PassLaunch::all`].
    unsafe fn by_word(
        &self,
        name: &'static str,
        [words, lane]: [usize; 2],
        views: &[View],
        rest: &[Arg],
    ) -> Result<()> {
        let spots: Vec<Arg> = views.iter().flat_map(|&view| self.spot(view)).collect();
        self.launch(name, blocks(words, 256 * lane), [256, 1], &[&spots, rest].concat())
    }

    /// The same with the wide form of the kernel where rows of so many columns allow it.
    ///
    /// # Safety
    /// As for [`PassLaunch::all`].
    unsafe fn by_lane(
        &self,
        [single, wide]: [&'static str; 2],
        words: usize,
        columns: usize,
        views: &[View],
        rest: &[Arg],
    ) -> Result<()> {
        let lane = self.lane(columns, views);
        self.by_word(if lane > 1 { wide } else { single }, [words, lane], views, rest)
    }

    /// # Safety
    /// As for [`PassLaunch::all`].
    unsafe fn pointwise(&self, op: &Op) -> Result<()> {
        let step = Arg::Long(self.stride);
        match *op {
            Op::Activate { x, out, bias, rows, columns, function } => {
                let words = rows * columns;
                let names = ["activate_single", "activate_wide"];
                let sizes = [Arg::Int(columns), Arg::Long(words), Arg::Int(number(function))];
                let rest = [&[self.parameter(bias), step][..], &sizes].concat();
                self.by_lane(names, words, columns, &[x, out], &rest)
            }
            Op::ActivateBackward { saved, d, words, function } => {
                let names = ["activate_backward_single", "activate_backward_wide"];
                let rest = [Arg::Long(words), Arg::Int(number(function))];
                self.by_lane(names, words, words, &[saved, d], &rest)
            }
            Op::Add { x, y, words } => {
                self.by_lane(["add_single", "add_wide"], words, words, &[x, y], &[Arg::Long(words)])
            }
            Op::ClearGradient { offset, words } => {
                let args = [self.gradient(Some(offset)), step, Arg::Long(words)];
                self.launch("clear", blocks(words, 1024), [256, 1], &args)
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
                self.by_word("dropout", [words, 1], &[x, out], &rest)
            }
            Op::CrossEntropy { logits, bias, classes } => {
                let CudaPass { labels, weights, losses, hits, .. } = self.pass;
                let samples = self.pass.program.samples;
                let batch = [labels.pointer, weights.pointer, losses.pointer, hits.pointer];
                let args = [
                    &self.spot(logits)[..],
                    &[self.parameter(bias), step],
                    &batch.map(Arg::At),
                    &[Arg::Int(samples), Arg::Int(classes)],
                ]
                .concat();
                self.launch("cross_entropy", blocks(samples, 8), [256, 1], &args)
            }
            _ => unreachable!("{op:?} is not pointwise"),
        }
    }

    /// # Safety
    /// As for [`PassLaunch::all`].
    unsafe fn image(&self, op: &Op) -> Result<()> {
        match *op {
            Op::Patches { x, patches, geometry } => {
                let words = geometry.rows() * geometry.patch();
                self.by_word("patches", [words, 1], &[x, patches], &patch_sizes(words, geometry))
            }
            Op::PatchesBackward { patches, dx, geometry } => {
                let words = geometry.images * geometry.height * geometry.width * geometry.channels;
                self.by_word("patches_backward", [words, 1], &[patches, dx], &patch_sizes(words, geometry))
            }
            Op::Pool { x, out, images, height, width, channels, size, pooling } => {
                self.pool("pool", &[x, out], [images, height, width, channels, size], pooling)
            }
            Op::PoolBackward { x, d, dx, images, height, width, channels, size, pooling } => {
                self.pool("pool_backward", &[x, d, dx], [images, height, width, channels, size], pooling)
            }
            _ => unreachable!("{op:?} is not of images"),
        }
    }

    /// # Safety
    /// As for [`PassLaunch::all`].
    unsafe fn pool(
        &self,
        name: &'static str,
        views: &[View],
        [images, height, width, channels, size]: [usize; 5],
        pooling: Pooling,
    ) -> Result<()> {
        let words = images * (height / size) * (width / size) * channels;
        let sizes = [height, width, channels, size, usize::from(pooling == Pooling::Max)];
        self.by_word(name, [words, 1], views, &[&[Arg::Long(words)][..], &sizes.map(Arg::Int)].concat())
    }

    /// # Safety
    /// As for [`PassLaunch::all`].
    unsafe fn norm(&self, op: &Op) -> Result<()> {
        let step = Arg::Long(self.stride);
        match *op {
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
                let epsilon = [Arg::Float(shape.epsilon)];
                self.norm_of_shape(["layer_norm", "group_norm"], args, shape, &views, &epsilon)
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
                let names = ["layer_norm_backward", "group_norm_backward"];
                self.norm_of_shape(names, args, shape, &[d, normal, dx], &[])
            }
            _ => unreachable!("{op:?} is no norm"),
        }
    }

    /// Launches the kernel for rows where a warp holds one, else that for sets of any shape.
    ///
    /// # Safety
    /// As for [`PassLaunch::all`].
    unsafe fn norm_of_shape(
        &self,
        [rows, sets]: [&'static str; 2],
        mut args: Vec<Arg>,
        NormShape { rows: count, area, columns, groups, .. }: NormShape,
        views: &[View],
        tail: &[Arg],
    ) -> Result<()> {
        let is_row =
            area == 1 && groups == 1 && columns <= LAYER_NORM_COLUMNS && self.lane(columns, views) > 1;
        if is_row {
            args.extend([count, columns].map(Arg::Int));
            args.extend_from_slice(tail);
            return self.launch(rows, blocks(count, 8), [256, 1], &args);
        }
        args.extend([area, columns, groups].map(Arg::Int));
        args.extend_from_slice(tail);
        self.launch(sets, count * groups, [256, 1], &args)
    }

    /// # Safety
    /// As for [`PassLaunch::all`].
    unsafe fn text(&self, op: &Op) -> Result<()> {
        let step = Arg::Long(self.stride);
        let CudaPass { program, tokens, lengths, .. } = self.pass;
        match *op {
            Op::Embed { words, positions, types, out, sequence, width, first_position } => {
                let rows = program.samples * sequence;
                let args = [
                    &[Arg::At(tokens.pointer), self.parameter(Some(words))][..],
                    &[self.parameter(Some(positions + first_position * width)), self.parameter(types), step],
                    &self.spot(out),
                    &[rows, sequence, width].map(Arg::Int),
                ]
                .concat();
                self.launch("embed", rows, [128, 1], &args)
            }
            Op::EmbedBackward { d, words, positions, types, sequence, width, first_position } => {
                let rows = program.samples * sequence;
                let args = [
                    &self.spot(d)[..],
                    &[Arg::At(tokens.pointer), self.gradient(Some(words))],
                    &[self.gradient(Some(positions + first_position * width)), self.gradient(types), step],
                    &[rows, sequence, width].map(Arg::Int),
                ]
                .concat();
                self.launch("embed_backward", rows, [128, 1], &args)
            }
            Op::AttentionSoftmax { scores, heads, sequence, distance_bias } => {
                let table = self.parameter(distance_bias.map(|bias| bias.table));
                let rest = [Arg::At(lengths.pointer), table, step];
                let names = ["attention_softmax_single", "attention_softmax_wide"];
                self.softmax(names, &[scores], &rest, distance_bias, [heads, sequence])
            }
            Op::AttentionSoftmaxBackward { p, d, heads, sequence, distance_bias } => {
                let table = self.gradient(distance_bias.map(|bias| bias.table));
                let names = ["attention_softmax_backward_single", "attention_softmax_backward_wide"];
                self.softmax(names, &[p, d], &[table, step], distance_bias, [heads, sequence])
            }
            Op::FirstRows { x, out, sequence, columns } => {
                let words = program.samples * columns;
                let rest = [Arg::Long(words), Arg::Int(sequence), Arg::Int(columns)];
                self.by_word("first_rows", [words, 1], &[x, out], &rest)
            }
            Op::FirstRowsBackward { d, dx, sequence, columns } => {
                let words = program.samples * sequence * columns;
                let rest = [Arg::Long(words), Arg::Int(sequence), Arg::Int(columns)];
                self.by_word("first_rows_backward", [words, 1], &[d, dx], &rest)
            }
            _ => unreachable!("{op:?} is not of texts"),
        }
    }

    /// # Safety
    /// As for [`PassLaunch::all`].
    unsafe fn softmax(
        &self,
        [single, wide]: [&'static str; 2],
        views: &[View],
        rest: &[Arg],
        bias: Option<DistanceBias>,
        [heads, sequence]: [usize; 2],
    ) -> Result<()> {
        let words = self.lane(sequence, views);
        let rows = self.pass.program.samples * heads * sequence;
        let (buckets, furthest) = bias.map_or((0, 0), |bias| (bias.buckets, bias.furthest));
        // As many lanes as a row has groups of `words`, up to a warp.
        let lanes = sequence.div_ceil(words).next_power_of_two().min(32);
        let sizes = [buckets, furthest, rows, heads, sequence, lanes].map(Arg::Int);
        let name = if words > 1 { wide } else { single };
        self.by_word(name, [rows * lanes, 1], views, &[rest, &sizes].concat())
    }
}

/// Arguments for the sizes of images and their patches, of so many words in all.
fn patch_sizes(words: usize, g: Geometry) -> Vec<Arg> {
    let sizes = [g.height, g.width, g.channels, g.kernel, g.stride, g.padding, g.out_height(), g.out_width()];
    [&[Arg::Long(words)][..], &sizes.map(Arg::Int)].concat()
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
