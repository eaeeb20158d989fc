//! The packed parameter vector of one agent, with a name for every tensor in it.

use fabswarm_shared::rng::{Purpose, Stream};

use crate::real::Real;

/// Words every tensor starts at a multiple of, so that 16-byte (bf16) and 32-byte (f32) loads stay aligned.
const TENSOR_ALIGNMENT: usize = 8;
/// Words the distance from one agent to the next is a multiple of.
const AGENT_ALIGNMENT: usize = 64;

/// How a tensor is filled before training.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Start {
    /// All words equal.
    Constant(f64),
    /// Uniform in `[-bound, bound)`.
    Uniform(f64),
}

/// One named tensor inside the packed vector.
#[derive(Clone, Debug, PartialEq)]
pub struct ParameterTensor {
    /// The name, as in PyTorch.
    pub name: String,
    pub shape: Vec<usize>,
    /// The word at which it begins.
    pub offset: usize,
    /// The values before training.
    pub start: Start,
}

impl ParameterTensor {
    /// Words the tensor holds.
    pub fn words(&self) -> usize {
        self.shape.iter().product()
    }
}

/// Where each tensor of a model lies in its packed vector.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Layout {
    tensors: Vec<ParameterTensor>,
    end: usize,
}

impl Layout {
    /// Appends a tensor and returns its offset.
    pub fn add(&mut self, name: impl Into<String>, shape: &[usize], start: Start) -> usize {
        let tensor = ParameterTensor { name: name.into(), shape: shape.to_vec(), offset: self.end, start };
        let offset = self.end;
        self.end = (offset + tensor.words()).next_multiple_of(TENSOR_ALIGNMENT);
        self.tensors.push(tensor);
        offset
    }

    pub fn tensors(&self) -> &[ParameterTensor] {
        &self.tensors
    }

    pub fn tensor(&self, name: &str) -> Option<&ParameterTensor> {
        self.tensors.iter().find(|tensor| tensor.name == name)
    }

    /// Parameters of the model, without padding.
    pub fn count(&self) -> usize {
        self.tensors.iter().map(ParameterTensor::words).sum()
    }

    /// Distance in words from one agent's vector to the next.
    pub fn stride(&self) -> usize {
        self.end.next_multiple_of(AGENT_ALIGNMENT)
    }

    /// A start vector drawn from `seed`, padding zero. Every agent starts from the same one.
    pub fn start<S: Real>(&self, seed: u64) -> Vec<S> {
        let mut packed = vec![S::ZERO; self.stride()];
        for (number, tensor) in self.tensors.iter().enumerate() {
            let words = &mut packed[tensor.offset..tensor.offset + tensor.words()];
            match tensor.start {
                Start::Constant(value) => words.fill(S::from_f64(value)),
                Start::Uniform(bound) => {
                    let mut stream = Stream::new(seed, number as u32, 0, Purpose::Problem);
                    words.fill_with(|| S::from_f64((2.0 * stream.uniform_f64() - 1.0) * bound));
                }
            }
        }
        packed
    }
}
