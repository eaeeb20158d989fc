//! Figure of sample weights: right labels above the axis, wrong ones below it.

use super::{SampleWeight, TrainingOutcome, WeightHistogram};
use fabswarm_plot::{Bar, Bars, Figure, Panel, Scale};
use fabswarm_sim::record::counted;
use fabswarm_sim::scenario::Scenario;

const BARS: usize = WeightHistogram::BARS;

/// Draws the weights of `outcome` as SVG.
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
            left: at as f64 / BARS as f64,
            right: (at + 1) as f64 / BARS as f64,
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
    fn the_histogram_counts_every_sample_and_says_what_it_shows() {
        let mut weights = WeightHistogram { right: [0; BARS], wrong: [0; BARS] };
        (weights.wrong[0], weights.right[BARS - 1]) = (2, 1);
        let svg = histogram("Weights of <3>", "seed 1", &weights);
        assert!(svg.contains("<title>2</title>") && svg.contains("<title>1</title>"));
        assert_eq!(svg.matches("<title>").count(), 2, "one bar for each weight there is");
        for words in ["Weights of &lt;3&gt;", "seed 1", "weight of a sample", "right labels", "wrong labels"]
        {
            assert!(svg.contains(words), "{words}");
        }
    }
}
