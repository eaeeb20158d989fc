//! Output of `fabswarm train`: a line per evaluation, a progress bar below, and a summary at the end.

use std::path::Path;

use super::super::output;
use indicatif::ProgressBar;

use fabswarm_large::device::MemoryUse;
use fabswarm_large::training::report::{self, TrainingReport};
use fabswarm_large::training::{Evaluation, TrainingObserver, TrainingOutcome, TrainingRound};
use fabswarm_sim::air::FrameCounts;
use fabswarm_sim::record::{self, StoppedBecause};
use fabswarm_sim::scenario::{Scenario, TrainingSection};
use fabswarm_view::RunWatch;
use fabswarm_view::message::training as message;

/// Default width of a terminal.
const COLUMNS: usize = 80;

/// Shows a run and writes its report.
pub(super) struct Screen {
    report: TrainingReport,
    watch: RunWatch,
    bar: ProgressBar,
    begun: u32,
}

impl Screen {
    /// A screen for a run that continues from round `begun`.
    pub(super) fn new(report: TrainingReport, watch: RunWatch, begun: u32) -> Self {
        Self { report, watch, bar: ProgressBar::hidden(), begun }
    }

    /// Leaves the terminal as it was, and what is still to be completed.
    pub(super) fn close(self) -> (TrainingReport, RunWatch) {
        self.bar.finish_and_clear();
        (self.report, self.watch)
    }
}

impl TrainingObserver for Screen {
    fn round(&mut self, end: TrainingRound<'_>) {
        let TrainingRound { round, rounds, .. } = end;
        if self.bar.length() != Some(u64::from(rounds)) {
            let template = "{bar:16} round {human_pos}/{human_len}  {per_sec:.1}  {msg}  {eta} left";
            self.bar = output::bar(u64::from(rounds), template).with_position(u64::from(self.begun));
            // Rounds of an earlier process do not count towards the speed of this one.
            self.bar.reset_eta();
        }
        self.bar.set_position(u64::from(round));
        self.watch.view(round.into(), true, |request| end.view(request));
    }

    fn evaluated(&mut self, evaluation: &Evaluation) -> Result<(), record::Error> {
        self.bar.set_message(format!("accuracy {:.4}", evaluation.test.accuracy));
        self.bar.suspend(|| outln!("{}", line(evaluation)));
        let weights = evaluation.weights.as_ref().map(|bars| [&bars.right[..], &bars.wrong[..]]);
        let (round, elapsed) = (evaluation.round.into(), self.watch.elapsed());
        self.watch.tell(message::evaluation(round, elapsed, report::values(evaluation), weights));
        self.report.add(evaluation)
    }
}

/// Where a resumed run continues.
pub(super) fn resumption(round: u32, rounds: u32, scenario: &Scenario) -> String {
    if round < rounds {
        return format!("continuing from round {round} of {rounds}");
    }
    let epochs = scenario.training.epochs;
    format!("all {rounds} rounds of {epochs} epochs are already done; give a larger --epochs to continue")
}

/// One evaluation, on as many lines as it takes.
fn line(now: &Evaluation) -> String {
    let mut items = vec![
        format!("epoch {:>6.1}", now.epoch),
        format!("round {:>6}", now.round),
        format!("test accuracy {:.4}", now.test.accuracy),
        format!("loss {:.4}", now.test.loss),
        format!("consensus {:.1e}", now.consensus_error),
    ];
    if let Some(cleaning) = now.cleaning {
        match cleaning.mean_weight_corrupted {
            Some(wrong) => {
                let right = number(cleaning.mean_weight_clean);
                items.push(format!("AUC {}", number(cleaning.auc)));
                items.push(format!("weights {} wrong, {right} right", number(Some(wrong))));
            }
            None => items.push(format!("mean weight {}", number(cleaning.mean_weight))),
        }
    }
    if let Some(strength) = now.strength {
        items.push(format!("τ {strength:.5}"));
    }
    if now.frames.lost + now.frames.refused > 0 {
        items.push(format!("{} copies lost, {} refused", now.frames.lost, now.frames.refused));
    }
    items.push(format!("{} sent", record::bytes(now.sent_bytes)));
    items.push(format!("{:.1} s", now.seconds));
    wrapped(items.iter().map(String::as_str), "  ", 0, 14)
}

/// Joins `items` with `separator` and breaks lines between them, so that none is wider than [`COLUMNS`]. The first line
/// continues one of `begun` columns; later ones are indented by `indent`.
fn wrapped<'a>(items: impl Iterator<Item = &'a str>, separator: &str, begun: usize, indent: usize) -> String {
    let mut text = String::new();
    let mut columns = begun;
    for item in items {
        let width = item.chars().count();
        if text.is_empty() {
            columns += width;
        } else if columns + separator.len() + width <= COLUMNS {
            text.push_str(separator);
            columns += separator.len() + width;
        } else {
            text.push('\n');
            text.extend(std::iter::repeat_n(' ', indent));
            columns = indent + width;
        }
        text.push_str(item);
    }
    text
}

fn number(value: Option<f64>) -> String {
    value.map_or("–".to_owned(), |value| format!("{value:.3}"))
}

/// The summary of a run.
pub(super) fn summary(scenario: &Scenario, outcome: &TrainingOutcome, folder: &Path) -> String {
    let now = &outcome.evaluation;
    let mut lines: Vec<(&str, String)> = Vec::new();
    let mut line = |name, value| lines.push((name, value));
    let TrainingSection { model, data, method, .. } = &scenario.training;
    let (agents, seed) = (record::counted(scenario.swarm.agents, "agent"), scenario.seed);
    let (algorithm, topology) = (scenario.algorithm.kind, scenario.network.topology);
    let network = format!("{topology} topology, seed {seed}");
    line("swarm", format!("{agents}, {model} on {data}, {method}, {algorithm}, {network}"));
    let ended = match outcome.stopped_because {
        StoppedBecause::Interrupted => "interrupted; kept what was recorded",
        StoppedBecause::Diverged => "diverged",
        _ => "all epochs done",
    };
    line("ended", format!("{ended}, after {} rounds in {:.1} s", now.round, now.seconds));
    line("test accuracy", format!("{:.4}, loss {:.4}", now.test.accuracy, now.test.loss));
    line("consensus error", format!("{:.1e}", now.consensus_error));
    line("tracking defect", format!("{:.1e}", outcome.tracking_defect));
    if let Some(cleaning) = now.cleaning.filter(|cleaning| cleaning.mean_weight_corrupted.is_none()) {
        let mean = number(cleaning.mean_weight);
        line("weights", format!("{mean} on average; no label is known to be wrong"));
    } else if let Some(cleaning) = now.cleaning {
        let [auc, precision, recall] = [cleaning.auc, cleaning.precision, cleaning.recall].map(number);
        let [wrong, right] = [cleaning.mean_weight_corrupted, cleaning.mean_weight_clean].map(number);
        let found = format!("AUC {auc}, precision {precision}, recall {recall}");
        line("wrong labels", format!("{found}; they weigh {wrong}, right ones {right}"));
    }
    if let Some(strength) = now.strength {
        line("regularisation", format!("{strength:.5}"));
    }
    line("speed", format!("{:.1} rounds/s", f64::from(now.round) / now.seconds.max(f64::MIN_POSITIVE)));
    let FrameCounts { sent, lost, refused, .. } = now.frames;
    let bytes = record::bytes(now.sent_bytes);
    line("frames", format!("{sent} sent, {bytes}; {lost} of their copies lost, {refused} refused"));
    let planned = record::bytes(outcome.planned_bytes);
    match outcome.memory {
        Some(MemoryUse::PeakResident(bytes)) => {
            line("memory", format!("{planned} planned; the process had {} at most", record::bytes(bytes)));
        }
        Some(MemoryUse::OnDevice(bytes)) => {
            line("memory", format!("{planned} planned, {} taken on the GPU", record::bytes(bytes)));
        }
        None => line("memory", format!("{planned} planned")),
    }
    line("run folder", folder.display().to_string());
    let width = lines.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let shown = lines.into_iter().map(|(name, value)| {
        let value = wrapped(value.split(' '), " ", width + 4, width + 4);
        format!("  {name:<width$}  {value}\n")
    });
    "\n".to_owned() + &shown.collect::<String>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_between_items_and_keep_within_the_terminal() {
        let items = ["epoch    1.0", "test accuracy 0.6600", "loss 1.0000"].repeat(4);
        let text = wrapped(items.iter().copied(), "  ", 0, 14);
        let fits = text.lines().all(|line| line.chars().count() <= COLUMNS);
        assert!(fits && text.lines().count() > 1, "{text}");
        assert!(text.lines().skip(1).all(|line| line.starts_with(&" ".repeat(14))));
        let items = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(items(&text), items(&["epoch 1.0 test accuracy 0.6600 loss 1.0000"; 4].join(" ")));
        assert_eq!(wrapped(["all", "on", "one"].into_iter(), " ", 10, 10), "all on one");
    }
}
