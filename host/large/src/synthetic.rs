//! Samples made of random numbers, for checks and benchmarks that need no data.

use fabswarm_shared::rng::{Purpose, Stream};
use fabswarm_shared::scalar::Scalar as _;

use crate::device::{Device, DeviceDataset, Result};
use crate::models::Model;

/// Words in [-.5, .5), stream by stream.
pub fn words(stream: u32, count: usize) -> Vec<f64> {
    let mut stream = Stream::new(1, stream, 0, Purpose::Noise);
    (0..count).map(|_| stream.uniform_f64() - 0.5).collect()
}

/// `samples` samples that fit `model`; texts of all lengths.
///
/// # Errors
/// When the device cannot hold them.
pub fn dataset<D: Device>(device: &D, model: &Model, samples: usize) -> Result<DeviceDataset<D>> {
    let width = model.input().width();
    let mut stream = Stream::new(2, 0, 0, Purpose::Noise);
    let (mut features, mut tokens, mut lengths) = (None, None, None);
    match model {
        Model::Image(_) => {
            let values: Vec<D::Scalar> =
                words(3, samples * width).into_iter().map(D::Scalar::from_f64).collect();
            let mut buffer = device.reals(values.len())?;
            device.write(&mut buffer, 0, &values)?;
            features = Some(buffer);
        }
        Model::Encoder(encoder) => {
            let (sequence, vocabulary) = (encoder.sequence, encoder.tables.vocabulary as u32);
            let upload = |values: Vec<u32>| -> Result<D::Indices> {
                let mut buffer = device.indices(values.len())?;
                device.write_indices(&mut buffer, &values)?;
                Ok(buffer)
            };
            tokens = Some(upload((0..samples * sequence).map(|_| stream.below(vocabulary)).collect())?);
            lengths = Some(upload((0..samples).map(|i| (sequence - i % sequence.min(4)) as u32).collect())?);
        }
    }
    let mut labels = device.indices(samples)?;
    let classes = model.classes() as u32;
    device.write_indices(
        &mut labels,
        &(0..samples as u32).map(|i| i.wrapping_mul(7) % classes).collect::<Vec<_>>(),
    )?;
    Ok(DeviceDataset { width, samples, features, tokens, lengths, labels })
}
