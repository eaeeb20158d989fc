//! Derivatives of programs against finite differences, in f64 on the CPU.

use fabswarm_shared::rng::{Purpose, Stream};

use super::{Tables, TransformerShape, conv2d, cross_entropy, dropout, linear, norm, pool, transformer};
use crate::device::cpu::{Cpu, CpuReals};
use crate::device::{BatchSchedule, Device, DeviceDataset, Packed};
use crate::models::{BertEncoder, Model};
use crate::program::{Function, Geometry, Input, ModelProgram, ProgramBuilder, Squares, View};

const AGENTS: usize = 2;
const DIFFERENCE: f64 = 1e-5;

fn random(stream: u32, words: usize) -> Vec<f64> {
    let mut stream = Stream::new(99, stream, 0, Purpose::Problem);
    (0..words).map(|_| stream.uniform_f64() - 0.5).collect()
}

/// Two agents with different parameters, batches and weights.
struct Fixture {
    device: Cpu<f64>,
    program: ModelProgram,
    schedule: BatchSchedule<Cpu<f64>>,
    data: DeviceDataset<Cpu<f64>>,
    parameters: Vec<f64>,
    logits: CpuReals<f64>,
}

impl Fixture {
    fn new(program: ModelProgram) -> Self {
        let samples = AGENTS * program.samples;
        let width = program.input.width();
        let (features, tokens) = match program.input {
            Input::Features { .. } => (Some(random(1, samples * width).into()), None),
            // Every vocabulary of these tests has at least seven words.
            Input::Tokens { .. } => (None, Some((0..samples * width).map(|i| (i * i % 7) as u32).collect())),
        };
        let parameters = (0..AGENTS as u64)
            .flat_map(|agent| {
                let mut packed = program.layout.start::<f64>(agent);
                packed.iter_mut().zip(random(2, 100_000)).for_each(|(word, noise)| *word += 0.2 * noise);
                packed
            })
            .collect();
        Fixture {
            device: Cpu::new(),
            schedule: BatchSchedule {
                samples: program.samples,
                upper: 1,
                rows: (0..samples as u32).collect(),
                weights: (0..samples).map(|i| 0.3 + 0.1 * i as f64).collect::<Vec<f64>>().into(),
                dropout_key: vec![7, 0, 3],
            },
            data: DeviceDataset {
                width,
                samples,
                features,
                tokens,
                lengths: Some((0..samples).map(|i| (width - i % 2) as u32).collect()),
                labels: (0..samples).map(|i| (i % program.classes) as u32).collect(),
            },
            parameters,
            logits: random(3, samples).into(),
            program,
        }
    }

    /// Σ_j w_j σ(ψ_j) ℓ_j of both agents, and the gradient.
    fn evaluate(&self, parameters: &[f64]) -> (f64, CpuReals<f64>) {
        let packed = Packed::whole(1, AGENTS, self.program.layout.stride());
        let mut pass = self.device.pass(&self.program, AGENTS).unwrap();
        // The first sample of each agent keeps its plain weight.
        self.device.load(&mut pass, &self.data, &self.schedule, 1.0, Some(&self.logits)).unwrap();
        let mut gradient = CpuReals::from(vec![f64::NAN; packed.words()]);
        let parameters = CpuReals::from(parameters.to_vec());
        self.device.run(&mut [&mut pass], &parameters, Some(&mut gradient), packed, &self.schedule).unwrap();
        let [losses, _] = self.device.losses_and_hits(&pass).unwrap();
        let weight = |i: usize| {
            let learned =
                if i % self.program.samples >= 1 { 1.0 / (1.0 + (-self.logits[i]).exp()) } else { 1.0 };
            self.schedule.weights[i] * learned
        };
        (losses.iter().enumerate().map(|(i, loss)| weight(i) * loss).sum(), gradient)
    }
}

/// Checks the derivative along a random direction of every tensor.
fn check(program: ModelProgram) {
    let fixture = Fixture::new(program);
    let layout = &fixture.program.layout;
    let (_, gradient) = fixture.evaluate(&fixture.parameters);
    for (number, tensor) in layout.tensors().iter().enumerate() {
        for agent in 0..AGENTS {
            let start = agent * layout.stride() + tensor.offset;
            let direction = random(100 + number as u32, tensor.words());
            let at = |step: f64| {
                let mut moved = fixture.parameters.clone();
                moved[start..].iter_mut().zip(&direction).for_each(|(word, d)| *word += step * d);
                fixture.evaluate(&moved).0
            };
            let measured = (at(DIFFERENCE) - at(-DIFFERENCE)) / (2.0 * DIFFERENCE);
            let derived: f64 = gradient[start..].iter().zip(&direction).map(|(g, d)| g * d).sum();
            let error = (measured - derived).abs() / (measured.abs() + 1e-3);
            assert!(error < 1e-5, "{}: measured {measured}, derived {derived}", tensor.name);
        }
    }
}

/// Checks a layer between two linear layers, so that its input and output gradients matter. Sizes are those of samples, of the
/// numbers before the first layer, and of those before and behind the layer.
fn check_layer(
    [samples, inputs, width, outputs]: [usize; 4],
    layer: impl FnOnce(&mut ProgramBuilder, View) -> View,
) {
    let mut builder = ProgramBuilder::new(Input::Features { width: inputs }, samples, 3);
    let x = builder.features();
    let x = linear(&mut builder, x, "before", [samples, inputs, width], Function::Identity);
    let x = layer(&mut builder, x);
    let logits = cross_entropy(&mut builder, x, "head", outputs);
    check(builder.finish(logits));
}

#[test]
fn loss_with_sample_weights() {
    check(Model::softmax(4, 3).program(5));
}

#[test]
fn linear_with_every_function() {
    for function in [Function::Identity, Function::Relu, Function::Tanh, Function::Gelu] {
        check_layer([3, 4, 5, 6], |builder, x| linear(builder, x, "layer", [3, 5, 6], function));
    }
}

#[test]
fn convolutions() {
    for kernel in [1, 3, 5] {
        let geometry = Geometry { images: 2, height: 4, width: 4, channels: 3, kernel };
        check_layer([2, 6, 48, 64], |builder, x| conv2d(builder, x, "layer", geometry, 4, Function::Relu));
    }
}

#[test]
fn pooling() {
    for (size, outputs) in [(2, 12), (4, 3)] {
        let squares = Squares { images: 2, height: 4, width: 4, channels: 3, size };
        check_layer([2, 6, 48, outputs], |builder, x| pool(builder, x, squares));
    }
}

#[test]
fn attention_among_pixels() {
    let (epsilon, dropout, distance_bias) = (1e-5, 0.0, None);
    let (samples, sequence, width, heads, inner) = (2, 6, 4, 2, 5);
    let shape = TransformerShape { samples, sequence, width, heads, inner, epsilon, dropout, distance_bias };
    check_layer([2, 3, 24, 24], |builder, x| transformer(builder, x, "layer", shape));
}

#[test]
fn layer_norm() {
    check_layer([4, 3, 6, 6], |builder, x| norm(builder, x, "layer", [4, 6], 1e-5));
}

#[test]
fn dropout_repeats_its_mask_on_the_way_back() {
    check_layer([4, 3, 8, 8], |builder, x| dropout(builder, x, 32, 0.3));
}

#[test]
fn whole_image_models() {
    check(Model::mlp(6, 5, 3).program(4));
    check(Model::lenet(8, 1, 3).program(2));
}

fn tiny_encoder() -> BertEncoder {
    BertEncoder {
        tables: Tables { vocabulary: 9, positions: 8, types: 2, first_position: 0 },
        width: 8,
        heads: 2,
        inner: 12,
        layers: 2,
        epsilon: 1e-12,
        dropout: 0.0,
        distance_buckets: None,
        sequence: 6,
        classes: 2,
    }
}

#[test]
fn bert_with_and_without_dropout() {
    check(tiny_encoder().program(2));
    check(BertEncoder { dropout: 0.2, ..tiny_encoder() }.program(2));
}

#[test]
fn mpnet() {
    let tables = Tables { vocabulary: 9, positions: 8, types: 0, first_position: 2 };
    check(BertEncoder { tables, distance_buckets: Some(8), ..tiny_encoder() }.program(2));
}
