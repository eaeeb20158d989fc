//! FAB for all agents of a host at once, in the three forms the experiments need.
//!
//! One round (the paper's Algorithm 1, `fabswarm_shared::fab` for one agent):
//!
//! ```text
//! v ← A v − η t                          one launch for y and z of all agents; with momentum m ← β m + t and m in place of t
//! d⁺ = ∇L(x, y, z) on this round's samples   y and z side by side
//! t ← B t + d⁺ − d                       one launch
//! ```
//!
//! Where nothing stands between the two launches they are one pass over the state, before the gradient is taken: with u = B t − d
//! in the place of t, `t = u + d⁺` needs no pass of its own. The next round adds up what it reads anyway, and the regulariser's part
//! of d⁺ from the v that it reads. Until then the round is open ([`Device::mix_round`]), and one gradient is kept instead of two.
//!
//! Agents that adapt first send w = v − η m, and v ← A w. With the symmetric penalty z also takes the upper level's samples, with
//! the opposite sign, and x follows half of the gap between y and z.
//!
//! With a ledger, `A` and `B` are replaced by what each agent receives from whom, and how late: see `device/cpu/ledger.rs`.
//! Methods of one level may have push-sum weights in place of `A`: `fab/mixing/push_sum.rs` has their equations.
//!
//! # Why the round is written a second time
//!
//! `fabswarm_shared` steps one agent with slices of fixed size on one thread. Here the vectors of all agents are packed into one
//! buffer that may lie on a GPU, one launch does an equation for all agents at once, and the ledger keeps σ_j − ρ_ij itself
//! instead of its two ends. Functions on one agent's slices cannot be called on that layout, so the three equations are written
//! again: once per device, in `device/cpu/{mixing,ledger}.rs` and `device/cuda/{mixing,ledger}.cu`. They are held to the shared
//! functions by [`crate::conformance`]: [`follows_shared`](crate::conformance::follows_shared) compares with the functions of
//! `fabswarm_shared::fab`, [`follows_agents`](crate::conformance::follows_agents) with whole agents over a faulty air, and
//! [`mixing`](crate::conformance::mixing) every device with the CPU in f64. A change to an equation there is a change here.
//!
//! A sample's logit ψ belongs to one agent and never travels: mixed with nobody, its tracker is its gradient, and
//! `ψ ← ψ − η_x d_ψ` at the end of a round is what the next round's pull would do.

mod config;
mod evaluation;
mod exchange;
mod mixing;
mod parcel;
mod remote;
mod round_batch;
mod rounds;
mod state;
mod state_part;
mod vectors;

pub use config::{FabConfig, UpperLevel};
pub use evaluation::ModelScore;
pub use exchange::{Exchange, LedgerExchange, WeightExchange};
pub use mixing::ledger::Ledger;
pub use mixing::push_sum::{PushSumRule, PushSumWeights};
pub use parcel::ParcelPart;
pub(crate) use parcel::{ParcelRoute, ParcelSource};
pub use remote::RemoteHosts;
pub use round_batch::RoundBatch;
pub use state_part::{StatePart, VectorPart};
pub use vectors::TrackerImbalance;

use fabswarm_shared::scalar::Scalar as _;

use self::mixing::Mixing;
use self::remote::RemoteState;
use self::vectors::{ExchangedVectors, MomentumState, larger};
use crate::device::{BatchSchedule, Device, DeviceDataset, NO_SAMPLE, Packed, Result, X_STRIDE};
use crate::models::Model;

/// All agents of a host.
#[derive(Debug)]
pub struct Fab<D: Device> {
    device: D,
    model: Model,
    state: FabState<D>,
    /// Where the state of the others is read, by who watches over the run.
    elsewhere: Option<RemoteState<D::Scalar>>,
    /// The last round that was begun.
    round: u32,
    /// Whether only its first half was done.
    is_between: bool,
}

/// The vectors and buffers of the rounds.
#[derive(Debug)]
struct FabState<D: Device> {
    config: FabConfig,
    data: DeviceDataset<D>,
    schedule: BatchSchedule<D>,
    y: D::Pass,
    z: Option<D::Pass>,
    earlier: Option<EarlierEstimate<D>>,
    mixing: Mixing<D>,
    /// y, with z where there are two levels; then x, where it is exchanged.
    sets: Vec<ExchangedVectors<D>>,
    /// Strength of ‖w‖² for every vector of y and z.
    decay: D::Reals,
    /// Where samples have weights.
    logits: Option<SampleLogits<D>>,
}

/// The agents' estimate of the solution a round ago, and its gradient on the samples of this round.
#[derive(Debug)]
struct EarlierEstimate<D: Device> {
    v: D::Reals,
    gradient: D::Reals,
    /// How much of the last gradient is kept.
    kept: f64,
}

/// ψ of every sample of the dataset. With momentum, a sample's m changes in the rounds that draw it, as ψ does.
#[derive(Debug)]
struct SampleLogits<D: Device> {
    logits: D::Reals,
    momentum: Option<MomentumState<D>>,
}

impl<D: Device> Fab<D> {
    /// Agents that all start from `start`, a packed parameter vector, before their first gradient.
    ///
    /// # Errors
    /// When the device cannot hold them.
    pub fn new(
        device: D,
        model: &Model,
        config: FabConfig,
        data: DeviceDataset<D>,
        start: &[D::Scalar],
    ) -> Result<Self> {
        let FabConfig { own, validation_batch, training_batch, momentum, .. } = config;
        let samples = validation_batch + training_batch;
        let program = model.program(samples);
        let packed = config.packed(program.layout.stride());
        let pass_of = |samples| device.pass(&model.program(samples), own.agents);
        let z = config.is_bilevel().then(|| pass_of(config.z_batch())).transpose()?;
        let logits = match config.task {
            UpperLevel::Cleaning { .. } => Some(SampleLogits {
                logits: device.reals(data.samples)?,
                momentum: MomentumState::new(&device, momentum, data.samples)?,
            }),
            _ => None,
        };
        let earlier = match config.push_sum.and_then(PushSumRule::kept) {
            Some(kept) => {
                let (v, gradient) = (device.decisions(packed.words())?, device.reals(packed.words())?);
                Some(EarlierEstimate { v, gradient, kept })
            }
            None => None,
        };
        let steps = [config.steps[1], config.steps[2]];
        let v = device.decisions(packed.words())?;
        let mut lower = ExchangedVectors::new(&device, &config, packed, v, steps, config.mixes_at_once())?;
        lower.start(&device, start)?;
        let mut sets = vec![lower];
        if let UpperLevel::Tuning { start } = config.task {
            let packed = Packed { groups: 1, ..config.packed(X_STRIDE) };
            let v = device.reals(packed.words())?;
            let mut x = ExchangedVectors::new(&device, &config, packed, v, [config.steps[0]; 2], false)?;
            x.start(&device, &strength::<D>(start))?;
            sets.push(x);
        }
        let strength = match config.task {
            UpperLevel::Cleaning { regularisation } | UpperLevel::SingleLevel { regularisation } => {
                regularisation * config.lower_weight()
            }
            UpperLevel::Tuning { start } => 2.0 * start * config.lower_weight(),
        };
        let decay = device.reals_of(&vec![D::Scalar::from_f64(strength); packed.groups * packed.agents])?;
        let state = FabState {
            schedule: BatchSchedule::new(&device, own.agents, samples, validation_batch)?,
            y: device.pass(&program, own.agents)?,
            z,
            earlier,
            mixing: Mixing::new(&device, &config)?,
            sets,
            decay,
            logits,
            data,
            config,
        };
        Ok(Fab { device, model: model.clone(), state, elsewhere: None, round: 0, is_between: false })
    }

    /// The first gradient, `t = d = ∇L` at the start: one tracking step from trackers of zero, of which there is nothing to push.
    pub fn begin(&mut self, draw: &RoundBatch) -> Result<()> {
        self.write_draw(draw)?;
        self.state.load(&self.device)?;
        self.state.differentiate(&self.device, 0)?;
        self.state.track_gradients(&self.device, 0)?;
        self.state.sets[0].open();
        self.device.wait()
    }

    /// Which of the two gradients is that of the present round. Without trackers it is always the first: the other one stays
    /// zero, and a tracker that follows the difference is the gradient.
    fn parity(&self) -> usize {
        match self.state.config.push_sum {
            Some(rule) if !rule.has_trackers() => 0,
            _ => (self.round % 2) as usize,
        }
    }

    /// Opens a new epoch because `agent` has lost its memory: it restarts from `start`, its `samples` weigh what they did at
    /// first, every other agent's tracker is its gradient, nothing waits on a link, and every m is zero.
    pub fn forget(&mut self, agent: usize, start: &[D::Scalar], samples: &[u32]) -> Result<()> {
        let (parity, device) = (self.parity(), &self.device);
        let FabState { config, sets, logits, data, decay, .. } = &mut self.state;
        sets[0].close(device, decay)?;
        sets[0].renew(device, parity, agent, start)?;
        if let (Some(x), UpperLevel::Tuning { start }) = (sets.get_mut(1), config.task) {
            x.renew(device, parity, agent, &strength::<D>(start))?;
        }
        if let Some(SampleLogits { logits, momentum }) = logits {
            let mut all = device.read(logits, 0, data.samples)?;
            samples.iter().for_each(|&sample| all[sample as usize] = D::Scalar::ZERO);
            device.write(logits, 0, &all)?;
            if let Some(momentum) = momentum {
                all.fill(D::Scalar::ZERO);
                device.write(&mut momentum.accumulator, 0, &all)?;
            }
        }
        Ok(())
    }

    /// `Σt + Σ(what waits) − Σd`, the largest word relative to the largest Σ|d|: rounding, while nothing is lost or made.
    pub fn tracking_defect(&self) -> Result<f64> {
        let parts = match &self.elsewhere {
            Some(elsewhere) => elsewhere.hosts().imbalances()?,
            None => self.imbalances()?,
        };
        Ok(parts.iter().map(TrackerImbalance::defect).fold(0.0, larger))
    }

    /// The terms of [`Fab::tracking_defect`] for the agents that are computed here: that of y and z, then that of an exchanged x.
    pub fn imbalances(&self) -> Result<Vec<TrackerImbalance>> {
        let (parity, decay) = (self.parity(), &self.state.decay);
        self.state.sets.iter().map(|set| set.imbalance(&self.device, parity, decay)).collect()
    }

    /// Writes this round's samples to the device: their numbers, and weights that make each part a mean.
    fn write_draw(&mut self, draw: &RoundBatch) -> Result<()> {
        let FabConfig { own, validation_batch, training_batch, seed, .. } = self.state.config;
        let mut rows = Vec::with_capacity(own.agents * self.state.schedule.samples);
        let mut weights = Vec::with_capacity(own.agents * self.state.schedule.samples);
        let mut part = |samples: &[u32], batch: usize, weight: f64| {
            assert!(samples.len() <= batch, "{} samples for a batch of {batch}", samples.len());
            let share = D::Scalar::from_f64(weight / samples.len().max(1) as f64);
            rows.extend_from_slice(samples);
            rows.resize(rows.len() + batch - samples.len(), NO_SAMPLE);
            weights.resize(rows.len(), share);
        };
        for agent in own.range() {
            if validation_batch > 0 {
                part(&draw.validation[agent], validation_batch, self.state.config.scale());
            }
            part(&draw.training[agent], training_batch, self.state.config.lower_weight());
        }
        self.device.write_indices(&mut self.state.schedule.rows, &rows)?;
        self.device.write(&mut self.state.schedule.weights, 0, &weights)?;
        let key = [seed as u32, (seed >> 32) as u32, self.round];
        self.device.write_indices(&mut self.state.schedule.dropout_key, &key)
    }
}

/// One agent's vector of a shared number.
fn strength<D: Device>(start: f64) -> [D::Scalar; X_STRIDE] {
    let mut words = [D::Scalar::ZERO; X_STRIDE];
    words[0] = D::Scalar::from_f64(start);
    words
}
