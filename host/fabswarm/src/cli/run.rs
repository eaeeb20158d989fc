//! `fabswarm run`: a swarm trial.

mod braille;
mod progress;
mod recorded;
mod screen;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Result, bail};
use clap::{Arg, ArgMatches, Command, value_parser};

use self::progress::RunProgress;
use super::live::{self, LivePage};
use super::tui::{self, TerminalView};
use super::{UNWRITTEN, flags, interrupt, output, report};
use fabswarm_sim::record::{Caption, Recorder, RunFolder, StoppedBecause};
use fabswarm_sim::scenario::{self, Scenario};
#[cfg(not(feature = "boards"))]
use fabswarm_sim::swarm::Swarm;
use fabswarm_sim::swarm::{LOWER_THE_STEPS, divergence_remedy};
use fabswarm_sim::task::OwnProblem;
use fabswarm_sim::trial::{self, RoundEnd, TrialObserver, TrialOutcome};
use fabswarm_view::{Audience, LOG_FILE, RunWatch};

#[cfg(feature = "boards")]
use fabswarm_attach::build_with;
#[cfg(not(feature = "boards"))]
fn build_with(
    scenario: &Scenario,
    own: Option<&OwnProblem>,
    _: &Arc<AtomicBool>,
) -> Result<Box<dyn Swarm>, trial::BuildError> {
    trial::build_with(scenario, own)
}

pub(super) fn command() -> Command {
    Command::new("run")
        .about("Run a swarm trial: the default scenario, a scenario file, or either with some keys changed")
        .arg(
            Arg::new("scenario")
                .value_name("SCENARIO")
                .help("Scenario file (TOML); flags lie over it")
                .value_parser(value_parser!(PathBuf)),
        )
        .arg(flags::print_scenario())
        .arg(flags::quiet())
        .arg(live::argument())
        .arg(tui::argument())
        .arg(
            Arg::new("recorded")
                .long("recorded")
                .value_name("FILE")
                .help("Replay a recorded problem (JSON: problem, graphs and snapshots) instead of a scenario; docs/recorded.md lists its keys")
                .hide_short_help(true)
                .value_parser(value_parser!(PathBuf))
                .requires("snapshots")
                .conflicts_with_all(["scenario", "print-scenario", "live", "tui"]),
        )
        .arg(
            Arg::new("snapshots")
                .long("snapshots")
                .value_name("OUT")
                .help("File to write the replayed snapshots to, in the format of the recorded one")
                .hide_short_help(true)
                .value_parser(value_parser!(PathBuf))
                .requires("recorded"),
        )
        .arg(
            Arg::new("follow")
                .long("follow")
                .value_name("AGENT")
                .help("Show everything that the board of this agent logs (more of it with DEFMT_LOG=debug in the environment)")
                .value_parser(value_parser!(usize)),
        )
        .args(flags::arguments(scenario::ScenarioCommand::Run))
}

pub(super) fn run(matches: &ArgMatches, own: Option<&OwnProblem>) -> Result<ExitCode> {
    let file = matches.get_one::<PathBuf>("scenario");
    let flags = flags::given(scenario::ScenarioCommand::Run, matches)?;
    if let (Some(file), Some(out)) =
        (matches.get_one::<PathBuf>("recorded"), matches.get_one::<PathBuf>("snapshots"))
    {
        return recorded::run(file, out, &flags, matches);
    }
    let resolved = scenario::resolve(file.map(PathBuf::as_path), &flags)?;
    if matches.get_flag("print-scenario") {
        flags::print_notes(&resolved);
        print!("{}", resolved.to_toml());
        return Ok(ExitCode::SUCCESS);
    }
    flags::apply_quiet(matches);
    flags::print_notes(&resolved);

    let scenario = &resolved.scenario;
    let interrupted = Arc::new(AtomicBool::new(false));
    let followed = matches.get_one::<usize>("follow").copied();
    if let Some(agent) = followed.filter(|&agent| agent >= scenario.swarm.agents) {
        bail!(
            "--follow {agent}: the swarm has agents 0 to {}\nhelp: name one of them",
            scenario.swarm.agents - 1
        );
    }
    let mut swarm = build_with(scenario, own, &interrupted)?;
    if let Some(agent) = followed {
        swarm.follow_log(agent);
    }
    let page = LivePage::start(matches)?;
    let screen = TerminalView::start(matches, &interrupted)?;
    let scenario_toml = resolved.to_repeatable_toml();
    let folder = folder(scenario)?;
    let log = folder.growing_file(LOG_FILE)?;
    let mut recorder = Recorder::new(folder, &scenario_toml)?;
    let audiences = page.iter().map(LivePage::audience).chain(screen.iter().map(TerminalView::audience));
    let audiences: Vec<Arc<dyn Audience>> = audiences.collect();
    let watch = RunWatch::start(scenario, &scenario_toml, log, Arc::new(audiences))?;
    interrupt::on_ctrl_c(&interrupted)?;
    // Both would write over each other.
    let progress = screen.is_none().then(|| RunProgress::on_stderr(scenario.swarm.rounds));
    let mut observers = Observers { progress, watch };
    let caption = Caption::of(scenario);
    let recorded = (|| -> Result<_> {
        let outcome = trial::run(scenario, swarm.as_mut(), &mut recorder, &mut observers, &interrupted)?;
        recorder.keep_answer(&swarm.answer())?;
        let (folder, curve) = recorder.finish(&outcome.summary, &caption)?;
        observers.watch.end(&outcome.summary)?;
        swarm.keep_logs(&folder.join("boards"))?;
        report::write(&folder)?;
        Ok((outcome, folder, curve))
    })();
    if let Some(screen) = screen {
        screen.close();
    }
    let (outcome, folder, curve) = match recorded {
        Ok(recorded) => recorded,
        // The run itself is over, so this is not bad input.
        Err(error) => {
            eprintln!("error: {error}");
            return Ok(ExitCode::from(UNWRITTEN));
        }
    };
    print!("{}", screen::summary(scenario, &outcome, &curve, &caption, &folder));
    if outcome.summary.stopped_because == StoppedBecause::Converged && !output::is_quiet() {
        note_unreached_outages(scenario, outcome.summary.rounds);
    }
    let code = verdict(scenario, &outcome);
    if let Some(page) = page {
        page.stay(&interrupted);
    }
    Ok(code)
}

/// Who observes a run.
struct Observers {
    progress: Option<RunProgress>,
    watch: RunWatch,
}

impl TrialObserver for Observers {
    fn round(&mut self, end: RoundEnd<'_>) {
        self.progress.iter_mut().for_each(|progress| progress.round(end));
        self.watch.round(end);
    }

    fn warn(&mut self, warnings: &[String]) {
        self.progress.iter_mut().for_each(|progress| progress.warn(warnings));
        self.watch.warn(warnings);
    }

    fn finish(&mut self) {
        self.progress.iter_mut().for_each(RunProgress::finish);
        self.watch.finish();
    }
}

/// Prints which outages a run that converged early did not reach. Those after `swarm.rounds` were printed before the run.
fn note_unreached_outages(scenario: &Scenario, rounds: u64) {
    let mut unreached = scenario.outages_from(rounds);
    let known = scenario.outages_from(scenario.swarm.rounds);
    unreached.retain(|outage| !known.contains(outage));
    if !unreached.is_empty() {
        let unreached = unreached.join(", ");
        eprintln!("note: the run converged after {rounds} rounds, before these outages began: {unreached}");
        eprintln!("help: raise stop.extra_rounds, or set stop.error_below to 0 to run all rounds");
    }
}

/// Prints why a run did not succeed, and returns its exit code.
fn verdict(scenario: &Scenario, outcome: &TrialOutcome) -> ExitCode {
    if outcome.is_success {
        return ExitCode::SUCCESS;
    }
    let summary = &outcome.summary;
    let remedy = divergence_remedy(&scenario.algorithm);
    if let Some(failure) = &outcome.failure {
        eprintln!("error: {}", failure.to_string().replace(LOWER_THE_STEPS, &remedy));
    }
    match summary.stopped_because {
        StoppedBecause::Interrupted => {
            eprintln!("interrupted in round {}: what was recorded until then is kept", summary.rounds);
            return ExitCode::from(130);
        }
        StoppedBecause::Diverged => {
            if outcome.failure.is_none() {
                eprintln!(
                    "error: the swarm diverged: the error grew from {:.1e} to {:.1e} in {} rounds\nhelp: {remedy}",
                    outcome.first_error, summary.final_relative_error, summary.rounds
                );
            }
            if !scenario.frames.sealed && scenario.faults.bit_corruption > 0.0 {
                eprintln!(
                    "help: damaged frames were taken for genuine; set frames.sealed to true to refuse them"
                );
            }
            return ExitCode::from(3);
        }
        StoppedBecause::BoardsFailed => return ExitCode::from(4),
        StoppedBecause::BooksBroken => return ExitCode::from(6),
        StoppedBecause::Converged | StoppedBecause::MaxRounds => {}
    }
    let remedy = if summary.final_relative_error < outcome.first_error {
        "raise swarm.rounds, or see in the plot whether the error still falls".to_owned()
    } else {
        remedy
    };
    eprintln!(
        "error: the error is {:.3e} after all {} rounds, and the scenario asks for less than {}\nhelp: {remedy}",
        summary.final_relative_error, summary.rounds, scenario.stop.error_below
    );
    ExitCode::from(1)
}

fn folder(scenario: &Scenario) -> Result<RunFolder, fabswarm_sim::record::Error> {
    match scenario.output.out.as_str() {
        "" => RunFolder::numbered(Path::new("runs"), scenario.problem.kind.word()),
        out => RunFolder::at(Path::new(out)),
    }
}
