//! The CPU: one agent per task, a single-threaded matrix product inside it, so results do not depend on the number of threads.

mod agent;
mod images;
mod ledger;
mod matrix;
mod mixing;
mod norms;
mod pass;
mod pointwise;
mod reals;
mod shared;
mod text;
mod vectors;

use std::marker::PhantomData;
use std::sync::Mutex;

use rayon::prelude::*;

pub use self::pass::CpuPass;
use self::pass::ProgramBuffers;
pub use self::reals::CpuReals;
use super::{
    BatchSchedule, Block, BroadcastHistory, Descent, Device, DeviceDataset, Gradient, LedgerReception,
    MemoryUse, NO_SAMPLE, Packed, Result, RoundMix, X_STRIDE,
};
use crate::mixing::MixingMatrix;
use crate::program::arena::Arena;
use crate::program::{Input, ModelProgram};
use crate::real::Real;
use fabswarm_shared::fab::accumulated;
use fabswarm_sim::process_memory;

/// The CPU, computing in `S`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cpu<S>(PhantomData<S>);

impl<S: Real> Cpu<S> {
    /// The CPU of this machine.
    pub fn new() -> Self {
        Cpu(PhantomData)
    }
}

impl<S: Real> Device for Cpu<S> {
    type Scalar = S;
    type Reals = CpuReals<S>;
    type Indices = Vec<u32>;
    type Pass = CpuPass<S>;
    type Mixing = Vec<Vec<(usize, S)>>;

    fn name(&self) -> String {
        format!("CPU, {} threads", rayon::current_num_threads())
    }

    fn free_bytes(&self) -> Option<u64> {
        process_memory::free_bytes()
    }

    fn memory_use(&self) -> Option<MemoryUse> {
        process_memory::peak_resident_bytes().map(MemoryUse::PeakResident)
    }

    fn piece_bytes(&self) -> u64 {
        1
    }

    fn pass_bytes(&self, program: &ModelProgram, agents: usize) -> u64 {
        let arena = Arena::new(program);
        let threads = rayon::current_num_threads().min(agents);
        let batch = program.samples * (program.input.width() + 5);
        ((arena.activation_words() + arena.exact_words()) * threads + batch * agents) as u64
            * size_of::<S>() as u64
    }

    fn decision_bytes(&self) -> u64 {
        size_of::<S>() as u64
    }

    fn reals(&self, words: usize) -> Result<CpuReals<S>> {
        Ok(CpuReals::new(words))
    }

    fn decisions(&self, words: usize) -> Result<CpuReals<S>> {
        self.reals(words)
    }

    fn indices(&self, words: usize) -> Result<Vec<u32>> {
        Ok(vec![0; words])
    }

    fn write(&self, to: &mut CpuReals<S>, offset: usize, words: &[S]) -> Result<()> {
        to[offset..offset + words.len()].copy_from_slice(words);
        Ok(())
    }

    fn append(&self, from: &CpuReals<S>, offset: usize, words: usize, to: &mut Vec<S>) -> Result<()> {
        to.extend_from_slice(&from[offset..offset + words]);
        Ok(())
    }

    fn copy_words(
        &self,
        from: &CpuReals<S>,
        offset: usize,
        words: usize,
        to: &mut CpuReals<S>,
    ) -> Result<()> {
        to[..words].copy_from_slice(&from[offset..offset + words]);
        Ok(())
    }

    fn add_scaled(
        &self,
        from: &CpuReals<S>,
        offset: usize,
        words: usize,
        scale: S,
        to: &mut CpuReals<S>,
    ) -> Result<()> {
        to[..words].iter_mut().zip(&from[offset..offset + words]).for_each(|(to, &from)| *to += scale * from);
        Ok(())
    }

    fn write_indices(&self, to: &mut Vec<u32>, words: &[u32]) -> Result<()> {
        to[..words.len()].copy_from_slice(words);
        Ok(())
    }

    fn pass(&self, program: &ModelProgram, agents: usize) -> Result<CpuPass<S>> {
        let samples = agents * program.samples;
        let (features, tokens) = match program.input {
            Input::Features { width } => (samples * width, 0),
            Input::Tokens { sequence } => (0, samples * sequence),
        };
        Ok(CpuPass {
            ready: ProgramBuffers {
                arena: Arena::new(program),
                program: program.clone(),
                spare: Mutex::default(),
            },
            agents,
            features: CpuReals::new(features),
            tokens: vec![0; tokens],
            // Pixels attend to all others; the lengths of texts come with each batch.
            lengths: vec![u32::MAX; samples],
            labels: vec![0; samples],
            weights: vec![S::ZERO; samples],
            losses: vec![S::ZERO; samples],
            hits: vec![S::ZERO; samples],
        })
    }

    fn mixing(&self, agents: usize, _: Block) -> Result<Self::Mixing> {
        Ok(vec![Vec::new(); agents])
    }

    fn write_mixing(&self, to: &mut Self::Mixing, mixing: &MixingMatrix) -> Result<()> {
        let narrowed = |(sender, weight): (usize, f64)| (sender, S::from_f64(weight));
        for (receiver, row) in to.iter_mut().enumerate() {
            row.clear();
            row.extend(mixing.row(receiver).map(narrowed));
        }
        Ok(())
    }

    fn load(
        &self,
        pass: &mut CpuPass<S>,
        data: &DeviceDataset<Self>,
        schedule: &BatchSchedule<Self>,
        upper_sign: f64,
        logits: Option<&CpuReals<S>>,
    ) -> Result<()> {
        pass.load(data, schedule, upper_sign, logits);
        Ok(())
    }

    fn run(
        &self,
        passes: &mut [&mut CpuPass<S>],
        parameters: &CpuReals<S>,
        gradient: Option<&mut CpuReals<S>>,
        packed: Packed,
        schedule: &BatchSchedule<Self>,
    ) -> Result<()> {
        pass::run(passes, parameters, gradient, packed, schedule);
        Ok(())
    }

    fn pull(
        &self,
        v: &mut CpuReals<S>,
        packed: Packed,
        rows: &Self::Mixing,
        descent: Option<(&CpuReals<S>, [f64; 2])>,
    ) -> Result<()> {
        mixing::pull(v, packed, rows, descent.map(|(t, steps)| (&t[..], steps.map(S::from_f64))));
        Ok(())
    }

    fn descend(
        &self,
        v: &mut CpuReals<S>,
        t: &CpuReals<S>,
        packed: Packed,
        descent: &Descent<'_, Self>,
    ) -> Result<()> {
        let vectors = v.par_chunks_mut(packed.stride).zip(t.par_chunks(packed.stride)).enumerate();
        vectors.filter(|&(vector, _)| packed.is_own(vector)).for_each(|(vector, (v, t))| {
            let agent = vector % packed.agents;
            if descent.awake.is_some_and(|awake| awake[agent] == 0) {
                return;
            }
            let step = S::from_f64(descent.steps[vector / packed.agents]);
            let step = descent.factors.map_or(step, |factors| step * factors[agent]);
            v.iter_mut().zip(t).for_each(|(v, &t)| *v -= step * t);
        });
        Ok(())
    }

    fn copy(&self, from: &CpuReals<S>, to: &mut CpuReals<S>, _: Packed) -> Result<()> {
        to.copy_from_slice(from);
        Ok(())
    }

    fn recur(
        &self,
        gradient: Gradient<'_, Self>,
        again: &CpuReals<S>,
        packed: Packed,
        keep: f64,
    ) -> Result<()> {
        let Gradient { fresh, last, regulariser } = gradient;
        let keep = S::from_f64(keep);
        let vectors = fresh.par_chunks_mut(packed.stride).enumerate();
        vectors.filter(|&(vector, _)| packed.is_own(vector)).for_each(|(vector, fresh)| {
            let at = vector * packed.stride;
            for (word, fresh) in fresh.iter_mut().enumerate() {
                let part = regulariser.map_or(S::ZERO, |(v, strengths)| strengths[vector] * v[at + word]);
                *fresh += keep * (last[at + word] - again[at + word] - part);
            }
        });
        Ok(())
    }

    fn track(
        &self,
        t: &mut CpuReals<S>,
        gradient: Gradient<'_, Self>,
        packed: Packed,
        push: &Self::Mixing,
    ) -> Result<()> {
        mixing::track(t, gradient, packed, push);
        Ok(())
    }

    fn mix_round(
        &self,
        state: RoundMix<'_, Self>,
        packed: Packed,
        pull: &Self::Mixing,
        push: &Self::Mixing,
    ) -> Result<()> {
        mixing::mix_round(state, packed, pull, push);
        Ok(())
    }

    fn close_round(
        &self,
        t: &mut CpuReals<S>,
        d: &mut CpuReals<S>,
        (v, strengths): (&CpuReals<S>, &CpuReals<S>),
        packed: Packed,
    ) -> Result<()> {
        for (at, (t, d)) in t.iter_mut().zip(&mut **d).enumerate() {
            *d += strengths[at / packed.stride] * v[at];
            *t += *d;
        }
        Ok(())
    }

    fn accumulate(
        &self,
        m: &mut CpuReals<S>,
        t: &CpuReals<S>,
        packed: Packed,
        reception: Option<&LedgerReception<Self>>,
        momentum: f64,
    ) -> Result<()> {
        let momentum = S::from_f64(momentum);
        let vectors = m.par_chunks_mut(packed.stride).zip(t.par_chunks(packed.stride)).enumerate();
        vectors.for_each(|(vector, (m, t))| {
            let is_up = |reception: &LedgerReception<Self>| reception.awake[vector % packed.agents] != 0;
            if packed.is_own(vector) && reception.is_none_or(is_up) {
                m.iter_mut().zip(t).for_each(|(m, &t)| *m = accumulated(momentum, *m, t));
            }
        });
        Ok(())
    }

    fn pull_by_ledger(
        &self,
        v: &mut CpuReals<S>,
        t: &CpuReals<S>,
        history: &mut BroadcastHistory<Self>,
        reception: &LedgerReception<Self>,
        descent: Option<(&CpuReals<S>, [f64; 2])>,
    ) -> Result<()> {
        let descent = descent.map(|(t, steps)| (&t[..], steps.map(S::from_f64)));
        ledger::record_broadcast(history, v, t, reception);
        ledger::pull(v, history, reception, descent);
        Ok(())
    }

    fn track_by_ledger(
        &self,
        t: &mut CpuReals<S>,
        mass: &mut CpuReals<S>,
        gradient: Gradient<'_, Self>,
        history: &BroadcastHistory<Self>,
        reception: &LedgerReception<Self>,
    ) -> Result<()> {
        ledger::track(t, mass, gradient, history, reception);
        Ok(())
    }

    fn step_logits(
        &self,
        logits: &mut CpuReals<S>,
        schedule: &BatchSchedule<Self>,
        [y, z]: [&CpuPass<S>; 2],
        step: f64,
        mut momentum: Option<(&mut CpuReals<S>, f64)>,
    ) -> Result<()> {
        let (all, learned) = (schedule.samples, schedule.samples - schedule.upper);
        let absent = all - z.ready.program.samples;
        for position in 0..z.agents * learned {
            let agent = position / learned;
            let place = agent * all + schedule.upper + position % learned;
            let sample = schedule.rows[place];
            if sample == NO_SAMPLE {
                continue;
            }
            let logit = &mut logits[sample as usize];
            let weight = logit.sigmoid();
            let slope = schedule.weights[place] * weight * (S::ONE - weight);
            let gap = y.losses[place] - z.losses[place - (agent + 1) * absent];
            let step = S::from_f64(step);
            *logit -= match &mut momentum {
                None => step * slope * gap,
                Some((m, momentum)) => {
                    let m = &mut m[sample as usize];
                    *m = accumulated(S::from_f64(*momentum), *m, slope * gap);
                    step * *m
                }
            };
        }
        Ok(())
    }

    fn norm_gap(
        &self,
        v: &CpuReals<S>,
        packed: Packed,
        gradient: &mut CpuReals<S>,
        scale: f64,
    ) -> Result<()> {
        let square = |(vector, v): (usize, &[S])| match packed.is_own(vector) {
            true => v.iter().map(|&word| word * word).sum(),
            false => S::ZERO,
        };
        let squares: Vec<S> = v.par_chunks(packed.stride).enumerate().map(square).collect();
        for agent in packed.own.range() {
            gradient[agent * X_STRIDE] =
                S::from_f64(scale) * (squares[agent] - squares[packed.agents + agent]);
        }
        Ok(())
    }

    fn decay_from(
        &self,
        x: &mut CpuReals<S>,
        packed: Packed,
        decay: &mut CpuReals<S>,
        scale: f64,
    ) -> Result<()> {
        for agent in packed.own.range() {
            let strength = &mut x[agent * X_STRIDE];
            *strength = strength.larger(S::ZERO);
            for group in decay.chunks_mut(packed.agents) {
                group[agent] = S::from_f64(scale) * *strength;
            }
        }
        Ok(())
    }

    fn losses_and_hits(&self, pass: &CpuPass<S>) -> Result<[Vec<S>; 2]> {
        Ok([pass.losses.clone(), pass.hits.clone()])
    }

    fn replay(&mut self, _key: usize, record: impl FnOnce(&Self) -> Result<()>) -> Result<()> {
        record(self)
    }

    fn wait(&self) -> Result<()> {
        Ok(())
    }
}
