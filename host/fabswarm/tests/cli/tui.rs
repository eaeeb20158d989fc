//! `run --tui` on a pseudo-terminal.

use rustix::pty::{self, OpenptFlags};
use rustix::termios::{self, Winsize};
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

const ENTER: &str = "\x1b[?1049h";
const LEAVE: &str = "\x1b[?1049l";

/// The command on a terminal of 80 columns.
struct Session {
    child: Child,
    keyboard: File,
    screen: Receiver<Vec<u8>>,
    shown: Vec<u8>,
}

impl Session {
    fn start(folder: &Path, arguments: &[&str]) -> Self {
        let far = pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        pty::grantpt(&far).unwrap();
        pty::unlockpt(&far).unwrap();
        let size = Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
        termios::tcsetwinsize(&far, size).unwrap();
        let near = pty::ptsname(&far, Vec::new()).unwrap();
        let near = File::options().read(true).write(true).open(near.to_str().unwrap()).unwrap();
        let end = || Stdio::from(near.try_clone().unwrap());
        let mut command = Command::new(env!("CARGO_BIN_EXE_fabswarm"));
        command.args(["run", "--tui", "--out", "run"]).args(arguments).current_dir(folder);
        let child = command.env("TERM", "xterm-256color").stdin(end()).stdout(end()).stderr(end()).spawn();
        let child = child.unwrap();
        drop(near);
        let keyboard = File::from(far);
        let mut output = keyboard.try_clone().unwrap();
        let (sender, screen) = channel();
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            // A terminal whose other end is closed answers with an error.
            while let Ok(read @ 1..) = output.read(&mut bytes) {
                if sender.send(bytes[..read].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self { child, keyboard, screen, shown: Vec::new() }
    }

    fn shown(&self) -> String {
        String::from_utf8_lossy(&self.shown).into_owned()
    }

    /// Reads until `text` is on the screen.
    fn wait_for(&mut self, text: &str) {
        while !self.shown().contains(text) {
            let next = self.screen.recv_timeout(Duration::from_secs(60));
            self.shown.extend(next.unwrap_or_else(|_| panic!("no {text:?} in {:?}", self.shown())));
        }
    }

    /// Reads what is left, and returns what was written after the screen was given back.
    fn finish(mut self) -> (ExitStatus, String) {
        while let Ok(bytes) = self.screen.recv_timeout(Duration::from_secs(60)) {
            self.shown.extend(bytes);
        }
        let status = self.child.wait().unwrap();
        let shown = self.shown();
        let (_, after) =
            shown.rsplit_once(LEAVE).unwrap_or_else(|| panic!("no end of the screen in {shown:?}"));
        (status, after.to_owned())
    }
}

#[test]
fn a_run_takes_the_terminal_and_gives_it_back() {
    let folder = tempfile::tempdir().unwrap();
    let mut session = Session::start(folder.path(), &["--rounds", "300", "--error-below", "0"]);
    session.wait_for(ENTER);
    session.wait_for("tracking");
    let (status, after) = session.finish();
    assert!(status.success(), "{after}");
    assert!(after.contains("all rounds done, after 300 rounds"), "{after}");
    assert!(folder.path().join("run/run.mcap").exists());
}

#[test]
fn q_ends_a_run_and_keeps_its_results() {
    let folder = tempfile::tempdir().unwrap();
    let mut session = Session::start(folder.path(), &["--rounds", "4000000000", "--error-below", "0"]);
    session.wait_for("q end the run");
    session.keyboard.write_all(b"q").unwrap();
    let (status, after) = session.finish();
    assert_eq!(status.code(), Some(130), "{after}");
    assert!(after.contains("what was recorded until then is kept"), "{after}");
    assert!(folder.path().join("run/summary.json").exists());
}

#[test]
fn a_pipe_is_no_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_fabswarm"));
    let output =
        command.args(["run", "--tui"]).current_dir(folder.path()).stdin(Stdio::null()).output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.contains("--tui needs a terminal") && error.contains("help: "), "{error}");
    assert!(!folder.path().join("runs").exists());
}
