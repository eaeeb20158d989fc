//! Where agents are: a function of time alone, so that any round can be asked for at any time.

use fabswarm_diagnostic::Diagnostic;
use fabswarm_shared::rng::{Purpose, Stream};
use nalgebra::Vector3;
use std::f64::consts::TAU;

use crate::scenario::{self, FlightPattern};

/// Waypoints after which a path comes back to its first. At 10 m/s over 200 m that is a flight of 11 minutes.
const PATH_WAYPOINTS: usize = 64;
/// The smallest and the largest orbit, as shares of the largest that fits the area.
const ORBIT_RADII: [f64; 2] = [0.3, 0.9];

/// How a whole swarm flies.
#[derive(Clone, Debug)]
pub(super) enum Flight {
    /// Each agent on its own path.
    Alone(Vec<WaypointPath>),
    /// Everybody on one path, each with its place beside the others.
    Together { path: WaypointPath, places: Vec<Vector3<f64>> },
    /// Each agent on its orbit.
    Orbits(Vec<OrbitPath>),
}

impl Flight {
    pub(super) fn new(
        motion: &scenario::MotionSection,
        agents: usize,
        seed: u64,
    ) -> Result<Self, Diagnostic> {
        let stream = |agent: usize| Stream::new(seed, agent as u32, 0, Purpose::Motion);
        let size = Vector3::new(motion.area_m, motion.area_m, motion.height_m);
        Ok(match motion.pattern {
            FlightPattern::RandomWaypoint => {
                let path =
                    |agent| WaypointPath::draw(&mut stream(agent), Vector3::zeros(), size, motion.speed_m_s);
                Self::Alone((0..agents).map(path).collect())
            }
            FlightPattern::Formation => {
                let places = grid(agents, motion.spacing_m);
                let half = places.iter().fold(Vector3::zeros(), |half: Vector3<f64>, place| half.sup(place));
                if 2.0 * half.max() >= motion.area_m {
                    let (width_m, area_m) = (2.0 * half.max(), motion.area_m);
                    return Err(Diagnostic::new(
                        format!(
                            "a formation of {agents} agents is {width_m} m wide, and motion.area_m is {area_m}"
                        ),
                        format!("lower motion.spacing_m (now {}) or raise motion.area_m", motion.spacing_m),
                    ));
                }
                // The path of agent 0 is everybody's, far enough inside the area for the outermost.
                let path = WaypointPath::draw(&mut stream(0), half, size - 2.0 * half, motion.speed_m_s);
                Self::Together { path, places }
            }
            FlightPattern::Orbit => {
                let orbit = |agent| OrbitPath::draw(&mut stream(agent), agent, motion);
                Self::Orbits((0..agents).map(orbit).collect())
            }
        })
    }

    /// Where `agent` is after `seconds`: inside the area, in m.
    pub(super) fn position(&self, agent: usize, seconds: f64) -> Vector3<f64> {
        match self {
            Self::Alone(paths) => paths[agent].position(seconds),
            Self::Together { path, places } => path.position(seconds) + places[agent],
            Self::Orbits(orbits) => orbits[agent].position(seconds),
        }
    }
}

/// Straight legs from waypoint to waypoint and back to the first, at constant speed.
#[derive(Clone, Debug)]
pub(super) struct WaypointPath {
    waypoints: Vec<Vector3<f64>>,
    /// The way from the first waypoint to the end of each leg.
    ends: Vec<f64>,
    speed: f64,
}

impl WaypointPath {
    fn draw(stream: &mut Stream, corner: Vector3<f64>, size: Vector3<f64>, speed: f64) -> Self {
        let mut waypoint = || corner + size.map(|side| side * stream.uniform_f64());
        let waypoints: Vec<_> = (0..PATH_WAYPOINTS).map(|_| waypoint()).collect();
        let mut way = 0.0;
        let leg = |index: usize| {
            way += (waypoints[(index + 1) % PATH_WAYPOINTS] - waypoints[index]).norm();
            way
        };
        let ends = (0..PATH_WAYPOINTS).map(leg).collect();
        Self { waypoints, ends, speed }
    }

    fn position(&self, seconds: f64) -> Vector3<f64> {
        let whole = self.ends[PATH_WAYPOINTS - 1];
        let way = (self.speed * seconds) % whole;
        let leg = self.ends.partition_point(|&end| end <= way).min(PATH_WAYPOINTS - 1);
        let start = leg.checked_sub(1).map_or(0.0, |before| self.ends[before]);
        let share = (way - start) / (self.ends[leg] - start);
        self.waypoints[leg].lerp(&self.waypoints[(leg + 1) % PATH_WAYPOINTS], share)
    }
}

/// A level orbit around the middle of the area.
#[derive(Clone, Debug)]
pub(super) struct OrbitPath {
    middle: Vector3<f64>,
    radius: f64,
    start: f64,
    /// In rad/s, negative for clockwise.
    turn: f64,
}

impl OrbitPath {
    fn draw(stream: &mut Stream, agent: usize, motion: &scenario::MotionSection) -> Self {
        let half = motion.area_m / 2.0;
        let [smallest, largest] = ORBIT_RADII;
        let radius = half * (smallest + (largest - smallest) * stream.uniform_f64());
        let direction = if agent.is_multiple_of(2) { 1.0 } else { -1.0 };
        Self {
            middle: Vector3::new(half, half, motion.height_m * stream.uniform_f64()),
            radius,
            start: TAU * stream.uniform_f64(),
            turn: direction * motion.speed_m_s / radius,
        }
    }

    fn position(&self, seconds: f64) -> Vector3<f64> {
        let angle = self.start + self.turn * seconds;
        self.middle + self.radius * Vector3::new(libm::cos(angle), libm::sin(angle), 0.0)
    }
}

/// Places of a level grid around the origin, as square as the number allows.
fn grid(agents: usize, spacing: f64) -> Vec<Vector3<f64>> {
    let columns = (1..=agents).find(|columns| columns * columns >= agents).unwrap_or(1);
    let rows = agents.div_ceil(columns);
    let offset = |index: usize, count: usize| spacing * (index as f64 - (count - 1) as f64 / 2.0);
    let place =
        |agent: usize| Vector3::new(offset(agent % columns, columns), offset(agent / columns, rows), 0.0);
    (0..agents).map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;
    use proptest::prelude::*;

    fn motion(pattern: FlightPattern) -> scenario::MotionSection {
        scenario::MotionSection { pattern, ..Scenario::default().motion }
    }

    proptest! {
        #[test]
        fn everybody_stays_in_the_area_at_the_given_speed(seed: u64, from in 0.0..1e5f64) {
            for pattern in [FlightPattern::RandomWaypoint, FlightPattern::Formation, FlightPattern::Orbit] {
                let motion = motion(pattern);
                let flight = Flight::new(&motion, 10, seed).unwrap();
                for agent in 0..10 {
                    let mut way = 0.0;
                    let mut last = flight.position(agent, from);
                    for step in 1..=200 {
                        let here = flight.position(agent, from + f64::from(step) * 0.02);
                        prop_assert!(here.x >= -1e-9 && here.x <= motion.area_m + 1e-9);
                        prop_assert!(here.y >= -1e-9 && here.y <= motion.area_m + 1e-9);
                        prop_assert!(here.z >= -1e-9 && here.z <= motion.height_m + 1e-9);
                        way += (here - last).norm();
                        last = here;
                    }
                    // Corners are cut by at most one step each; few legs end within four seconds.
                    let expected = motion.speed_m_s * 4.0;
                    prop_assert!(way <= expected * 1.000_001 && way > expected * 0.9, "{way} of {expected}");
                }
            }
        }
    }

    #[test]
    fn a_formation_keeps_its_shape() {
        let flight = Flight::new(&motion(FlightPattern::Formation), 10, 7).unwrap();
        let gap = |seconds| flight.position(1, seconds) - flight.position(0, seconds);
        assert!((gap(0.0) - gap(500.0)).norm() < 1e-9);
        assert!((gap(0.0).norm() - 30.0).abs() < 1e-9);
    }

    #[test]
    fn a_formation_wider_than_the_area_is_refused() {
        let wide = scenario::MotionSection { spacing_m: 80.0, ..motion(FlightPattern::Formation) };
        let message = Flight::new(&wide, 10, 7).unwrap_err().to_string();
        assert!(message.contains("motion.spacing_m") && message.contains("240"), "{message}");
    }
}
