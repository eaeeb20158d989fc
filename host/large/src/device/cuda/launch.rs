//! Launches of kernels for all agents of a pass.
#![allow(
    unsafe_op_in_unsafe_fn,
    reason = "each function here is a launch under the conditions of `Kernels::launch`"
)]

use super::Cuda;
use super::kernels::Arg;
use super::pass::{CudaPass, Spot};
use crate::device::Result;
use crate::program::{Function, MemorySpace, View};

/// A pass under way. Unsafe functions without a condition of their own have that of [`PassLaunch::all`].
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
    pub(super) fn parameter(&self, offset: Option<usize>) -> Arg {
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
        self.launch_sharing(name, blocks, block, 0, args)
    }

    /// Launches a kernel with `shared_bytes` bytes of shared memory per block.
    ///
    /// # Safety
    /// As for [`super::kernels::Kernels::launch`].
    pub(super) unsafe fn launch_sharing(
        &self,
        name: &'static str,
        blocks: usize,
        block: [usize; 2],
        shared_bytes: usize,
        args: &[Arg],
    ) -> Result<()> {
        let stream = &self.device.streams[self.group % 2];
        self.device.kernels.launch(stream, name, [blocks, self.pass.agents], block, shared_bytes, args)
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
