//! Runs the operations of a pass: which kernel does which.
#![allow(
    unsafe_op_in_unsafe_fn,
    reason = "each function here is a launch under the conditions of `Kernels::launch`"
)]

use std::sync::Arc;

use cudarc::driver::CudaStream;

use super::kernels::{Arg, blocks};
use super::launch::{PassLaunch, number};
use super::pass::{CudaPass, Grid, ops};
use super::{Cuda, Reals, attention, during, sums};
use crate::device::{BatchSchedule, Packed, Result};
use crate::program::op::{Activation, AttentionRows, EmbeddingTables, NormShape};
use crate::program::{Geometry, ModelProgram, Op, Squares, View};

/// Columns a warp's registers hold in the layer norm kernels: `32 · WIDE · CHUNKS` of `norm.cu`.
const LAYER_NORM_COLUMNS: usize = 1024;

impl CudaPass {
    /// Enqueues the pass on the group's stream: forward, and backward when there is a gradient to fill.
    pub(super) fn run(
        &mut self,
        device: &Cuda,
        group: usize,
        parameters: &Reals,
        gradient: Option<u64>,
        packed: Packed,
        schedule: &BatchSchedule<Cuda>,
    ) -> Result<()> {
        let first = (group * packed.agents + packed.own.first) * packed.stride;
        let running = PassLaunch {
            device,
            pass: self,
            group,
            stride: packed.stride,
            parameters: parameters.exact.at(first),
            products: parameters
                .narrow
                .as_ref()
                .map_or(parameters.exact.at(first), |narrow| narrow.at(first)),
            gradient: gradient.map(|gradient| gradient + (first * 4) as u64),
            dropout_key: schedule.dropout_key.pointer,
        };
        // SAFETY: the arena, the layout and `packed` fix the size of every buffer the program names; labels and tokens were
        // checked against classes and vocabulary when the data was loaded.
        unsafe {
            let way_back = if gradient.is_some() { &self.program.backward[..] } else { &[] };
            let clearing = running.clear_beside(way_back)?;
            running.all(&self.program.forward, &self.grids)?;
            let has_losses = during("marking losses", device.streams[group % 2].record_event(None))?;
            if let Some(clearing) = clearing {
                during("joining a stream", device.streams[group % 2].join(clearing))?;
            }
            if gradient.is_some() {
                running.all(&self.program.backward, &self.grids[self.program.forward.len()..])?;
            }
            self.has_losses = Some(has_losses);
        }
        Ok(())
    }
}

/// The most words in which sums of row splits of an operation wait to be added up.
pub(super) fn most_partial_words(device: &Cuda, program: &ModelProgram, agents: usize) -> usize {
    let wide = device.words_at_once();
    let of_heads = if device.activation_bytes() == 2 { attention::partial_words(program, agents) } else { 0 };
    ops(program).map(|op| sums::partial_words(op, agents, wide)).max().unwrap_or(0).max(of_heads)
}

impl PassLaunch<'_> {
    /// Enqueues operations in order.
    ///
    /// # Safety
    /// The operations are those of the pass's program, whose parameters, gradient and batch are alive until they have run.
    pub(super) unsafe fn all(&self, ops: &[Op], grids: &[Option<Grid>]) -> Result<()> {
        let mut at = 0;
        while at < ops.len() {
            let mut done = self.several(&ops[at..])?;
            if done == 0 {
                match &ops[at] {
                    Op::Gemm(gemm) => self.gemm(gemm, grids[at].as_ref())?,
                    op => self.one(op)?,
                }
                done = 1;
            }
            at += done;
        }
        Ok(())
    }

    /// Clears what the operations of a way back will add to, on a stream of its own: the way there needs little of the memory's
    /// bandwidth. Returns that stream, for the way back to wait for, where there is anything to clear.
    pub(super) unsafe fn clear_beside(&self, ops: &[Op]) -> Result<Option<&Arc<CudaStream>>> {
        let Cuda { streams, kernels, .. } = self.device;
        let (stream, beside) = (&streams[self.group % 2], &streams[2 + self.group % 2]);
        let mut used = None;
        for op in ops {
            let &Op::ClearGradient { offset, words } = op else { continue };
            if used.is_none() {
                during("forking a stream", beside.join(stream))?;
            }
            used = Some(beside);
            let args = [self.gradient(Some(offset)), Arg::Long(self.stride), Arg::Long(words)];
            kernels.launch(beside, "clear", [blocks(words, 1024), self.pass.agents], [256, 1], 0, &args)?;
        }
        Ok(used)
    }

    /// Does operations that go through memory once when they are done together, where `ops` begin with such; returns how many.
    unsafe fn several(&self, ops: &[Op]) -> Result<usize> {
        match *ops {
            // A function's derivative and the sums of its result by column.
            [
                Op::ActivateBackward { saved, d, activation },
                Op::BiasGradient { d: summed, bias, rows, .. },
                ..,
            ] if d == summed && activation.rows == rows => {
                self.bias_gradient(d, Some((saved, activation)), bias, [rows, activation.columns])?;
                Ok(2)
            }
            [
                Op::NormGradient { d, .. },
                ref back @ Op::NormBackward { d: same, dx, shape, .. },
                ref rest @ ..,
            ] if d == same => {
                let bias = match rest.first() {
                    Some(&Op::BiasGradient { d, bias, columns, .. })
                        if d == dx && columns == shape.columns =>
                    {
                        Some(bias)
                    }
                    _ => None,
                };
                let gradients = [Some(shape.gain), Some(shape.shift), bias];
                let gradients: Vec<usize> = gradients.into_iter().flatten().collect();
                let is_done = self.norm_backward_sums(back, &gradients)?;
                Ok(if is_done { gradients.len() } else { 0 })
            }
            [Op::Activate { .. }, Op::Gemm(_), Op::CrossEntropy { .. }, ..] => self.head(ops),
            [Op::BiasGradient { .. }, Op::Gemm(_), Op::Gemm(_), Op::ActivateBackward { .. }, ..] => {
                self.head_backward(ops)
            }
            [Op::Activate { .. }, Op::Gemm(_), ..] => self.attention(ops),
            [Op::Gemm(_), Op::Gemm(_), Op::AttentionSoftmaxBackward { .. }, ..] => {
                self.attention_backward(ops)
            }
            _ => Ok(0),
        }
    }

    unsafe fn one(&self, op: &Op) -> Result<()> {
        match *op {
            Op::Gemm(_) | Op::ClearGradient { .. } => Ok(()),
            Op::BiasGradient { d, bias, rows, columns } => self.bias_gradient(d, None, bias, [rows, columns]),
            Op::NormGradient { d, normal, shape } => self.norm_gradient(d, normal, shape),
            Op::Activate { .. }
            | Op::ActivateBackward { .. }
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

    /// Launches a kernel that takes these views first, with a thread for every `lane` of `words` words.
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

    /// Launches the wide form of a kernel where the columns allow it, otherwise the single form.
    unsafe fn activation(
        &self,
        [single, wide]: [&'static str; 2],
        views: &[View],
        Activation { bias, rows, columns, function }: Activation,
    ) -> Result<()> {
        let (words, lane) = (rows * columns, self.lane(columns, views));
        let sizes = [Arg::Int(columns), Arg::Long(words), Arg::Int(number(function))];
        let rest = [&[self.parameter(bias), Arg::Long(self.stride)][..], &sizes].concat();
        self.by_word(if lane > 1 { wide } else { single }, [words, lane], views, &rest)
    }

    unsafe fn pointwise(&self, op: &Op) -> Result<()> {
        match *op {
            Op::Activate { x, out, activation } => {
                self.activation(["activate_single", "activate_wide"], &[x, out], activation)
            }
            Op::ActivateBackward { saved, d, activation } => {
                let names = ["activate_backward_single", "activate_backward_wide"];
                self.activation(names, &[saved, d], activation)
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
                    &[self.parameter(Some(bias)), Arg::Long(self.stride)],
                    &batch.map(Arg::At),
                    &[Arg::Int(samples), Arg::Int(classes)],
                ]
                .concat();
                self.launch("cross_entropy", blocks(samples, 8), [256, 1], &args)
            }
            _ => unreachable!("{op:?} is not pointwise"),
        }
    }

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
            Op::Pool { x, out, squares } => self.pool("pool", &[x, out], squares),
            Op::PoolBackward { x, d, dx, squares } => self.pool("pool_backward", &[x, d, dx], squares),
            _ => unreachable!("{op:?} is not of images"),
        }
    }

    unsafe fn pool(&self, name: &'static str, views: &[View], squares: Squares) -> Result<()> {
        let words = squares.pooled_words();
        let sizes = [squares.height, squares.width, squares.channels, squares.size];
        self.by_word(name, [words, 1], views, &[&[Arg::Long(words)][..], &sizes.map(Arg::Int)].concat())
    }

    unsafe fn norm(&self, op: &Op) -> Result<()> {
        let step = Arg::Long(self.stride);
        match *op {
            Op::Norm { x, residual, out, saved: [normal, inverse], shape } => {
                let NormShape { bias, gain, shift, rows, columns, epsilon } = shape;
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
                let (name, count, sizes) = match self.is_row(shape, &views) {
                    true => ("layer_norm", blocks(rows, 8), &[rows, columns][..]),
                    false => ("layer_norm_any", rows, &[columns][..]),
                };
                let sizes: Vec<Arg> = sizes.iter().map(|&size| Arg::Int(size)).collect();
                self.launch(name, count, [256, 1], &[&args[..], &sizes, &[Arg::Float(epsilon)]].concat())
            }
            Op::NormBackward { d, saved: [normal, inverse], dx, shape } => {
                let args = [
                    &self.spot(d)[..],
                    &self.spot(normal),
                    &self.spot(inverse),
                    &[self.parameter(Some(shape.gain)), step],
                    &self.spot(dx),
                    &[Arg::Int(shape.columns)],
                ]
                .concat();
                self.launch("layer_norm_backward_any", shape.rows, [256, 1], &args)
            }
            _ => unreachable!("{op:?} is no norm"),
        }
    }

    /// Whether a norm runs over rows that a warp holds.
    pub(super) fn is_row(&self, shape: NormShape, views: &[View]) -> bool {
        shape.columns <= LAYER_NORM_COLUMNS && self.lane(shape.columns, views) > 1
    }

    unsafe fn text(&self, op: &Op) -> Result<()> {
        let step = Arg::Long(self.stride);
        let CudaPass { program, tokens, lengths, .. } = self.pass;
        match *op {
            Op::Embed { out, tables } => {
                let EmbeddingTables { words, positions, types, sequence, width, first_position } = tables;
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
            Op::EmbedBackward { d, tables } => {
                let EmbeddingTables { words, positions, types, sequence, width, first_position } = tables;
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
            Op::AttentionSoftmax { scores, rows } => {
                let table = self.parameter(rows.distance_bias.map(|bias| bias.table));
                let rest = [Arg::At(lengths.pointer), table, step];
                let names = ["attention_softmax_single", "attention_softmax_wide", "attention_softmax_short"];
                self.softmax(names, &[scores], &rest, rows)
            }
            Op::AttentionSoftmaxBackward { p, d, rows } => {
                let table = self.gradient(rows.distance_bias.map(|bias| bias.table));
                let names = [
                    "attention_softmax_backward_single",
                    "attention_softmax_backward_wide",
                    "attention_softmax_backward_short",
                ];
                self.softmax(names, &[p, d], &[table, step], rows)
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

    unsafe fn softmax(
        &self,
        [single, wide, short]: [&'static str; 3],
        views: &[View],
        rest: &[Arg],
        AttentionRows { heads, sequence, distance_bias }: AttentionRows,
    ) -> Result<()> {
        let words = self.lane(sequence, views);
        let rows = self.pass.program.samples * heads * sequence;
        let (buckets, furthest) = distance_bias.map_or((0, 0), |bias| (bias.buckets, bias.furthest));
        // As many lanes as a row has groups of `words`, up to a warp.
        let lanes = sequence.div_ceil(words).next_power_of_two().min(32);
        let sizes = [buckets, furthest, rows, heads, sequence, lanes].map(Arg::Int);
        let name = match words {
            1 => single,
            _ if sequence <= lanes * words => short,
            _ => wide,
        };
        self.by_word(name, [rows * lanes, 1], views, &[rest, &sizes].concat())
    }
}

/// Arguments for the sizes of images and their patches, of `words` words in all.
fn patch_sizes(words: usize, g: Geometry) -> Vec<Arg> {
    let sizes = [g.height, g.width, g.channels, g.kernel, g.padding()];
    [&[Arg::Long(words)][..], &sizes.map(Arg::Int)].concat()
}
