//! The convergence plot, as SVG and PNG.

use fabswarm_plot::DrawingFailure;
use fabswarm_plot::convergence::{ConvergenceFigure, ConvergencePoint};

use super::folder::RunFolder;
use super::{Curve, Error, agents};
use crate::scenario::{AlgorithmKind, Scenario};
use crate::swarm::ErrorKind;

/// Title and labels of the plot.
#[derive(Clone, Debug)]
pub struct Caption {
    /// What was run.
    pub title: String,
    /// With which constants.
    pub subtitle: String,
    /// What the error measures.
    pub error: &'static str,
}

impl Caption {
    /// The caption of a run of `scenario`.
    pub fn of(scenario: &Scenario) -> Self {
        let (swarm, algorithm, network) = (&scenario.swarm, &scenario.algorithm, &scenario.network);
        let problem = scenario.problem.kind.word().replace('-', " ");
        Self {
            title: format!(
                "{}{}: {}, {} topology",
                problem[..1].to_uppercase(),
                &problem[1..],
                agents(swarm.agents),
                network.topology
            ),
            subtitle: format!(
                "{}, λ = {}, η = ({}, {}, {}), {}{}, {}, seed {}",
                match algorithm.kind {
                    AlgorithmKind::Ledger => "FAB through the ledger",
                    AlgorithmKind::Fab => "plain FAB",
                },
                algorithm.lambda,
                algorithm.eta_x,
                algorithm.eta_y,
                algorithm.eta_z,
                match algorithm.momentum {
                    0.0 => String::new(),
                    momentum => format!("β = {momentum}, "),
                },
                match algorithm.kind {
                    AlgorithmKind::Ledger => format!("κ = {}", algorithm.self_weight),
                    AlgorithmKind::Fab => format!("{} weights", algorithm.weights),
                },
                swarm.precision,
                scenario.seed
            ),
            error: match ErrorKind::of(scenario) {
                ErrorKind::DistanceToSolution => "distance to solution, relative to its size",
                ErrorKind::GradientNorm => "gradient norm, relative to the start",
            },
        }
    }
}

/// Draws `curve` into `convergence.svg` and `convergence.png`.
pub(super) fn write(
    folder: &RunFolder,
    caption: &Caption,
    one_percent: Option<u64>,
    curve: &Curve,
) -> Result<(), Error> {
    let undrawable = |name: &str| {
        let path = folder.path().join(name);
        move |error: DrawingFailure| Error::Undrawable { path, reason: error.to_string() }
    };
    let points = curve.points().map(|row| ConvergencePoint {
        round: row.round,
        error: row.error,
        consensus_error: row.consensus_error,
        tracking_defect: row.tracking_defect,
    });
    let figure = ConvergenceFigure {
        title: caption.title.clone(),
        subtitle: caption.subtitle.clone(),
        error: caption.error.to_owned(),
        one_percent,
        points: points.collect(),
    };
    let svg = figure.svg().map_err(undrawable("convergence.svg"))?;
    folder.write("convergence.svg", svg.as_bytes())?;
    let png = figure.png().map_err(undrawable("convergence.png"))?;
    folder.write("convergence.png", &png)
}
