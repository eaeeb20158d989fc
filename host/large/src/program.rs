//! A model's forward and backward pass as a list of operations on one agent.
//!
//! Operations are written for one agent; a device decides how many agents share a launch. Because a program is plain data,
//! its memory is known before anything is allocated, and one program runs on every device and in every precision.

pub(crate) mod arena;
pub(crate) mod op;

pub(crate) use op::{Function, Gemm, Geometry, Op, Squares};

use crate::parameters::{Layout, Start};

/// The form of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// A row of numbers (an image is stored height, width, channel).
    Features {
        /// Numbers of a sample.
        width: usize,
    },
    /// A row of token numbers, of which the first few are real and the rest padding.
    Tokens {
        /// Tokens of a sample, padding included.
        sequence: usize,
    },
}

impl Input {
    /// Words (or tokens) of one sample.
    pub fn width(self) -> usize {
        match self {
            Input::Features { width } => width,
            Input::Tokens { sequence } => sequence,
        }
    }
}

/// Names an intermediate buffer of one agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Id(pub(crate) usize);

/// Which of an agent's memories a [`View`] looks into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MemorySpace {
    /// The packed parameters.
    Parameters,
    /// The packed gradient.
    Gradient,
    /// The rows of the batch, when the input is features.
    Features,
    /// An intermediate buffer.
    Buffer(Id),
}

/// A place and where to begin in it, in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct View {
    pub place: MemorySpace,
    pub offset: usize,
}

impl View {
    pub(crate) fn parameters(offset: usize) -> Self {
        View { place: MemorySpace::Parameters, offset }
    }

    pub(crate) fn gradient(offset: usize) -> Self {
        View { place: MemorySpace::Gradient, offset }
    }

    /// The same place, `words` further on.
    pub(crate) fn after(self, words: usize) -> Self {
        View { offset: self.offset + words, ..self }
    }
}

/// The precision a buffer needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BufferPrecision {
    /// Whatever the device computes activations in.
    Activation,
    /// Full precision even when activations are bf16: statistics of a norm.
    Exact,
}

/// An intermediate buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Buffer {
    pub words: usize,
    pub precision: BufferPrecision,
}

/// The passes of one model for a fixed number of samples.
#[derive(Clone, Debug)]
pub struct ModelProgram {
    /// Where each parameter lies.
    pub layout: Layout,
    /// The form of a sample.
    pub input: Input,
    pub samples: usize,
    pub classes: usize,
    pub(crate) buffers: Vec<Buffer>,
    /// From the batch to losses and the gradient of the logits.
    pub(crate) forward: Vec<Op>,
    /// From there to the gradient of every parameter.
    pub(crate) backward: Vec<Op>,
}

impl ModelProgram {
    /// Floating-point operations of all matrix products of one agent's forward and backward pass.
    pub fn matrix_flops(&self) -> f64 {
        self.forward
            .iter()
            .chain(&self.backward)
            .map(|op| match op {
                Op::Gemm(g) => 2.0 * g.count() as f64 * (g.m * g.n) as f64 * g.k as f64,
                _ => 0.0,
            })
            .sum()
    }
}

/// Lays the backward operations of a layer for the gradient of its output, which they may overwrite. Returns the gradient of its
/// input, or nothing where that is not wanted: the first layer of a model needs none.
type WayBack = Box<dyn FnOnce(&mut ProgramBuilder, View, bool) -> Option<View>>;

/// Collects operations while layers are laid down.
pub(crate) struct ProgramBuilder {
    program: ModelProgram,
    is_backward: bool,
    prefix: String,
    dropout_layers: u32,
    /// One for each layer, in the order of the way there.
    ways_back: Vec<WayBack>,
}

impl ProgramBuilder {
    pub(crate) fn new(input: Input, samples: usize, classes: usize) -> Self {
        ProgramBuilder {
            program: ModelProgram {
                layout: Layout::default(),
                input,
                samples,
                classes,
                buffers: Vec::new(),
                forward: Vec::new(),
                backward: Vec::new(),
            },
            is_backward: false,
            prefix: String::new(),
            dropout_layers: 0,
            ways_back: Vec::new(),
        }
    }

    pub(crate) fn samples(&self) -> usize {
        self.program.samples
    }

    pub(crate) fn classes(&self) -> usize {
        self.program.classes
    }

    /// The batch, as rows of features.
    pub(crate) fn features(&self) -> View {
        View { place: MemorySpace::Features, offset: 0 }
    }

    /// Names of parameters added inside `lay` begin with `name` and a dot.
    pub(crate) fn within<T>(&mut self, name: &str, lay: impl FnOnce(&mut Self) -> T) -> T {
        let outer = self.prefix.len();
        self.prefix.push_str(name);
        self.prefix.push('.');
        let result = lay(self);
        self.prefix.truncate(outer);
        result
    }

    /// Adds a parameter tensor and returns its offset.
    pub(crate) fn parameter(&mut self, name: &str, shape: &[usize], start: Start) -> usize {
        self.program.layout.add(format!("{}{name}", self.prefix), shape, start)
    }

    /// Adds a buffer in the device's activation precision.
    pub(crate) fn buffer(&mut self, words: usize) -> View {
        self.any_buffer(words, BufferPrecision::Activation)
    }

    /// Adds a buffer in full precision.
    pub(crate) fn exact_buffer(&mut self, words: usize) -> View {
        self.any_buffer(words, BufferPrecision::Exact)
    }

    fn any_buffer(&mut self, words: usize, precision: BufferPrecision) -> View {
        self.program.buffers.push(Buffer { words, precision });
        View { place: MemorySpace::Buffer(Id(self.program.buffers.len() - 1)), offset: 0 }
    }

    /// A number no other dropout layer of the model has.
    pub(crate) fn dropout_layer(&mut self) -> u32 {
        self.dropout_layers += 1;
        self.dropout_layers
    }

    pub(crate) fn push(&mut self, op: Op) {
        if self.is_backward { &mut self.program.backward } else { &mut self.program.forward }.push(op);
    }

    /// Ends a layer with what lays its backward operations.
    pub(crate) fn back_by(
        &mut self,
        way_back: impl FnOnce(&mut ProgramBuilder, View, bool) -> Option<View> + 'static,
    ) {
        self.ways_back.push(Box::new(way_back));
    }

    /// Lays the backward operations of all layers, the last layer first: `d` is the gradient of its output.
    pub(crate) fn finish(mut self, d: View) -> ModelProgram {
        self.is_backward = true;
        let mut gradient = Some(d);
        for (depth, way_back) in std::mem::take(&mut self.ways_back).into_iter().enumerate().rev() {
            gradient = gradient.and_then(|d| way_back(&mut self, d, depth > 0));
        }
        self.program
    }
}
