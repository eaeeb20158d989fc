//! How far a radio reaches.
//!
//! The signal of j at i, in dBm, follows the log-distance law with shadowing,
//!
//! $$ P_{ij} = P_j - L_1 - 10\\,\\alpha\\,\\log_{10} \\max(r_{ij}, 1\\,\\mathrm{m}) + S_{ij}(t), $$
//!
//! and with the margin $m = P_{ij} - \\text{sensitivity}$ a frame comes through with probability
//! $1 / (1 + e^{-m / w})$, where $w$ is `motion.steepness_db`. Transmit powers $P_j$ differ between agents and shadowing
//! $S_{ij}$ between the two directions of a link, so links are directed.

use fabswarm_shared::rng::{Purpose, Stream};

use super::super::link_stream;
use crate::scenario;

/// Below this chance of getting a frame there is no link at all.
const LEAST_RECEPTION: f64 = 0.05;
/// Shadowing goes no further than this many standard deviations, so that a radio has a greatest reach.
const MOST_DEVIATIONS: f64 = 4.0;

/// The radios of a swarm.
#[derive(Clone, Debug)]
pub(super) struct RadioModel {
    /// Signal of each agent at 1 m above the sensitivity, in dB.
    budget: Vec<f64>,
    /// Square of the distance beyond which an agent is never heard, in m².
    reach_squared: Vec<f64>,
    /// Loss in dB for each factor of ten in the *square* of the distance.
    loss_per_decade: f64,
    shadowing_db: f64,
    steepness_db: f64,
    /// The margin of [`LEAST_RECEPTION`].
    least_margin: f64,
    seed: u64,
}

impl RadioModel {
    pub(super) fn new(motion: &scenario::MotionSection, agents: usize, seed: u64) -> Self {
        let least_margin = motion.steepness_db * libm::log(LEAST_RECEPTION / (1.0 - LEAST_RECEPTION));
        let loss_per_decade = 5.0 * motion.path_loss_exponent;
        // Agents' own streams begin with where they fly; powers come from a stream beside it.
        let power = |agent: usize| {
            let mut stream = Stream::new(seed, agent as u32, 1, Purpose::Motion);
            motion.power_dbm + motion.power_spread_db * stream.gaussian_f64()
        };
        let budget: Vec<f64> = (0..agents)
            .map(|agent| power(agent) - motion.reference_loss_db - motion.sensitivity_dbm)
            .collect();
        let farthest = |&budget: &f64| {
            let spare = budget + MOST_DEVIATIONS * motion.shadowing_db - least_margin;
            // A sender that is heard at all is heard within 1 m.
            if spare < 0.0 { 0.0 } else { libm::pow(10.0, spare / loss_per_decade) }
        };
        Self {
            reach_squared: budget.iter().map(farthest).collect(),
            budget,
            loss_per_decade,
            shadowing_db: motion.shadowing_db,
            steepness_db: motion.steepness_db,
            least_margin,
            seed,
        }
    }

    /// Whether anybody at this squared distance could ever hear `sender`.
    pub(super) fn may_reach(&self, sender: usize, distance_squared: f64) -> bool {
        distance_squared <= self.reach_squared[sender]
    }

    /// The chance that a frame of `sender` comes through at this squared distance under this shadowing, if there is a link.
    pub(super) fn reception(&self, sender: usize, distance_squared: f64, deviations: f64) -> Option<f64> {
        let deviations = deviations.clamp(-MOST_DEVIATIONS, MOST_DEVIATIONS);
        let loss = self.loss_per_decade * libm::log10(distance_squared.max(1.0));
        let margin = self.budget[sender] - loss + self.shadowing_db * deviations;
        (margin >= self.least_margin).then(|| 1.0 / (1.0 + libm::exp(-margin / self.steepness_db)))
    }

    /// The shadowing of a directed link at a knot of time, standard normal.
    pub(super) fn shadow(&self, sender: usize, receiver: usize, knot: u32) -> f64 {
        link_stream(self.seed, sender, receiver, knot, Purpose::Motion).gaussian_f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;

    fn radio(spread: f64) -> RadioModel {
        let motion = scenario::MotionSection { power_spread_db: spread, ..Scenario::default().motion };
        RadioModel::new(&motion, 4, 1)
    }

    #[test]
    fn half_of_the_frames_come_through_at_the_sensitivity() {
        // 0 dBm − 40 dB + 95 dB leaves 55 dB, which 27 dB a decade uses up at 10^(55/27) = 109 m.
        let range = 10f64.powf(55.0 / 27.0);
        let at = |factor: f64| radio(0.0).reception(0, (range * factor).powi(2), 0.0);
        assert!((at(1.0).unwrap() - 0.5).abs() < 1e-9);
        assert!(at(0.5).unwrap() > 0.99);
        assert_eq!(at(2.0), None);
    }

    #[test]
    fn nobody_is_heard_beyond_the_greatest_reach() {
        let radio = radio(3.0);
        for sender in 0..4 {
            let edge = radio.reach_squared[sender];
            assert!(radio.reception(sender, edge * 0.99, 9.0).is_some());
            assert!(radio.reception(sender, edge * 1.01, 9.0).is_none());
            assert!(radio.may_reach(sender, edge * 0.99) && !radio.may_reach(sender, edge * 1.01));
        }
    }
}
