//! What a training run leaves in its folder: numbers as they come, a summary, and how sample weights are spread.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::events::Events;
use super::{Error, Outcome, Standing, checkpoint};
use crate::large::parameters::Layout;
use crate::scenario::Resolved;

/// The resolved scenario, to resume the run or to run it again.
pub const SCENARIO_FILE: &str = "scenario.toml";
/// Bars of the histogram of weights.
const BARS: usize = 40;

/// The files of a run that grow with it.
#[derive(Debug)]
pub struct Report {
    folder: PathBuf,
    metrics: File,
    events: Events,
}

impl Report {
    /// Starts the files of `folder`, or goes on with them when the run is resumed.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn new(folder: &Path, resolved: &Resolved, resumes: bool) -> Result<Self, Error> {
        let failed = |name: &str| {
            let path = folder.join(name);
            move |cause| Error::Write { path, cause }
        };
        let mut metrics = File::options()
            .create(true)
            .append(true)
            .open(folder.join("metrics.csv"))
            .map_err(failed("metrics.csv"))?;
        if !resumes {
            std::fs::write(folder.join(SCENARIO_FILE), resolved.to_repeatable_toml())
                .map_err(failed(SCENARIO_FILE))?;
            let names: Vec<&str> = columns(None).into_iter().map(|(name, _)| name).collect();
            writeln!(metrics, "{}", names.join(",")).map_err(failed("metrics.csv"))?;
        }
        let events = Events::new(folder).map_err(failed("events"))?;
        Ok(Report { folder: folder.to_owned(), metrics, events })
    }

    /// Adds how the swarm stands.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn add(&mut self, standing: &Standing) -> Result<(), Error> {
        let failed = |cause| Error::Write { path: self.folder.join("metrics.csv"), cause };
        let columns = columns(Some(standing));
        let words: Vec<String> =
            columns.iter().map(|(_, value)| value.map_or(String::new(), |value| value.to_string())).collect();
        writeln!(self.metrics, "{}", words.join(",")).map_err(failed)?;
        let scalars: Vec<(&str, f64)> =
            columns.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
        self.events.scalars(standing.round, &scalars).map_err(failed)
    }

    /// Writes the summary, the mean model and, where samples have weights, their histogram.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn finish(&self, outcome: &Outcome, layout: &Layout) -> Result<(), Error> {
        let write = |name: &str, text: String| {
            let path = self.folder.join(name);
            std::fs::write(&path, text).map_err(|cause| Error::Write { path, cause })
        };
        let mut summary = json!({
            "was_interrupted": outcome.was_interrupted,
            "tracking_defect": outcome.tracking_defect,
        });
        for (name, value) in columns(Some(&outcome.standing)) {
            summary[name] = json!(value);
        }
        write("summary.json", format!("{summary:#}\n"))?;
        if !outcome.weights.is_empty() {
            write("weights.svg", histogram(&outcome.weights))?;
        }
        checkpoint::save_model(&self.folder.join("model.safetensors"), layout, &outcome.mean)
    }
}

/// Names and values of a line of metrics; names alone without a standing.
fn columns(standing: Option<&Standing>) -> Vec<(&'static str, Option<f64>)> {
    let cleaning = standing.and_then(|standing| standing.cleaning);
    let of = |pick: fn(&Standing) -> f64| standing.map(pick);
    vec![
        ("round", of(|now| f64::from(now.round))),
        ("epoch", of(|now| now.epoch)),
        ("test_accuracy", of(|now| now.test.accuracy)),
        ("test_loss", of(|now| now.test.loss)),
        ("consensus_error", of(|now| now.consensus_error)),
        ("cleaning_auc", cleaning.and_then(|cleaning| cleaning.auc)),
        ("cleaning_precision", cleaning.and_then(|cleaning| cleaning.precision)),
        ("cleaning_recall", cleaning.and_then(|cleaning| cleaning.recall)),
        ("mean_weight_corrupted", cleaning.and_then(|cleaning| cleaning.mean_weight_corrupted)),
        ("mean_weight_clean", cleaning.and_then(|cleaning| cleaning.mean_weight_clean)),
        ("regularisation", standing.and_then(|now| now.strength)),
        ("sent_bytes", of(|now| now.sent_bytes as f64)),
        ("frames_sent", of(|now| now.frames.sent as f64)),
        ("frames_lost", of(|now| now.frames.lost as f64)),
        ("frames_refused", of(|now| now.frames.refused as f64)),
        ("seconds", of(|now| now.seconds)),
        ("memory_bytes", standing.and_then(|now| now.memory_bytes).map(|bytes| bytes as f64)),
    ]
}

/// Weights of samples with right labels above the axis, with wrong ones below it.
fn histogram(weights: &[(f32, bool)]) -> String {
    const WIDTH: f64 = 720.0;
    const HEIGHT: f64 = 360.0;
    let mut bars = [[0_usize; BARS]; 2];
    for &(weight, is_corrupted) in weights {
        let bar = ((weight * BARS as f32) as usize).min(BARS - 1);
        bars[usize::from(is_corrupted)][bar] += 1;
    }
    let most = bars.iter().flatten().copied().max().unwrap_or(1).max(1) as f64;
    let (middle, width) = (HEIGHT / 2.0, WIDTH / BARS as f64);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {}\" font-family=\"sans-serif\" font-size=\"13\">\n",
        HEIGHT + 24.0
    );
    for (side, (counts, colour)) in bars.iter().zip(["#0072b2", "#d55e00"]).enumerate() {
        for (bar, &count) in counts.iter().enumerate() {
            let height = count as f64 / most * (middle - 20.0);
            let top = if side == 0 { middle - height } else { middle };
            svg += &format!(
                "<rect x=\"{:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{height:.1}\" fill=\"{colour}\"><title>{count}</title></rect>\n",
                bar as f64 * width,
                width - 1.0
            );
        }
    }
    svg += &format!("<text x=\"4\" y=\"14\" fill=\"#0072b2\">right labels (bars up to {most})</text>\n");
    svg += &format!("<text x=\"4\" y=\"{}\" fill=\"#d55e00\">wrong labels</text>\n", HEIGHT - 6.0);
    svg += &format!(
        "<text x=\"4\" y=\"{0}\">weight 0</text><text x=\"{1}\" y=\"{0}\" text-anchor=\"end\">1</text>\n",
        HEIGHT + 18.0,
        WIDTH - 4.0
    );
    svg + "</svg>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_histogram_counts_every_sample() {
        let svg = histogram(&[(0.0, true), (0.01, true), (1.0, false)]);
        assert!(svg.contains("<title>2</title>") && svg.contains("<title>1</title>"));
        assert_eq!(svg.matches("<rect").count(), 2 * BARS);
    }
}
