//! Requirements of the batched engine on a device, and the two devices there are.
//!
//! A device owns buffers, runs a program for all agents at once, and mixes packed state. Calls may only enqueue work; reading
//! waits for it. [`Device::replay`] lets a device record a round once and replay it.

pub mod cpu;
pub mod cuda;
pub mod shared;

use std::fmt::{Debug, Display};
use std::ops::Range;

use fabswarm_diagnostic::Diagnostic;
use fabswarm_shared::scalar::Scalar as _;

use crate::mixing::MixingMatrix;
use crate::program::ModelProgram;
use crate::real::Real;

/// The result of functions that fail when the device does.
pub type Result<T> = std::result::Result<T, Diagnostic>;

fn no_cuda(what: impl Display) -> Diagnostic {
    let remedy = "run with `--device cpu`, or `--device auto` to take CUDA only where it works";
    Diagnostic::new(format!("no CUDA device: {what}"), remedy)
}

fn cuda_failed(doing: &str, cause: impl Display) -> Diagnostic {
    let remedy = "see with nvidia-smi that the GPU is there and not full";
    Diagnostic::new(format!("CUDA failed while {doing}: {cause}"), remedy)
}

fn not_shared(what: impl Display) -> Diagnostic {
    let remedy = "let parcels go over the network, with `--shared-memory false`";
    Diagnostic::new(format!("no memory is shared between hosts of this machine: {what}"), remedy)
}

/// Memory that a run uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryUse {
    /// The most bytes of physical memory that this process had at once.
    PeakResident(u64),
    /// The most bytes of a GPU's own memory that this process had allocated for buffers at once; what other processes use
    /// does not count.
    OnDevice(u64),
}

/// Neighbouring agents that one host computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Block {
    pub first: usize,
    pub agents: usize,
}

impl Block {
    /// All agents of a swarm.
    pub const fn whole(agents: usize) -> Self {
        Block { first: 0, agents }
    }

    /// Nobody: the block of a host that only looks on.
    pub const NONE: Self = Block { first: 0, agents: 0 };

    pub fn range(self) -> Range<usize> {
        self.first..self.first + self.agents
    }

    pub fn has(self, agent: usize) -> bool {
        self.range().contains(&agent)
    }
}

/// How state of all agents is packed: `groups` (y, z) of `agents` vectors, `stride` words apart. There is room for every agent of
/// the swarm; those of `own` are computed here, and of the others only what they send is ever written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packed {
    pub groups: usize,
    pub agents: usize,
    pub stride: usize,
    pub own: Block,
}

impl Packed {
    /// Vectors of agents that are all computed here.
    pub const fn whole(groups: usize, agents: usize, stride: usize) -> Self {
        Packed { groups, agents, stride, own: Block::whole(agents) }
    }

    pub fn words(self) -> usize {
        self.groups * self.agents * self.stride
    }

    /// The numbers of an agent's vectors, one of each group.
    pub(crate) fn vectors_of(self, agent: usize) -> impl Iterator<Item = usize> {
        (0..self.groups).map(move |group| group * self.agents + agent)
    }

    /// Whether the vector of that number is computed here.
    pub fn is_own(self, vector: usize) -> bool {
        self.own.has(vector % self.agents)
    }
}

/// All samples of a run, of all agents, in the device's memory.
#[derive(Debug)]
pub struct DeviceDataset<D: Device> {
    /// Words (or tokens) of one sample.
    pub width: usize,
    pub samples: usize,
    /// `[samples, width]`, for models of features.
    pub features: Option<D::Reals>,
    /// `[samples, width]`, for models of text.
    pub tokens: Option<D::Indices>,
    /// Real tokens of each sample, for models of text.
    pub lengths: Option<D::Indices>,
    pub labels: D::Indices,
}

/// A sample number that stands for no sample: its row is zero and so is its weight.
pub const NO_SAMPLE: u32 = u32::MAX;

/// Which samples each agent takes this round, and with what weight.
#[derive(Debug)]
pub struct BatchSchedule<D: Device> {
    /// Samples of one agent.
    pub samples: usize,
    /// How many of them are of the upper level; they come first.
    pub upper: usize,
    /// `[agents, samples]` numbers of samples, or [`NO_SAMPLE`].
    pub rows: D::Indices,
    /// `[agents, samples]` weights before the learned ones.
    pub weights: D::Reals,
    /// Low and high word of the seed, then the round: what the masks of dropout are drawn from.
    pub dropout_key: D::Indices,
}

/// The gradient that a tracker follows.
#[derive(Debug)]
pub struct Gradient<'a, D: Device> {
    /// This round's, all but the regulariser's.
    pub fresh: &'a mut D::Reals,
    /// The last round's.
    pub last: &'a D::Reals,
    /// The decisions, and the strength of ½‖v‖² for each of their vectors.
    pub regulariser: Option<(&'a D::Reals, &'a D::Reals)>,
}

/// The vectors that a round mixes in one pass over memory.
#[derive(Debug)]
pub struct RoundMix<'a, D: Device> {
    pub v: &'a mut D::Reals,
    /// t; where the round before is open, u = t − d.
    pub t: &'a mut D::Reals,
    /// The last round's gradient; where that round is open, without its regulariser.
    pub d: &'a D::Reals,
    /// The strength of ½‖v‖² for each vector.
    pub strengths: &'a D::Reals,
    pub is_open: bool,
    /// m and β.
    pub momentum: Option<(&'a mut D::Reals, f64)>,
    /// η, one per group.
    pub steps: [f64; 2],
    /// Whether agents step before they average.
    pub adapts_first: bool,
}

/// How decisions descend.
#[derive(Debug)]
pub struct Descent<'a, D: Device> {
    /// η, one per group.
    pub steps: [f64; 2],
    /// c, one per agent; 1 where there are none.
    pub factors: Option<&'a D::Reals>,
    /// 0 for agents that are down and do not descend; all are up where there is nothing.
    pub awake: Option<&'a D::Indices>,
}

/// Broadcasts of agents in the last rounds, for frames that arrive late.
#[derive(Debug)]
pub struct BroadcastHistory<D: Device> {
    /// Rounds it goes back, this one included.
    pub depth: usize,
    /// `[depth, groups, agents, stride]`: decisions as they were sent at the start of a round, at its number modulo the depth.
    pub v: D::Reals,
    /// Trackers in the same order; zero where an agent was down.
    pub t: D::Reals,
}

impl<D: Device> BroadcastHistory<D> {
    /// Index of what was broadcast of a vector `age` rounds before `round`.
    pub(crate) fn place(&self, packed: Packed, round: u32, age: usize, vector: usize) -> usize {
        let slot = (round as usize + self.depth - age) % self.depth;
        (slot * packed.groups * packed.agents + vector) * packed.stride
    }
}

/// The vectors that agents receive in a round, for a swarm with a ledger.
#[derive(Debug)]
pub struct LedgerReception<D: Device> {
    /// The round, one word: what a [`BroadcastHistory`] is indexed by.
    pub round: D::Indices,
    /// `[agents, agents]`: 0 where receiver i gets nothing new from sender j, else 1 plus the age in rounds of what it gets.
    pub ages: D::Indices,
    /// `[agents]`: 0 while an agent is down, else 1.
    pub awake: D::Indices,
    /// `[agents, agents]`: what sender j sets aside for receiver i of its tracker, and at i = j what it keeps.
    pub shares: D::Reals,
}

impl<D: Device> LedgerReception<D> {
    /// Nothing received yet and every agent up, with the given `[agents, agents]` shares.
    ///
    /// # Errors
    /// When the device has too little memory.
    pub fn new(device: &D, agents: usize, shares: Vec<f64>) -> Result<Self> {
        let mut reception = Self {
            round: device.indices(1)?,
            ages: device.indices(agents * agents)?,
            awake: device.indices(agents)?,
            shares: device.reals(agents * agents)?,
        };
        let shares: Vec<D::Scalar> = shares.into_iter().map(D::Scalar::from_f64).collect();
        device.write(&mut reception.shares, 0, &shares)?;
        device.write_indices(&mut reception.awake, &vec![1; agents])?;
        Ok(reception)
    }
}

/// Where and how all agents of a host are computed.
pub trait Device: Debug + Sized {
    /// The scalar state is read and written in.
    type Scalar: Real;
    type Reals: Debug;
    type Indices: Debug;
    /// A program made ready for all agents: its batch, losses and intermediate buffers.
    type Pass: Debug;
    /// Mixing weights in the device's memory.
    type Mixing: Debug;

    /// The device's name, for people.
    fn name(&self) -> String;

    /// Bytes of memory not in use, where that is known.
    fn free_bytes(&self) -> Option<u64>;

    /// Memory that this process uses, where that is known.
    fn memory_use(&self) -> Option<MemoryUse>;

    /// Granularity of allocation in bytes: a run takes a multiple of it.
    fn piece_bytes(&self) -> u64;

    /// Bytes that `program` takes for `agents` agents in this device's precision.
    fn pass_bytes(&self, program: &ModelProgram, agents: usize) -> u64;

    /// Bytes per word of decisions, with a copy in narrow precision where there is one.
    fn decision_bytes(&self) -> u64;

    /// Words of zero.
    fn reals(&self, words: usize) -> Result<Self::Reals>;

    /// Words of zero that matrix products will read as parameters.
    fn decisions(&self, words: usize) -> Result<Self::Reals>;

    fn indices(&self, words: usize) -> Result<Self::Indices>;

    fn write(&self, to: &mut Self::Reals, offset: usize, words: &[Self::Scalar]) -> Result<()>;

    /// Appends words of `from` to `to`.
    fn append(
        &self,
        from: &Self::Reals,
        offset: usize,
        words: usize,
        to: &mut Vec<Self::Scalar>,
    ) -> Result<()>;

    fn read(&self, from: &Self::Reals, offset: usize, words: usize) -> Result<Vec<Self::Scalar>> {
        let mut to = Vec::with_capacity(words);
        self.append(from, offset, words, &mut to)?;
        Ok(to)
    }

    /// Copies words of one buffer to the beginning of another.
    fn copy_words(&self, from: &Self::Reals, offset: usize, words: usize, to: &mut Self::Reals)
    -> Result<()>;

    /// `to ← to + scale · from`, from the beginning of `to` on.
    fn add_scaled(
        &self,
        from: &Self::Reals,
        offset: usize,
        words: usize,
        scale: Self::Scalar,
        to: &mut Self::Reals,
    ) -> Result<()>;

    fn write_indices(&self, to: &mut Self::Indices, words: &[u32]) -> Result<()>;

    /// Makes `program` ready for `agents` agents.
    fn pass(&self, program: &ModelProgram, agents: usize) -> Result<Self::Pass>;

    /// Memory for the weights of a round among `agents`, of which those of `own` are computed here.
    fn mixing(&self, agents: usize, own: Block) -> Result<Self::Mixing>;

    fn write_mixing(&self, to: &mut Self::Mixing, mixing: &MixingMatrix) -> Result<()>;

    /// Takes the last samples of each agent's schedule into the pass, as many as it has. A weight is the schedule's: times
    /// `upper_sign` for samples of the upper level, and times the sigmoid of the sample's own logit for others, when logits are
    /// given.
    fn load(
        &self,
        pass: &mut Self::Pass,
        data: &DeviceDataset<Self>,
        schedule: &BatchSchedule<Self>,
        upper_sign: f64,
        logits: Option<&Self::Reals>,
    ) -> Result<()>;

    /// Runs every pass on its group of `parameters`: pass 0 on group 0, and so on. With a gradient both ways, else forward only.
    fn run(
        &self,
        passes: &mut [&mut Self::Pass],
        parameters: &Self::Reals,
        gradient: Option<&mut Self::Reals>,
        packed: Packed,
        schedule: &BatchSchedule<Self>,
    ) -> Result<()>;

    /// `v ← A v − η t`, with one step per group; `v ← A v` without t.
    fn pull(
        &self,
        v: &mut Self::Reals,
        packed: Packed,
        rows: &Self::Mixing,
        descent: Option<(&Self::Reals, [f64; 2])>,
    ) -> Result<()>;

    /// `v ← v − η c t`.
    fn descend(
        &self,
        v: &mut Self::Reals,
        t: &Self::Reals,
        packed: Packed,
        descent: &Descent<'_, Self>,
    ) -> Result<()>;

    /// `to ← from`, for decisions.
    fn copy(&self, from: &Self::Reals, to: &mut Self::Reals, packed: Packed) -> Result<()>;

    /// `fresh ← fresh + keep (last − again)`, where `again` lacks the regulariser's part of a gradient.
    fn recur(
        &self,
        gradient: Gradient<'_, Self>,
        again: &Self::Reals,
        packed: Packed,
        keep: f64,
    ) -> Result<()>;

    /// `m ← β m + t`: with momentum, m is what [`Device::pull`] and [`Device::pull_received`] descend along in place of t. Vectors of
    /// an agent that is down do not change; without a `reception` all are up.
    fn accumulate(
        &self,
        m: &mut Self::Reals,
        t: &Self::Reals,
        packed: Packed,
        reception: Option<&LedgerReception<Self>>,
        momentum: f64,
    ) -> Result<()>;

    /// `fresh ← fresh + c v` where there is a regulariser, then `t ← B t + fresh − last`.
    fn track(
        &self,
        t: &mut Self::Reals,
        gradient: Gradient<'_, Self>,
        packed: Packed,
        push: &Self::Mixing,
    ) -> Result<()>;

    /// Pull, and push without the gradient that is not there yet: in one pass, where [`Device::pull`] and [`Device::track`] are two.
    /// Where the last round is open it is closed first, `d ← d + c v` and `t ← u + d`, on the way. Then `m ← β m + t`,
    /// `v ← A v − η m`, or `v ← A (v − η m)` of agents that adapt first, and `u ← B t − d`, which lies where t did: a new gradient in the place of d makes an open round of it.
    fn mix_round(
        &self,
        state: RoundMix<'_, Self>,
        packed: Packed,
        pull: &Self::Mixing,
        push: &Self::Mixing,
    ) -> Result<()>;

    /// Closes an open round: `d ← d + c v`, then `t ← t + d`.
    fn close_round(
        &self,
        t: &mut Self::Reals,
        d: &mut Self::Reals,
        regulariser: (&Self::Reals, &Self::Reals),
        packed: Packed,
    ) -> Result<()>;

    /// Records what every agent that is awake broadcasts in the round.
    fn record_broadcast(
        &self,
        history: &mut BroadcastHistory<Self>,
        v: &Self::Reals,
        t: &Self::Reals,
        packed: Packed,
        reception: &LedgerReception<Self>,
    ) -> Result<()>;

    /// [`Device::pull`] with what agents receive in place of weights: the mean of an agent's own decisions and those received.
    /// Decisions of an agent that is down do not change.
    fn pull_received(
        &self,
        v: &mut Self::Reals,
        packed: Packed,
        history: &BroadcastHistory<Self>,
        reception: &LedgerReception<Self>,
        descent: Option<(&Self::Reals, [f64; 2])>,
    ) -> Result<()>;

    /// [`Device::track`] with a broadcast ledger in place of push weights. `mass`, `[groups, agents, agents − 1, stride]`, is
    /// what waits for each receiver from each other agent. Trackers and gradients of an agent that is down do not change.
    fn track_by_ledger(
        &self,
        t: &mut Self::Reals,
        mass: &mut Self::Reals,
        gradient: Gradient<'_, Self>,
        packed: Packed,
        history: &BroadcastHistory<Self>,
        reception: &LedgerReception<Self>,
    ) -> Result<()>;

    /// Steps the logit of every sample of the lower level: `ψ ← ψ − step · w σ'(ψ) (ℓ(y) − ℓ(z))`, with the losses of the passes of
    /// y and z. With momentum, m of these samples and β: first `m ← β m + w σ'(ψ) (ℓ(y) − ℓ(z))`, then `ψ ← ψ − step · m`.
    fn step_logits(
        &self,
        logits: &mut Self::Reals,
        schedule: &BatchSchedule<Self>,
        yz: [&Self::Pass; 2],
        step: f64,
        momentum: Option<(&mut Self::Reals, f64)>,
    ) -> Result<()>;

    /// `gradient[i] ← scale · (‖y_i‖² − ‖z_i‖²)` at the first word of each agent's vector of `x_stride` words.
    fn norm_gap(
        &self,
        v: &Self::Reals,
        packed: Packed,
        gradient: &mut Self::Reals,
        x_stride: usize,
        scale: f64,
    ) -> Result<()>;

    /// Keeps every agent's first word of x at zero or more, and sets the decay of its y and z to `scale · x`.
    fn decay_from(
        &self,
        x: &mut Self::Reals,
        x_stride: usize,
        packed: Packed,
        decay: &mut Self::Reals,
        scale: f64,
    ) -> Result<()>;

    /// Loss of every sample of the pass, `[agents, samples]`.
    fn losses(&self, pass: &Self::Pass) -> Result<Vec<Self::Scalar>>;

    /// 1 for every sample of the pass whose label has the largest logit.
    fn hits(&self, pass: &Self::Pass) -> Result<Vec<Self::Scalar>>;

    /// Runs `record`, or repeats what it enqueued when it ran before under the same `key`. Whatever changes from one run to the
    /// next must lie in the device's memory.
    fn replay(&mut self, key: usize, record: impl FnOnce(&Self) -> Result<()>) -> Result<()>;

    /// Waits for everything that was enqueued.
    fn wait(&self) -> Result<()>;
}
