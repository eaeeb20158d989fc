//! Reading the state of all agents, and putting it back.

use super::{Fab, Upper, X_STRIDE};
use crate::large::device::{Device, Result};
use crate::large::real::Real;

/// Everything a run needs to go on bit for bit: what a checkpoint holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot<S> {
    pub round: u32,
    /// Named buffers, in the packing of the run.
    pub buffers: Vec<(&'static str, Vec<S>)>,
}

impl<D: Device> Fab<D> {
    pub fn rounds(&self) -> u32 {
        self.round
    }

    pub fn device(&self) -> &D {
        &self.device
    }

    /// y of one agent, packed.
    pub fn y(&self, agent: usize) -> Result<Vec<D::Scalar>> {
        self.device.read(&self.v, agent * self.packed.stride, self.packed.stride)
    }

    /// z of one agent, packed; y where there is one level only.
    pub fn z(&self, agent: usize) -> Result<Vec<D::Scalar>> {
        let vector = (self.packed.groups - 1) * self.packed.agents + agent;
        self.device.read(&self.v, vector * self.packed.stride, self.packed.stride)
    }

    /// The mean of all agents' y, and the root mean square distance of agents to it, relative to its norm.
    pub fn mean(&self) -> Result<(Vec<D::Scalar>, f64)> {
        let mut mean = vec![0.0_f64; self.packed.stride];
        let mut squares = 0.0;
        for agent in 0..self.packed.agents {
            for (mean, word) in mean.iter_mut().zip(self.y(agent)?) {
                *mean += word.to_f64() / self.packed.agents as f64;
                squares += word.to_f64() * word.to_f64();
            }
        }
        let norm: f64 = mean.iter().map(|word| word * word).sum();
        let spread = (squares / self.packed.agents as f64 - norm).max(0.0);
        let consensus = if norm > 0.0 { (spread / norm).sqrt() } else { spread.sqrt() };
        Ok((mean.into_iter().map(D::Scalar::from_f64).collect(), consensus))
    }

    /// ψ of every sample, when samples have one.
    pub fn logits(&self) -> Result<Option<Vec<D::Scalar>>> {
        match &self.upper {
            Upper::Logits(logits) => self.device.read(logits, 0, self.data.samples).map(Some),
            _ => Ok(None),
        }
    }

    /// τ of every agent, when it is learned.
    pub fn strengths(&self) -> Result<Option<Vec<D::Scalar>>> {
        match &self.upper {
            Upper::Strength { x, .. } => {
                let words = self.device.read(x, 0, self.packed.agents * X_STRIDE)?;
                Ok(Some(words.into_iter().step_by(X_STRIDE).collect()))
            }
            _ => Ok(None),
        }
    }

    /// Every buffer that outlives a round, by name.
    fn named(&self) -> Vec<(&'static str, &D::Reals, usize)> {
        let words = self.packed.words();
        let vectors = self.packed.groups * self.packed.agents;
        let last = (self.round % 2) as usize;
        let mut buffers = vec![
            ("v", &self.v, words),
            ("t", &self.t, words),
            ("d", &self.d[last], words),
            ("decay", &self.decay, vectors),
        ];
        match &self.upper {
            Upper::Logits(logits) => buffers.push(("x", logits, self.data.samples)),
            Upper::Strength { x, t, d } => {
                let words = self.packed.agents * X_STRIDE;
                buffers.extend([("x", x, words), ("x.t", t, words), ("x.d", &d[last], words)]);
            }
            Upper::None => {}
        }
        if let Some((mass, _)) = &self.waiting {
            buffers.push(("waiting", mass, self.packed.agents * words));
        }
        buffers
    }

    /// The whole state.
    ///
    /// # Errors
    /// When the device fails.
    pub fn snapshot(&self) -> Result<Snapshot<D::Scalar>> {
        let read = |(name, buffer, words)| Ok((name, self.device.read(buffer, 0, words)?));
        Ok(Snapshot {
            round: self.round,
            buffers: self.named().into_iter().map(read).collect::<Result<_>>()?,
        })
    }

    /// Names and words of the buffers a snapshot of this run has.
    pub fn snapshot_shape(&self) -> Vec<(&'static str, usize)> {
        self.named().into_iter().map(|(name, _, words)| (name, words)).collect()
    }

    /// Goes back to a snapshot of a run of the same shape.
    ///
    /// # Errors
    /// When the device fails.
    ///
    /// # Panics
    /// When a buffer of [`Fab::snapshot_shape`] is missing from `snapshot` or of another size.
    pub fn restore(&mut self, snapshot: &Snapshot<D::Scalar>) -> Result<()> {
        for (name, words) in self.snapshot_shape() {
            let found = snapshot.buffers.iter().find(|(other, _)| *other == name);
            assert_eq!(found.map(|(_, words)| words.len()), Some(words), "snapshot buffer `{name}`");
        }
        self.round = snapshot.round;
        let last = (self.round % 2) as usize;
        for (name, words) in &snapshot.buffers {
            let to = match (*name, &mut self.upper, &mut self.waiting) {
                ("v", ..) => &mut self.v,
                ("t", ..) => &mut self.t,
                ("d", ..) => &mut self.d[last],
                ("decay", ..) => &mut self.decay,
                ("x", Upper::Logits(logits), _) => logits,
                ("x", Upper::Strength { x, .. }, _) => x,
                ("x.t", Upper::Strength { t, .. }, _) => t,
                ("x.d", Upper::Strength { d, .. }, _) => &mut d[last],
                ("waiting", _, Some((mass, _))) => mass,
                _ => continue,
            };
            self.device.write(to, 0, words)?;
        }
        Ok(())
    }
}
