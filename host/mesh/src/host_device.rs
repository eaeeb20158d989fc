//! The device of a host.

use fabswarm_large::device::Device as _;
use fabswarm_large::device::cpu::Cpu;
use fabswarm_large::device::cuda::{Gpu, Precision};

/// The device on which a host computes its agents.
#[derive(Clone, Debug, Default)]
pub enum HostDevice {
    #[default]
    /// The CPU.
    Cpu,
    /// A GPU, and the precision that it computes in.
    Gpu(Gpu, Precision),
}

impl HostDevice {
    /// Its name, as `fabswarm host status` shows it.
    pub fn name(&self) -> String {
        match self {
            HostDevice::Cpu => Cpu::<f32>::new().name(),
            HostDevice::Gpu(gpu, precision) => format!("{}, {}", gpu.name(), precision.name()),
        }
    }

    /// Free bytes of its memory, where that is known.
    pub fn free_bytes(&self) -> Option<u64> {
        match self {
            HostDevice::Cpu => Cpu::<f32>::new().free_bytes(),
            HostDevice::Gpu(gpu, _) => gpu.free_bytes(),
        }
    }
}
