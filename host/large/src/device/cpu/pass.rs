//! A program with the batches of all agents, and the memory in which it runs.

use std::sync::Mutex;

use rayon::prelude::*;

use super::Cpu;
use super::CpuReals;
use super::agent::AgentPass;
use crate::device::{BatchSchedule, DeviceDataset, NO_SAMPLE, Packed};
use crate::program::ModelProgram;
use crate::program::arena::Arena;
use crate::real::Real;

/// A program with the batch of every agent.
#[derive(Debug)]
pub struct CpuPass<S> {
    pub(super) ready: ProgramBuffers<S>,
    pub(super) agents: usize,
    pub(super) features: CpuReals<S>,
    pub(super) tokens: Vec<u32>,
    pub(super) lengths: Vec<u32>,
    pub(super) labels: Vec<u32>,
    pub(super) weights: Vec<S>,
    pub(super) losses: Vec<S>,
    pub(super) hits: Vec<S>,
}

impl<S: Real> CpuPass<S> {
    /// [`Device::load`](crate::device::Device::load).
    pub(super) fn load(
        &mut self,
        data: &DeviceDataset<Cpu<S>>,
        schedule: &BatchSchedule<Cpu<S>>,
        upper_sign: f64,
        logits: Option<&CpuReals<S>>,
    ) {
        let (samples, width) = (self.ready.program.samples, data.width);
        let (skip, sign) = (schedule.samples - samples, S::from_f64(upper_sign));
        let sample_of = |position: usize| {
            let place = position / samples * schedule.samples + skip + position % samples;
            (place, schedule.rows[place])
        };
        if let Some(features) = &data.features {
            self.features.par_chunks_mut(width).with_min_len(16).enumerate().for_each(|(position, to)| {
                match sample_of(position).1 {
                    NO_SAMPLE => to.fill(S::ZERO),
                    sample => to.copy_from_slice(&features[sample as usize * width..][..width]),
                }
            });
        }
        if let (Some(tokens), Some(lengths)) = (&data.tokens, &data.lengths) {
            for (position, to) in self.tokens.chunks_mut(width).enumerate() {
                // An absent sample still needs one real token: a softmax over none has no value.
                let (from, length) = match sample_of(position).1 {
                    NO_SAMPLE => (0, 1),
                    sample => (sample as usize, lengths[sample as usize]),
                };
                to.copy_from_slice(&tokens[from * width..][..width]);
                self.lengths[position] = length;
            }
        }
        for position in 0..self.agents * samples {
            let (place, sample) = sample_of(position);
            let weight = schedule.weights[place];
            (self.labels[position], self.weights[position]) = match (sample, logits) {
                (NO_SAMPLE, _) => (0, S::ZERO),
                (sample, _) if place % schedule.samples < schedule.upper => {
                    (data.labels[sample as usize], sign * weight)
                }
                (sample, Some(logits)) => {
                    (data.labels[sample as usize], weight * logits[sample as usize].sigmoid())
                }
                (sample, _) => (data.labels[sample as usize], weight),
            };
        }
    }
}

/// [`Device::run`](crate::device::Device::run).
pub(super) fn run<S: Real>(
    passes: &mut [&mut CpuPass<S>],
    parameters: &[S],
    gradient: Option<&mut CpuReals<S>>,
    packed: Packed,
    schedule: &BatchSchedule<Cpu<S>>,
) {
    let wants_gradient = gradient.is_some();
    let gradients = gradient.map_or(&mut [][..], |gradient| gradient).chunks_mut(packed.stride);
    let mut gradients = gradients.enumerate().filter(|&(vector, _)| packed.is_own(vector));
    let mut agents = Vec::with_capacity(packed.groups * packed.own.agents);
    for (group, pass) in passes.iter_mut().enumerate() {
        let CpuPass { ready, features, tokens, lengths, labels, weights, losses, hits, .. } = &mut **pass;
        let (ready, samples, width): (&ProgramBuffers<S>, _, _) =
            (ready, ready.program.samples, ready.program.input.width());
        for (number, (losses, hits)) in losses.chunks_mut(samples).zip(hits.chunks_mut(samples)).enumerate() {
            let slice = number * samples..(number + 1) * samples;
            let wide = slice.start * width..slice.end * width;
            let model = group * packed.agents + packed.own.first + number;
            let agent = AgentPass {
                parameters: &parameters[model * packed.stride..][..packed.stride],
                gradient: gradients.next().map(|(_, gradient)| gradient).unwrap_or_default(),
                features: features.get(wide.clone()).unwrap_or_default(),
                tokens: tokens.get(wide).unwrap_or_default(),
                lengths: &lengths[slice.clone()],
                labels: &labels[slice.clone()],
                weights: &weights[slice],
                losses,
                hits,
                stream: [
                    schedule.dropout_key[0],
                    schedule.dropout_key[1],
                    schedule.dropout_key[2],
                    model as u32,
                ],
            };
            agents.push((ready, agent));
        }
    }
    // In order, one by one: agents of the first pass may have twice the samples of those of the second.
    agents.into_iter().par_bridge().for_each(|(ready, mut agent)| {
        let mut arena = ready.take();
        agent.run(&ready.program.forward, &ready.arena, &ready.program.buffers, &mut arena);
        if wants_gradient {
            agent.run(&ready.program.backward, &ready.arena, &ready.program.buffers, &mut arena);
        }
        ready.give(arena);
    });
}

/// A program and its intermediate buffers, which belong to threads, not agents.
#[derive(Debug)]
pub(super) struct ProgramBuffers<S> {
    pub(super) program: ModelProgram,
    pub(super) arena: Arena,
    /// Buffers no task uses now.
    pub(super) spare: Mutex<Vec<CpuReals<S>>>,
}

impl<S: Real> ProgramBuffers<S> {
    pub(super) fn take(&self) -> CpuReals<S> {
        let spare = self.spare.lock().expect("no task panics while it holds the lock").pop();
        spare.unwrap_or_else(|| CpuReals::new(self.arena.activation_words() + self.arena.exact_words()))
    }

    pub(super) fn give(&self, arena: CpuReals<S>) {
        self.spare.lock().expect("no task panics while it holds the lock").push(arena);
    }
}
