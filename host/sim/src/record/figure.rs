//! The convergence plot, as SVG.

use fabswarm_plot::{Figure, LinePoint, Panel, PlotLine, Scale, Threshold};

use super::folder::RunFolder;
use super::{Curve, Error, counted};
use crate::scenario::{AlgorithmKind, Scenario};
use crate::swarm::{ErrorKind, Metrics};

/// Title and labels of the plot.
#[derive(Clone, Debug)]
pub struct Caption {
    /// The problem and the algorithm.
    pub title: String,
    /// With which constants.
    pub subtitle: String,
    /// The quantity that the error measures.
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
                counted(swarm.agents, "agent"),
                network.topology
            ),
            subtitle: format!(
                "{}, λ = {}, η = ({}, {}, {}), {}{}, {}, seed {}",
                match algorithm.kind {
                    AlgorithmKind::Ledger => "FAB through the ledger",
                    AlgorithmKind::Fab => "plain FAB",
                    other => other.word(),
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
                    AlgorithmKind::Ledger => match algorithm.self_weight {
                        None => "κ by links".to_owned(),
                        Some(self_weight) => format!("κ = {self_weight}"),
                    },
                    _ => format!("{} weights", algorithm.weights),
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

/// Draws `curve` into `convergence.svg`: errors above, and the tracking defect, which is decades apart, below.
pub(super) fn write(
    folder: &RunFolder,
    caption: &Caption,
    one_percent: Option<u64>,
    curve: &Curve,
) -> Result<(), Error> {
    let line = |name: &str, colour: usize, value: fn(&Metrics) -> f64| PlotLine {
        name: name.to_owned(),
        colour,
        points: curve.points().map(|row| LinePoint::new(row.round as f64, value(row))).collect(),
    };
    let panel = |lines: Vec<PlotLine>, height: f64| {
        let values: Vec<f64> = lines.iter().flat_map(|line| &line.points).map(|point| point.y).collect();
        let scale = Scale::decades("relative size", values.into_iter());
        Panel { height, ..Panel::new("", "round", scale, lines) }
    };
    let errors = vec![
        line(caption.error, 0, |row| row.error),
        line("consensus error: distance between agents", 1, |row| row.consensus_error),
    ];
    let defect = line("tracking defect: trackers against gradients", 2, |row| row.tracking_defect);
    let reached = one_percent.map(|round| (round as f64, format!("round {round}")));
    let threshold = Some(Threshold { value: 0.01, name: "1 %".to_owned(), reached });
    let mut subtitle = caption.subtitle.clone();
    let mut panels = vec![Panel { threshold, ..panel(errors, 400.0) }];
    // Zero has no place on a logarithmic scale: a defect that is always 0 is stated.
    if defect.points.iter().all(|point| point.y == 0.0) {
        subtitle += "; tracking defect: exactly 0 in every round";
        panels[0].height = 520.0;
    } else {
        panels.push(panel(vec![defect], 220.0));
    }
    folder.write("convergence.svg", Figure::new(&caption.title, &subtitle, panels).to_svg().as_bytes())
}
