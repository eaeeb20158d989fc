//! Requirements of the batched engine on a device, and the two devices there are.
//!
//! A device owns buffers, runs a program for all agents at once, and mixes packed state. Calls may only enqueue work; reading
//! waits for it. [`Device::replay`] lets a device record a round once and replay it.

pub mod cpu;
pub mod cuda;
pub mod shared;
mod state;

use std::fmt::{Debug, Display};

use fabswarm_diagnostic::Diagnostic;

pub use self::state::{
    BatchSchedule, Block, BroadcastHistory, Descent, DeviceDataset, Gradient, LedgerReception, NO_SAMPLE,
    Packed, RoundMix, X_STRIDE,
};
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

/// Where and how all agents of a host are computed.
pub trait Device: Debug + Sized {
    /// The scalar state is read and written in.
    type Scalar: Real;
    /// Words of state in its memory.
    type Reals: Debug;
    /// Whole numbers in its memory.
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

    /// Whole numbers, all zero.
    fn indices(&self, words: usize) -> Result<Self::Indices>;

    /// A buffer of these words.
    fn reals_of(&self, words: &[Self::Scalar]) -> Result<Self::Reals> {
        let mut reals = self.reals(words.len())?;
        self.write(&mut reals, 0, words)?;
        Ok(reals)
    }

    /// A buffer of these whole numbers.
    fn indices_of(&self, words: &[u32]) -> Result<Self::Indices> {
        let mut indices = self.indices(words.len())?;
        self.write_indices(&mut indices, words)?;
        Ok(indices)
    }

    /// Writes words from `offset` on.
    fn write(&self, to: &mut Self::Reals, offset: usize, words: &[Self::Scalar]) -> Result<()>;

    /// Appends words of `from` to `to`.
    fn append(
        &self,
        from: &Self::Reals,
        offset: usize,
        words: usize,
        to: &mut Vec<Self::Scalar>,
    ) -> Result<()>;

    /// Reads words from `offset` on.
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

    /// Writes whole numbers from the beginning on.
    fn write_indices(&self, to: &mut Self::Indices, words: &[u32]) -> Result<()>;

    /// Makes `program` ready for `agents` agents.
    fn pass(&self, program: &ModelProgram, agents: usize) -> Result<Self::Pass>;

    /// Memory for the weights of a round among `agents`, of which those of `own` are computed here.
    fn mixing(&self, agents: usize, own: Block) -> Result<Self::Mixing>;

    /// Writes the weights of a round.
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

    /// `m ← β m + t`: with momentum, m is what [`Device::pull`] and [`Device::pull_by_ledger`] descend along in place of t. Vectors of
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

    /// Records what every agent that is awake broadcasts in the round, v and t, then does [`Device::pull`] with what agents receive
    /// in place of weights: the mean of an agent's own decisions and those received. Decisions of an agent that is down do not change.
    fn pull_by_ledger(
        &self,
        v: &mut Self::Reals,
        t: &Self::Reals,
        history: &mut BroadcastHistory<Self>,
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

    /// `gradient[i] ← scale · (‖y_i‖² − ‖z_i‖²)` at the first word of each agent's vector of [`X_STRIDE`] words.
    fn norm_gap(&self, v: &Self::Reals, packed: Packed, gradient: &mut Self::Reals, scale: f64)
    -> Result<()>;

    /// Keeps every agent's first word of x at zero or more, and sets the decay of its y and z to `scale · x`.
    fn decay_from(
        &self,
        x: &mut Self::Reals,
        packed: Packed,
        decay: &mut Self::Reals,
        scale: f64,
    ) -> Result<()>;

    /// The loss of every sample of the pass, `[agents, samples]`, and 1 for each whose label has the largest logit.
    fn losses_and_hits(&self, pass: &Self::Pass) -> Result<[Vec<Self::Scalar>; 2]>;

    /// Runs `record`, or repeats what it enqueued when it ran before under the same `key`. Whatever changes from one run to the
    /// next must lie in the device's memory.
    fn replay(&mut self, key: usize, record: impl FnOnce(&Self) -> Result<()>) -> Result<()>;

    /// Waits for everything that was enqueued.
    fn wait(&self) -> Result<()>;
}
