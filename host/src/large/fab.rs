//! FAB for all agents of a host at once, in the three forms the experiments need.
//!
//! One round (the paper's Algorithm 1, `fabswarm_shared::fab` for one agent):
//!
//! ```text
//! v ← A v − η t                          one launch for y and z of all agents
//! d⁺ = ∇L(x, y, z) on this round's samples   y and z side by side
//! t ← B t + d⁺ − d                       one launch
//! ```
//!
//! A sample's logit ψ belongs to one agent and never travels: mixed with nobody, its tracker is its gradient, and
//! `ψ ← ψ − η_x d_ψ` at the end of a round is what the next round's pull would do.

mod evaluation;
mod state;

pub use evaluation::Score;
pub use state::Snapshot;

use crate::large::device::{Dataset, Device, Gradient, NO_SAMPLE, Packed, Result, Schedule, Waiting};
use crate::large::mixing::Mixing;
use crate::large::models::Model;
use crate::large::real::Real;

/// Distance in words between two agents' x when it is one shared number.
const X_STRIDE: usize = 4;

/// What is learned at the upper level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Task {
    /// A weight σ(ψ_j) for every training sample; τ/2 ‖w‖² regularises the lower level.
    Cleaning { regularisation: f64 },
    /// The τ of τ ‖w‖², shared by all agents and kept at zero or more.
    Tuning { start: f64 },
    /// Nothing: push-pull on the training samples, the single-level baseline.
    SingleLevel { regularisation: f64 },
}

/// Constants of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    pub agents: usize,
    pub task: Task,
    /// λ.
    pub penalty: f64,
    /// Divide all gradients by λ.
    pub normalise: bool,
    /// η_x, η_y, η_z.
    pub steps: [f64; 3],
    /// Samples of the upper level an agent takes a round; none at a single level.
    pub validation_batch: usize,
    /// Samples of the lower level an agent takes a round.
    pub training_batch: usize,
    pub seed: u64,
    /// Push by broadcast ledger, which survives lost frames, instead of push weights.
    pub ledger: Option<Ledger>,
}

/// Constants of a broadcast ledger.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ledger {
    /// κ, the weight an agent keeps.
    pub keep: f64,
    /// Members that may ever hear an agent.
    pub audience: usize,
}

impl Config {
    /// What every gradient is multiplied by.
    fn scale(&self) -> f64 {
        if self.normalise && self.is_bilevel() { 1.0 / self.penalty } else { 1.0 }
    }

    /// The weight of the lower level in the gradient of y and z.
    fn lower_weight(&self) -> f64 {
        if self.is_bilevel() { self.scale() * self.penalty } else { 1.0 }
    }

    pub fn is_bilevel(&self) -> bool {
        !matches!(self.task, Task::SingleLevel { .. })
    }

    /// How y (and z) of all agents are packed, `stride` words each.
    pub fn packed(&self, stride: usize) -> Packed {
        Packed { groups: if self.is_bilevel() { 2 } else { 1 }, agents: self.agents, stride }
    }
}

/// Which samples every agent takes in a round, by number in the [`Dataset`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Draw {
    /// One list an agent, at most `validation_batch` long.
    pub validation: Vec<Vec<u32>>,
    /// One list an agent, at most `training_batch` long, no sample twice.
    pub training: Vec<Vec<u32>>,
}

/// How agents hear each other in a round.
#[derive(Debug)]
pub enum Exchange<'a> {
    /// Pull and push weights.
    Weights { pull: &'a Mixing, push: &'a Mixing },
    /// Pull weights, and for each receiver whom it hears, for the ledger.
    Heard { pull: &'a Mixing, heard: &'a [Vec<usize>] },
}

/// All agents of a host.
#[derive(Debug)]
pub struct Fab<D: Device> {
    device: D,
    config: Config,
    packed: Packed,
    model: Model,
    data: Dataset<D>,
    schedule: Schedule<D>,
    passes: Passes<D>,
    pull: D::Mixing,
    push: D::Mixing,
    v: D::Reals,
    t: D::Reals,
    /// Gradients of this and the last round, in turn.
    d: [D::Reals; 2],
    /// Strength of ‖w‖² for every vector of `v`.
    decay: D::Reals,
    upper: Upper<D>,
    waiting: Option<(D::Reals, D::Indices)>,
    round: u32,
}

#[derive(Debug)]
struct Passes<D: Device> {
    y: D::Pass,
    z: Option<D::Pass>,
}

/// x.
#[derive(Debug)]
enum Upper<D: Device> {
    /// ψ of every sample of the dataset.
    Logits(D::Reals),
    /// τ of every agent, with its tracker and gradients.
    Strength {
        x: D::Reals,
        t: D::Reals,
        d: [D::Reals; 2],
    },
    None,
}

impl<D: Device> Fab<D> {
    /// Agents that all start from `start`, a packed parameter vector, before their first gradient.
    ///
    /// # Errors
    /// When the device cannot hold them.
    pub fn new(
        device: D,
        model: &Model,
        config: Config,
        data: Dataset<D>,
        start: &[D::Scalar],
    ) -> Result<Self> {
        let Config { agents, validation_batch, training_batch, .. } = config;
        let samples = validation_batch + training_batch;
        let program = model.program(samples);
        let packed = config.packed(program.layout.stride());
        let z =
            config.is_bilevel().then(|| device.pass(&model.program(training_batch), agents)).transpose()?;
        let upper = match config.task {
            Task::Cleaning { .. } => Upper::Logits(device.reals(data.samples)?),
            Task::Tuning { start } => {
                let words = || device.reals(agents * X_STRIDE);
                let mut x = words()?;
                let starts: Vec<D::Scalar> = (0..agents * X_STRIDE)
                    .map(|word| D::Scalar::from_f64(if word % X_STRIDE == 0 { start } else { 0.0 }))
                    .collect();
                device.write(&mut x, 0, &starts)?;
                Upper::Strength { x, t: words()?, d: [words()?, words()?] }
            }
            Task::SingleLevel { .. } => Upper::None,
        };
        let waiting = match config.ledger {
            Some(_) => Some((device.reals(agents * packed.words())?, device.indices(agents * agents)?)),
            None => None,
        };
        let mut fab = Fab {
            schedule: Schedule {
                samples,
                rows: device.indices(agents * samples)?,
                weights: device.reals(agents * samples)?,
                moment: device.indices(3)?,
            },
            passes: Passes { y: device.pass(&program, agents)?, z },
            pull: device.mixing(agents)?,
            push: device.mixing(agents)?,
            v: device.decisions(packed.words())?,
            t: device.reals(packed.words())?,
            d: [device.reals(packed.words())?, device.reals(packed.words())?],
            decay: device.reals(packed.groups * agents)?,
            upper,
            waiting,
            round: 0,
            model: model.clone(),
            data,
            packed,
            config,
            device,
        };
        for vector in 0..packed.groups * agents {
            fab.device.write(&mut fab.v, vector * packed.stride, start)?;
        }
        let strength = match config.task {
            Task::Cleaning { regularisation } | Task::SingleLevel { regularisation } => {
                regularisation * config.lower_weight()
            }
            Task::Tuning { start } => 2.0 * start * config.lower_weight(),
        };
        fab.device.write(&mut fab.decay, 0, &vec![D::Scalar::from_f64(strength); packed.groups * agents])?;
        Ok(fab)
    }

    /// The first gradient, `t = d = ∇L` at the start: with zero trackers before it, one tracking step that mixes nothing.
    ///
    /// # Errors
    /// When the device fails.
    pub fn begin(&mut self, draw: &Draw) -> Result<()> {
        let itself =
            Mixing::from_rows(&(0..self.config.agents).map(|agent| vec![(agent, 1.0)]).collect::<Vec<_>>());
        self.device.write_mixing(&mut self.push, &itself)?;
        self.write_draw(draw)?;
        let Fab { device, config, packed, data, schedule, passes, push, v, t, d, decay, upper, .. } = self;
        let [fresh, last] = d;
        gradient(device, config, *packed, data, schedule, passes, v, fresh, upper, 0)?;
        device.track(t, Gradient { fresh, last, regulariser: Some((v, decay)) }, *packed, push)?;
        if let Upper::Strength { t, d: [fresh, last], .. } = upper {
            device.track(t, Gradient { fresh, last, regulariser: None }, shared_x(config), push)?;
        }
        step_logits(device, config, schedule, passes, upper)?;
        device.wait()
    }

    /// One round.
    ///
    /// # Errors
    /// When the device fails.
    ///
    /// # Panics
    /// When `exchange` is not of the kind the configuration asks for.
    pub fn round(&mut self, exchange: &Exchange<'_>, draw: &Draw) -> Result<()> {
        self.round += 1;
        self.write_draw(draw)?;
        self.write_exchange(exchange)?;
        self.advance()
    }

    /// Another round with the samples and weights of the last: what a round costs without choosing them.
    ///
    /// # Errors
    /// When the device fails.
    pub fn repeat(&mut self) -> Result<()> {
        self.round += 1;
        self.advance()
    }

    fn advance(&mut self) -> Result<()> {
        let parity = (self.round % 2) as usize;
        let Fab {
            device,
            config,
            packed,
            data,
            schedule,
            passes,
            pull,
            push,
            v,
            t,
            d,
            decay,
            upper,
            waiting,
            ..
        } = self;
        let [even, odd] = d;
        let (fresh, last) = if parity == 0 { (even, odd) } else { (odd, even) };
        device.replay(parity, |device| {
            device.pull(v, t, *packed, pull, [config.steps[1], config.steps[2]])?;
            if let Upper::Strength { x, t, .. } = upper {
                device.pull(x, t, shared_x(config), pull, [config.steps[0]; 2])?;
                device.decay_from(x, X_STRIDE, *packed, decay, 2.0 * config.lower_weight())?;
            }
            gradient(device, config, *packed, data, schedule, passes, v, fresh, upper, parity)?;
            let newest = Gradient { fresh, last, regulariser: Some((v, decay)) };
            match (&config.ledger, waiting) {
                (Some(ledger), Some((mass, heard))) => {
                    let waiting =
                        Waiting { mass, heard, keep: ledger.keep, audience: ledger.audience, among: push };
                    device.track_by_ledger(t, newest, *packed, waiting)?;
                }
                _ => device.track(t, newest, *packed, push)?,
            }
            if let Upper::Strength { t, d: [even, odd], .. } = &mut *upper {
                let (fresh, last) = if parity == 0 { (even, odd) } else { (odd, even) };
                device.track(t, Gradient { fresh, last, regulariser: None }, shared_x(config), push)?;
            }
            step_logits(device, config, schedule, passes, upper)
        })
    }

    fn write_exchange(&mut self, exchange: &Exchange<'_>) -> Result<()> {
        match (exchange, &mut self.waiting) {
            (Exchange::Weights { pull, push }, None) => {
                self.device.write_mixing(&mut self.pull, pull)?;
                self.device.write_mixing(&mut self.push, push)
            }
            (Exchange::Heard { pull, heard }, Some((_, on_device))) => {
                let agents = self.config.agents;
                let mut square = vec![0; agents * agents];
                for (receiver, senders) in heard.iter().enumerate() {
                    senders.iter().for_each(|sender| square[receiver * agents + sender] = 1);
                }
                self.device.write_mixing(&mut self.pull, pull)?;
                self.device.write_indices(on_device, &square)
            }
            (exchange, _) => panic!(
                "a swarm {} a ledger got {exchange:?}",
                if self.waiting.is_some() { "with" } else { "without" }
            ),
        }
    }

    /// Hands this round's samples to the device: numbers, and weights that make each part a mean.
    fn write_draw(&mut self, draw: &Draw) -> Result<()> {
        let Config { agents, validation_batch, training_batch, seed, .. } = self.config;
        let mut rows = Vec::with_capacity(agents * self.schedule.samples);
        let mut weights = Vec::with_capacity(agents * self.schedule.samples);
        let mut part = |samples: &[u32], batch: usize, weight: f64| {
            assert!(samples.len() <= batch, "{} samples for a batch of {batch}", samples.len());
            let share = D::Scalar::from_f64(weight / samples.len().max(1) as f64);
            rows.extend_from_slice(samples);
            rows.resize(rows.len() + batch - samples.len(), NO_SAMPLE);
            weights.resize(rows.len(), share);
        };
        for agent in 0..agents {
            if validation_batch > 0 {
                part(&draw.validation[agent], validation_batch, self.config.scale());
            }
            part(&draw.training[agent], training_batch, self.config.lower_weight());
        }
        self.device.write_indices(&mut self.schedule.rows, &rows)?;
        self.device.write(&mut self.schedule.weights, 0, &weights)?;
        self.device.write_indices(&mut self.schedule.moment, &[seed as u32, (seed >> 32) as u32, self.round])
    }
}

/// How one shared number of every agent is packed.
fn shared_x(config: &Config) -> Packed {
    Packed { groups: 1, agents: config.agents, stride: X_STRIDE }
}

/// `d⁺` of y and z (all but the regulariser, which tracking adds), and of a shared x.
#[expect(clippy::too_many_arguments, reason = "disjoint fields of one struct")]
fn gradient<D: Device>(
    device: &D,
    config: &Config,
    packed: Packed,
    data: &Dataset<D>,
    schedule: &Schedule<D>,
    passes: &mut Passes<D>,
    v: &D::Reals,
    fresh: &mut D::Reals,
    upper: &mut Upper<D>,
    parity: usize,
) -> Result<()> {
    let learned_from = config.validation_batch;
    let logits = match upper {
        Upper::Logits(logits) => Some((&*logits, learned_from)),
        _ => None,
    };
    device.load(&mut passes.y, data, schedule, 0, logits)?;
    match &mut passes.z {
        Some(z) => {
            device.load(z, data, schedule, learned_from, logits)?;
            device.run(&mut [&mut passes.y, z], v, Some(fresh), packed, schedule)?;
        }
        None => device.run(&mut [&mut passes.y], v, Some(fresh), packed, schedule)?,
    }
    if let Upper::Strength { d, .. } = upper {
        device.norm_gap(v, packed, &mut d[parity], X_STRIDE, config.lower_weight())?;
    }
    Ok(())
}

fn step_logits<D: Device>(
    device: &D,
    config: &Config,
    schedule: &Schedule<D>,
    passes: &Passes<D>,
    upper: &mut Upper<D>,
) -> Result<()> {
    match (upper, &passes.z) {
        (Upper::Logits(logits), Some(z)) => {
            device.step_logits(logits, schedule, config.validation_batch, &passes.y, z, config.steps[0])
        }
        _ => Ok(()),
    }
}
