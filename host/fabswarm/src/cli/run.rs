//! `fabswarm run`: a swarm trial.

mod braille;
mod progress;
mod recorded;
mod screen;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Result, bail};
use clap::{Arg, ArgMatches, Command, value_parser};

use self::progress::RunProgress;
use super::live::{self, LivePage};
use super::{UNWRITTEN, flags, interrupt, output};
use fabswarm_sim::record::{CommonSummary, RunFolder, StoppedBecause};
use fabswarm_sim::scenario::{self, Flag, Scenario};
use fabswarm_sim::swarm::Phases;
use fabswarm_sim::task::OwnProblem;
use fabswarm_sim::trial::TrialOutcome;
use fabswarm_view::{RecordedTrial, TrialArtifacts};

#[cfg(feature = "boards")]
use fabswarm_attach::build;
#[cfg(not(feature = "boards"))]
fn build(
    scenario: &Scenario,
    own: Option<&OwnProblem>,
    _: &Arc<std::sync::atomic::AtomicBool>,
) -> Result<Box<dyn fabswarm_sim::swarm::Swarm>> {
    Ok(fabswarm_sim::trial::build_with(scenario, own)?)
}

pub(super) fn command() -> Command {
    let recorded = "Replay a recorded problem (JSON: problem, graphs and snapshots) instead of a scenario; docs/recorded.md lists its keys";
    let snapshots = "File to write the replayed snapshots to, in the format of the recorded one";
    let follow = "Show everything that the board of this agent logs (more of it with DEFMT_LOG=debug in the environment)";
    let trial = "Let boards keep their own time and speak by radio, and only listen: --pace slots";
    Command::new("run")
        .about("Run a swarm trial: the default scenario, a scenario file, or either with some keys changed")
        .args(flags::of_runs())
        .arg(
            flags::path_option("recorded", "FILE", recorded)
                .hide_short_help(true)
                .requires("snapshots")
                .conflicts_with_all(["scenario", "print-scenario"])
                .conflicts_with_all(live::argument().iter().map(Arg::get_id)),
        )
        .arg(flags::path_option("snapshots", "OUT", snapshots).hide_short_help(true).requires("recorded"))
        .arg(flags::option("follow", "AGENT", follow).value_parser(value_parser!(usize)))
        .arg(flags::switch("trial", trial).conflicts_with("pace"))
        .args(flags::boards_dir())
        .args(flags::arguments(scenario::ScenarioCommand::Run))
}

pub(super) fn run(matches: &ArgMatches, own: Option<&OwnProblem>) -> Result<ExitCode> {
    let file = matches.get_one::<PathBuf>("scenario");
    let mut flags = flags::given(scenario::ScenarioCommand::Run, matches)?;
    if matches.get_flag("trial") {
        flags.push(Flag::named(scenario::ScenarioCommand::Run, "pace", "slots".into())?);
    }
    if let (Some(file), Some(out)) =
        (matches.get_one::<PathBuf>("recorded"), matches.get_one::<PathBuf>("snapshots"))
    {
        return recorded::run(file, out, &flags, matches);
    }
    let resolved = scenario::resolve(file.map(PathBuf::as_path), &flags)?;
    if flags::is_printed(matches, &resolved) {
        return Ok(ExitCode::SUCCESS);
    }

    let scenario = &resolved.scenario;
    let interrupted = Arc::default();
    let followed = matches.get_one::<usize>("follow").copied();
    if let Some(agent) = followed.filter(|&agent| agent >= scenario.swarm.agents) {
        bail!(fault!(
            "--follow {agent}: the swarm has agents 0 to {}", scenario.swarm.agents - 1;
            "name one of them"
        ));
    }
    let mut swarm = build(scenario, own, &interrupted)?;
    note_phases(swarm.phases());
    if let (Some(agent), Some(boards)) = (followed, swarm.boards()) {
        boards.follow_log(agent);
    }
    let page = LivePage::start(matches)?;
    let scenario_toml = resolved.to_repeatable_toml();
    let folder = folder(scenario)?;
    let kept = RecordedTrial::start(scenario, &scenario_toml, folder, page.audience())?;
    interrupt::set_on_ctrl_c(&interrupted)?;
    let kept = kept.run(swarm.as_mut(), &mut RunProgress::on_stderr(scenario), &interrupted);
    let TrialArtifacts { outcome, folder, curve } = match kept {
        Ok(kept) => kept,
        // The run itself is over, so this is not bad input.
        Err(error) => {
            eprintln!("error: {error}");
            return Ok(ExitCode::from(UNWRITTEN));
        }
    };
    out!("{}", screen::summary(scenario, &outcome, &curve, &folder));
    let CommonSummary { stopped_because, rounds, .. } = outcome.summary.common;
    let is_early = matches!(stopped_because, StoppedBecause::Converged | StoppedBecause::SmallGradient);
    if is_early && !output::is_quiet() {
        note_unreached_outages(scenario, rounds);
    }
    let code = verdict(scenario, &outcome);
    page.keep_page_open(&interrupted);
    Ok(code)
}

/// Prints why the error will stand still for long, on links that mix slowly.
fn note_phases(phases: Phases) {
    if phases != Phases::TOGETHER && !output::is_quiet() {
        let Phases { gather_rounds, descend_rounds } = phases;
        eprintln!(
            "note: agents work in phases: {gather_rounds} rounds to gather trackers, {descend_rounds} to descend, {gather_rounds} to gather decisions"
        );
    }
}

/// Prints which outages a run that stopped early did not reach. Those after `swarm.rounds` were printed before the run.
fn note_unreached_outages(scenario: &Scenario, rounds: u64) {
    let mut unreached = scenario.outages_from(rounds);
    let known = scenario.outages_from(scenario.swarm.rounds);
    unreached.retain(|outage| !known.contains(outage));
    if !unreached.is_empty() {
        let unreached = unreached.join(", ");
        eprintln!("note: the run stopped after {rounds} rounds, before these outages began: {unreached}");
        eprintln!("help: raise stop.extra_rounds, or set stop.error_below to 0 to run all rounds");
    }
}

/// Prints why a run did not succeed, and returns its exit code.
fn verdict(scenario: &Scenario, outcome: &TrialOutcome) -> ExitCode {
    if let Some(complaint) = outcome.complaint(scenario) {
        eprintln!("error: {complaint}");
    }
    let CommonSummary { stopped_because, rounds, .. } = outcome.summary.common;
    if stopped_because == StoppedBecause::Interrupted {
        eprintln!("interrupted in round {rounds}: what was recorded until then is kept");
    }
    ExitCode::from(stopped_because.exit_code(outcome.is_success))
}

fn folder(scenario: &Scenario) -> Result<RunFolder, fabswarm_sim::record::Error> {
    match scenario.output.out.as_str() {
        "" => RunFolder::numbered(Path::new("runs"), scenario.problem.kind.word()),
        out => RunFolder::at(Path::new(out)),
    }
}
