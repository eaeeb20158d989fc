//! How the state of all agents is packed, and what a round takes of it.

use std::ops::Range;

use fabswarm_shared::scalar::Scalar as _;

use super::{Device, Result};

/// Neighbouring agents that one host computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Block {
    /// The number of the first agent.
    pub first: usize,
    /// The number of agents.
    pub agents: usize,
}

impl Block {
    /// All agents of a swarm.
    pub const fn whole(agents: usize) -> Self {
        Block { first: 0, agents }
    }

    /// Nobody: the block of a host that only looks on.
    pub const NONE: Self = Block { first: 0, agents: 0 };

    /// The numbers of the agents.
    pub fn range(self) -> Range<usize> {
        self.first..self.first + self.agents
    }

    /// Whether the agent is one of them.
    pub fn has(self, agent: usize) -> bool {
        self.range().contains(&agent)
    }
}

/// How state of all agents is packed: `groups` (y, z) of `agents` vectors, `stride` words apart. There is room for every agent of
/// the swarm; those of `own` are computed here, and of the others only what they send is ever written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packed {
    /// Groups of vectors: y, or y and z.
    pub groups: usize,
    /// Agents of the swarm.
    pub agents: usize,
    /// Words from one vector to the next.
    pub stride: usize,
    /// The agents that are computed here.
    pub own: Block,
}

impl Packed {
    /// Vectors of agents that are all computed here.
    pub const fn whole(groups: usize, agents: usize, stride: usize) -> Self {
        Packed { groups, agents, stride, own: Block::whole(agents) }
    }

    /// Words of all vectors.
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
    /// The number of samples.
    pub samples: usize,
    /// `[samples, width]`, for models of features.
    pub features: Option<D::Reals>,
    /// `[samples, width]`, for models of text.
    pub tokens: Option<D::Indices>,
    /// Real tokens of each sample, for models of text.
    pub lengths: Option<D::Indices>,
    /// The class of each sample.
    pub labels: D::Indices,
}

/// Distance in words between two agents' x when it is one shared number.
pub const X_STRIDE: usize = 4;

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

impl<D: Device> BatchSchedule<D> {
    /// No samples yet: room for `samples` of each agent, of which `upper` are of the upper level.
    ///
    /// # Errors
    /// When the device has too little memory.
    pub(crate) fn new(device: &D, agents: usize, samples: usize, upper: usize) -> Result<Self> {
        Ok(BatchSchedule {
            samples,
            upper,
            rows: device.indices(agents * samples)?,
            weights: device.reals(agents * samples)?,
            dropout_key: device.indices(3)?,
        })
    }
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
    /// The decisions.
    pub v: &'a mut D::Reals,
    /// t; where the round before is open, u = t − d.
    pub t: &'a mut D::Reals,
    /// The last round's gradient; where that round is open, without its regulariser.
    pub d: &'a D::Reals,
    /// The strength of ½‖v‖² for each vector.
    pub strengths: &'a D::Reals,
    /// Whether the round before is open: t has yet to be made of u.
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
    /// How the vectors of a round are packed.
    pub packed: Packed,
    /// Rounds it goes back, this one included.
    pub depth: usize,
    /// `[depth, groups, agents, stride]`: decisions as they were sent at the start of a round, at its number modulo the depth.
    pub v: D::Reals,
    /// Trackers in the same order; zero where an agent was down.
    pub t: D::Reals,
}

impl<D: Device> BroadcastHistory<D> {
    /// Nothing sent yet.
    ///
    /// # Errors
    /// When the device has too little memory.
    pub(crate) fn new(device: &D, packed: Packed, depth: usize) -> Result<Self> {
        let words = depth * packed.words();
        Ok(BroadcastHistory { packed, depth, v: device.reals(words)?, t: device.reals(words)? })
    }

    /// Index of what was broadcast of a vector `age` rounds before `round`.
    pub(crate) fn place(&self, round: u32, age: usize, vector: usize) -> usize {
        let slot = (round as usize + self.depth - age) % self.depth;
        (slot * self.packed.groups * self.packed.agents + vector) * self.packed.stride
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
        let shares: Vec<D::Scalar> = shares.into_iter().map(D::Scalar::from_f64).collect();
        Ok(LedgerReception {
            round: device.indices(1)?,
            ages: device.indices(agents * agents)?,
            awake: device.indices_of(&vec![1; agents])?,
            shares: device.reals_of(&shares)?,
        })
    }
}
