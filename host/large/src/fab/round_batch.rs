//! The samples of a round.

/// Which samples every agent takes in a round, by number in the [`DeviceDataset`](crate::device::DeviceDataset).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RoundBatch {
    /// One list per agent, at most `validation_batch` long.
    pub validation: Vec<Vec<u32>>,
    /// One list per agent, at most `training_batch` long, no sample twice.
    pub training: Vec<Vec<u32>>,
}

impl RoundBatch {
    /// The same draw with nothing for agents that take no part.
    #[must_use]
    pub fn only(mut self, takes_part: impl Fn(usize) -> bool) -> Self {
        for lists in [&mut self.validation, &mut self.training] {
            let others = lists.iter_mut().enumerate().filter(|&(agent, _)| !takes_part(agent));
            others.for_each(|(_, samples)| samples.clear());
        }
        self
    }
}
