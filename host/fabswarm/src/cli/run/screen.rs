//! The summary that fits one screen.

use std::fmt::Write as _;
use std::path::Path;

use super::super::output;
use super::braille;
use fabswarm_sim::record::{self, AirReport, Caption, CommonSummary, Curve, StoppedBecause};
use fabswarm_sim::scenario::Scenario;
use fabswarm_sim::trial::TrialOutcome;

/// Columns of the plot, where the terminal has as many beside its labels.
const COLUMNS: u16 = 64;
const LEAST_COLUMNS: u16 = 16;
const LABEL_COLUMNS: u16 = 10;
const ROWS: usize = 10;

/// The summary of a run, with a small convergence plot.
pub(super) fn summary(scenario: &Scenario, outcome: &TrialOutcome, curve: &Curve, folder: &Path) -> String {
    let summary = &outcome.summary;
    let common = &summary.common;
    let error = summary.error;
    let mut lines: Vec<Vec<String>> = Vec::new();
    let mut line = |name: &str, value: String| lines.push(vec![name.to_owned(), value]);
    let CommonSummary { algorithm, topology, seed, frames_sent, copies_lost, copies_refused, .. } = common;
    let (agents, problem) = (record::counted(common.agents, "agent"), &summary.problem);
    line("swarm", format!("{agents}, {problem}, {algorithm}, {topology} topology, seed {seed}"));
    let (below, rounds) = (scenario.stop.error_below, scenario.stop.extra_rounds);
    let ended = match common.stopped_because {
        StoppedBecause::Converged => format!("{} below {below} for {rounds} rounds", error.kind.title()),
        StoppedBecause::SmallGradient => {
            let of_x = if scenario.algorithm.eta_x == 0.0 { "" } else { "x, of " };
            format!("stopped: gradient of {of_x}y and of z below {below} of its start for {rounds} rounds")
        }
        StoppedBecause::MaxRounds => "all rounds done".to_owned(),
        StoppedBecause::Interrupted => "interrupted; kept what was recorded".to_owned(),
        StoppedBecause::Diverged => "diverged".to_owned(),
        StoppedBecause::BoardsFailed => "the boards failed".to_owned(),
        StoppedBecause::BooksBroken => "the ledgers do not balance".to_owned(),
    };
    line("ended", format!("{ended}, after {} rounds in {:.2} s", common.rounds, common.seconds));
    let one_percent = match error.rounds_to_one_percent {
        Some(rounds) => format!("below 1 % after {rounds} rounds"),
        None => "never below 1 %".to_owned(),
    };
    line(error.kind.title(), format!("{:.3e}; {one_percent}", error.last));
    line("consensus error", format!("{:.3e}", common.consensus_error));
    line("tracking defect", format!("{:.3e}", common.tracking_defect));
    line("speed", format!("{:.0} rounds/s", common.rounds_per_second));
    // A frame is sent once and received as many copies, which are lost or rejected one by one.
    let copies = format!("{copies_lost} of their copies lost, {copies_refused} refused");
    line("frames", format!("{frames_sent} sent; {copies}"));
    if let Some(report) = &common.air {
        for (name, value) in air(report) {
            line(name, value);
        }
    }
    if summary.digest_checks > 0 {
        let (checks, mismatches) = (summary.digest_checks, summary.digest_mismatches);
        line("shadows", format!("{checks} digests compared, {mismatches} differed"));
    }
    if let Some(bytes) = summary.deepest_stack_bytes {
        line("deepest stack", format!("{bytes} bytes on a board"));
    }
    for (name, score) in &summary.task {
        line(&name.replace('_', " "), format!("{score:.4}"));
    }
    line("run folder", folder.display().to_string());

    let mut text = plot(curve, Caption::of(scenario).error);
    text.extend(output::aligned(&lines, &[]).map(|line| format!("  {line}\n")));
    text
}

/// The outcomes of frames, by cause; only those that occurred.
fn air(report: &AirReport) -> Vec<(&'static str, String)> {
    let counters = &report.counters;
    let some = |causes: &[(&str, u64)]| {
        let occurred = causes.iter().filter(|(_, count)| *count > 0);
        occurred.map(|(cause, count)| format!("{count} {cause}")).collect::<Vec<_>>().join(", ")
    };
    let lost = &counters.lost;
    let refused: Vec<_> = counters.refused.iter().map(|(cause, count)| (*cause, *count)).collect();
    let worst = report.worst_links.iter();
    let worst = worst.map(|link| format!("{}→{} {:.0} %", link.sender, link.receiver, 100.0 * link.loss()));
    let mut lines = vec![
        (
            "copies",
            some(&[("on links", counters.copies), ("taken", counters.taken), ("useless", counters.useless)]),
        ),
        (
            "copies lost",
            some(&[
                ("out of range", lost.margin),
                ("one by one", lost.iid),
                ("in bursts", lost.burst),
                ("receiver away", lost.away),
            ]),
        ),
        (
            "on the way",
            some(&[
                ("delayed", counters.delayed),
                ("doubled", counters.duplicated),
                ("reordered", counters.reordered),
                ("damaged", counters.damaged),
                ("replayed", counters.replayed),
                ("forged", counters.forged),
                ("relayed", counters.relayed),
                ("fragments forged", counters.forged_fragments),
            ]),
        ),
        ("copies refused", some(&refused)),
        ("worst links", worst.collect::<Vec<_>>().join(", ")),
    ];
    lines.retain(|(_, value)| !value.is_empty());
    lines
}

/// The error over the rounds, logarithmic, with powers of ten at the side.
fn plot(curve: &Curve, error: &str) -> String {
    let terminal = console::Term::stdout().size_checked().map_or(u16::MAX, |(_, columns)| columns);
    let columns: usize = terminal.saturating_sub(LABEL_COLUMNS).clamp(LEAST_COLUMNS, COLUMNS).into();
    if std::env::var_os("TERM").is_some_and(|term| term == "dumb") {
        // It may not know the characters either.
        return String::new();
    }
    let logs = curve.points().map(|point| (point.round as f64, point.error.log10()));
    let logs = logs.filter(|(_, log)| log.is_finite());
    let (mut lowest, mut highest) = (f64::INFINITY, f64::NEG_INFINITY);
    for (_, log) in logs.clone() {
        (lowest, highest) = (lowest.min(log), highest.max(log));
    }
    if lowest > highest {
        return String::new();
    }
    // An error of 1 plus a rounding error should not add another power of ten.
    let (lowest, highest) = (lowest.floor(), (highest - 0.01).ceil().max(lowest.floor() + 1.0));
    let last_round = curve.points().last().map_or(1, |last| last.round.max(1));
    let points = logs.map(|(round, log)| (round / last_round as f64, (log - lowest) / (highest - lowest)));

    let mut text = format!("\n  {error}\n");
    for (row, dots) in braille::plot(points, columns, ROWS).into_iter().enumerate() {
        let label = match row {
            0 => format!("1e{}", highest as i32),
            row if row == ROWS - 1 => format!("1e{}", lowest as i32),
            _ => String::new(),
        };
        let _ = writeln!(text, "  {label:>5} ┤{dots}");
    }
    let _ = writeln!(text, "        └{}", "─".repeat(columns));
    let _ = writeln!(text, "         0{:>width$}\n", format!("round {last_round}"), width = columns - 1);
    text
}
