//! How fast swarms run, beside what a researcher would write instead.
//!
//! The first table has plain FAB: both sides take plain rounds of FAB policy evaluation, without metrics, files or progress. Repeats of both alternate, so
//! that a machine that slows down slows both, and the median of each counts. Then plain FAB as `fabswarm run` does it, with
//! everything that is recorded. The last table has the ledger: on arrays, through agents and their frames, and with frames
//! sealed, for ten agents and for a thousand, beside dense plain rounds in NumPy.

#[cfg(feature = "boards")]
pub(crate) mod boards;
mod numpy;

pub(crate) use numpy::NumPy;

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use fabswarm_diagnostic::Diagnostic;
use fabswarm_sim::air::LinkSource;
use fabswarm_sim::record::RunFolder;
use fabswarm_sim::scenario::{AlgorithmKind, OrderKind, PenaltyKind, PrecisionKind, Scenario, TopologyKind};
use fabswarm_sim::swarm::{ArrayLedger, Swarm};
use fabswarm_sim::task::Task;
use fabswarm_sim::trial::{self, BuildError, NoObserver};
use fabswarm_view::RecordedTrial;

/// Rounds of one period of the paper topology: both sides run whole ones.
const PERIOD: u32 = 30;

/// A swarm to time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BenchCase {
    pub(crate) agents: usize,
    pub(crate) topology: TopologyKind,
    /// ν, where links are random.
    pub(crate) edge_probability: f64,
}

/// The swarms that are timed: one like the paper's, a large one, and one that no dense matrix holds.
pub(crate) const CASES: [BenchCase; 3] = [
    BenchCase { agents: 10, topology: TopologyKind::Paper, edge_probability: 0.3 },
    BenchCase { agents: 1000, topology: TopologyKind::Paper, edge_probability: 0.05 },
    BenchCase { agents: 100_000, topology: TopologyKind::Ring, edge_probability: 0.0 },
];

impl BenchCase {
    /// Whether two dense n × n matrices of doubles are something a machine has room for.
    pub(crate) const fn fits_dense_matrices(&self) -> bool {
        self.dense_bytes() < 4_000_000_000
    }

    /// Bytes of one of A and B as a dense matrix of doubles.
    pub(crate) const fn dense_bytes(&self) -> u64 {
        8 * (self.agents as u64) * (self.agents as u64)
    }

    fn scenario(&self, precision: PrecisionKind) -> Scenario {
        let mut scenario = Scenario::default();
        scenario.algorithm.kind = AlgorithmKind::Fab;
        scenario.swarm.agents = self.agents;
        scenario.swarm.precision = precision;
        scenario.network.topology = self.topology;
        scenario.network.edge_probability = self.edge_probability;
        // Time does not depend on the steps, as long as nothing overflows: rings of 100,000 agents need tiny ones.
        let algorithm = &mut scenario.algorithm;
        // NumPy runs the published algorithm.
        algorithm.momentum = 0.0;
        (algorithm.order, algorithm.penalty) = (OrderKind::CombineFirst, PenaltyKind::OneSided);
        for step in [&mut algorithm.eta_x, &mut algorithm.eta_y, &mut algorithm.eta_z] {
            *step *= STEP_FACTOR;
        }
        scenario
    }
}

/// The factor of the default steps, on both sides.
const STEP_FACTOR: f64 = 1e-3;

/// Rounds per second of plain FAB in this process, over at least `seconds`.
pub(crate) fn measure(case: &BenchCase, precision: PrecisionKind, seconds: f64) -> Result<f64, BuildError> {
    let mut swarm = trial::build(&case.scenario(precision))?;
    Ok(rounds_per_second(swarm.as_mut(), seconds))
}

/// How the ledger is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LedgerEngine {
    /// On arrays, without frames.
    Arrays,
    /// One agent each, through frames and the air.
    Frames,
    /// The same with sealed frames.
    SealedFrames,
}

/// The swarms of the ledger's table.
pub(crate) const LEDGER_CASES: [BenchCase; 2] = [
    BenchCase { agents: 10, topology: TopologyKind::Paper, edge_probability: 0.3 },
    BenchCase { agents: 1000, topology: TopologyKind::Paper, edge_probability: 0.01 },
];

/// Rounds per second of a swarm with the ledger, over at least `seconds`.
pub(crate) fn measure_ledger(case: &BenchCase, way: LedgerEngine, seconds: f64) -> Result<f64, BuildError> {
    let mut scenario = Scenario::default();
    scenario.swarm.agents = case.agents;
    scenario.network.topology = case.topology;
    scenario.network.edge_probability = case.edge_probability;
    scenario.frames.sealed = way == LedgerEngine::SealedFrames;
    let mut swarm: Box<dyn Swarm> = match way {
        LedgerEngine::Arrays => {
            let (constants, audience) = (trial::setup(&scenario)?.config, scenario.swarm.agents as u32 - 1);
            Box::new(ArrayLedger::new(
                Task::draw(&scenario),
                LinkSource::new(&scenario)?,
                constants,
                audience,
            )?)
        }
        LedgerEngine::Frames | LedgerEngine::SealedFrames => trial::build(&scenario)?,
    };
    Ok(rounds_per_second(swarm.as_mut(), seconds))
}

/// Rounds per second of `rounds` rounds of plain FAB as `fabswarm run` does them: with metrics, files, log and a figure.
pub(crate) fn measure_recorded(case: &BenchCase, rounds: u64) -> anyhow::Result<f64> {
    let mut scenario = case.scenario(PrecisionKind::F32);
    scenario.swarm.rounds = rounds;
    scenario.stop.error_below = 0.0;
    let mut swarm = trial::build(&scenario)?;
    let folder = tempfile::tempdir().map_err(|error| {
        let what = format!("cannot make a temporary folder: {error}");
        Diagnostic::new(what, "set TMPDIR to a folder you may write to")
    })?;
    let kept = RecordedTrial::start(&scenario, "", RunFolder::at(folder.path())?, None)?;
    let kept = kept.run(swarm.as_mut(), &mut NoObserver, &AtomicBool::new(false))?;
    Ok(kept.outcome.summary.common.rounds_per_second)
}

fn rounds_per_second(swarm: &mut dyn Swarm, seconds: f64) -> f64 {
    let mut rounds = 0_u64;
    let mut period = || {
        for _ in 0..PERIOD {
            // Neither steps this small nor the default ones diverge.
            let _ = swarm.step();
        }
    };
    period();
    let started = Instant::now();
    loop {
        period();
        rounds += u64::from(PERIOD);
        let elapsed = started.elapsed().as_secs_f64();
        if elapsed >= seconds {
            return rounds as f64 / elapsed;
        }
    }
}

/// The middle of `values`, of which there are some.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    f64::midpoint(sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
    }
}
