//! `fabswarm train`: a swarm of large agents.

#[cfg(feature = "mesh")]
mod hosts;
mod screen;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

use anyhow::Result;
use clap::{Arg, ArgMatches, Command};

use self::screen::Screen;
use super::live::LivePage;
use super::{UNWRITTEN, device, flags, interrupt, output};
use fabswarm_data::Cache;
use fabswarm_large::device::Device;
use fabswarm_large::device::cpu::Cpu;
use fabswarm_large::device::cuda::Cuda;
use fabswarm_large::training::checkpoint::{self, Checkpoint};
use fabswarm_large::training::report::{self, SCENARIO_FILE, TrainingReport};
use fabswarm_large::training::{Error, Trainer, TrainingOutcome, TrainingPlan, TrainingSetup, setup};
use fabswarm_sim::record::{self, RunFolder, StoppedBecause};
use fabswarm_sim::scenario::{self, Flag, ResolvedScenario, ScenarioCommand};
use fabswarm_view::message::{RunMessage, Topic, training as message};
use fabswarm_view::{LOG_FILE, RecordedRun, RunWatch};

pub(super) fn command() -> Command {
    let resume = "Go on with the run in this folder, from its last checkpoint";
    Command::new("train")
        .about("Train a swarm of large agents: MLP, CNN or BERT, all of them in one batch on a CPU or a GPU")
        .args(flags::of_runs())
        .args(device::arguments())
        .arg(flags::path_option("resume", "FOLDER", resume).conflicts_with_all(["scenario", "out"]))
        .args(host_arguments())
        .args(flags::arguments(ScenarioCommand::Train))
}

/// The flags about hosts, in builds that know them.
fn host_arguments() -> Vec<Arg> {
    #[cfg(feature = "mesh")]
    return hosts::arguments().into();
    #[cfg(not(feature = "mesh"))]
    Vec::new()
}

pub(super) fn run(matches: &ArgMatches) -> Result<ExitCode> {
    let path = |name| matches.get_one::<PathBuf>(name).map(PathBuf::as_path);
    let resumed = path("resume");
    if let Some(folder) = resumed {
        checkpoint::check_is_there(folder)?;
    }
    let file = resumed.map(|folder| folder.join(SCENARIO_FILE)).or(path("scenario").map(Path::to_owned));
    let resolve = |flags: &[Flag]| scenario::resolve_for(ScenarioCommand::Train, file.as_deref(), flags);
    let flags = flags::given(ScenarioCommand::Train, matches)?;
    let mut resolved = resolve(&flags)?;
    #[cfg(feature = "mesh")]
    if let Some(given) = matches.get_one::<String>("hosts")
        && let Some(flag) = hosts::blocks_of(given, &resolved.scenario)?
    {
        resolved = resolve(&[flags, vec![flag]].concat())?;
    }
    if flags::is_printed(matches, &resolved) {
        return Ok(ExitCode::SUCCESS);
    }
    setup::make_paths_absolute(&mut resolved);
    // Fails before the data are loaded, which can take long.
    let out = &resolved.scenario.output.out;
    if resumed.is_none() && !out.is_empty() {
        RunFolder::check_is_free(Path::new(out))?;
    }
    let resumed = match resumed {
        Some(folder) => Some((RunFolder::again(folder)?, Checkpoint::open(folder, &resolved)?)),
        None => None,
    };
    let page = LivePage::start(matches)?;
    #[cfg(feature = "mesh")]
    if let Some(hosts) = matches.get_one::<String>("hosts") {
        return on_hosts(hosts, matches, &resolved, resumed, &page);
    }
    match device::gpu(matches)? {
        Some(gpu) => train(Cuda::on(&gpu, device::precision(matches))?, &resolved, resumed, &page),
        None => train(Cpu::<f32>::new(), &resolved, resumed, &page),
    }
}

/// Trains on other hosts.
#[cfg(feature = "mesh")]
fn on_hosts(
    hosts: &str,
    matches: &ArgMatches,
    resolved: &ResolvedScenario,
    resumed: Option<(RunFolder, Checkpoint)>,
    page: &LivePage,
) -> Result<ExitCode> {
    match device::gpu(matches)? {
        Some(gpu) => {
            let new = || Cuda::on(&gpu, device::precision(matches));
            hosts::train(hosts, matches, resolved, resumed, page, &new)
        }
        None => hosts::train(hosts, matches, resolved, resumed, page, &|| Ok(Cpu::<f32>::new())),
    }
}

/// Trains on `device`. Until the folder is made everything may be refused, from then on nothing is.
fn train<D: Device<Scalar = f32>>(
    device: D,
    resolved: &ResolvedScenario,
    resumed: Option<(RunFolder, Checkpoint)>,
    page: &LivePage,
) -> Result<ExitCode> {
    let prepared = prepare(resolved)?;
    let planned = TrainingPlan::new(device, &prepared, resolved)?;
    let device = planned.device().name();
    outln!("{device}: {} parameters per agent", prepared.parameters());
    outln!("{}", planned.plan());
    let (folder, mut checkpoint) = resumed.unzip();
    let mut trainer = planned.start(checkpoint.as_mut())?;
    let interrupted = interrupt::on_ctrl_c()?;
    let folder = open_folder(folder, resolved)?;
    let job = TrainingJob { prepared: &prepared, resolved, device, page, interrupted: &interrupted };
    let trained = job.run_rounds(&mut trainer, &folder, checkpoint.is_some())?;
    let code = job.report(trained, &folder, trainer.checkpointed());
    page.keep_page_open(&interrupted);
    Ok(code)
}

/// Loads the data, and prints how they are dealt out.
fn prepare(resolved: &ResolvedScenario) -> Result<TrainingSetup> {
    let prepared = TrainingSetup::new(&Cache::from_environment(), &resolved.scenario)?;
    let rate = resolved.scenario.training.corruption_rate;
    if rate > 0.0 && prepared.corrupts_own_labels() && !output::is_quiet() {
        eprintln!(
            "note: training.corruption_rate = {rate} makes that share of the labels wrong; set it to 0 to keep them, or add true labels"
        );
    }
    out!("{}", prepared.histogram());
    Ok(prepared)
}

/// The folder of the run: the one it goes on in, or a new one.
fn open_folder(resumed: Option<RunFolder>, resolved: &ResolvedScenario) -> Result<RunFolder> {
    Ok(match (resumed, resolved.scenario.output.out.as_str()) {
        (Some(folder), _) => folder,
        (None, "") => RunFolder::numbered(Path::new("runs"), "train")?,
        (None, out) => RunFolder::at(Path::new(out))?,
    })
}

/// A training run and its observers.
struct TrainingJob<'a> {
    prepared: &'a TrainingSetup,
    resolved: &'a ResolvedScenario,
    /// Where it is computed.
    device: String,
    page: &'a LivePage,
    interrupted: &'a AtomicBool,
}

impl TrainingJob<'_> {
    /// Goes through the rounds. The outer error is one from before the first of them.
    fn run_rounds<D: Device<Scalar = f32>>(
        &self,
        trainer: &mut Trainer<'_, D>,
        folder: &RunFolder,
        is_resumed: bool,
    ) -> Result<Result<TrainingOutcome, Error>> {
        let (resolved, resumed) = (self.resolved, is_resumed.then(|| trainer.round()));
        let report = TrainingReport::start(folder, resolved, resumed)?;
        if is_resumed {
            outln!("{}", screen::resumption(trainer.round(), trainer.rounds(), &resolved.scenario));
        }
        let parameters = self.prepared.parameters();
        let first =
            message::run(&resolved.scenario, &resolved.to_repeatable_toml(), &self.device, parameters);
        let watch = self.start_log(folder, first, resumed)?;
        let mut screen = Screen::new(report, watch, trainer.round());
        let trained = trainer.run(Some(folder), &mut screen, self.interrupted);
        let (report, watch) = screen.close();
        Ok(trained.and_then(|outcome| {
            report.finish(folder, resolved, self.prepared, &outcome)?;
            let round = u64::from(outcome.evaluation.round);
            let last = message::end(&report::summary_json(resolved, &outcome), round, watch.elapsed());
            watch.end(last)?;
            Ok(outcome)
        }))
    }

    /// Begins the log of the run with the message `first`. One that goes on from round `resumed` keeps what its log says until then.
    fn start_log(
        &self,
        folder: &RunFolder,
        first: RunMessage,
        resumed: Option<u32>,
    ) -> Result<RunWatch, record::Error> {
        let mut before = vec![first];
        // A log that cannot be read is no reason to end: the tables hold the same numbers.
        let earlier = resumed.and_then(|_| RecordedRun::read(folder.path()).ok()).unwrap_or_default();
        let is_kept = |message: &RunMessage| match message.topic {
            Topic::Run | Topic::End => false,
            // The evaluation of a checkpoint's round is repeated.
            Topic::Evaluation => Some(message.round) < resumed.map(u64::from),
            _ => Some(message.round) <= resumed.map(u64::from),
        };
        before.extend(earlier.messages.into_iter().filter(is_kept));
        RunWatch::start(before, folder.growing_file(LOG_FILE)?, self.page.audience())
    }

    /// Prints what came of a run, and returns its exit code.
    fn report(
        &self,
        trained: Result<TrainingOutcome, Error>,
        folder: &RunFolder,
        checkpointed: Option<u32>,
    ) -> ExitCode {
        let scenario = &self.resolved.scenario;
        match trained {
            Ok(outcome) => {
                out!("{}", screen::summary(scenario, &outcome, folder.path()));
                let (because, guess) = (outcome.stopped_because, self.prepared.chance_baseline());
                if because == StoppedBecause::Interrupted {
                    let round = outcome.evaluation.round;
                    eprintln!("interrupted in round {round}: what was recorded until then is kept");
                    eprintln!("help: {}", resume_hint(folder.path(), checkpointed));
                } else if let Some(complaint) = outcome.complaint(scenario, guess, checkpointed) {
                    eprintln!("error: {complaint}");
                }
                // All rounds are all that a scenario asks for here.
                ExitCode::from(because.exit_code(because == StoppedBecause::MaxRounds))
            }
            Err(error) => {
                eprintln!("error: {}", fault!("{error}"; "{}", resume_hint(folder.path(), checkpointed)));
                // The run itself is over, so this is not bad input.
                ExitCode::from(if matches!(error, Error::Record(_)) { UNWRITTEN } else { 1 })
            }
        }
    }
}

/// How to continue a run that did not finish.
fn resume_hint(folder: &Path, checkpointed: Option<u32>) -> String {
    // It may have gone with its folder.
    match checkpointed.filter(|_| checkpoint::check_is_there(folder).is_ok()) {
        Some(round) => format!("`fabswarm train --resume {}` continues from round {round}", folder.display()),
        None => "there is no checkpoint to continue from; start a new run".to_owned(),
    }
}
