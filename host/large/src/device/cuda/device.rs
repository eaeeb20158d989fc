//! A GPU as a [`Device`].

use std::sync::Arc;

use super::kernels::{Arg, blocks};
use super::mixing::terms;
use super::ops::most_partial_words;
use super::{
    CapturedWork, Cuda, CudaMixing, CudaPass, DeviceBuffer, Gpu, POOL_PIECE, Precision, Reals, during,
    own_agents,
};
use crate::device::{
    BatchSchedule, Block, BroadcastHistory, Descent, Device, DeviceDataset, Gradient, LedgerReception,
    MemoryUse, Packed, Result, RoundMix, X_STRIDE, cuda_failed,
};
use crate::mixing::MixingMatrix;
use crate::program::ModelProgram;
use cudarc::driver::sys;

impl Device for Cuda {
    type Scalar = f32;
    type Reals = Reals;
    type Indices = DeviceBuffer<u32>;
    type Pass = CudaPass;
    type Mixing = CudaMixing;

    fn name(&self) -> String {
        format!("{}, {}", Gpu(Arc::clone(&self.context)).name(), self.precision.name())
    }

    fn free_bytes(&self) -> Option<u64> {
        Gpu(Arc::clone(&self.context)).free_bytes()
    }

    fn memory_use(&self) -> Option<MemoryUse> {
        Some(MemoryUse::OnDevice(self.allocations.peak_bytes()))
    }

    fn piece_bytes(&self) -> u64 {
        POOL_PIECE
    }

    fn pass_bytes(&self, program: &ModelProgram, agents: usize) -> u64 {
        CudaPass::bytes(self, program, agents, most_partial_words(self, program, agents))
    }

    fn decision_bytes(&self) -> u64 {
        if self.precision == Precision::Bf16 { 6 } else { 4 }
    }

    fn reals(&self, words: usize) -> Result<Reals> {
        Ok(Reals { exact: self.memory(words)?, narrow: None })
    }

    fn decisions(&self, words: usize) -> Result<Reals> {
        let narrow = if self.precision == Precision::Bf16 { Some(self.memory(words)?) } else { None };
        Ok(Reals { exact: self.memory(words)?, narrow })
    }

    fn indices(&self, words: usize) -> Result<DeviceBuffer<u32>> {
        self.memory(words)
    }

    fn write(&self, to: &mut Reals, offset: usize, words: &[f32]) -> Result<()> {
        self.upload(&mut to.exact, offset, words)?;
        self.narrow(to, offset, words.len())
    }

    fn append(&self, from: &Reals, offset: usize, words: usize, to: &mut Vec<f32>) -> Result<()> {
        self.download(&from.exact, offset, words, to)
    }

    fn copy_words(&self, from: &Reals, offset: usize, words: usize, to: &mut Reals) -> Result<()> {
        let part = from.exact.slice.slice(offset..offset + words);
        during("copying", self.main()?.memcpy_dtod(&part, &mut to.exact.slice.slice_mut(..words)))?;
        self.narrow(to, 0, words)
    }

    fn add_scaled(
        &self,
        from: &Reals,
        offset: usize,
        words: usize,
        scale: f32,
        to: &mut Reals,
    ) -> Result<()> {
        assert!(offset + words <= from.exact.slice.len() && words <= to.exact.slice.len(), "{words} words");
        let places = [Arg::At(from.exact.at(offset)), Arg::At(to.exact.pointer)];
        let args = [&places[..], &[Arg::Long(words), Arg::Float(scale.into())]].concat();
        // SAFETY: both buffers have so many words from there on.
        unsafe { self.launch("add_scaled", [blocks(words, 256), 1], [256, 1], &args) }?;
        self.narrow(to, 0, words)
    }

    fn write_indices(&self, to: &mut DeviceBuffer<u32>, words: &[u32]) -> Result<()> {
        self.upload(to, 0, words)
    }

    fn pass(&self, program: &ModelProgram, agents: usize) -> Result<CudaPass> {
        CudaPass::new(self, program, agents, most_partial_words(self, program, agents))
    }

    fn mixing(&self, agents: usize, own: Block) -> Result<CudaMixing> {
        CudaMixing::new(self, agents, own)
    }

    fn write_mixing(&self, to: &mut CudaMixing, mixing: &MixingMatrix) -> Result<()> {
        to.write(self, mixing)
    }

    fn load(
        &self,
        pass: &mut CudaPass,
        data: &DeviceDataset<Self>,
        schedule: &BatchSchedule<Self>,
        upper_sign: f64,
        logits: Option<&Reals>,
    ) -> Result<()> {
        pass.load(self, data, schedule, upper_sign, logits)
    }

    fn run(
        &self,
        passes: &mut [&mut CudaPass],
        parameters: &Reals,
        gradient: Option<&mut Reals>,
        packed: Packed,
        schedule: &BatchSchedule<Self>,
    ) -> Result<()> {
        let gradient = gradient.map(|gradient| gradient.exact.pointer);
        let [main, side, ..] = &self.streams;
        if passes.len() > 1 {
            // Decisions of z may still be mixed on its stream, which the pass of y does not wait for.
            during("forking a stream", side.join(main))?;
            during("joining a stream", side.join(&self.samples))?;
            self.is_forked.set(true);
        }
        during("joining a stream", main.join(&self.samples))?;
        for (group, pass) in passes.iter_mut().enumerate() {
            pass.run(self, group, parameters, gradient, packed, schedule)?;
        }
        self.main().map(|_| ())
    }

    fn pull(
        &self,
        v: &mut Reals,
        packed: Packed,
        rows: &CudaMixing,
        descent: Option<(&Reals, [f64; 2])>,
    ) -> Result<()> {
        let narrow = v.narrow_at(0);
        let (t, steps) = descent.map_or((0, [0.0; 2]), |(t, steps)| (t.exact.pointer, steps));
        let head = [v.exact.pointer, t, narrow].map(Arg::At);
        // SAFETY: decisions, trackers and weights are all of `packed`, and the kernel takes them in this order.
        unsafe { rows.launch(self.main()?, "pull", None, &head, &steps.map(Arg::Float), packed) }
    }

    fn descend(&self, v: &mut Reals, t: &Reals, packed: Packed, descent: &Descent<'_, Self>) -> Result<()> {
        let narrow = v.narrow_at(0);
        let factors = descent.factors.map_or(0, |factors| factors.exact.pointer);
        let awake = descent.awake.map_or(0, |awake| awake.pointer);
        let args = [v.exact.pointer, t.exact.pointer, narrow, factors, awake].map(Arg::At);
        // SAFETY: both vectors are of `packed`, and where there are factors and words of `awake` each agent has one.
        unsafe { self.launch_by_own("descend", args.to_vec(), packed, &descent.steps.map(Arg::Float)) }
    }

    fn copy(&self, from: &Reals, to: &mut Reals, packed: Packed) -> Result<()> {
        let narrow = to.narrow_at(0);
        let args = [Arg::At(to.exact.pointer), Arg::At(narrow), Arg::At(from.exact.pointer)];
        // SAFETY: both vectors are of `packed`.
        unsafe { self.launch_by_own("copy", args.to_vec(), packed, &[]) }
    }

    fn recur(&self, gradient: Gradient<'_, Self>, again: &Reals, packed: Packed, keep: f64) -> Result<()> {
        let [fresh, last, v, strengths] = terms(&gradient);
        let again = Arg::At(again.exact.pointer);
        let args = vec![fresh, last, again, v, strengths];
        // SAFETY: all vectors are of `packed`, and where there is a regulariser it has a strength for each of them.
        unsafe { self.launch_by_own("recur", args, packed, &[Arg::Float(keep)]) }
    }

    fn track(
        &self,
        t: &mut Reals,
        gradient: Gradient<'_, Self>,
        packed: Packed,
        push: &CudaMixing,
    ) -> Result<()> {
        let mut head = vec![Arg::At(t.exact.pointer)];
        head.extend(terms(&gradient));
        // SAFETY: trackers, gradients and weights are all of `packed`, and the kernel takes them in this order.
        unsafe { push.launch(self.main()?, "track", None, &head, &[], packed) }
    }

    fn mix_round(
        &self,
        state: RoundMix<'_, Self>,
        packed: Packed,
        pull: &CudaMixing,
        push: &CudaMixing,
    ) -> Result<()> {
        let RoundMix { v, t, d, strengths, is_open, momentum, steps, adapts_first } = state;
        let name = if adapts_first { "mix_adapted_round" } else { "mix_round" };
        let (main, side) = (self.main()?, &self.streams[1]);
        for (group, &step) in steps.iter().enumerate().take(packed.groups) {
            // z is mixed on its own stream, so that the pass of y begins before that. Products in full f32 have few large blocks,
            // which took longer beside it.
            let is_forked = group > 0 && self.precision != Precision::F32;
            if is_forked {
                during("forking a stream", side.join(main))?;
                self.is_forked.set(true);
            }
            let stream = if is_forked { side } else { main };
            let first = group * packed.agents * packed.stride;
            let [v_at, t_at, d_at] = [&*v, &*t, d].map(|reals| reals.exact.at(first));
            let strengths = strengths.exact.at(group * packed.agents);
            let narrow = v.narrow_at(first);
            let (m, momentum) =
                momentum.as_ref().map_or((0, 0.0), |(m, momentum)| (m.exact.at(first), *momentum));
            let head = [v_at, t_at, d_at, strengths, m, narrow].map(Arg::At);
            let tail = [step, momentum].map(Arg::Float);
            let tail = [&tail[..], &[Arg::Int(usize::from(is_open))]].concat();
            let packed = Packed { groups: 1, ..packed };
            // SAFETY: all vectors are of `packed`, with a strength each, and the kernel takes those of one group in this order.
            unsafe { pull.launch(stream, name, Some(push), &head, &tail, packed) }?;
        }
        Ok(())
    }

    fn close_round(
        &self,
        t: &mut Reals,
        d: &mut Reals,
        (v, strengths): (&Reals, &Reals),
        packed: Packed,
    ) -> Result<()> {
        let args = [&*t, &*d, v, strengths].map(|reals| Arg::At(reals.exact.pointer));
        // SAFETY: all vectors are of `packed`, with a strength each.
        unsafe { self.launch_by_own("close_round", args.to_vec(), packed, &[]) }
    }

    fn accumulate(
        &self,
        m: &mut Reals,
        t: &Reals,
        packed: Packed,
        reception: Option<&LedgerReception<Self>>,
        momentum: f64,
    ) -> Result<()> {
        let awake = reception.map_or(0, |reception| reception.awake.pointer);
        let args = [Arg::At(m.exact.pointer), Arg::At(t.exact.pointer), Arg::At(awake)];
        // SAFETY: both vectors are of `packed`, and there is a word of `awake` for each agent.
        unsafe { self.launch_by_own("accumulate", args.to_vec(), packed, &[Arg::Float(momentum)]) }
    }

    fn pull_by_ledger(
        &self,
        v: &mut Reals,
        t: &Reals,
        history: &mut BroadcastHistory<Self>,
        reception: &LedgerReception<Self>,
        descent: Option<(&Reals, [f64; 2])>,
    ) -> Result<()> {
        let vectors = [&*v, t, &history.v, &history.t].map(|reals| reals.exact.pointer);
        let mut args = vectors.map(Arg::At).to_vec();
        args.extend([reception.awake.pointer, reception.round.pointer].map(Arg::At));
        args.push(Arg::Int(history.depth));
        // SAFETY: all vectors are packed alike, the history of `depth` of them, and the kernel takes them in this order.
        unsafe { self.launch_by_own("record_broadcast", args, history.packed, &[]) }?;
        let narrow = v.narrow_at(0);
        let (t, steps) = descent.map_or((0, [0.0; 2]), |(t, steps)| (t.exact.pointer, steps));
        let mut args = [v.exact.pointer, t, narrow, history.v.exact.pointer].map(Arg::At).to_vec();
        args.extend([reception.ages.pointer, reception.awake.pointer, reception.round.pointer].map(Arg::At));
        args.push(Arg::Int(history.depth));
        // SAFETY: as above.
        unsafe { self.launch_by_own("pull_received", args, history.packed, &steps.map(Arg::Float)) }
    }

    fn track_by_ledger(
        &self,
        t: &mut Reals,
        mass: &mut Reals,
        gradient: Gradient<'_, Self>,
        history: &BroadcastHistory<Self>,
        reception: &LedgerReception<Self>,
    ) -> Result<()> {
        let mut args = [t.exact.pointer, mass.exact.pointer].map(Arg::At).to_vec();
        args.extend(terms(&gradient));
        args.extend([history.t.exact.pointer, reception.ages.pointer, reception.awake.pointer].map(Arg::At));
        args.extend([reception.shares.exact.pointer, reception.round.pointer].map(Arg::At));
        args.push(Arg::Int(history.depth));
        let packed = history.packed;
        args.extend(own_agents(packed));
        let grid = [blocks(packed.stride, 256), packed.groups * packed.agents];
        // SAFETY: all vectors are packed alike, the history of `depth` of them, and the kernel takes them in this order.
        unsafe { self.launch("track_by_ledger", grid, [256, 1], &args) }
    }

    fn step_logits(
        &self,
        logits: &mut Reals,
        schedule: &BatchSchedule<Self>,
        [y, z]: [&CudaPass; 2],
        step: f64,
        momentum: Option<(&mut Reals, f64)>,
    ) -> Result<()> {
        let (m, momentum) = momentum.map_or((0, 0.0), |(m, momentum)| (m.exact.pointer, momentum));
        let args = [
            Arg::At(logits.exact.pointer),
            Arg::At(schedule.rows.pointer),
            Arg::At(schedule.weights.exact.pointer),
            Arg::Int(schedule.samples),
            Arg::Int(schedule.upper),
            Arg::At(y.losses.pointer),
            Arg::At(z.losses.pointer),
            Arg::Int(z.program.samples),
            Arg::Float(step),
            Arg::At(m),
            Arg::Float(momentum),
        ];
        let learned = schedule.samples - schedule.upper;
        let [main, samples] = [self.main()?, &self.samples];
        for has_losses in [&y.has_losses, &z.has_losses].into_iter().flatten() {
            during("waiting for losses", samples.wait(has_losses))?;
        }
        let grid = [blocks(learned, 128), y.agents];
        // SAFETY: rows of the schedule are samples of the dataset, which has a logit for each, and an m where there is one.
        unsafe { self.kernels.launch(samples, "step_logits", grid, [128, 1], 0, &args) }?;
        during("joining a stream", main.join(samples))
    }

    fn norm_gap(&self, v: &Reals, packed: Packed, gradient: &mut Reals, scale: f64) -> Result<()> {
        let args = [
            Arg::At(v.exact.pointer),
            Arg::Int(packed.agents),
            Arg::Int(packed.own.first),
            Arg::Long(packed.stride),
            Arg::At(gradient.exact.pointer),
            Arg::Int(X_STRIDE),
            Arg::Float(scale),
        ];
        // SAFETY: `v` is of `packed` with two groups, and the gradient has `X_STRIDE` words per agent.
        unsafe { self.launch("norm_gap", [packed.own.agents, 1], [1024, 1], &args) }
    }

    fn decay_from(&self, x: &mut Reals, packed: Packed, decay: &mut Reals, scale: f64) -> Result<()> {
        let args = [
            Arg::At(x.exact.pointer),
            Arg::Int(X_STRIDE),
            Arg::Int(packed.agents),
            Arg::Int(packed.groups),
            Arg::At(decay.exact.pointer),
            Arg::Float(scale),
        ];
        // SAFETY: x has `X_STRIDE` words per agent, and decay one per vector of `packed`.
        unsafe { self.launch("decay_from", [blocks(packed.agents, 128), 1], [128, 1], &args) }
    }

    fn losses_and_hits(&self, pass: &CudaPass) -> Result<[Vec<f32>; 2]> {
        let (samples, mut losses, mut hits) = (pass.agents * pass.program.samples, Vec::new(), Vec::new());
        self.download(&pass.losses, 0, samples, &mut losses)?;
        self.download(&pass.hits, 0, samples, &mut hits)?;
        Ok([losses, hits])
    }

    fn replay(&mut self, key: usize, record: impl FnOnce(&Self) -> Result<()>) -> Result<()> {
        match self.replays.get(&key) {
            Some(CapturedWork::Recorded(graph)) => during("replaying a round", graph.launch()),
            None => {
                record(self)?;
                self.replays.insert(key, CapturedWork::Ran);
                Ok(())
            }
            Some(CapturedWork::Ran) => {
                let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
                during("recording a round", self.main()?.begin_capture(mode))?;
                let recorded = record(self);
                let flags = sys::CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
                let graph = during("recording a round", self.main()?.end_capture(flags))?;
                recorded?;
                let graph = graph.ok_or_else(|| cuda_failed("recording a round", "nothing was recorded"))?;
                during("replaying a round", graph.launch())?;
                self.replays.insert(key, CapturedWork::Recorded(graph));
                Ok(())
            }
        }
    }

    fn wait(&self) -> Result<()> {
        during("computing", self.main()?.synchronize())
    }
}
