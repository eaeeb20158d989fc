//! Agents that fly: who hears whom follows from where they are and how strong their radios are.

mod flight;
mod radio;
use fabswarm_diagnostic::Diagnostic;
use fabswarm_shared::rng::Purpose;
use nalgebra::Vector3;
use std::f64::consts::FRAC_PI_2;

use super::{MOST_AGENTS, link_stream, too_many};
use crate::scenario::Scenario;
use flight::Flight;
use radio::RadioModel;

/// A swarm in flight.
///
/// Every round can be asked for at any time; `Motion::look_at` makes one of them cheap.
#[derive(Clone, Debug)]
pub(super) struct Motion {
    pub(super) agents: usize,
    seed: u64,
    round_s: f64,
    shadowing_s: f64,
    flight: Flight,
    radio: RadioModel,
    geometry: Option<RoundGeometry>,
}

/// Geometry that all links of one round share.
#[derive(Clone, Debug)]
struct RoundGeometry {
    round: u32,
    positions: Vec<Vector3<f64>>,
    knot: u32,
    /// Shadowing of each directed link, receiver by receiver, at this knot and the next.
    shadows: Vec<[f64; 2]>,
}

impl Motion {
    /// The flight that `scenario` describes.
    ///
    /// # Errors
    /// When a formation does not fit its area, or there are more agents than links can be kept for.
    pub(super) fn new(scenario: &Scenario) -> Result<Self, Diagnostic> {
        let (agents, seed, motion) = (scenario.swarm.agents, scenario.network_seed(), &scenario.motion);
        if agents > MOST_AGENTS {
            return Err(too_many(agents));
        }
        Ok(Self {
            agents,
            seed,
            round_s: motion.round_ms / 1000.0,
            shadowing_s: motion.shadowing_s,
            flight: Flight::new(motion, agents, seed)?,
            radio: RadioModel::new(motion, agents, seed),
            geometry: None,
        })
    }

    /// Where `agent` is at the start of `round`, in m from a corner of the area.
    pub(super) fn position(&self, agent: usize, round: u32) -> Vector3<f64> {
        match &self.geometry {
            Some(geometry) if geometry.round == round => geometry.positions[agent],
            _ => self.flight.position(agent, f64::from(round) * self.round_s),
        }
    }

    /// Whether agents keep their relative positions.
    pub(super) const fn is_formation(&self) -> bool {
        matches!(self.flight, Flight::Together { .. })
    }

    /// Whom `receiver` may ever hear where the present distances last, ascending.
    pub(super) fn in_reach(&self, receiver: usize) -> impl Iterator<Item = usize> {
        // Positions on the way differ by rounding.
        const NEARER: f64 = 1.0 - 1e-6;
        let here = self.position(receiver, 0);
        (0..self.agents).filter(move |&sender| {
            let distance_squared = (self.position(sender, 0) - here).norm_squared();
            sender != receiver && self.radio.may_reach(sender, NEARER * distance_squared)
        })
    }

    /// Works out once what all links of `round` need.
    pub(super) fn look_at(&mut self, round: u32) {
        let (knot, _) = self.shade(round);
        let (shadows, mut positions) = match self.geometry.take() {
            Some(geometry) if geometry.knot == knot => (geometry.shadows, geometry.positions),
            Some(geometry) => (self.shadows(knot), geometry.positions),
            None => (self.shadows(knot), Vec::new()),
        };
        positions.clear();
        positions.extend((0..self.agents).map(|agent| self.position(agent, round)));
        self.geometry = Some(RoundGeometry { round, positions, knot, shadows });
    }

    fn shadows(&self, knot: u32) -> Vec<[f64; 2]> {
        let shadow = |receiver: usize| {
            (0..self.agents)
                .map(move |sender| [knot, knot + 1].map(|knot| self.radio.shadow(sender, receiver, knot)))
        };
        (0..self.agents).flat_map(shadow).collect()
    }

    /// The knot of shadowing before a round, and the weights of this knot and the next, whose squares add up to 1: the variance stays.
    fn shade(&self, round: u32) -> (u32, [f64; 2]) {
        let time = f64::from(round) * self.round_s / self.shadowing_s;
        let angle = FRAC_PI_2 * (time - time.floor());
        (time as u32, [libm::cos(angle), libm::sin(angle)])
    }

    /// Calls `visit` for each link to `receiver` in `round`, ascending by sender, with whether the sender's frames come
    /// through. Frames of one round fare alike: they are sent back to back, and the channel changes more slowly.
    pub(super) fn each_link(&self, receiver: usize, round: u32, mut visit: impl FnMut(usize, bool)) {
        let here = self.position(receiver, round);
        let (knot, weights) = self.shade(round);
        let geometry = self.geometry.as_ref().filter(|geometry| geometry.round == round);
        for sender in (0..self.agents).filter(|&sender| sender != receiver) {
            let distance_squared = (self.position(sender, round) - here).norm_squared();
            if !self.radio.may_reach(sender, distance_squared) {
                continue;
            }
            let [now, next] = match geometry {
                Some(geometry) => geometry.shadows[receiver * self.agents + sender],
                None => [knot, knot + 1].map(|knot| self.radio.shadow(sender, receiver, knot)),
            };
            let deviations = weights[0] * now + weights[1] * next;
            if let Some(chance) = self.radio.reception(sender, distance_squared, deviations) {
                let draw = link_stream(self.seed, sender, receiver, round, Purpose::Air).uniform_f64();
                visit(sender, draw < chance);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::LinkSource;
    use super::*;
    use crate::scenario::{FlightPattern, TopologyKind};
    use fabswarm_shared::graph::check_joint_connectivity;

    fn scenario(pattern: FlightPattern, seed: u64) -> Scenario {
        let mut scenario = Scenario { seed, ..Scenario::default() };
        scenario.network.topology = TopologyKind::Motion;
        scenario.motion.pattern = pattern;
        scenario
    }

    fn links(motion: &Motion, round: u32) -> Vec<(usize, usize, bool)> {
        let mut links = Vec::new();
        for receiver in 0..motion.agents {
            motion.each_link(receiver, round, |sender, is_received| {
                links.push((receiver, sender, is_received))
            });
        }
        links
    }

    #[test]
    fn looking_changes_no_link() {
        let motion = Motion::new(&scenario(FlightPattern::RandomWaypoint, 3)).unwrap();
        let mut looked = motion.clone();
        for round in [0, 1, 49, 50, 51, 7, 100_000] {
            looked.look_at(round);
            assert_eq!(links(&looked, round), links(&motion, round));
        }
    }

    #[test]
    fn links_are_directed_and_appear_and_vanish() {
        let motion = Motion::new(&scenario(FlightPattern::RandomWaypoint, 3)).unwrap();
        let (mut one_way, mut changed, mut all) = (0, 0, 0);
        let mut before = links(&motion, 0);
        for round in (50..2000).step_by(50) {
            let now = links(&motion, round);
            let has = |links: &[(usize, usize, bool)], from, to| {
                links.iter().any(|link| (link.0, link.1) == (to, from))
            };
            one_way += now.iter().filter(|link| !has(&now, link.0, link.1)).count();
            changed += now.iter().filter(|link| !has(&before, link.1, link.0)).count();
            all += now.len();
            before = now;
        }
        assert!(one_way * 20 > all, "{one_way} of {all} links go one way");
        assert!(changed * 20 > all, "{changed} of {all} links are new after 5 s");
    }

    #[test]
    fn the_default_flights_are_jointly_connected() {
        for pattern in [FlightPattern::RandomWaypoint, FlightPattern::Formation, FlightPattern::Orbit] {
            for seed in 1..=5 {
                let scenario = scenario(pattern, seed);
                let mut source = LinkSource::new(&scenario).unwrap();
                let window = scenario.network.connectivity_window;
                for start in (0..6000).step_by(window as usize) {
                    let union = source.record_union(start..start + window);
                    let found = check_joint_connectivity(&union.trace(), 0..1, &mut [false; 10]);
                    assert_eq!(found, Ok(()), "{pattern}, seed {seed}, from round {start}");
                }
            }
        }
    }
}
