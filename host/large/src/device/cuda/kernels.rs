//! Kernels, compiled for the GPU at hand when a device is made.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::{CudaContext, CudaFunction, CudaStream, LaunchConfig, PushKernelArg, sys};
use cudarc::nvrtc::{CompileOptions, Ptx, compile_ptx_with_opts};

use super::during;
use crate::device::{Block, Result, cuda_failed};

const PRELUDE: &str = include_str!("prelude.cu");
const PROGRAMS: [&str; 9] = [
    include_str!("pointwise.cu"),
    include_str!("head.cu"),
    include_str!("norm.cu"),
    include_str!("image.cu"),
    include_str!("text.cu"),
    include_str!("attention.cu"),
    include_str!("batch.cu"),
    include_str!("ledger.cu"),
    include_str!("push_sum.cu"),
];
const MIXING: &str = include_str!("mixing.cu");

/// Shared memory a block has without asking for more.
pub(super) const PLAIN_SHARED_BYTES: usize = 48 << 10;

/// A kernel's argument.
#[derive(Clone, Copy, Debug)]
pub(super) enum Arg {
    /// An address in the GPU's memory, or zero.
    At(u64),
    Long(usize),
    Int(usize),
    Float(f64),
    Double(f64),
}

/// Blocks of `each` that cover `words`.
pub(super) fn blocks(words: usize, each: usize) -> usize {
    words.div_ceil(each)
}

/// Compiles a source, or returns what it was compiled to before: an experiment makes a device for each of its hundreds of runs.
fn compiled(source: String, options: Vec<String>) -> Result<Ptx> {
    static COMPILED: Mutex<Vec<(String, Vec<String>, Ptx)>> = Mutex::new(Vec::new());
    let mut compiled = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((.., code)) = compiled.iter().find(|(text, with, _)| (text, with) == (&source, &options)) {
        return Ok(code.clone());
    }
    let compile_options = CompileOptions { options: options.clone(), ..Default::default() };
    let code = during("compiling kernels", compile_ptx_with_opts(&source, compile_options))?;
    compiled.push((source, options, code.clone()));
    Ok(code)
}

/// Compiled kernels by name.
#[derive(Debug)]
pub(super) struct Kernels(HashMap<&'static str, CudaFunction>);

impl Kernels {
    /// The kernels of programs, with activations in bf16 or f32.
    pub(super) fn programs(context: &Arc<CudaContext>, is_narrow: bool) -> Result<Self> {
        let source = [PRELUDE].into_iter().chain(PROGRAMS).collect::<Vec<_>>().join("\n");
        let single_and_wide = [
            ["activate_single", "activate_wide"],
            ["activate_backward_single", "activate_backward_wide"],
            ["bias_gradient_single", "bias_gradient_wide"],
            ["norm_gradient_single", "norm_gradient_wide"],
            ["attention_softmax_single", "attention_softmax_wide"],
            ["attention_softmax_backward_single", "attention_softmax_backward_wide"],
            ["attention_softmax_short", "attention_softmax_backward_short"],
        ];
        let others = "clear sum_splits dropout cross_entropy head head_backward layer_norm \
            layer_norm_backward_sums layer_norm_any layer_norm_backward_any patches patches_backward \
            pool pool_backward embed embed_backward first_rows first_rows_backward load_features \
            load_tokens step_logits norm_gap decay_from to_narrow add_scaled accumulate descend copy \
            recur close_round record_broadcast pull_received track_by_ledger";
        let only_narrow = is_narrow.then_some(["attention", "attention_backward"]);
        let names = single_and_wide
            .into_iter()
            .flatten()
            .chain(others.split(' '))
            .chain(only_narrow.into_iter().flatten());
        Self::compile(context, source, vec![format!("-DNARROW={}", u8::from(is_narrow))], names)
    }

    /// The kernels that mix the state of `agents` agents, of which those of `own` are computed, in blocks of `threads`; among many
    /// agents a block takes `columns` columns.
    pub(super) fn mixing(
        context: &Arc<CudaContext>,
        agents: usize,
        own: Block,
        columns: usize,
        threads: usize,
    ) -> Result<Self> {
        let options = vec![
            "-DNARROW=0".to_owned(),
            format!("-DAGENTS={agents}"),
            format!("-DFIRST={}", own.first),
            format!("-DLAST={}", own.first + own.agents.saturating_sub(1)),
            format!("-DCOLUMNS={columns}"),
            format!("-DTHREADS={threads}"),
        ];
        let names = ["pull", "track", "mix_round", "mix_adapted_round"];
        Self::compile(context, format!("{PRELUDE}\n{MIXING}"), options, names.into_iter())
    }

    fn compile(
        context: &Arc<CudaContext>,
        source: String,
        mut options: Vec<String>,
        names: impl Iterator<Item = &'static str>,
    ) -> Result<Self> {
        let (major, minor) = during("asking for the GPU's architecture", context.compute_capability())?;
        options.extend(["--std=c++17".to_owned(), format!("--gpu-architecture=compute_{major}{minor}")]);
        let module = during("loading kernels", context.load_module(compiled(source, options)?))?;
        let load = |name| Ok((name, during("finding a kernel", module.load_function(name))?));
        Ok(Kernels(names.map(load).collect::<Result<_>>()?))
    }

    /// Enqueues kernel `name`.
    ///
    /// # Errors
    /// When there is no such kernel, or the driver refuses the launch.
    ///
    /// # Safety
    /// - `args` are the parameters of the kernel in its source, in number, order and width.
    /// - Every [`Arg::At`] is zero, where the kernel allows it, or an address in a live allocation of this context, with as many
    ///   words behind it as the kernel reads or writes for the sizes in `args`, `grid` and `block`.
    /// - The allocations stay alive, and nobody else writes to what the kernel uses, until `stream` has run it; where the launch
    ///   is recorded into a graph, until the graph is dropped.
    /// - Indices in device memory (samples, tokens, labels, senders) lie within what they index.
    pub(super) unsafe fn launch(
        &self,
        stream: &Arc<CudaStream>,
        name: &'static str,
        grid: [usize; 2],
        block: [usize; 2],
        shared_bytes: usize,
        args: &[Arg],
    ) -> Result<()> {
        enum Value {
            Long(u64),
            Int(i32),
            Float(f32),
            Double(f64),
        }
        let kernel = self.0.get(name).ok_or_else(|| cuda_failed("finding a kernel", name))?;
        if shared_bytes > PLAIN_SHARED_BYTES {
            let attribute = sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
            during("asking for shared memory", kernel.set_attribute(attribute, shared_bytes as i32))?;
        }
        let values: Vec<Value> = args
            .iter()
            .map(|arg| match *arg {
                Arg::At(address) => Value::Long(address),
                Arg::Long(value) => Value::Long(value as u64),
                Arg::Int(value) => Value::Int(value as i32),
                Arg::Float(value) => Value::Float(value as f32),
                Arg::Double(value) => Value::Double(value),
            })
            .collect();
        let mut launch = stream.launch_builder(kernel);
        for value in &values {
            match value {
                Value::Long(value) => launch.arg(value),
                Value::Int(value) => launch.arg(value),
                Value::Float(value) => launch.arg(value),
                Value::Double(value) => launch.arg(value),
            };
        }
        let config = LaunchConfig {
            grid_dim: (grid[0] as u32, grid[1] as u32, 1),
            block_dim: (block[0] as u32, block[1] as u32, 1),
            shared_mem_bytes: shared_bytes as u32,
        };
        // SAFETY: the caller promises that the arguments are those of the kernel and that their addresses are valid.
        during(name, unsafe { launch.launch(config) }).map(drop)
    }
}
