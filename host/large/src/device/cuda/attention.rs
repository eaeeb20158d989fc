//! Attention of short sequences in one kernel each way, where activations are bf16.
//!
//! A program has bias, products and softmax as operations of their own; here runs of them are recognised and done at once. The
//! packed projections are kept without their bias then, which both ways add as they read.
#![allow(
    unsafe_op_in_unsafe_fn,
    reason = "each function here is a launch under the conditions of `Kernels::launch`"
)]

use super::kernels::Arg;
use super::launch::PassLaunch;
use crate::device::Result;
use crate::program::op::{Activation, AttentionRows, Operand};
use crate::program::{Function, ModelProgram, Op, View};

/// The most tokens and columns of a head that `attention.cu` takes, and the bytes of its tiles in shared memory.
const TOKENS: usize = 128;
const HEAD: usize = 64;
const TILE_BYTES: usize = TOKENS * (HEAD + 8) * 2;
const SQUARE_BYTES: usize = TOKENS * (TOKENS + 8) * 2;
/// Words that a thread reads at once.
const WORDS: usize = 8;

/// Words in which sums by sample wait to be added up to gradients of biases.
pub(super) fn partial_words(program: &ModelProgram, agents: usize) -> usize {
    let words = |ops: &[Op]| match ops {
        [Op::AttentionSoftmaxBackward { .. }, _, _, Op::BiasGradient { columns, .. }] => {
            agents * program.samples * columns
        }
        _ => 0,
    };
    program.backward.windows(4).map(words).max().unwrap_or(0)
}

impl PassLaunch<'_> {
    /// Bias, scores, softmax and mean of values, when `ops` begin with them; returns how many operations that were.
    pub(super) unsafe fn attention(&self, ops: &[Op]) -> Result<usize> {
        let &[
            Op::Activate { x, out, activation },
            Op::Gemm(score),
            Op::AttentionSoftmax { scores, rows: AttentionRows { heads, sequence, distance_bias: None } },
            Op::Gemm(mean),
            ..,
        ] = ops
        else {
            return Ok(0);
        };
        let Activation { bias: Some(bias), function: Function::Identity, .. } = activation else {
            return Ok(0);
        };
        let (parts, to) = ([score.a, score.b, mean.b], mean.c);
        let is_one = x == out && score.c.view == scores && mean.a.view == scores;
        if !is_one || !self.is_short(&[&parts[..], &[to]].concat(), score.k, sequence) {
            return Ok(0);
        }
        let args = [
            self.projections(x, parts, bias),
            self.spot(to.view).to_vec(),
            [to.outer, to.inner, to.row].map(Arg::Int).to_vec(),
            self.sizes(score.alpha, [heads, sequence, score.k]),
        ]
        .concat();
        self.launch_sharing("attention", self.heads_of(heads), [256, 1], 3 * TILE_BYTES, &args)?;
        Ok(4)
    }

    /// The way back, with the gradient of the bias; returns how many operations that were.
    pub(super) unsafe fn attention_backward(&self, ops: &[Op]) -> Result<usize> {
        let &[
            Op::Gemm(score),
            Op::Gemm(value),
            Op::AttentionSoftmaxBackward {
                p,
                d,
                rows: AttentionRows { heads, sequence, distance_bias: None },
            },
            Op::Gemm(query),
            Op::Gemm(key),
            Op::BiasGradient { d: packed, bias, columns, .. },
            ..,
        ] = ops
        else {
            return Ok(0);
        };
        let (parts, from, to) = ([key.b, query.b, score.b], score.a, [query.c, key.c, value.c]);
        let is_one = [score.c, query.a, key.a].iter().all(|operand| operand.view == d) && value.a.view == p;
        if !is_one || !self.is_short(&[&parts[..], &[from], &to].concat(), score.k, sequence) {
            return Ok(0);
        }
        let samples = self.pass.program.samples;
        let (sums, model) = match samples {
            1 => (self.gradient.unwrap_or_default() + (bias * 4) as u64, self.stride),
            _ => (self.pass.partial.pointer, samples * columns),
        };
        let addresses = to.map(|part| self.spot(part.view)[0]);
        let sums_of = to.map(|part| Arg::At(sums + ((part.view.offset - packed.offset) * 4) as u64));
        let args = [
            self.projections(View { offset: 0, ..parts[0].view }, parts, bias),
            self.spot(from.view).to_vec(),
            [from.outer, from.inner, from.row].map(Arg::Int).to_vec(),
            addresses.to_vec(),
            vec![self.spot(packed)[1]],
            sums_of.to_vec(),
            vec![Arg::Long(model), Arg::Int(columns)],
            self.sizes(query.alpha, [heads, sequence, score.k]),
        ]
        .concat();
        let bytes = 4 * TILE_BYTES + SQUARE_BYTES;
        self.launch_sharing("attention_backward", self.heads_of(heads), [256, 1], bytes, &args)?;
        self.sum_splits(&[bias], columns, samples)?;
        Ok(6)
    }

    fn heads_of(&self, heads: usize) -> usize {
        self.pass.program.samples * heads
    }

    /// Arguments for query, key and value of the buffer `packed`, and the bias that is added to each.
    fn projections(&self, packed: View, parts: [Operand; 3], bias: usize) -> Vec<Arg> {
        let addresses = parts.map(|part| self.spot(part.view)[0]);
        let biases = parts.map(|part| self.parameter(Some(bias + part.view.offset - packed.offset)));
        let Operand { outer, inner, row, .. } = parts[0];
        let strides = [outer, inner, row].map(Arg::Int);
        let model = [Arg::Long(self.stride), self.spot(packed)[1]];
        [&addresses[..], &biases, &model, &strides].concat()
    }

    fn sizes(&self, alpha: f64, sizes: [usize; 3]) -> Vec<Arg> {
        [&[Arg::At(self.pass.lengths.pointer), Arg::Float(alpha)][..], &sizes.map(Arg::Int)].concat()
    }

    /// Whether the kernels take these operands: few tokens and columns, all at multiples of 16 bytes.
    fn is_short(&self, operands: &[Operand], head: usize, sequence: usize) -> bool {
        let is_aligned = |operand: &Operand| {
            let spot = self.pass.spot(self.device, operand.view);
            let steps = [spot.model, operand.row, operand.outer, operand.inner];
            spot.is_narrow
                && spot.address.is_multiple_of(16)
                && steps.iter().all(|step| step.is_multiple_of(WORDS))
        };
        sequence <= TOKENS && head <= HEAD && head.is_multiple_of(WORDS) && operands.iter().all(is_aligned)
    }
}
