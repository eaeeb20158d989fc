//! `fabswarm train`: a swarm of large agents.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::{Arg, ArgMatches, Command, builder::PossibleValuesParser, value_parser};
use indicatif::{ProgressBar, ProgressStyle};

use super::{flags, interrupt};
use crate::data::Cache;
use crate::large::device::cpu::Cpu;
use crate::large::device::cuda::{Cuda, Precision};
use crate::large::plan::Plan;
use crate::large::training::report::{Report, SCENARIO_FILE};
use crate::large::training::{self, Error, Keeping, Observer, Outcome, Prepared, Standing};
use crate::record::RunFolder;
use crate::scenario;

pub(super) fn command() -> Command {
    Command::new("train")
        .about("Train a swarm of large agents: MLP, CNN or BERT, all of them in one batch on a CPU or a GPU")
        .arg(
            Arg::new("scenario")
                .value_name("SCENARIO")
                .help("Scenario file (TOML); flags lie over it")
                .value_parser(value_parser!(PathBuf)),
        )
        .arg(flags::print_scenario())
        .arg(
            Arg::new("device")
                .long("device")
                .default_value("auto")
                .value_parser(PossibleValuesParser::new(["auto", "cpu", "cuda"]))
                .help("Where to compute; auto takes a GPU where one works"),
        )
        .arg(
            Arg::new("precision")
                .long("precision")
                .default_value("tf32")
                .value_parser(PossibleValuesParser::new(["f32", "tf32", "bf16"]))
                .help("What a GPU multiplies in; state is f32 in all"),
        )
        .arg(
            Arg::new("resume")
                .long("resume")
                .value_name("FOLDER")
                .help("Go on with the run in this folder, from its last checkpoint")
                .value_parser(value_parser!(PathBuf))
                .conflicts_with_all(["scenario", "out"]),
        )
        .args(flags::arguments(scenario::Command::Train))
}

pub(super) fn run(matches: &ArgMatches) -> Result<ExitCode> {
    let path = |name| matches.get_one::<PathBuf>(name).map(PathBuf::as_path);
    let resumed = path("resume");
    let file = resumed.map(|folder| folder.join(SCENARIO_FILE)).or(path("scenario").map(Path::to_owned));
    let flags = flags::given(scenario::Command::Train, matches);
    let resolved = scenario::resolve_for(scenario::Command::Train, file.as_deref(), &flags)?;
    flags::tell_notes(&resolved);
    if matches.get_flag("print-scenario") {
        print!("{}", resolved.to_toml());
        return Ok(ExitCode::SUCCESS);
    }
    let prepared = Prepared::new(&Cache::from_environment()?, &resolved.scenario)?;
    print!("{}", prepared.histogram());

    let folder = match (resumed, resolved.scenario.output.out.as_str()) {
        (Some(folder), _) => folder.to_owned(),
        (None, "") => RunFolder::numbered(Path::new("runs"), "train")?.path().to_owned(),
        (None, out) => RunFolder::at(Path::new(out))?.path().to_owned(),
    };
    let keeping = Keeping { folder: &folder, resumes: resumed.is_some() };
    let mut screen =
        Screen { report: Report::new(&folder, &resolved, keeping.resumes)?, bar: ProgressBar::hidden() };
    let interrupted = interrupt::on_ctrl_c()?;
    let precision = match matches.get_one::<String>("precision").map(String::as_str) {
        Some("f32") => Precision::F32,
        Some("bf16") => Precision::Bf16,
        _ => Precision::Tf32,
    };
    let device = matches.get_one::<String>("device").map_or("auto", String::as_str);
    let gpu = if device == "cpu" { None } else { Some(Cuda::new(precision)) };
    let outcome = match gpu {
        Some(Ok(gpu)) => training::run(gpu, &prepared, &resolved, keeping, &mut screen, &interrupted),
        Some(Err(error)) if device == "cuda" => return Err(error.into()),
        _ => training::run(Cpu::<f32>::new(), &prepared, &resolved, keeping, &mut screen, &interrupted),
    };
    screen.bar.finish_and_clear();
    let outcome = match outcome {
        Err(error @ Error::Diverged { .. }) => {
            eprintln!("error: {error}");
            return Ok(ExitCode::from(3));
        }
        outcome => outcome?,
    };
    screen.report.finish(&outcome, &prepared.model.program(1).layout)?;
    println!(
        "{}\ntracking defect {:.1e}; run folder: {}",
        line(&outcome.standing),
        outcome.tracking_defect,
        folder.display()
    );
    Ok(code(&outcome))
}

fn code(outcome: &Outcome) -> ExitCode {
    if outcome.was_interrupted { ExitCode::from(130) } else { ExitCode::SUCCESS }
}

/// Shows a run and writes its report.
struct Screen {
    report: Report,
    bar: ProgressBar,
}

impl Observer for Screen {
    fn planned(&mut self, plan: &Plan, device: &str, parameters: usize) {
        println!("{device}: {parameters} parameters an agent\n{plan}");
    }

    fn round(&mut self, round: u32, rounds: u32) {
        if self.bar.length() != Some(u64::from(rounds)) && std::io::stderr().is_terminal() {
            self.bar = ProgressBar::new(u64::from(rounds));
            let style = ProgressStyle::with_template(
                "{bar:30} round {human_pos}/{human_len}  {per_sec}  {msg}  {eta} left",
            )
            .expect("a fixed template is valid");
            self.bar.set_style(style.progress_chars("━╸─"));
        }
        self.bar.set_position(u64::from(round));
    }

    fn standing(&mut self, standing: &Standing) -> Result<(), Error> {
        self.bar.set_message(format!("accuracy {:.4}", standing.test.accuracy));
        self.bar.suspend(|| println!("{}", line(standing)));
        self.report.add(standing)
    }
}

/// A standing in one line.
fn line(now: &Standing) -> String {
    let mut line = format!(
        "epoch {:>6.1}  round {:>6}  test accuracy {:.4}  loss {:.4}  consensus {:.1e}",
        now.epoch, now.round, now.test.accuracy, now.test.loss, now.consensus_error
    );
    if let Some(cleaning) = now.cleaning {
        let number = |value: Option<f64>| value.map_or("–".to_owned(), |value| format!("{value:.3}"));
        line += &format!(
            "  AUC {}  weights {} wrong, {} right",
            number(cleaning.auc),
            number(cleaning.mean_weight_corrupted),
            number(cleaning.mean_weight_clean)
        );
    }
    if let Some(strength) = now.strength {
        line += &format!("  τ {strength:.5}");
    }
    if now.frames.lost + now.frames.refused > 0 {
        let copies = format!("  {} copies lost, {} refused", now.frames.lost, now.frames.refused);
        line += &copies;
    }
    line + &format!("  {:.1} GB sent  {:.1} s", now.sent_bytes as f64 / 1e9, now.seconds)
}
