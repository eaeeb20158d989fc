//! A field, drones that measure it, and faulty sensors; or readings of the user's own.

use super::ranking::separation;
use super::{Score, converted, mean_part};
use crate::data_file::{SampleFile, SampleRows};
use crate::scenario;
use fabswarm_diagnostic::Diagnostic;
use fabswarm_shared::problem::{Problem, Readings, SensorTrust};
use fabswarm_shared::rng::{Purpose, Stream};
use fabswarm_shared::scalar::Scalar;
use std::path::Path;

/// How far an agent roams from its own place, where the field spans [-1, 1]².
const ROAM: f64 = 0.6;
/// The field is judged on a grid of this many points a side.
const GRID: usize = 12;
/// A page writes the number of a sensor in a byte.
const MOST_SENSORS: usize = 255;

#[derive(Clone, Debug, Default)]
struct ReadingSet<S> {
    basis: Vec<S>,
    values: Vec<S>,
}

impl<S> ReadingSet<S> {
    fn readings(&self) -> Readings<'_, S> {
        Readings { basis: &self.basis, values: &self.values }
    }
}

#[derive(Clone, Debug, Default)]
struct Drone<S> {
    readings: ReadingSet<S>,
    sensor_of: Vec<u8>,
    calibrated: ReadingSet<S>,
    is_faulty: Vec<bool>,
}

/// Every agent's sensors and readings, and the field they read.
#[derive(Clone, Debug)]
pub struct SensorTrustData<S> {
    drones: Vec<Drone<S>>,
    /// Readings of no agent's sensor, which judge an estimate of the field, and the name of their score.
    test: ReadingSet<f64>,
    score: &'static str,
    /// Whether it is known which sensors are faulty.
    knows_faults: bool,
    sensors: usize,
    regularisation: S,
    /// The standard deviation of the noise on every reading, where readings are drawn.
    noise: f64,
}

/// The first `count` monomials in the coordinates: 1, p, q, p², pq, q², …
fn monomials(p: f64, q: f64, count: usize) -> Vec<f64> {
    // Products in one order: the powers of the standard library are not the same on all platforms.
    let mut degree = vec![1.0];
    let mut monomials = Vec::with_capacity(count);
    while monomials.len() < count {
        monomials.extend_from_slice(&degree);
        let last = degree[degree.len() - 1] * q;
        degree.iter_mut().for_each(|monomial| *monomial *= p);
        degree.push(last);
    }
    monomials.truncate(count);
    monomials
}

fn value_at(field: &[f64], basis: &[f64]) -> f64 {
    field.iter().zip(basis).map(|(coefficient, basis)| coefficient * basis).sum()
}

impl<S: Scalar> SensorTrustData<S> {
    pub(super) fn draw(parameters: &scenario::SensorTrustSection, seed: u64, agents: usize) -> Self {
        let mut common = Stream::new(seed, u32::MAX, 0, Purpose::Problem);
        let field: Vec<f64> = (0..parameters.basis).map(|_| common.gaussian_f64()).collect();
        let drone = |agent: usize| {
            let mut stream = Stream::new(seed, agent as u32, 0, Purpose::Problem);
            let home = [2.0 * stream.uniform_f64() - 1.0, 2.0 * stream.uniform_f64() - 1.0];
            let read = |log: &mut ReadingSet<S>, bias: f64, stream: &mut Stream| {
                let mut place =
                    |home: f64| (home + ROAM * (2.0 * stream.uniform_f64() - 1.0)).clamp(-1.0, 1.0);
                let basis = monomials(place(home[0]), place(home[1]), field.len());
                let value = value_at(&field, &basis) + bias + parameters.noise * stream.gaussian_f64();
                log.basis.extend(converted::<S>(basis));
                log.values.push(S::from_f64(value));
            };
            let mut drone = Drone { is_faulty: vec![false; parameters.sensors], ..Drone::default() };
            for sensor in 0..parameters.sensors {
                let faulty = stream.uniform_f64() < parameters.faulty_share;
                let bias = if faulty { parameters.fault_bias } else { 0.0 };
                for _ in 0..parameters.readings_per_sensor {
                    read(&mut drone.readings, bias, &mut stream);
                    drone.sensor_of.push(sensor as u8);
                }
                drone.is_faulty[sensor] = faulty;
            }
            for _ in 0..parameters.calibrated_readings {
                read(&mut drone.calibrated, 0.0, &mut stream);
            }
            drone
        };
        Self {
            drones: (0..agents).map(drone).collect(),
            sensors: parameters.sensors,
            regularisation: S::from_f64(parameters.regularisation),
            test: on_grid(&field),
            score: "field_rms_error",
            knows_faults: true,
            noise: parameters.noise,
        }
    }

    pub(super) fn read(parameters: &scenario::SensorTrustSection, agents: usize) -> Result<Self, Diagnostic> {
        let path = Path::new(&parameters.file);
        let file = SampleFile::read(path, "value", &["agent", "sensor", "calibrated", "faulty"])?;
        let needed = |column: &str, end: usize, remedy: &str| {
            file.whole(&file.train, column, end, remedy)?.ok_or_else(|| {
                let remedy = "give every reading its `agent` and `sensor`, from 0, and mark calibrated ones with 1 in `calibrated`";
                file.refuse(format!("there is no column `{column}`"), remedy)
            })
        };
        needed("agent", agents, "correct the number, or raise swarm.agents")?;
        let sensor_of = needed("sensor", MOST_SENSORS, "number the sensors of an agent from 0 on")?;
        let calibrated = needed("calibrated", 2, "give 1 where a reading is known to be right, else 0")?;
        let faulty =
            file.whole(&file.train, "faulty", 2, "give 1 where a sensor is known to be faulty, else 0")?;
        let readings_of = |rows: &SampleRows| rows.column("value").unwrap_or_default().to_vec();
        let values = readings_of(&file.train);
        let uncalibrated = (0..values.len()).filter(|&reading| calibrated[reading] == 0);
        let sensors = uncalibrated.map(|reading| sensor_of[reading] + 1).max().unwrap_or(0);
        let inputs: Vec<&[f64]> = file.train.rows().collect();
        let mut drones = Vec::with_capacity(agents);
        for (agent, readings) in file.shards(agents, None)?.into_iter().enumerate() {
            let mut drone = Drone { is_faulty: vec![false; sensors], ..Drone::default() };
            for reading in readings {
                let set = if calibrated[reading] == 1 { &mut drone.calibrated } else { &mut drone.readings };
                set.basis.extend(converted::<S>(inputs[reading].iter().copied()));
                set.values.push(S::from_f64(values[reading]));
                if calibrated[reading] == 0 {
                    let sensor = sensor_of[reading];
                    drone.sensor_of.push(sensor as u8);
                    drone.is_faulty[sensor] |= faulty.as_ref().is_some_and(|faulty| faulty[reading] == 1);
                }
            }
            for (set, what) in [(&drone.readings, "uncalibrated"), (&drone.calibrated, "calibrated")] {
                if set.values.is_empty() {
                    let what = format!("agent {agent} has no {what} reading");
                    return Err(file.refuse(
                        what,
                        "give every agent readings with 0 and with 1 in the column `calibrated`",
                    ));
                }
            }
            drones.push(drone);
        }
        Ok(Self {
            drones,
            test: ReadingSet { basis: file.test.inputs.clone(), values: readings_of(&file.test) },
            score: "test_rms_error",
            knows_faults: faulty.is_some(),
            sensors,
            regularisation: S::from_f64(parameters.regularisation),
            noise: 0.0,
        })
    }

    pub(super) fn simulated_sensor(&self, seed: u64, agent: usize) -> Option<SimulatedSensor> {
        let values = self.drones.get(agent)?.readings.values.iter().map(|value| value.to_f64()).collect();
        Some(SimulatedSensor { values, noise: self.noise, seed, agent: agent as u32 })
    }

    #[inline]
    pub(super) fn problem(&self, agent: usize) -> SensorTrust<'_, S> {
        let drone = &self.drones[agent];
        SensorTrust {
            readings: drone.readings.readings(),
            sensor_of: &drone.sensor_of,
            sensors: self.sensors,
            calibrated: drone.calibrated.readings(),
            regularisation: self.regularisation,
        }
    }

    pub(super) fn scores(&self, decisions: &[S]) -> Vec<Score> {
        let shape = self.problem(0).shape();
        let estimate: Vec<f64> =
            mean_part(decisions, shape, shape.x..shape.x + shape.y).into_iter().map(Scalar::to_f64).collect();
        let mut scores: Vec<Score> = Vec::new();
        if !self.test.values.is_empty() {
            let readings = self.test.basis.chunks_exact(estimate.len()).zip(&self.test.values);
            let squares: f64 =
                readings.map(|(basis, value)| (value - value_at(&estimate, basis)).powi(2)).sum();
            scores.push((self.score.into(), (squares / self.test.values.len() as f64).sqrt()));
        }
        if self.knows_faults {
            let is_faulty = self.drones.iter().map(|drone| &drone.is_faulty[..]);
            let names = [
                "mean_trust_in_sound_sensors",
                "mean_trust_in_faulty_sensors",
                "auc_of_finding_faulty_sensors",
            ];
            scores.extend(separation(decisions, shape, is_faulty, names));
        }
        scores
    }
}

/// A sensor that reads again what an agent's readings say, each with fresh noise.
#[derive(Clone, Debug)]
pub struct SimulatedSensor {
    values: Vec<f64>,
    noise: f64,
    seed: u64,
    agent: u32,
}

impl SimulatedSensor {
    /// The reading whose turn it is in `round`: the same in every run.
    pub fn read(&self, round: u32) -> Option<f64> {
        let value = self.values.get((round as usize).checked_rem(self.values.len())?)?;
        let noise = Stream::new(self.seed, self.agent, round, Purpose::Noise).gaussian_f64();
        Some(value + self.noise * noise)
    }
}

/// The field, read without error at the points of a grid.
fn on_grid(field: &[f64]) -> ReadingSet<f64> {
    let side = |step: usize| 2.0 * step as f64 / (GRID - 1) as f64 - 1.0;
    let at = |cell: usize| monomials(side(cell / GRID), side(cell % GRID), field.len());
    let basis: Vec<f64> = (0..GRID * GRID).flat_map(at).collect();
    let values = basis.chunks_exact(field.len()).map(|basis| value_at(field, basis)).collect();
    ReadingSet { basis, values }
}
