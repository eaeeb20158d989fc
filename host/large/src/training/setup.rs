//! Data and model of a run, before any device is used.

use std::path::Path;
use std::sync::OnceLock;

use super::batches::Lists;
use super::model_choice::{self, is_layer_file};
use super::{ChanceBaseline, Error};
use crate::device::{Device, DeviceDataset};
use crate::models::{Model, pretrained};
use crate::program::Input;
use fabswarm_data::own::{self, OwnColumns};
use fabswarm_data::shard::{self, DataShard, ShardConfig, deal};
use fabswarm_data::{Cache, Dataset, Inputs, SAMPLE, catalogue};
use fabswarm_sim::scenario::{ResolvedScenario, Scenario, TrainingMethod, TrainingSection};
use fabswarm_sim::task::refuse_doubtful;
use sha2::{Digest as _, Sha256};

/// A model with its start, and samples dealt out to agents.
///
/// Samples are numbered as the data set has them, test samples after all training samples.
#[derive(Debug)]
pub struct TrainingSetup {
    /// The model of every agent.
    pub model: Model,
    /// Packed parameters every agent starts from.
    pub start: Vec<f32>,
    data: Dataset,
    shards: Vec<DataShard>,
    parameters: usize,
    /// Whether the labels are right, as far as anybody said so: those of catalogued data, `true_label` of a user's own, and labels of
    /// a user's own of which a share is made wrong at random.
    knows_truth: bool,
    /// Whether the file has true labels beside those that agents see.
    has_own_truth: bool,
    /// Filled when it is first asked for.
    digest: OnceLock<String>,
}

impl TrainingSetup {
    /// Loads data and weights from the cache and deals the samples out.
    ///
    /// # Errors
    /// When something was not fetched, is damaged, or does not fit together.
    pub fn new(cache: &Cache, scenario: &Scenario) -> Result<Self, Error> {
        let (training, seed) = (&scenario.training, scenario.problem_seed());
        let keep = |count: usize| if count == 0 { usize::MAX } else { count };
        let (data, mut own) = load(cache, &training.data, scenario.swarm.agents)?;
        let data = data.truncated(keep(training.train_samples), keep(training.test_samples));
        own.truncate(keep(training.train_samples));
        let (model, folder, data) = model_choice::choose(cache, training, data)?;
        let layout = model.program(1).layout;
        let start = match (&model, &folder) {
            (Model::Encoder(encoder), Some(folder)) => pretrained::start(folder, encoder, &layout, seed)?,
            _ => layout.start(seed),
        };
        let how = ShardConfig {
            agents: scenario.swarm.agents,
            dirichlet_alpha: training.dirichlet_alpha,
            validation_one_in: training.validation_one_in,
            corruption_rate: training.corruption_rate,
            seed,
        };
        let shards = deal(&data.train.labels, data.classes, &how, &own)?;
        let has_own_truth = own.given.is_some();
        let is_own = own::is_own(Path::new(&training.data));
        let knows_truth = !is_own || has_own_truth || training.corruption_rate > 0.0;
        let is_checked = knows_truth || own.validation.is_some() || training.trust_labels;
        if training.method == TrainingMethod::Cleaning && !is_checked {
            let (path, samples) = (Path::new(&training.data), data.train.labels.len());
            return Err(refuse_doubtful(path, samples, "--trust-labels true").into());
        }
        let parameters = layout.count();
        Ok(TrainingSetup {
            model,
            start,
            data,
            shards,
            parameters,
            knows_truth,
            has_own_truth,
            digest: OnceLock::new(),
        })
    }

    /// Parameters of one agent.
    pub fn parameters(&self) -> usize {
        self.parameters
    }

    /// The samples of each agent.
    pub fn shards(&self) -> &[DataShard] {
        &self.shards
    }

    /// Which agent has how many samples of which class.
    pub fn histogram(&self) -> String {
        shard::table(&self.shards, &self.data.train.labels, self.data.classes)
    }

    /// The true label of a training sample, where it is known.
    pub(super) fn true_label(&self, sample: u32) -> Option<u8> {
        self.knows_truth.then(|| self.data.train.labels[sample as usize])
    }

    /// The inputs of the training samples.
    pub(super) fn inputs(&self) -> &Inputs {
        &self.data.train.inputs
    }

    /// Returns whether labels of a user's own file were corrupted at random.
    pub fn corrupts_own_labels(&self) -> bool {
        matches!(self.data.train.inputs, Inputs::Features(_)) && !self.has_own_truth
    }

    /// The scores of a model that has learned nothing.
    pub fn chance_baseline(&self) -> ChanceBaseline {
        let mut counts = vec![0_usize; self.data.classes];
        for &label in &self.data.test.labels {
            counts[usize::from(label)] += 1;
        }
        let most = counts.into_iter().max().unwrap_or(0);
        let samples = self.data.test.labels.len().max(1);
        ChanceBaseline { accuracy: most as f64 / samples as f64, loss: (self.data.classes as f64).ln() }
    }

    /// All samples, test samples included.
    pub fn samples(&self) -> usize {
        self.data.train.labels.len() + self.data.test.labels.len()
    }

    /// Samples of the lower level of all agents, which make one epoch.
    pub fn training_samples(&self) -> usize {
        self.shards.iter().map(|shard| shard.train.len()).sum()
    }

    pub(super) fn test_rows(&self) -> Vec<u32> {
        let first = self.data.train.labels.len() as u32;
        (first..first + self.data.test.labels.len() as u32).collect()
    }

    /// For every sample the agent that learns its weight, if there is one.
    pub(super) fn sample_owners(&self) -> Vec<Option<usize>> {
        let mut owners = vec![None; self.samples()];
        for (agent, shard) in self.shards.iter().enumerate() {
            shard.train.iter().for_each(|&sample| owners[sample as usize] = Some(agent));
        }
        owners
    }

    /// A digest that is equal on two hosts that have the same samples, labels and start.
    pub fn digest(&self) -> &str {
        self.digest.get_or_init(|| self.compute_digest())
    }

    fn compute_digest(&self) -> String {
        let mut hash = Sha256::new();
        hash.update(format!("{:?}", self.model));
        self.start.iter().for_each(|word| hash.update(word.to_le_bytes()));
        for shard in &self.shards {
            shard.train.iter().chain(&shard.validation).for_each(|sample| hash.update(sample.to_le_bytes()));
            hash.update(&shard.labels);
        }
        for samples in [&self.data.train, &self.data.test] {
            hash.update(&samples.labels);
            match &samples.inputs {
                Inputs::Images(images) => hash.update(&images.pixels),
                Inputs::Features(features) => {
                    features.values.iter().for_each(|word| hash.update(word.to_le_bytes()));
                }
                Inputs::Tokens(tokens) => tokens.ids.iter().for_each(|id| hash.update(id.to_le_bytes())),
                Inputs::Texts(_) => {}
            }
        }
        hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
    }

    /// The samples that each agent draws its batches from.
    pub(super) fn lists(&self, method: TrainingMethod) -> Lists {
        let each = |pick: fn(&DataShard) -> Vec<u32>| self.shards.iter().map(pick).collect::<Vec<_>>();
        let (training, validation) =
            (each(|shard| shard.train.clone()), each(|shard| shard.validation.clone()));
        match method {
            TrainingMethod::Cleaning | TrainingMethod::Tuning => Lists { validation, training },
            TrainingMethod::SingleLevelNoisy => Lists { training, ..Lists::default() },
            TrainingMethod::SingleLevelClean => Lists { training: validation, ..Lists::default() },
            TrainingMethod::SingleLevelAll => Lists {
                training: each(|shard| [&shard.train[..], &shard.validation].concat()),
                ..Lists::default()
            },
        }
    }

    /// Every label as the agents see it.
    fn labels(&self) -> Vec<u32> {
        let all = self.data.train.labels.iter().chain(&self.data.test.labels);
        let mut labels: Vec<u32> = all.map(|&label| u32::from(label)).collect();
        for shard in &self.shards {
            for (&sample, &seen) in shard.train.iter().zip(&shard.labels) {
                labels[sample as usize] = u32::from(seen);
            }
        }
        labels
    }

    /// All samples in a device's memory.
    pub(super) fn on_device<D: Device<Scalar = f32>>(&self, device: &D) -> Result<DeviceDataset<D>, Error> {
        let width = self.model.input().width();
        let parts = [&self.data.train.inputs, &self.data.test.inputs];
        let (mut features, mut tokens, mut lengths) = (None, None, None);
        match self.model.input() {
            Input::Features { .. } => {
                let mut buffer = device.reals(self.samples() * width)?;
                let (mut sample, mut offset) = (vec![0.0; width], 0);
                for inputs in parts {
                    match inputs {
                        Inputs::Features(own) => {
                            device.write(&mut buffer, offset, &own.values)?;
                            offset += own.values.len();
                        }
                        Inputs::Images(images) => {
                            for index in 0..images.count() {
                                images.write_input(index, &mut sample);
                                device.write(
                                    &mut buffer,
                                    offset,
                                    &channels_last(&sample, images.shape[0]),
                                )?;
                                offset += width;
                            }
                        }
                        Inputs::Texts(_) | Inputs::Tokens(_) => {}
                    }
                }
                features = Some(buffer);
            }
            Input::Tokens { .. } => {
                let (mut ids, mut used) = (Vec::new(), Vec::new());
                for inputs in parts {
                    let Inputs::Tokens(texts) = inputs else { continue };
                    ids.extend_from_slice(&texts.ids);
                    // A softmax over no token has no value.
                    used.extend(texts.used.iter().map(|&used| used.max(1)));
                }
                (tokens, lengths) = (Some(device.indices_of(&ids)?), Some(device.indices_of(&used)?));
            }
        }
        Ok(DeviceDataset {
            width,
            samples: self.samples(),
            features,
            tokens,
            lengths,
            labels: device.indices_of(&self.labels())?,
        })
    }
}

/// Makes the paths of a scenario absolute, so that the run can be resumed from any folder.
pub fn make_paths_absolute(resolved: &mut ResolvedScenario) {
    resolved.make_files_absolute();
    let TrainingSection { data, model, .. } = &resolved.scenario.training;
    let is_path = |name: &str| name != SAMPLE && catalogue::find(name).is_none() && Path::new(name).exists();
    let is_encoder = |name: &str| is_path(name) && Path::new(name).join("config.json").exists();
    let keys =
        [("training.data", is_path(data)), ("training.model", is_encoder(model) || is_layer_file(model))];
    for (key, _) in keys.into_iter().filter(|(_, is_path)| *is_path) {
        resolved.make_absolute(key);
    }
}

/// A data set by name, of a user's own file, or texts that are tokens already.
fn load(cache: &Cache, name: &str, agents: usize) -> Result<(Dataset, OwnColumns), Error> {
    let path = Path::new(name);
    if own::is_own(path) {
        return Ok(own::read(path, agents)?);
    }
    let is_tokens = path.extension().is_some_and(|extension| extension == "safetensors");
    let data = if is_tokens { fabswarm_data::tokens::load(path)? } else { fabswarm_data::load(cache, name)? };
    Ok((data, OwnColumns::default()))
}

/// From channel, height, width to height, width, channel.
fn channels_last(image: &[f32], channels: usize) -> Vec<f32> {
    let area = image.len() / channels.max(1);
    (0..image.len()).map(|at| image[at % channels * area + at / channels]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_become_channels_last() {
        // Two channels of a 1 x 3 image.
        assert_eq!(channels_last(&[1.0, 2.0, 3.0, 10.0, 20.0, 30.0], 2), [1.0, 10.0, 2.0, 20.0, 3.0, 30.0]);
    }
}
