//! Who hears what is said.

use fabswarm_shared::graph::Schedule;
use fabswarm_shared::rng::{Purpose, Stream};

/// What lies between the agents of a crew.
pub trait Air {
    /// Carries what each agent said in `round`: calls `deliver(receiver, frame)` for whatever arrives in it.
    fn carry(&mut self, round: u32, said: &[Vec<Vec<u8>>], deliver: &mut dyn FnMut(usize, &[u8]));
}

/// Links of a schedule, each frame lost with the same probability.
#[derive(Clone, Copy, Debug)]
pub struct LossyLinks<G> {
    /// Who is in reach of whom.
    pub schedule: G,
    /// The share of frames that is lost.
    pub loss: f64,
    /// What losses are drawn from.
    pub seed: u64,
}

impl<G: Schedule> Air for LossyLinks<G> {
    fn carry(&mut self, round: u32, said: &[Vec<Vec<u8>>], deliver: &mut dyn FnMut(usize, &[u8])) {
        for receiver in 0..self.schedule.agents() {
            let mut luck = Stream::new(self.seed, receiver as u32, round, Purpose::Air);
            self.schedule.heard_by(receiver, round, |sender| {
                for frame in &said[sender] {
                    if luck.uniform_f64() >= self.loss {
                        deliver(receiver, frame);
                    }
                }
            });
        }
    }
}
