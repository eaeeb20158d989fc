//! Processes that never outlive the host.
//!
//! A board's process is killed when its [`Process`] is dropped, which covers every orderly end and a panic. When the
//! host itself is killed, the kernel kills the board: `setpriv` asks it to, and then becomes the program.

use super::Error;
use rustix::process::{Pid, Signal, kill_process};
use std::{
    fs::File,
    io,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
};

/// A running program.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    messages: PathBuf,
}

impl Process {
    /// Starts `program` with what it prints going to the file `messages`.
    pub(super) fn start(program: &Path, arguments: &[String], messages: &Path) -> Result<Self, Error> {
        let file = File::options()
            .create(true)
            .append(true)
            .open(messages)
            .map_err(|source| Error::File { path: messages.to_owned(), source })?;
        let child = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "--"])
            .arg(program)
            .args(arguments)
            // A group of its own: Ctrl-C reaches the host alone, which ends the run in order.
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(file)
            .spawn()
            .map_err(|source| match source.kind() {
                io::ErrorKind::NotFound => Error::NoSetpriv,
                _ => Error::Start { program: program.to_owned(), source },
            })?;
        Ok(Self { child, messages: messages.to_owned() })
    }

    /// How it ended, if it has.
    pub(super) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// The file that what it prints goes to.
    pub(super) fn messages_file(&self) -> &Path {
        &self.messages
    }

    /// What it printed, for an error that must tell why it ended.
    pub(super) fn messages(&self) -> String {
        std::fs::read_to_string(&self.messages).unwrap_or_default().trim().to_owned()
    }

    /// Stops it where it is.
    pub(super) fn pause(&self) {
        self.signal(Signal::STOP);
    }

    /// Lets it go on.
    pub(super) fn go_on(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        if let Some(pid) = Pid::from_raw(self.child.id() as i32) {
            // A process that has ended is found out when the host waits for its board.
            let _ = kill_process(pid, signal);
        }
    }

    /// Kills it, as a flat battery would.
    pub(super) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}
