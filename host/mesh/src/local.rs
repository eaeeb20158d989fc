//! Hosts as processes on this machine, for a first try.

use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, Command, Stdio};

use fabswarm_diagnostic::Diagnostic;

use crate::hosts_file::Host;

/// A host prints this before its address, once it listens.
pub const LISTENING: &str = "listening on ";

/// Processes of this program that end with it, whatever happens to it: each reads its standard input, which closes then.
#[derive(Debug)]
pub struct LocalHosts {
    children: Vec<Child>,
    /// While these are open the children go on.
    inputs: Vec<ChildStdin>,
    /// The hosts and the addresses at which they listen.
    pub hosts: Vec<Host>,
}

impl LocalHosts {
    /// Starts hosts with the names of `hosts`, each with the value of `--device` and `--precision` that `device_of` has for its
    /// number, and waits until they listen.
    ///
    /// # Errors
    /// When that fails.
    pub fn start(hosts: Vec<Host>, device_of: impl Fn(usize) -> [String; 2]) -> Result<Self, Diagnostic> {
        let failed = |what: String| {
            let what = format!("cannot start a host on this machine: {what}");
            Diagnostic::new(what, "see that the system lets processes be started and loopback ports be used")
        };
        let refused = |error: std::io::Error| failed(error.to_string());
        let program = std::env::current_exe().map_err(refused)?;
        let mut all = LocalHosts { children: Vec::new(), inputs: Vec::new(), hosts: Vec::new() };
        for (number, host) in hosts.into_iter().enumerate() {
            let [device, precision] = device_of(number);
            let mut child = Command::new(&program)
                .args(["host", "--listen", "127.0.0.1:0", "--name", &host.name, "--until-eof"])
                .args(["--device", &device, "--precision", &precision])
                // Ctrl-C reaches this process alone, which tells the others in order.
                .process_group(0)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .map_err(refused)?;
            all.inputs.extend(child.stdin.take());
            let output = child.stdout.take();
            all.children.push(child);
            let mut lines = output.map(BufReader::new).into_iter().flat_map(|output| output.lines());
            let address = lines.find_map(|line| Some(line.ok()?.strip_prefix(LISTENING)?.to_owned()));
            let Some(address) = address else {
                return Err(failed("it ended before it listened".to_owned()));
            };
            all.hosts.push(Host { address, ..host });
        }
        Ok(all)
    }
}

impl Drop for LocalHosts {
    fn drop(&mut self) {
        self.inputs.clear();
        for child in &mut self.children {
            let _ = child.wait();
        }
    }
}
