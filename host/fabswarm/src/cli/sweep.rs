//! `fabswarm sweep`: one run for each combination of values, on all cores, and one table of all of them.

mod children;
mod grid;
mod outcome;
mod spread;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::Ordering;

use anyhow::{Result, bail};
use clap::{ArgMatches, Command, value_parser};

use self::children::{Checksums, ChildRun, ChildState};
use self::grid::{Combination, SweptKey};
use super::{UNWRITTEN, flags, interrupt, output};
use fabswarm_sim::record::{RunFolder, counted};
use fabswarm_sim::scenario::{self, ResolvedScenario, ScenarioCommand};

pub(super) fn command() -> Command {
    Command::new("sweep")
        .about("Run every combination of the values given, on all cores, and put the results into one table")
        .after_help(
            "fabswarm sweep run --seed 1..10 --iid-loss 0,0.3,0.6 runs 30 swarms. The same command continues a sweep \
             that was interrupted.",
        )
        .subcommand_required(true)
        .subcommands(ScenarioCommand::ALL.map(swept))
}

/// `fabswarm sweep run` or `fabswarm sweep train`.
fn swept(command: ScenarioCommand) -> Command {
    let name = command.name();
    let scenario = "Scenario file (TOML) that all runs have in common; flags lie over it";
    let jobs = flags::option("jobs", "N", "Runs at a time [default: one per core, or 1 for train]");
    Command::new(name)
        .about(format!(
            "Sweep over keys of `fabswarm {name}`: each flag takes a value, a list (0,0.3) or a range (1..10)"
        ))
        .arg(flags::path("scenario", "SCENARIO", scenario))
        .arg(jobs.value_parser(value_parser!(u16).range(1..)))
        .arg(flags::quiet())
        .args(flags::lists(command))
}

pub(super) fn run(matches: &ArgMatches) -> Result<ExitCode> {
    let (name, matches) = matches.subcommand().expect("clap asks for one of the sub-commands");
    let is_named = |command: &ScenarioCommand| command.name() == name;
    let command = ScenarioCommand::ALL.into_iter().find(is_named).expect("it is one of them");
    if command == ScenarioCommand::Train && cfg!(not(feature = "large")) {
        bail!(fault!(
            "this build of fabswarm has no `train`";
            "add the feature, `cargo run --release --features large -- …`"
        ))
    }
    flags::apply_quiet(matches);
    let (out, axes) = axes(command, matches)?;
    let file = matches.get_one::<PathBuf>("scenario").map(PathBuf::as_path);
    let runs = runs(command, file, &axes)?;
    let folder = Path::new(out.as_deref().unwrap_or("sweep"));
    let _lock = take_folder(folder)?;
    let mut checksums = Checksums::default();
    let children = runs
        .iter()
        .map(|(combination, scenario)| {
            ChildRun::prepare(folder, name, &combination.name, scenario, &mut checksums)
        })
        .collect::<Result<Vec<_>>>()?;
    let todo = children.iter().filter(|child| !child.is_done()).count();
    if !output::is_quiet() {
        let (runs, done) = (children.len(), children.len() - todo);
        eprintln!("{} into {}, {done} of them done already", counted(runs, "run"), folder.display());
    }

    let interrupted = interrupt::on_ctrl_c()?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let jobs = match matches.get_one::<u16>("jobs") {
        Some(&jobs) => usize::from(jobs),
        // One large swarm uses all cores, or the GPU, by itself.
        None if command == ScenarioCommand::Train => 1,
        None => cores,
    };
    let states = children::run_all(&children, jobs, (cores / jobs).max(1), &interrupted)?;
    let results = outcome::Results::read(&axes, &runs, &children)?;
    if let Err(error) = results.write(folder) {
        eprintln!("error: {error}");
        return Ok(ExitCode::from(UNWRITTEN));
    }
    out!("{}", results.table());
    outln!("tables: {}, figure: {}", folder.join("runs.csv").display(), folder.join("sweep.svg").display());
    verdict(&children, &states, interrupted.load(Ordering::Relaxed))
}

/// The output folder, and every key that was given with its values.
fn axes(command: ScenarioCommand, matches: &ArgMatches) -> Result<(Option<String>, Vec<SweptKey>)> {
    let mut out = None;
    let mut axes = Vec::new();
    for key in flags::keys(command) {
        let Some(text) = matches.get_one::<String>(key.flag) else { continue };
        if key.path == "output.out" {
            out = Some(text.clone());
        } else {
            axes.push(SweptKey::parse(key, text)?);
        }
    }
    Ok((out, axes))
}

/// Every combination with its scenario, so that a bad value is refused before anything runs.
fn runs(
    command: ScenarioCommand,
    file: Option<&Path>,
    axes: &[SweptKey],
) -> Result<Vec<(Combination, ResolvedScenario)>> {
    let mut runs = Vec::new();
    let mut notes: Vec<String> = Vec::new();
    for combination in grid::combinations(axes)? {
        #[cfg_attr(not(feature = "large"), expect(unused_mut))]
        let mut resolved = scenario::resolve_for(command, file, &combination.flags)?;
        #[cfg(feature = "large")]
        if command == ScenarioCommand::Train {
            fabswarm_large::training::setup::make_paths_absolute(&mut resolved);
        }
        // A note that holds for many runs is printed once.
        for note in &resolved.notes {
            if !notes.contains(note) && !output::is_quiet() {
                eprintln!("note: {note} ({})", combination.name);
                notes.push(note.clone());
            }
        }
        runs.push((combination, resolved));
    }
    Ok(runs)
}

/// Prints what did not work, and returns the exit code.
fn verdict(children: &[ChildRun], states: &[ChildState], is_interrupted: bool) -> Result<ExitCode> {
    let code_of = |(child, state)| match state {
        &ChildState::Failed { code } => Some((child, code)),
        ChildState::Done | ChildState::Pending => None,
    };
    let failed: Vec<(&ChildRun, _)> = children.iter().zip(states).filter_map(code_of).collect();
    for (child, code) in failed.iter().take(5) {
        let how = code.map_or("was killed".to_owned(), |code| format!("failed with exit code {code}"));
        eprintln!("error: {}", fault!("{}: the run {how}", child.name; "see {}", child.log().display()));
    }
    if failed.len() > 5 {
        eprintln!("error: {} more runs failed", failed.len() - 5);
    }
    if is_interrupted {
        eprintln!("interrupted: the same command runs what is left");
        return Ok(ExitCode::from(130));
    }
    Ok(if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// Takes the folder of a sweep: new, empty, or one of an earlier sweep.
fn take_folder(folder: &Path) -> Result<RunFolder> {
    if !folder.join("scenarios").is_dir() {
        RunFolder::check_is_free(folder)?;
    }
    for part in ["scenarios", "runs", "logs"] {
        let path = folder.join(part);
        std::fs::create_dir_all(&path).map_err(
            |error| fault!("cannot make {}: {error}", path.display(); "name a folder you may write to with --out"),
        )?;
    }
    Ok(RunFolder::again(folder)?)
}
