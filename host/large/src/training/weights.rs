//! The learned weights of training samples: as a histogram, as a figure, and as a table from which can be computed again how well
//! wrong labels are found.

use super::TrainingOutcome;
use fabswarm_plot::{Bar, Bars, Figure, Panel, Scale};
use fabswarm_sim::record::table::{self, TableColumn};
use fabswarm_sim::record::{self, RunFolder, counted};
use fabswarm_sim::scenario::Scenario;

/// The learned weight of one training sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SampleWeight {
    /// Its number in the data set, from 0.
    pub sample: u32,
    /// The agent that has it.
    pub agent: u32,
    /// Its label as that agent sees it.
    pub given_label: u8,
    /// Its true label, which no agent sees, where it is known.
    pub true_label: Option<u8>,
    /// σ(ψ), from 0 to 1.
    pub weight: f32,
}

impl SampleWeight {
    /// Whether the agent sees another label than the true one, where that is known.
    pub fn is_wrong(&self) -> Option<bool> {
        self.true_label.map(|label| label != self.given_label)
    }
}

/// Samples by their weight, from 0 to 1 in steps of the same width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WeightHistogram {
    /// Samples whose label is right, or not known to be wrong.
    pub right: [u32; Self::BARS],
    /// Samples whose label is wrong.
    pub wrong: [u32; Self::BARS],
}

impl WeightHistogram {
    /// Steps from 0 to 1.
    pub const BARS: usize = 40;

    /// Counts `weights`.
    pub fn of(weights: &[SampleWeight]) -> Self {
        let mut bars = WeightHistogram { right: [0; Self::BARS], wrong: [0; Self::BARS] };
        for sample in weights {
            let side = if sample.is_wrong() == Some(true) { &mut bars.wrong } else { &mut bars.right };
            side[((sample.weight * Self::BARS as f32) as usize).min(Self::BARS - 1)] += 1;
        }
        bars
    }
}

/// Writes `weights.csv`.
pub(super) fn write_table(folder: &RunFolder, weights: &[SampleWeight]) -> Result<(), record::Error> {
    let whole = |name: &str, value: fn(&SampleWeight) -> Option<i64>| {
        TableColumn::of_integers(name, weights.iter().map(value))
    };
    let columns = [
        whole("sample", |sample| Some(sample.sample.into())),
        whole("agent", |sample| Some(sample.agent.into())),
        whole("given_label", |sample| Some(sample.given_label.into())),
        whole("true_label", |sample| sample.true_label.map(i64::from)),
        TableColumn::of_reals("weight", weights.iter().map(|sample| Some(sample.weight.into()))),
    ];
    table::write_csv(&folder.path().join("weights.csv"), &columns)
}

/// Draws the weights of `outcome` as SVG: right labels above the axis, wrong ones below it.
pub(super) fn draw(scenario: &Scenario, outcome: &TrainingOutcome) -> String {
    let (training, evaluation) = (&scenario.training, &outcome.evaluation);
    let title = format!(
        "Weights of {} after {}: {}, {} on {}",
        counted(outcome.weights.len(), "training sample"),
        counted(evaluation.round as usize, "round"),
        counted(scenario.swarm.agents, "agent"),
        training.model,
        training.data,
    );
    let auc = evaluation.cleaning.and_then(|cleaning| cleaning.auc);
    let truths: Option<Vec<bool>> = outcome.weights.iter().map(SampleWeight::is_wrong).collect();
    let wrong = truths.map_or("labels with unknown truth".to_owned(), |truths| {
        let wrong = truths.iter().filter(|is_wrong| **is_wrong).count();
        format!("{} of the labels wrong", percent(wrong, truths.len()))
    });
    let subtitle = format!(
        "{wrong}{}, test accuracy {:.4}, seed {}",
        auc.map_or(String::new(), |auc| format!(", AUC of finding them {auc:.3}")),
        evaluation.test.accuracy,
        scenario.seed,
    );
    histogram(&title, &subtitle, &WeightHistogram::of(&outcome.weights))
}

fn percent(part: usize, whole: usize) -> String {
    format!("{:.0} %", 100.0 * part as f64 / whole.max(1) as f64)
}

fn histogram(title: &str, subtitle: &str, weights: &WeightHistogram) -> String {
    let kind = |name: &str, colour: usize, counts: &[u32], sign: f64| {
        let bars = counts.iter().enumerate().filter(|(_, count)| **count > 0);
        let bars = bars.map(|(at, &count)| Bar {
            left: at as f64 / WeightHistogram::BARS as f64,
            right: (at + 1) as f64 / WeightHistogram::BARS as f64,
            height: sign * f64::from(count),
        });
        Bars { name: name.to_owned(), colour, bars: bars.collect() }
    };
    let most = f64::from(weights.right.iter().chain(&weights.wrong).copied().max().unwrap_or(0).max(1));
    let samples = Scale::linear("samples", -most, most).whole().mirrored();
    let mut panel = Panel::new("", "weight of a sample", samples, Vec::new());
    panel.x = Scale::linear("weight of a sample", 0.0, 1.0);
    panel.height = 400.0;
    panel.bars =
        vec![kind("▲ right labels", 0, &weights.right, 1.0), kind("▼ wrong labels", 1, &weights.wrong, -1.0)];
    Figure::new(title, subtitle, vec![panel]).to_svg()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sample_is_counted_in_one_bar() {
        let sample =
            |weight, true_label| SampleWeight { sample: 0, agent: 0, given_label: 3, true_label, weight };
        let (right, wrong) = (Some(3), Some(4));
        let all = [sample(0.0, right), sample(0.49, None), sample(1.0, right), sample(0.5, wrong)];
        let bars = WeightHistogram::of(&all);
        let filled = |side: &[u32]| {
            side.iter().enumerate().filter(|(_, count)| **count > 0).map(|(bar, _)| bar).collect::<Vec<_>>()
        };
        assert_eq!((filled(&bars.right), filled(&bars.wrong)), (vec![0, 19, 39], vec![20]));
        let svg = histogram("Weights", "seed 1", &bars);
        assert_eq!(svg.matches("<title>1</title>").count(), 4);
        for words in ["Weights", "seed 1", "weight of a sample", "right labels", "wrong labels"] {
            assert!(svg.contains(words), "{words}");
        }
    }
}
