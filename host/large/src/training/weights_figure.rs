//! How the weights of samples are spread: those with right labels above the axis, those with wrong ones below it.

use std::fmt::Write as _;

use super::{TrainingOutcome, WeightHistogram};
use fabswarm_sim::record::agents;
use fabswarm_sim::scenario::Scenario;

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 480.0;
const LEFT: f64 = 76.0;
const RIGHT: f64 = 920.0;
const TOP: f64 = 104.0;
const BOTTOM: f64 = 424.0;
const BARS: usize = WeightHistogram::BARS;

// Okabe and Ito's colours: told apart by colour-blind readers too.
const BLUE: &str = "#0072b2";
const VERMILION: &str = "#d55e00";
const INK: &str = "#282828";

/// Draws the weights of `outcome` as SVG.
pub(super) fn draw(scenario: &Scenario, outcome: &TrainingOutcome) -> String {
    let (training, evaluation) = (&scenario.training, &outcome.evaluation);
    let title = format!(
        "Weights of {} training samples after {} rounds: {}, {} on {}",
        outcome.weights.len(),
        evaluation.round,
        agents(scenario.swarm.agents),
        training.model,
        training.data,
    );
    let auc = evaluation.cleaning.and_then(|cleaning| cleaning.auc);
    let subtitle = format!(
        "{} of the labels wrong{}, test accuracy {:.4}, seed {}",
        percent(outcome.weights.iter().filter(|sample| sample.is_wrong()).count(), outcome.weights.len()),
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
    let bars = [&weights.right, &weights.wrong];
    let most = bars.into_iter().flatten().copied().max().unwrap_or(0).max(1);
    let (middle, width) = ((TOP + BOTTOM) / 2.0, (RIGHT - LEFT) / BARS as f64);
    let height_of = |count: u32| f64::from(count) / most as f64 * (BOTTOM - TOP) / 2.0;

    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{HEIGHT}\" \
         viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"13\" fill=\"{INK}\">\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n"
    );
    let mut text = |x: f64, y: f64, anchor: &str, more: &str, words: &str| {
        let _ = writeln!(
            svg,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\"{more}>{}</text>",
            escaped(words)
        );
    };
    text(LEFT, 32.0, "start", " font-size=\"19\"", title);
    text(LEFT, 54.0, "start", " fill-opacity=\"0.75\"", subtitle);
    text(LEFT, 84.0, "start", &format!(" fill=\"{BLUE}\""), "▲ right labels");
    text(LEFT + 120.0, 84.0, "start", &format!(" fill=\"{VERMILION}\""), "▼ wrong labels");
    for tick in 0..=4 {
        let weight = f64::from(tick) / 4.0;
        text(LEFT + weight * (RIGHT - LEFT), BOTTOM + 20.0, "middle", "", &weight.to_string());
    }
    text((LEFT + RIGHT) / 2.0, BOTTOM + 42.0, "middle", "", "weight of a sample");
    for (y, count) in [(TOP, most), (middle, 0), (BOTTOM, most)] {
        text(LEFT - 8.0, y + 4.0, "end", "", &count.to_string());
    }
    let turned = format!(" transform=\"rotate(-90 22 {middle})\"");
    text(22.0, middle, "middle", &turned, "samples");
    for (counts, colour, is_above) in [(&bars[0], BLUE, true), (&bars[1], VERMILION, false)] {
        for (bar, &count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            let height = height_of(count);
            let _ = writeln!(
                svg,
                "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{height:.1}\" fill=\"{colour}\"><title>{count}</title></rect>",
                LEFT + bar as f64 * width,
                if is_above { middle - height } else { middle },
                width - 1.0
            );
        }
    }
    let _ = writeln!(svg, "<path d=\"M{LEFT} {TOP}V{BOTTOM}M{LEFT} {middle}H{RIGHT}\" stroke=\"{INK}\"/>");
    svg + "</svg>\n"
}

/// Text as XML has it: a data set may be any path.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
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
