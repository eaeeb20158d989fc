//! Loss and accuracy of a model on samples that are in the device's memory.

use fabswarm_shared::scalar::Scalar as _;

use super::Fab;
use crate::device::{BatchSchedule, Device, NO_SAMPLE, Packed, Result};

/// How a model does on a set of samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ModelScore {
    /// The share of samples whose largest logit is that of their class.
    pub accuracy: f64,
    /// The mean cross-entropy.
    pub loss: f64,
}

impl<D: Device> Fab<D> {
    /// Runs one model forward, without dropout, over samples `rows` of the dataset, `batch` at a time.
    pub fn evaluate(&self, parameters: &[D::Scalar], rows: &[u32], batch: usize) -> Result<ModelScore> {
        let batch = batch.min(rows.len()).max(1);
        let device = &self.device;
        let mut program = self.model.without_dropout().program(batch);
        // Without a way back no buffer has to outlive the next layer.
        program.backward.clear();
        let mut pass = device.pass(&program, 1)?;
        let mut on_device = device.decisions(self.lower().stride)?;
        device.write(&mut on_device, 0, parameters)?;
        let mut schedule = BatchSchedule::new(device, 1, batch, batch)?;
        let (mut hits, mut loss) = (0.0, 0.0);
        for rows in rows.chunks(batch) {
            let mut padded = rows.to_vec();
            padded.resize(batch, NO_SAMPLE);
            device.write_indices(&mut schedule.rows, &padded)?;
            device.load(&mut pass, &self.state.data, &schedule, 1.0, None)?;
            let one = Packed::whole(1, 1, self.lower().stride);
            device.run(&mut [&mut pass], &on_device, None, one, &schedule)?;
            let sum =
                |words: Vec<D::Scalar>| words[..rows.len()].iter().map(|word| word.to_f64()).sum::<f64>();
            let [losses, hit] = device.losses_and_hits(&pass)?.map(sum);
            (loss, hits) = (loss + losses, hits + hit);
        }
        let count = rows.len().max(1) as f64;
        Ok(ModelScore { accuracy: hits / count, loss: loss / count })
    }
}
