//! The `fabswarm` command with a user's problem: `cargo run --package own-problem -- examples/own-problem/rendezvous.toml`.

use fabswarm_shared::problem::Problem;
use fabswarm_shared::rng::{Purpose, Stream};
use fabswarm_sim::scenario::Scenario;
use fabswarm_sim::task::{OwnProblem, OwnTask, Score};
use nalgebra::Vector2;
use own_problem::rendezvous::{COORDINATES, EFFORT, PULL, Rendezvous};
use std::convert::Infallible;
use std::process::ExitCode;

/// Words of a robot's two places.
const PLACES: usize = 2 * COORDINATES;

/// The places of all robots.
#[derive(Debug)]
struct Fleet {
    places: Vec<f32>,
}

impl Fleet {
    /// Draws them, the same ones for the same seed. They could come from a file as well.
    fn draw(scenario: &Scenario) -> Result<Self, Infallible> {
        let robot = |robot: usize| {
            let mut stream = Stream::new(scenario.problem_seed(), robot as u32, 0, Purpose::Problem);
            std::array::from_fn::<f32, PLACES, _>(|_| 3.0 * stream.gaussian_f64() as f32 + 1.0)
        };
        Ok(Self { places: (0..scenario.swarm.agents).flat_map(robot).collect() })
    }

    /// The best place for the beacon: where the fleet gathers is linear in it.
    fn solution(&self) -> Vector2<f64> {
        let mean = |first: usize| {
            let places = self.places.chunks_exact(PLACES).map(|robot| place(&robot[first..]));
            places.sum::<Vector2<f64>>() / (self.places.len() / PLACES) as f64
        };
        let slope = PULL / (1.0 + PULL);
        slope * (mean(COORDINATES) - mean(0) / (1.0 + PULL)) / (slope * slope + EFFORT)
    }
}

/// The first place of a slice.
fn place(scalars: &[f32]) -> Vector2<f64> {
    Vector2::from_fn(|k, _| scalars[k].into())
}

impl OwnTask for Fleet {
    type Problem<'a> = Rendezvous<'a, f32>;

    fn problem(&self, agent: usize) -> Rendezvous<'_, f32> {
        Rendezvous { places: &self.places[agent * PLACES..][..PLACES] }
    }

    fn scores(&self, decisions: &[f32]) -> Vec<Score> {
        let words = self.problem(0).shape().words();
        let solution = self.solution();
        let farthest =
            decisions.chunks_exact(words).map(|v| (place(v) - solution).norm()).fold(0.0, f64::max);
        vec![("distance_of_the_farthest_beacon".into(), farthest)]
    }
}

fn main() -> ExitCode {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/src/rendezvous.rs");
    fabswarm::cli::main_with(std::env::args_os(), &OwnProblem::new(source, Fleet::draw))
}
