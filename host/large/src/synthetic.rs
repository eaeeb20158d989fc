//! Samples made of random numbers, for checks and benchmarks that need no data.

use std::collections::BTreeSet;

use fabswarm_shared::rng::{Purpose, Stream};
use fabswarm_shared::scalar::Scalar as _;

use crate::device::{Device, DeviceDataset, Result};
use crate::models::Model;

/// Words in [-.5, .5), stream by stream.
pub fn words(stream: u32, count: usize) -> Vec<f64> {
    let mut stream = Stream::new(1, stream, 0, Purpose::Noise);
    (0..count).map(|_| stream.uniform_f64() - 0.5).collect()
}

/// For each agent whom it hears: `senders` modulo the number of agents, ascending, once each and without itself.
pub(crate) fn heard<const N: usize>(agents: usize, senders: impl Fn(usize) -> [usize; N]) -> Vec<Vec<usize>> {
    let heard_by = |agent| {
        let all = senders(agent).into_iter().map(|sender| sender % agents);
        BTreeSet::from_iter(all.filter(|&sender| sender != agent)).into_iter().collect()
    };
    (0..agents).map(heard_by).collect()
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
            features = Some(device.reals_of(&values)?);
        }
        Model::Encoder(encoder) => {
            let (sequence, vocabulary) = (encoder.sequence, encoder.tables.vocabulary as u32);
            let ids: Vec<u32> = (0..samples * sequence).map(|_| stream.below(vocabulary)).collect();
            let used: Vec<u32> = (0..samples).map(|i| (sequence - i % sequence.min(4)) as u32).collect();
            (tokens, lengths) = (Some(device.indices_of(&ids)?), Some(device.indices_of(&used)?));
        }
    }
    let classes = model.classes() as u32;
    let labels: Vec<u32> = (0..samples as u32).map(|i| i.wrapping_mul(7) % classes).collect();
    let labels = device.indices_of(&labels)?;
    Ok(DeviceDataset { width, samples, features, tokens, lengths, labels })
}
