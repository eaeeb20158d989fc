//! `fabswarm paper`: the paper's figures and tables from our implementation, with a verdict on each claim.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::{Arg, ArgMatches, Command, value_parser};
use fabswarm_paper::campaign::{CampaignError, Progress};
use fabswarm_paper::named::{self, NamedExperiment};
use fabswarm_paper::page;
use indicatif::{ProgressBar, ProgressStyle};

use super::{flags, interrupt, output};

pub(super) fn command() -> Command {
    let options = |command: Command| {
        command
            .arg(flags::switch(
                "quick",
                "A small version of each experiment, in seconds; its numbers prove nothing",
            ))
            .arg(
                flags::option("seeds", "N", "Run every series for the seeds 1 to N instead of the number that the experiment has")
                    .value_parser(value_parser!(u64).range(1..=1000)),
            )
            .arg(
                flags::path_option("out", "FOLDER", "Folder for figures, data and results; results of this build in it are not computed again, and processes with the same folder share the runs")
                    .default_value("paper"),
            )
    };
    Command::new("paper")
        .about("Run the paper's experiments with all of its methods, and say which of its claims are seen")
        .subcommand_required(true)
        .subcommand(
            Command::new("list").about("List the experiments, and the part of the paper that each shows"),
        )
        .subcommand(options(
            Command::new("run")
                .about("Run experiments by name")
                .arg(
                    Arg::new("names")
                        .value_name("NAME")
                        .num_args(1..)
                        .required(true)
                        .help("Experiments; `fabswarm paper list` lists them"),
                )
                .args(OVERRIDES.map(|(name, value, _, help)| flags::option(name, value, help))),
        ))
        .subcommand(options(
            Command::new("all").about("Run all experiments and write one self-contained HTML page"),
        ))
}

/// Flags that replace a key in the experiments with large models: name, value, key, help.
const OVERRIDES: [(&str, &str, &str, &str); 2] = [
    (
        "model",
        "MODEL",
        "training.model",
        "Train this instead, for example a folder with bert-base, in experiments with large models",
    ),
    (
        "data",
        "DATA",
        "training.data",
        "Train on these instead, for example texts that are tokens already, in experiments with large models",
    ),
];

pub(super) fn run(matches: &ArgMatches) -> Result<ExitCode> {
    match matches.subcommand() {
        Some(("run", matches)) => {
            let names: Vec<&String> = matches.get_many("names").into_iter().flatten().collect();
            let mut experiments = named::all(matches.get_flag("quick"))?;
            for (name, _, key, _) in OVERRIDES {
                if let Some(value) = matches.get_one::<String>(name) {
                    experiments.iter_mut().for_each(|experiment| experiment.set(key, value));
                }
            }
            for name in &names {
                if experiments.iter().all(|experiment| experiment.name() != name.as_str()) {
                    let known: Vec<&str> = experiments.iter().map(|experiment| experiment.name()).collect();
                    let known = known.join(", ");
                    bail!(fault!(
                        "there is no experiment {name}";
                        "`fabswarm paper list` says which figure each shows: {known}"
                    ));
                }
            }
            experiments.retain(|experiment| names.iter().any(|name| *name == experiment.name()));
            run_all(experiments, matches)
        }
        Some(("all", matches)) => {
            let is_quick = matches.get_flag("quick");
            let (run, left): (Vec<_>, Vec<_>) =
                named::all(is_quick)?.into_iter().partition(|experiment| is_quick || experiment.has_device());
            if !left.is_empty() {
                let names: Vec<&str> = left.iter().map(|experiment| experiment.name()).collect();
                eprintln!(
                    "note: there is no GPU, so these are left out: {}; `fabswarm paper run NAME` runs one on the CPU",
                    names.join(", ")
                );
            }
            run_all(run, matches)
        }
        _ => {
            for experiment in named::all(false)? {
                let [title, source] = experiment.about();
                outln!("{:<29} {title}\n{:<29} {source}", experiment.name(), "");
            }
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn run_all(mut experiments: Vec<Box<dyn NamedExperiment>>, matches: &ArgMatches) -> Result<ExitCode> {
    if let Some(&seeds) = matches.get_one::<u64>("seeds") {
        experiments.iter_mut().for_each(|experiment| experiment.set_seeds(seeds));
    }
    let out: PathBuf = matches.get_one("out").cloned().unwrap_or_else(|| "paper".into());
    let interrupted = interrupt::on_ctrl_c()?;
    let style = ProgressStyle::with_template("{wide_bar:.blue} {pos}/{len} runs, {eta} left, {msg}")?;
    let progress = CampaignProgress(ProgressBar::new(0).with_style(style));
    let mut sections = Vec::new();
    for experiment in &experiments {
        let section = match experiment.run(&out, &progress, &interrupted) {
            Err(error @ CampaignError::Interrupted) => {
                progress.0.abandon();
                eprintln!("{error}");
                return Ok(ExitCode::from(130));
            }
            section => section?,
        };
        progress.0.suspend(|| outln!("{}", section.to_text()));
        sections.push(section);
    }
    progress.0.finish_and_clear();
    let page = out.join("index.html");
    let quick = if matches.get_flag("quick") { " --quick" } else { "" };
    let names: Vec<&str> = experiments.iter().map(|experiment| experiment.name()).collect();
    page::write_page(
        &page,
        &format!("fabswarm {} paper run {}{quick}", env!("CARGO_PKG_VERSION"), names.join(" ")),
        &sections,
    )?;
    outln!("figures, data and verdicts: {}", page.display());
    Ok(ExitCode::SUCCESS)
}

/// A bar over all runs, with the time that is left.
struct CampaignProgress(ProgressBar);

impl Progress for CampaignProgress {
    fn expect(&self, cells: u64) {
        self.0.inc_length(cells);
    }

    fn done(&self, is_new: bool) {
        self.0.inc(1);
        // A log has no bar; twenty lines in all show that the campaign goes on.
        let (done, all) = (self.0.position(), self.0.length().unwrap_or(0).max(1));
        if self.0.is_hidden() && !output::is_quiet() && done * 20 / all != (done - 1) * 20 / all {
            eprintln!("{done} of {all} runs done");
        }
        // Kept results take no time, which must not make the rest look short.
        if !is_new {
            self.0.reset_eta();
        }
    }

    fn now(&self, what: &str) {
        self.0.set_message(what.to_owned());
    }
}
