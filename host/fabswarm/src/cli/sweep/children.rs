//! The runs of a sweep as processes of their own: one that fails takes no other with it.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use crc::{CRC_32_ISCSI, Crc, Table};

use super::super::output;
use fabswarm_sim::scenario::ResolvedScenario;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

static CRC: Crc<u32, Table<16>> = Crc::<u32, Table<16>>::new(&CRC_32_ISCSI);

/// One run of a sweep and its files.
#[derive(Debug)]
pub(super) struct ChildRun {
    command: String,
    pub(super) name: String,
    folder: PathBuf,
}

/// Checksums of files that runs of a sweep share.
pub(super) type Checksums = BTreeMap<PathBuf, u32>;

fn checksum(path: &Path, known: &mut Checksums) -> Result<u32> {
    if let Some(&checksum) = known.get(path) {
        return Ok(checksum);
    }
    let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(*known.entry(path.to_owned()).or_insert(CRC.checksum(&bytes)))
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChildState {
    /// It has a result, good or bad.
    Done,
    /// It was not begun, or not finished.
    Pending,
    /// It has none, and ended with this exit code, unless it was killed.
    Failed { code: Option<i32> },
}

impl ChildRun {
    /// Writes down what is to be run, with the checksums of its files. An earlier sweep into the same folder must have meant the same by
    /// this name.
    pub(super) fn prepare(
        folder: &Path,
        command: &str,
        name: &str,
        scenario: &ResolvedScenario,
        checksums: &mut Checksums,
    ) -> Result<Self> {
        let child = Self { command: command.to_owned(), name: name.to_owned(), folder: folder.to_owned() };
        let (path, mut text) = (child.scenario(), scenario.to_repeatable_toml());
        for file in scenario.files() {
            text += &format!("# {}: {:08x}\n", file.display(), checksum(file, checksums)?);
        }
        match fs::read_to_string(&path) {
            Ok(before) if before == text => {}
            Ok(_) => bail!(fault!(
                "{} is of a sweep with other settings or files", path.display();
                "name another folder with --out, or remove this one"
            )),
            Err(_) => fs::write(&path, text).map_err(
                |error| fault!("cannot write {}: {error}", path.display(); "see that the disk is not full"),
            )?,
        }
        Ok(child)
    }

    fn scenario(&self) -> PathBuf {
        self.folder.join("scenarios").join(format!("{}.toml", self.name))
    }

    /// Its run folder.
    pub(super) fn run_folder(&self) -> PathBuf {
        self.folder.join("runs").join(&self.name)
    }

    /// The file of its output.
    pub(super) fn log(&self) -> PathBuf {
        self.folder.join("logs").join(format!("{}.txt", self.name))
    }

    /// Whether its result is there, good or bad. A run that was interrupted, or failed, wrote a summary too.
    pub(super) fn is_done(&self) -> bool {
        let summary = fs::read(self.run_folder().join("summary.json")).unwrap_or_default();
        let summary: Value = serde_json::from_slice(&summary).unwrap_or_default();
        let because = summary["stopped_because"].as_str();
        matches!(because, Some("converged" | "small-gradient" | "max-rounds" | "diverged"))
    }

    fn start(&self, threads: usize) -> Result<Child> {
        let run_folder = self.run_folder();
        if run_folder.exists() {
            // The folder of an interrupted run; it is made again from its start.
            fs::remove_dir_all(&run_folder)
                .with_context(|| format!("cannot remove the unfinished {}", run_folder.display()))?;
        }
        let log =
            File::create(self.log()).with_context(|| format!("cannot write {}", self.log().display()))?;
        let program = std::env::current_exe().context("cannot find this program to run it again")?;
        Command::new(program)
            .arg(&self.command)
            .arg(self.scenario())
            .arg("--out")
            .arg(run_folder)
            .env("RAYON_NUM_THREADS", threads.to_string())
            // Ctrl-C reaches this process alone, which tells the others once.
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .context("cannot start a run")
    }

    /// Whether an exit code comes with a result: of a run that did what it was asked, missed its goal or diverged. An interrupted
    /// run wrote a summary too, but not of all its rounds.
    fn state_after(&self, status: ExitStatus) -> ChildState {
        match status.code() {
            Some(0 | 1 | 3) if self.is_done() => ChildState::Done,
            Some(130) => {
                let _ = fs::remove_dir_all(self.run_folder());
                ChildState::Pending
            }
            code => ChildState::Failed { code },
        }
    }

    /// Runs it to its end, or until `interrupted`.
    fn run(&self, threads: usize, interrupted: &AtomicBool) -> Result<ChildState> {
        let mut child = self.start(threads)?;
        let mut is_told = false;
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(self.state_after(status));
            }
            if interrupted.load(Ordering::Relaxed) && !is_told {
                is_told = true;
                // It ends its round and writes its folder. Should it have ended just now, there is nobody to tell.
                if let Some(id) = Pid::from_raw(child.id().cast_signed()) {
                    let _ = kill_process(id, Signal::TERM);
                }
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Runs all that are not done, `jobs` at a time with `threads` threads each.
pub(super) fn run_all(
    children: &[ChildRun],
    jobs: usize,
    threads: usize,
    interrupted: &AtomicBool,
) -> Result<Vec<ChildState>> {
    let states = vec![OnceLock::new(); children.len()];
    let bar = output::bar(children.len() as u64, "{bar:24} run {pos}/{len}  {elapsed}, {eta} to go");
    let next = AtomicUsize::new(0);
    let work = || -> Result<()> {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(child) = children.get(index).filter(|_| !interrupted.load(Ordering::Relaxed)) else {
                return Ok(());
            };
            let state = if child.is_done() { ChildState::Done } else { child.run(threads, interrupted)? };
            states[index].get_or_init(|| state);
            bar.inc(1);
            if !output::is_quiet()
                && bar.is_hidden()
                && (index + 1).is_multiple_of(children.len().div_ceil(10))
            {
                eprintln!("{} of {} runs", bar.position(), children.len());
            }
        }
    };
    let outcome = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs.min(children.len())).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("a worker does not panic"))
    });
    bar.finish_and_clear();
    outcome?;
    Ok(states.into_iter().map(|state| state.into_inner().unwrap_or(ChildState::Pending)).collect())
}
