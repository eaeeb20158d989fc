//! Claims that the paper draws from its experiments with large models.

use super::{TrainingRunOutcome, TrainingSeries, TrainingWorkload};
use crate::experiment::{Experiment, distinct};
use crate::verdict::{Verdict, find, finding, judged};

/// Names of series in the experiments' files.
const FAB: &str = "FAB";
const CONTROL: &str = "Push-Pull, clean samples only";
/// The panel of times with the most wrong labels.
const MANY_WRONG: &str = "cr = 0.3";

pub(super) fn of(experiment: &Experiment<TrainingWorkload>, series: &[TrainingSeries]) -> Vec<Verdict> {
    let panels = experiment.panels();
    let mut verdicts = vec![
        more_accurate(
            "FAB is more accurate than every single-level baseline that the paper has",
            &panels,
            series,
            |label| label != FAB && label != CONTROL,
        ),
        more_accurate(
            "(A control that the paper lacks.) FAB is more accurate than Push-Pull on the clean samples alone",
            &panels,
            series,
            |label| label == CONTROL,
        ),
    ];
    match experiment.name {
        "hyper-cleaning-corruption" => verdicts.push(widening(&panels, series)),
        "hyper-cleaning-heterogeneity" => {
            verdicts.push(milder(&panels, series));
            verdicts.push(same_memory(&panels, series));
        }
        "hyper-cleaning-connectivity" => verdicts.push(unchanged(&panels, series)),
        "hyper-cleaning-width" => verdicts.push(linear_bytes(&panels, series)),
        "hyper-tuning" => verdicts.push(learned(&panels, series)),
        "texts-time" => {
            let (high, low): (Vec<&str>, Vec<&str>) = panels.iter().partition(|panel| **panel == MANY_WRONG);
            verdicts.push(sooner(
                "Where few labels are wrong, baselines need less time than FAB",
                &low,
                series,
                false,
            ));
            verdicts.push(sooner(
                "Where more labels are wrong, FAB needs less time than the baselines",
                &high,
                series,
                true,
            ));
        }
        _ => {}
    }
    // Verdicts on panels and baselines that were not run.
    verdicts.retain(|verdict| !verdict.measured.is_empty());
    verdicts
}

/// Labels other than FAB's, in order.
fn baselines(series: &[TrainingSeries]) -> Vec<&str> {
    distinct(series.iter().map(|one| one.series.label.as_str()).filter(|label| *label != FAB))
}

/// The values one by one, as `text` shows them.
fn listed<T>(values: &[T], text: impl Fn(&T) -> String) -> String {
    values.iter().map(text).collect::<Vec<_>>().join(", ")
}

fn accuracy(series: &[TrainingSeries], panel: &str, label: &str) -> Option<f64> {
    find(series, panel, label).map(|one| one.accuracy().mean)
}

fn more_accurate(
    claim: &str,
    panels: &[&str],
    series: &[TrainingSeries],
    is_meant: impl Fn(&str) -> bool,
) -> Verdict {
    let (mut holds, mut measured) = (Vec::new(), Vec::new());
    for panel in panels {
        let Some(fab) = accuracy(series, panel, FAB) else { continue };
        let mut others = Vec::new();
        for label in baselines(series).into_iter().filter(|label| is_meant(label)) {
            let Some(other) = accuracy(series, panel, label) else { continue };
            holds.push(fab > other);
            others.push(format!("{label} {other:.3}"));
        }
        if !others.is_empty() {
            measured.push(format!("{panel}: FAB {fab:.3}, {}", others.join(", ")));
        }
    }
    Verdict {
        claim: claim.into(),
        measured: measured.join("; "),
        finding: finding(&holds, "panel and baseline"),
    }
}

/// FAB's lead in each panel, over the best of the paper's baselines.
fn leads(panels: &[&str], series: &[TrainingSeries]) -> Vec<f64> {
    let lead = |panel: &&str| {
        let others = baselines(series).into_iter().filter(|label| *label != CONTROL);
        let best =
            others.filter_map(|label| accuracy(series, panel, label)).fold(f64::NEG_INFINITY, f64::max);
        accuracy(series, panel, FAB).map(|fab| fab - best)
    };
    panels.iter().filter_map(lead).collect()
}

fn widening(panels: &[&str], series: &[TrainingSeries]) -> Verdict {
    let leads = leads(panels, series);
    let texts = listed(&leads, |lead| format!("{lead:+.3}"));
    Verdict {
        claim: "FAB's lead grows with the corruption rate".into(),
        measured: format!("over the best of the paper's baselines, panel by panel: {texts}"),
        finding: finding(&leads.windows(2).map(|pair| pair[1] > pair[0]).collect::<Vec<_>>(), "the step"),
    }
}

/// The fall of accuracy from the first panel, the least heterogeneous, to the last.
fn milder(panels: &[&str], series: &[TrainingSeries]) -> Verdict {
    let (first, last) = (panels.first().copied().unwrap_or(""), panels.last().copied().unwrap_or(""));
    let fall = |label: &str| Some(accuracy(series, first, label)? - accuracy(series, last, label)?);
    let fab = fall(FAB).unwrap_or(f64::NAN);
    let others: Vec<(&str, f64)> =
        baselines(series).into_iter().filter_map(|label| Some((label, fall(label)?))).collect();
    let texts = listed(&others, |(label, fall)| format!("{label} {fall:.3}"));
    Verdict {
        claim: "FAB loses less accuracy to heterogeneity than the baselines".into(),
        measured: format!("from {first} to {last}: FAB {fab:.3}, {texts}"),
        finding: finding(&others.iter().map(|(_, fall)| fab < *fall).collect::<Vec<_>>(), "the baseline"),
    }
}

/// The seconds that FAB and each baseline take to an accuracy that both reach.
fn sooner(claim: &str, panels: &[&str], series: &[TrainingSeries], is_fab: bool) -> Verdict {
    let pairs =
        panels.iter().flat_map(|panel| baselines(series).into_iter().map(move |label| (*panel, label)));
    let cases = pairs.filter_map(|(panel, label)| {
        let (fab, other) = (find(series, panel, FAB)?, find(series, panel, label)?);
        let level = fab.accuracy().mean.min(other.accuracy().mean);
        let (ours, theirs) = (fab.seconds_to(level)?, other.seconds_to(level)?);
        let holds = if is_fab { ours < theirs } else { theirs < ours };
        Some((holds, format!("{panel}, to {level:.3}: FAB {ours:.0} s, {label} {theirs:.0} s")))
    });
    judged(claim, "panel and baseline", cases)
}

fn same_memory(panels: &[&str], series: &[TrainingSeries]) -> Verdict {
    let memory = |panel: &str| find(series, panel, FAB)?.mean(|run| Some(run.memory_bytes? as f64));
    let memories: Vec<f64> = panels.iter().filter_map(|panel| memory(panel)).collect();
    let (least, most) = memories
        .iter()
        .fold((f64::INFINITY, 0.0_f64), |(least, most), now| (least.min(*now), most.max(*now)));
    let texts = listed(&memories, |bytes| format!("{:.0} MiB", bytes / f64::from(1 << 20)));
    Verdict {
        claim: "Heterogeneity does not change peak memory (within 2 %)".into(),
        measured: format!("FAB, panel by panel: {texts}"),
        finding: finding(&[most <= 1.02 * least], "the panel"),
    }
}

fn unchanged(panels: &[&str], series: &[TrainingSeries]) -> Verdict {
    let cases = [FAB].into_iter().chain(baselines(series)).map(|label| {
        let all: Vec<f64> = panels.iter().filter_map(|panel| accuracy(series, panel, label)).collect();
        let range = all.iter().copied().fold(f64::NEG_INFINITY, f64::max)
            - all.iter().copied().fold(f64::INFINITY, f64::min);
        (range < 0.01, format!("{label} {}", listed(&all, |accuracy| format!("{accuracy:.3}"))))
    });
    judged("Connectivity hardly changes accuracy (by less than .01)", "the method", cases)
}

fn linear_bytes(panels: &[&str], series: &[TrainingSeries]) -> Verdict {
    let value = |panel: Option<&&str>, value: &dyn Fn(&TrainingRunOutcome) -> Option<f64>| {
        panel.and_then(|panel| find(series, panel, FAB)).and_then(|one| one.mean(value))
    };
    let times = |of: &dyn Fn(&TrainingRunOutcome) -> Option<f64>| {
        value(panels.last(), of).unwrap_or(f64::NAN) / value(panels.first(), of).unwrap_or(f64::NAN)
    };
    let bytes = times(&|run| Some(run.last().bytes as f64 / f64::from(run.last().round)));
    let memory = times(&|run| Some(run.memory_bytes? as f64));
    let seconds = times(&|run| Some(run.last().seconds / f64::from(run.last().round)));
    let (first, last) = (panels.first().copied().unwrap_or(""), panels.last().copied().unwrap_or(""));
    // From 64 to 512 neurons.
    let holds = [bytes, memory, seconds].map(|times| (6.0..10.0).contains(&times));
    Verdict {
        claim: "Communication, memory and time grow linearly with the width".into(),
        measured: format!(
            "from {first} to {last} (8 times): bytes {bytes:.1} times, memory {memory:.1} times, time of a round {seconds:.1} times"
        ),
        finding: finding(&holds, "what is measured"),
    }
}

fn learned(panels: &[&str], series: &[TrainingSeries]) -> Verdict {
    let ends: Vec<f64> = panels
        .iter()
        .filter_map(|panel| find(series, panel, FAB)?.mean(|run| run.last().regularisation))
        .collect();
    let texts = listed(&ends, |end| format!("{end:.4}"));
    Verdict {
        claim: "The learned regularisation ends near .15".into(),
        measured: format!("panel by panel: {texts}"),
        finding: finding(&ends.iter().map(|end| (0.1..0.2).contains(end)).collect::<Vec<_>>(), "the panel"),
    }
}
