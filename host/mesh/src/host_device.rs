//! Where a host computes its agents.

use fabswarm_large::device::Device as _;
use fabswarm_large::device::cpu::Cpu;
use fabswarm_large::device::cuda::{Gpu, Precision};

/// Where a host computes its agents.
#[derive(Clone, Debug, Default)]
pub enum HostDevice {
    #[default]
    Cpu,
    Gpu(Gpu, Precision),
}

impl HostDevice {
    /// What it is, for whoever asks how the host is.
    pub fn name(&self) -> String {
        match self {
            HostDevice::Cpu => Cpu::<f32>::new().name(),
            HostDevice::Gpu(gpu, precision) => format!("{}, {precision}", gpu.name()),
        }
    }

    /// Bytes of its memory that nobody uses, where that is known.
    pub fn free_bytes(&self) -> Option<u64> {
        match self {
            HostDevice::Cpu => Cpu::<f32>::new().free_bytes(),
            HostDevice::Gpu(gpu, _) => gpu.free_bytes(),
        }
    }
}
