//! The `fabswarm` command with the page, as a process.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;

/// A command that serves the page; it is killed when dropped.
pub(crate) struct Fabswarm {
    child: Child,
    pub(crate) url: String,
    /// Removed with it.
    folder: Option<tempfile::TempDir>,
}

/// The command, which `cargo xtask test browser` has built.
fn program() -> Command {
    let path =
        std::env::var_os("FABSWARM").expect("FABSWARM names the command: run `cargo xtask test browser`");
    let mut command = Command::new(path);
    command.stdin(Stdio::null());
    command
}

impl Fabswarm {
    /// A run with `arguments`, on a free port.
    pub(crate) fn run(arguments: &[&str]) -> Self {
        Self::run_at("127.0.0.1:0", arguments)
    }

    /// A run with `arguments`, at `address`.
    pub(crate) fn run_at(address: &str, arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let live = format!("--live={address}");
        let mut started = Self::start(folder.path(), &[&["run", live.as_str()], arguments].concat());
        started.folder = Some(folder);
        started
    }

    /// Any command that prints where its page is.
    pub(crate) fn start(folder: &Path, arguments: &[&str]) -> Self {
        let mut child = program()
            .args(arguments)
            .current_dir(folder)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        let mut said = String::new();
        let url = lines.find_map(|line| {
            said = format!("{said}{line}\n");
            line.split_whitespace().find(|word| word.starts_with("http://")).map(str::to_owned)
        });
        let url = url.unwrap_or_else(|| panic!("no address in\n{said}"));
        // Somebody must read on, or the command waits for room in the pipe.
        thread::spawn(move || lines.for_each(drop));
        Self { child, url, folder: None }
    }

    /// A run that ends by itself.
    pub(crate) fn finish_run(folder: &Path, arguments: &[&str]) {
        let output = program().arg("run").args(arguments).current_dir(folder).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

impl Drop for Fabswarm {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
