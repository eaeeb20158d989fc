//! The `fabswarm` command in a folder of its own: how it ends, what it prints and what it leaves.
#![allow(dead_code, reason = "each test binary uses a part of it")]

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::env;
use std::ffi::OsString;
use std::fmt;
use std::fs::{self, File};
use std::ops::Deref;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The command, which tests of other crates find by a variable.
fn program() -> OsString {
    match option_env!("CARGO_BIN_EXE_fabswarm") {
        Some(built) => built.into(),
        None => {
            env::var_os("FABSWARM").expect("FABSWARM names the command, as in `cargo xtask test browser`")
        }
    }
}

/// Longer than anything takes on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(240);

/// A folder that is deleted with this, and commands in it. A command is a line as in a shell: words between blanks, and `'…'` for
/// one with blanks.
pub(crate) struct Folder(TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn fabswarm(&self, line: &str) -> Command {
        let mut command = Command::new(program());
        command.args(words(line)).current_dir(self).stdin(Stdio::null());
        command
    }

    /// A line of the shell in which `$FABSWARM` is the command.
    pub(crate) fn shell_command(&self, line: &str) -> Command {
        let mut shell = Command::new("sh");
        shell.args(["-c", line]).env("FABSWARM", program()).current_dir(self).stdin(Stdio::null());
        shell
    }

    pub(crate) fn shell(&self, line: &str) -> Ended {
        self.shell_command(line).output().unwrap().into()
    }

    pub(crate) fn run(&self, line: &str) -> Ended {
        self.fabswarm(line).output().unwrap().into()
    }

    #[track_caller]
    pub(crate) fn succeeds(&self, line: &str) -> Ended {
        self.ends(line, 0, "")
    }

    /// Checks the exit code, and that standard error contains `message`.
    #[track_caller]
    pub(crate) fn ends(&self, line: &str, code: i32, message: &str) -> Ended {
        let ended = self.run(line);
        ended.check(code, message);
        ended
    }

    /// Checks that bad input is refused with a remedy, and that nothing is written.
    #[track_caller]
    pub(crate) fn refuses(&self, line: &str, message: &str) {
        let before = self.names(".");
        let ended = self.ends(line, 2, message);
        assert!(ended.stderr.contains("help: "), "{ended}");
        assert!(ended.stderr.matches("os error").count() <= 1, "its cause is told twice: {ended}");
        assert_eq!(self.names("."), before, "something was written");
    }

    /// The names in a folder of this one, sorted.
    pub(crate) fn names(&self, folder: &str) -> Vec<String> {
        let entries = fs::read_dir(self.join(folder)).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[track_caller]
    pub(crate) fn read(&self, file: &str) -> String {
        fs::read_to_string(self.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
    }

    pub(crate) fn write(&self, file: &str, content: impl AsRef<[u8]>) {
        fs::write(self.join(file), content).unwrap();
    }

    #[track_caller]
    pub(crate) fn summary(&self, run: &str) -> Value {
        serde_json::from_str(&self.read(&format!("{run}/summary.json"))).unwrap()
    }

    /// Digests of boards in a run that were compared, and those that differed.
    #[track_caller]
    pub(crate) fn digests(&self, run: &str) -> [u64; 2] {
        ["digest_checks", "digest_mismatches"].map(|count| self.summary(run)[count].as_u64().unwrap())
    }

    /// The last round in the metrics of a run that goes on.
    pub(crate) fn last_round(&self, run: &str) -> usize {
        let rows = fs::read_to_string(self.join(run).join("metrics.csv.part")).unwrap_or_default();
        let round = |row: &str| row.split(',').next()?.parse().ok();
        rows.lines().rev().find_map(round).unwrap_or(0)
    }
}

impl Deref for Folder {
    type Target = Path;

    fn deref(&self) -> &Path {
        self.0.path()
    }
}

impl AsRef<Path> for Folder {
    fn as_ref(&self) -> &Path {
        self
    }
}

fn words(line: &str) -> Vec<String> {
    let parts = line.split('\'').enumerate();
    let quoted = |(place, part): (usize, &str)| -> Vec<String> {
        if place % 2 == 1 {
            vec![part.to_owned()]
        } else {
            part.split_whitespace().map(str::to_owned).collect()
        }
    };
    parts.flat_map(quoted).collect()
}

/// How a command ended, and what it printed.
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ended {
    #[track_caller]
    pub(crate) fn check(&self, code: i32, message: &str) {
        assert_eq!(self.code, Some(code), "{self}");
        assert_contains(&self.stderr, message);
    }
}

impl From<Output> for Ended {
    fn from(Output { status, stdout, stderr }: Output) -> Self {
        let [stdout, stderr] = [stdout, stderr].map(|bytes| String::from_utf8(bytes).unwrap());
        Self { code: status.code(), stdout, stderr }
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}{}", self.stdout, self.stderr)
    }
}

#[track_caller]
pub(crate) fn assert_contains(text: &str, part: &str) {
    assert!(text.contains(part), "{text}\ndoes not contain\n{part}");
}

#[track_caller]
pub(crate) fn wait_for(what: &str, is_there: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_there() {
        assert!(begun.elapsed() < TIMEOUT, "{what} never came");
        thread::sleep(Duration::from_millis(5));
    }
}

/// A command that goes on, until it ends or this is dropped.
pub(crate) struct Running {
    child: Child,
    /// The folder of what it prints.
    output: Folder,
}

impl Running {
    pub(crate) fn start(mut command: Command) -> Self {
        let output = Folder::new();
        let [stdout, stderr] = ["stdout", "stderr"].map(|name| File::create(output.join(name)).unwrap());
        let child = command.stdout(stdout).stderr(stderr).spawn().unwrap();
        Self { child, output }
    }

    /// Its standard output so far.
    pub(crate) fn printed(&self) -> String {
        String::from_utf8_lossy(&fs::read(self.output.join("stdout")).unwrap()).into_owned()
    }

    /// Its standard error so far.
    pub(crate) fn said(&self) -> String {
        String::from_utf8_lossy(&fs::read(self.output.join("stderr")).unwrap()).into_owned()
    }

    /// Waits for something that must happen while it runs.
    #[track_caller]
    pub(crate) fn wait_for(&mut self, what: &str, is_there: impl Fn(&Self) -> bool) {
        let begun = Instant::now();
        while !is_there(self) {
            let has_ended = self.child.try_wait().unwrap();
            let output = || format!("{has_ended:?}\n{}{}", self.printed(), self.said());
            assert!(has_ended.is_none() && begun.elapsed() < TIMEOUT, "{what} never came: {}", output());
            thread::sleep(Duration::from_millis(5));
        }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for its end.
    pub(crate) fn ends(mut self) -> Ended {
        let status = self.child.wait().unwrap();
        Ended { code: status.code(), stdout: self.printed(), stderr: self.said() }
    }

    /// Interrupts it as Ctrl-C does.
    #[track_caller]
    pub(crate) fn interrupt(self) -> Ended {
        self.signal(Signal::INT);
        let ended = self.ends();
        assert_eq!(ended.code, Some(130), "{ended}");
        ended
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
