//! `fabswarm paper`: the paper's figures and tables from our implementation, with a verdict on each claim.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Result, bail};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use fabswarm_paper::campaign::{self, CampaignError, Progress};
use fabswarm_paper::experiment::Experiment;
use fabswarm_paper::page;
use indicatif::{ProgressBar, ProgressStyle};

use super::interrupt;

pub(super) fn command() -> Command {
    let options = |command: Command| {
        command
            .arg(
                Arg::new("quick")
                    .long("quick")
                    .action(ArgAction::SetTrue)
                    .help("A small version of each experiment, in seconds; its numbers prove nothing"),
            )
            .arg(
                Arg::new("out")
                    .long("out")
                    .value_name("FOLDER")
                    .default_value("paper")
                    .value_parser(value_parser!(PathBuf))
                    .help("Folder for figures, data and results; what it holds of this build is not computed again"),
            )
    };
    Command::new("paper")
        .about("Run the paper's experiments with all of its methods, and say which of its claims are seen")
        .subcommand_required(true)
        .subcommand(Command::new("list").about("List the experiments, and what of the paper they show"))
        .subcommand(options(
            Command::new("run").about("Run experiments by name").arg(
                Arg::new("names")
                    .value_name("NAME")
                    .num_args(1..)
                    .required(true)
                    .help("Experiments; `fabswarm paper list` lists them"),
            ),
        ))
        .subcommand(options(
            Command::new("all").about("Run all experiments and write one self-contained HTML page"),
        ))
}

pub(super) fn run(matches: &ArgMatches) -> Result<ExitCode> {
    match matches.subcommand() {
        Some(("run", matches)) => {
            let names: Vec<&String> = matches.get_many("names").into_iter().flatten().collect();
            let experiments = Experiment::all(matches.get_flag("quick"))?;
            for name in &names {
                if experiments.iter().all(|experiment| experiment.name != name.as_str()) {
                    bail!("there is no experiment {name}\nhelp: `fabswarm paper list` lists them");
                }
            }
            let is_named = |experiment: &Experiment| names.iter().any(|name| *name == experiment.name);
            run_all(&experiments.into_iter().filter(is_named).collect::<Vec<_>>(), matches)
        }
        Some(("all", matches)) => run_all(&Experiment::all(matches.get_flag("quick"))?, matches),
        _ => {
            for experiment in Experiment::all(false)? {
                println!("{:<20} {}\n{:<20} {}", experiment.name, experiment.title, "", experiment.source);
            }
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn run_all(experiments: &[Experiment], matches: &ArgMatches) -> Result<ExitCode> {
    let out: PathBuf = matches.get_one("out").cloned().unwrap_or_else(|| "paper".into());
    let interrupted = Arc::new(AtomicBool::new(false));
    interrupt::on_ctrl_c(&interrupted)?;
    let progress = CampaignProgress::on_stderr();
    let mut sections = Vec::new();
    for experiment in experiments {
        let outcome = match campaign::run(experiment, &out.join("results"), &progress, &interrupted) {
            Err(error @ CampaignError::Interrupted) => {
                progress.bar.abandon();
                eprintln!("{error}");
                return Ok(ExitCode::from(130));
            }
            outcome => outcome?,
        };
        let section = page::write_experiment(experiment, &outcome, &out.join(experiment.name))?;
        progress.bar.suspend(|| println!("{}", section.to_text()));
        sections.push(section);
    }
    progress.bar.finish_and_clear();
    let page = out.join("index.html");
    let quick = if matches.get_flag("quick") { " --quick" } else { "" };
    let names: Vec<&str> = experiments.iter().map(|experiment| experiment.name).collect();
    page::write_page(
        &page,
        &format!("fabswarm {} paper run {}{quick}", env!("CARGO_PKG_VERSION"), names.join(" ")),
        &sections,
    )?;
    println!("figures, data and verdicts: {}", page.display());
    Ok(ExitCode::SUCCESS)
}

/// A bar over all runs, with the time that is left.
struct CampaignProgress {
    bar: ProgressBar,
}

impl CampaignProgress {
    fn on_stderr() -> Self {
        let style = ProgressStyle::with_template("{wide_bar:.blue} {pos}/{len} runs, {eta} left, {msg}");
        let bar = ProgressBar::new(0);
        if let Ok(style) = style {
            bar.set_style(style);
        }
        Self { bar }
    }
}

impl Progress for CampaignProgress {
    fn expect(&self, cells: u64) {
        self.bar.inc_length(cells);
    }

    fn done(&self, is_new: bool) {
        self.bar.inc(1);
        // Kept results take no time, which must not make the rest look short.
        if !is_new {
            self.bar.reset_eta();
        }
    }

    fn now(&self, what: &str) {
        self.bar.set_message(what.to_owned());
    }
}
