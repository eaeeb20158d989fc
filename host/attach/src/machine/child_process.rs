//! Child processes that never outlive the host.
//!
//! Dropping a [`ChildProcess`] kills the process, which covers every orderly end and a panic. If the host itself is killed, the
//! kernel kills the child: `setpriv` sets its parent-death signal, then executes the program.

use crate::error;
use fabswarm_diagnostic::Diagnostic;
use rustix::process::{Pid, Signal, kill_process};
use std::{
    fs::File,
    io,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    time::Duration,
};

#[derive(Debug)]
pub(crate) struct ChildProcess {
    child: Child,
    /// Its stderr is appended to this file.
    pub(crate) messages_file: PathBuf,
    /// Bytes of that file that were read.
    messages_read: usize,
}

impl ChildProcess {
    /// Starts `program` with its stderr appended to the file `messages`.
    pub(crate) fn start(program: &Path, arguments: &[String], messages: &Path) -> Result<Self, Diagnostic> {
        let file = File::options().create(true).append(true).open(messages);
        let file = file.map_err(|source| error::file(messages, source))?;
        // Lines of earlier processes. Read before the start: the process may print at once.
        let messages_read = file.metadata().map_or(0, |file| file.len() as usize);
        let child = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "--"])
            .arg(program)
            .args(arguments)
            // In its own process group: Ctrl-C reaches the host only, which ends the run in order.
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(file)
            .spawn()
            .map_err(|source| match source.kind() {
                io::ErrorKind::NotFound => Diagnostic::new(
                    "setpriv is not on the PATH, and boards are started with it",
                    "run `apt-get install util-linux`",
                ),
                _ => Diagnostic::new(
                    format!("cannot start {}: {source}", program.display()),
                    "check that the file exists and may be executed",
                ),
            })?;
        Ok(Self { child, messages_file: messages.to_owned(), messages_read })
    }

    /// Its exit status, once it has ended.
    pub(crate) fn exit_status(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// The processor time that it has used.
    pub(crate) fn cpu_time(&self) -> Option<Duration> {
        // Linux counts in hundredths of a second for programs; the name, which may hold anything, ends with the last parenthesis.
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).ok()?;
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
        let (user, system): (u64, u64) = (fields.nth(11)?.parse().ok()?, fields.next()?.parse().ok()?);
        Some(Duration::from_millis(10 * (user + system)))
    }

    /// Its stderr, for the error that reports its end.
    pub(crate) fn messages(&self) -> String {
        std::fs::read_to_string(&self.messages_file).unwrap_or_default().trim().to_owned()
    }

    pub(crate) fn take_messages(&mut self) -> Vec<String> {
        let printed = std::fs::read(&self.messages_file).unwrap_or_default();
        let unread = printed.get(self.messages_read..).unwrap_or_default();
        // The last line may not be whole yet.
        let whole = unread.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
        self.messages_read += whole;
        String::from_utf8_lossy(&unread[..whole]).lines().map(str::to_owned).collect()
    }

    pub(crate) fn pause(&self, is_paused: bool) {
        let signal = if is_paused { Signal::STOP } else { Signal::CONT };
        if let Some(pid) = Pid::from_raw(self.child.id() as i32) {
            // Fails only for a process that has ended, which is detected while waiting for its board.
            let _ = kill_process(pid, signal);
        }
    }

    /// Kills it without warning, like a loss of power.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        self.kill();
    }
}
