//! State of hosts on this machine, read in memory that they share: 32 times the words of a message at once, and none of them
//! encrypted.

use std::collections::BTreeSet;

use fabswarm_large::device::cpu::Cpu;
use fabswarm_large::device::shared::{OpenedSlabs, SlabHandle};
use fabswarm_large::device::{Device as _, Result};

/// Memory that hosts share with the process that started their run.
#[derive(Debug, Default)]
pub(super) struct HostMemory {
    opened: OpenedSlabs<Cpu<f32>>,
    /// Hosts whose memory cannot be opened here, such as those of other machines.
    pub(super) distant: BTreeSet<usize>,
}

impl HostMemory {
    /// Appends `words` words to `to`.
    pub(super) fn append(&mut self, slabs: &[SlabHandle], words: usize, to: &mut Vec<f32>) -> Result<()> {
        let cpu = Cpu::new();
        let mut found = cpu.reals(words)?;
        self.opened.read(&cpu, slabs, words)?.copy(&cpu, &mut found, 0, words)?;
        cpu.append(&found, 0, words, to)
    }
}
