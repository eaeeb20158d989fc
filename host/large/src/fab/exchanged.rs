//! Vectors that agents exchange: decisions, with their trackers and gradients.

use std::ops::Range;

use fabswarm_shared::scalar::Scalar as _;

use super::books::{HostBooks, near_shares};
use super::push_sum::{PushSumExchange, PushSumRule};
use super::{FabConfig, Ledger};
use crate::device::{Block, BroadcastHistory, Device, Gradient, Packed, Reception, Result};
use crate::mixing::MixingMatrix;

/// Who hears whom, in the device's memory.
#[derive(Debug)]
pub(super) enum DeviceLinks<D: Device> {
    Weights { pull: D::Mixing, push: D::Mixing },
    PushSum { rule: PushSumRule, ratio: D::Mixing, push: D::Mixing, factors: D::Reals },
    Ledger(Reception<D>),
}

impl<D: Device> DeviceLinks<D> {
    pub(super) fn new(device: &D, config: &FabConfig, own: Block) -> Result<Self> {
        let agents = config.agents;
        if let Some(ledger) = &config.ledger {
            return Ok(DeviceLinks::Ledger(Reception::new(device, agents, ledger.shares())?));
        }
        let (rows, push) = (device.mixing(agents, own)?, device.mixing(agents, own)?);
        Ok(match config.push_sum {
            Some(rule) => DeviceLinks::PushSum { rule, ratio: rows, push, factors: device.reals(agents)? },
            None => DeviceLinks::Weights { pull: rows, push },
        })
    }

    /// Sets nothing aside for receivers on other hosts: [`HostBooks`] do.
    pub(super) fn leave_far_links(&mut self, device: &D, ledger: &Ledger, own: Block) -> Result<()> {
        let DeviceLinks::Ledger(reception) = self else { return Ok(()) };
        let shares: Vec<D::Scalar> = near_shares(ledger, own).into_iter().map(D::Scalar::from_f64).collect();
        device.write(&mut reception.shares, 0, &shares)
    }

    /// Writes the exchange of `round` to the device.
    ///
    /// # Panics
    /// When it is not of the kind the swarm was made for.
    pub(super) fn write(&mut self, device: &D, round: u32, exchange: &Exchange<'_>) -> Result<()> {
        match (self, exchange) {
            (DeviceLinks::Weights { pull, push }, Exchange::Weights { pull: pulled, push: pushed }) => {
                device.write_mixing(pull, pulled)?;
                device.write_mixing(push, pushed)
            }
            (DeviceLinks::PushSum { ratio, push, factors, .. }, Exchange::PushSum(exchange)) => {
                device.write_mixing(ratio, &exchange.ratio)?;
                device.write_mixing(push, &exchange.push)?;
                let words: Vec<D::Scalar> =
                    exchange.factors.iter().map(|&c| D::Scalar::from_f64(c)).collect();
                device.write(factors, 0, &words)
            }
            (DeviceLinks::Ledger(reception), Exchange::Ledger { ages, awake }) => {
                device.write_indices(&mut reception.round, &[round])?;
                device.write_indices(&mut reception.awake, awake)?;
                device.write_indices(&mut reception.ages, ages)
            }
            (_, exchange) => panic!("a swarm of another kind got {exchange:?}"),
        }
    }
}

/// Who receives what from whom in a round.
#[derive(Debug)]
pub enum Exchange<'a> {
    /// Pull and push weights.
    Weights { pull: &'a MixingMatrix, push: &'a MixingMatrix },
    /// For a method with push-sum weights.
    PushSum(&'a PushSumExchange),
    /// For a ledger: `[agents, agents]`, the age of what receiver i gets from sender j plus 1, or 0 where it gets nothing new;
    /// and for each agent 0 while it is down, else 1.
    Ledger { ages: &'a [u32], awake: &'a [u32] },
}

/// One kind of vectors of all agents.
#[derive(Debug)]
pub(super) struct ExchangedVectors<D: Device> {
    pub(super) packed: Packed,
    /// One step per group.
    steps: [f64; 2],
    pub(super) v: D::Reals,
    pub(super) t: D::Reals,
    /// Gradients of this and the last round, in turn.
    pub(super) d: [D::Reals; 2],
    pub(super) momentum: Option<MomentumState<D>>,
    pub(super) ledger: Option<LedgerState<D>>,
    /// Of links to other hosts, where one may be lost.
    pub(super) books: Option<HostBooks<D::Scalar>>,
}

/// What momentum keeps.
#[derive(Debug)]
pub(super) struct MomentumState<D: Device> {
    /// β, above 0.
    pub(super) factor: f64,
    /// m.
    pub(super) accumulator: D::Reals,
}

impl<D: Device> MomentumState<D> {
    /// `words` words of m, unless β is 0.
    pub(super) fn new(device: &D, factor: f64, words: usize) -> Result<Option<Self>> {
        if factor == 0.0 {
            return Ok(None);
        }
        Ok(Some(MomentumState { factor, accumulator: device.reals(words)? }))
    }
}

/// What a ledger keeps.
#[derive(Debug)]
pub(super) struct LedgerState<D: Device> {
    pub(super) history: BroadcastHistory<D>,
    /// Mass that waits on links.
    pub(super) mass: D::Reals,
}

impl<D: Device> ExchangedVectors<D> {
    /// Vectors of zero; `v` are decisions that the device reads in its own way.
    pub(super) fn new(
        device: &D,
        packed: Packed,
        v: D::Reals,
        steps: [f64; 2],
        momentum: f64,
        ledger: Option<&Ledger>,
    ) -> Result<Self> {
        let words = packed.words();
        let ledger = match ledger {
            None => None,
            Some(ledger) => {
                let depth = ledger.depth();
                let history = BroadcastHistory {
                    depth,
                    v: device.reals(depth * words)?,
                    t: device.reals(depth * words)?,
                };
                Some(LedgerState { history, mass: device.reals((packed.agents - 1) * words)? })
            }
        };
        let (t, d) = (device.reals(words)?, [device.reals(words)?, device.reals(words)?]);
        let momentum = MomentumState::new(device, momentum, words)?;
        Ok(ExchangedVectors { packed, steps, v, t, d, momentum, ledger, books: None })
    }

    /// Writes the same words into every agent's decisions, group by group.
    pub(super) fn start(&mut self, device: &D, words: &[D::Scalar]) -> Result<()> {
        self.packed.own.range().try_for_each(|agent| self.start_agent(device, agent, words))
    }

    fn start_agent(&mut self, device: &D, agent: usize, words: &[D::Scalar]) -> Result<()> {
        for group in 0..self.packed.groups {
            let at = (group * self.packed.agents + agent) * self.packed.stride;
            device.write(&mut self.v, at, words)?;
        }
        Ok(())
    }

    /// Every buffer that outlives a round, with its name and words; `parity` is that of the round.
    pub(super) fn buffers(&self, parity: usize) -> Vec<(&'static str, &D::Reals, usize)> {
        let words = self.packed.words();
        let mut buffers = vec![("v", &self.v, words), ("t", &self.t, words), ("d", &self.d[parity], words)];
        if let Some(momentum) = &self.momentum {
            buffers.push(("m", &momentum.accumulator, words));
        }
        if let Some(LedgerState { history, mass }) = &self.ledger {
            let history_words = history.depth * words;
            buffers.extend([
                ("history.v", &history.v, history_words),
                ("history.t", &history.t, history_words),
                ("mass", mass, (self.packed.agents - 1) * words),
            ]);
        }
        buffers
    }

    pub(super) fn buffer_mut(&mut self, name: &str, parity: usize) -> Option<&mut D::Reals> {
        match (name, &mut self.ledger) {
            ("v", _) => Some(&mut self.v),
            ("t", _) => Some(&mut self.t),
            ("d", _) => Some(&mut self.d[parity]),
            ("m", _) => self.momentum.as_mut().map(|momentum| &mut momentum.accumulator),
            ("history.v", Some(ledger)) => Some(&mut ledger.history.v),
            ("history.t", Some(ledger)) => Some(&mut ledger.history.t),
            ("mass", Some(ledger)) => Some(&mut ledger.mass),
            _ => None,
        }
    }

    /// Records what agents broadcast at the start of a round, and pulls.
    pub(super) fn pull(&mut self, device: &D, links: &DeviceLinks<D>) -> Result<()> {
        let ExchangedVectors { packed, steps, v, t, momentum, ledger, .. } = self;
        let reception = match links {
            DeviceLinks::Ledger(reception) => Some(reception),
            DeviceLinks::Weights { .. } | DeviceLinks::PushSum { .. } => None,
        };
        let direction = match momentum {
            None => &*t,
            Some(MomentumState { factor, accumulator }) => {
                device.accumulate(accumulator, t, *packed, reception, *factor)?;
                &*accumulator
            }
        };
        match (links, ledger) {
            (DeviceLinks::Ledger(reception), Some(LedgerState { history, .. })) => {
                device.record_broadcast(history, v, t, *packed, reception)?;
                device.pull_received(v, direction, *packed, history, reception, *steps)
            }
            (DeviceLinks::Weights { pull, .. }, None) => device.pull(v, direction, *packed, pull, *steps),
            (DeviceLinks::PushSum { rule, ratio, factors, .. }, None) if rule.descends_first() => {
                device.descend(v, direction, *packed, factors, *steps)?;
                device.mix(v, *packed, ratio)
            }
            (DeviceLinks::PushSum { ratio, factors, .. }, None) => {
                device.mix(v, *packed, ratio)?;
                device.descend(v, direction, *packed, factors, *steps)
            }
            _ => unreachable!("vectors and links of a swarm both have a ledger, or none"),
        }
    }

    /// Pushes, and follows the gradient that lies in `d[parity]`, with the strength of ½‖v‖² where there is one.
    pub(super) fn track(
        &mut self,
        device: &D,
        links: &DeviceLinks<D>,
        parity: usize,
        strengths: Option<&D::Reals>,
    ) -> Result<()> {
        let ExchangedVectors { packed, v, t, d, ledger, .. } = self;
        let [even, odd] = d;
        let (fresh, last) = if parity == 0 { (even, &*odd) } else { (odd, &*even) };
        let gradient = Gradient { fresh, last, regulariser: strengths.map(|strengths| (&*v, strengths)) };
        match (links, ledger) {
            (DeviceLinks::Ledger(reception), Some(LedgerState { history, mass })) => {
                device.track_by_ledger(t, mass, gradient, *packed, history, reception)
            }
            (DeviceLinks::Weights { push, .. } | DeviceLinks::PushSum { push, .. }, None) => {
                device.track(t, gradient, *packed, push)
            }
            _ => unreachable!("vectors and links of a swarm both have a ledger, or none"),
        }
    }

    /// Sets aside what listeners on other hosts get of this round's trackers, and notes what was taken of theirs.
    pub(super) fn keep_books(&mut self, device: &D, awake: &[u32]) -> Result<()> {
        let Some(books) = &mut self.books else { return Ok(()) };
        let Packed { groups, agents, stride, own } = self.packed;
        books.commit();
        for group in 0..groups {
            for agent in own.range().filter(|&agent| awake[agent] == 1) {
                let vector = group * agents + agent;
                books.set_aside(vector, &device.read(&self.t, vector * stride, stride)?);
            }
        }
        Ok(())
    }

    /// Stands still over some rounds, of which the parities of the first and the last are given: as if these agents had been
    /// down, with what they last broadcast still in the air.
    pub(super) fn stand_still(&mut self, device: &D, from: usize, to: usize) -> Result<()> {
        let Packed { groups, agents, stride, own } = self.packed;
        if let Some(books) = &mut self.books {
            books.clear();
        }
        let nothing = vec![D::Scalar::ZERO; stride];
        for vector in (0..groups * agents).filter(|vector| own.has(vector % agents)) {
            let gradient = device.read(&self.d[from], vector * stride, stride)?;
            device.write(&mut self.d[to], vector * stride, &gradient)?;
            let Some(LedgerState { history, .. }) = &mut self.ledger else { continue };
            let decisions = device.read(&self.v, vector * stride, stride)?;
            for slot in 0..history.depth {
                let at = (slot * groups * agents + vector) * stride;
                device.write(&mut history.v, at, &decisions)?;
                device.write(&mut history.t, at, &nothing)?;
            }
        }
        Ok(())
    }

    /// Opens a new epoch because `agent` has lost its memory: it starts from `start` without a gradient, every tracker is its
    /// gradient, nothing waits, and m is zero. `parity` is that of the last round.
    pub(super) fn renew(
        &mut self,
        device: &D,
        parity: usize,
        agent: usize,
        start: &[D::Scalar],
    ) -> Result<()> {
        let Packed { groups, agents, stride, own } = self.packed;
        if own.has(agent) {
            self.start_agent(device, agent, start)?;
        }
        let nothing = vec![D::Scalar::ZERO; stride];
        for vector in (0..groups * agents).filter(|&vector| self.packed.is_own(vector)) {
            let at = vector * stride;
            if vector % agents == agent {
                device.write(&mut self.d[parity], at, &nothing)?;
                device.write(&mut self.t, at, &nothing)?;
            } else {
                let gradient = device.read(&self.d[parity], at, stride)?;
                device.write(&mut self.t, at, &gradient)?;
            }
            if let Some(momentum) = &mut self.momentum {
                device.write(&mut momentum.accumulator, at, &nothing)?;
            }
        }
        let links: Vec<usize> = self.own_links(0..groups * agents).collect();
        if let Some(LedgerState { mass, .. }) = &mut self.ledger {
            links.into_iter().try_for_each(|link| device.write(mass, link * stride, &nothing))?;
        }
        Ok(())
    }

    /// Numbers of the links of those receivers whose waiting mass is kept here: those of the senders that are computed here.
    fn own_links(&self, receivers: Range<usize>) -> impl Iterator<Item = usize> + use<D> {
        let Packed { agents, own, .. } = self.packed;
        receivers.flat_map(move |vector| {
            let receiver = vector % agents;
            own.range()
                .filter(move |&sender| sender != receiver)
                .map(move |sender| link_number(agents, vector, sender))
        })
    }

    /// `Σt + Σ(what waits) − Σd` of the agents that are computed here, word by word.
    pub(super) fn imbalance(&self, device: &D, parity: usize) -> Result<Imbalance> {
        let Packed { groups, agents, stride, .. } = self.packed;
        let mut whole = Imbalance::default();
        for group in 0..groups {
            let (mut sums, mut sizes) = (vec![0.0; stride], vec![0.0; stride]);
            let add = |buffer: &D::Reals, vector: usize, sign: f64, sums: &mut [f64]| -> Result<()> {
                let words = device.read(buffer, vector * stride, stride)?;
                sums.iter_mut().zip(words).for_each(|(sum, word)| *sum += sign * word.to_f64());
                Ok(())
            };
            for vector in group * agents..(group + 1) * agents {
                if self.packed.is_own(vector) {
                    add(&self.t, vector, 1.0, &mut sums)?;
                    add(&self.d[parity], vector, -1.0, &mut sums)?;
                    let gradient = device.read(&self.d[parity], vector * stride, stride)?;
                    sizes.iter_mut().zip(gradient).for_each(|(size, word)| *size += word.to_f64().abs());
                }
                let is_booked = self.books.is_some() && !self.packed.is_own(vector);
                if let Some(LedgerState { mass, .. }) = self.ledger.as_ref().filter(|_| !is_booked) {
                    self.own_links(vector..vector + 1)
                        .try_for_each(|link| add(mass, link, 1.0, &mut sums))?;
                }
            }
            if let Some(books) = &self.books {
                books.add_to(group, &mut sums);
            }
            whole.sums.append(&mut sums);
            whole.sizes.append(&mut sizes);
        }
        Ok(whole)
    }
}

/// The number of the link from `sender` to the receiver that has this vector: an agent has none to itself.
pub(super) fn link_number(agents: usize, vector: usize, sender: usize) -> usize {
    vector * (agents - 1) + sender - usize::from(sender > vector % agents)
}

/// How far trackers and what waits are from the gradients they stand for, word by word.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Imbalance {
    /// `Σt + Σ(what waits) − Σd`.
    pub sums: Vec<f64>,
    /// `Σ|d|`.
    pub sizes: Vec<f64>,
}

impl Imbalance {
    /// The same of two sets of agents together.
    pub fn add(&mut self, other: &Imbalance) {
        for (to, from) in [(&mut self.sums, &other.sums), (&mut self.sizes, &other.sizes)] {
            to.resize(to.len().max(from.len()), 0.0);
            to.iter_mut().zip(from).for_each(|(to, from)| *to += from);
        }
    }

    /// The largest word, relative to the largest size.
    pub fn defect(&self) -> f64 {
        let largest = self.sums.iter().map(|sum| sum.abs()).fold(0.0, larger);
        largest / self.sizes.iter().copied().fold(f64::MIN_POSITIVE, larger)
    }
}

/// The larger of two numbers, NaN where one of them is NaN: `max` would ignore it.
pub(super) fn larger(a: f64, b: f64) -> f64 {
    if a > b || a.is_nan() { a } else { b }
}
