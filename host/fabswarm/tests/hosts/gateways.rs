//! Boards on several hosts form one swarm, as real processes on loopback.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

fn fabswarm(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fabswarm"));
    command.current_dir(folder).args(arguments).stdin(Stdio::null());
    command
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// Runs a swarm for so many rounds.
#[track_caller]
fn run(folder: &Path, rounds: &str, out: &str, more: &[&str]) -> Output {
    let common = ["run", "--rounds", rounds, "--error-below", "0", "--out", out];
    let output = fabswarm(folder, &[&common[..], more].concat()).output().unwrap();
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    output
}

fn read(folder: &Path, file: &str) -> Vec<u8> {
    fs::read(folder.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

fn summary(folder: &Path) -> serde_json::Value {
    serde_json::from_slice(&read(folder, "summary.json")).unwrap()
}

#[track_caller]
fn assert_same_run(folder: &Path, found: &str, expected: &str) {
    let [found, expected] = [found, expected].map(|out| folder.join(out));
    assert!(read(&found, "metrics.csv") == read(&expected, "metrics.csv"), "another metrics.csv");
    let [counted, wanted] = [&found, &expected].map(|out| summary(out));
    for key in ["digest_checks", "digest_mismatches", "frames_sent", "copies_lost", "copies_refused"] {
        assert_eq!(counted[key], wanted[key], "{key}");
    }
    assert_eq!(counted["digest_mismatches"], 0);
    assert!(counted["digest_checks"].as_u64() > Some(0));
    let logs = |out: &Path| fs::read_dir(out.join("boards")).unwrap().count();
    assert_eq!(logs(&found), logs(&expected));
}

#[test]
fn native_boards_on_two_and_three_hosts_are_the_swarm_of_one() {
    let folder = tempfile::tempdir().unwrap();
    let swarm = [
        "--boards",
        "native:4,in-process:1,native:2",
        "--agents",
        "7",
        "--iid-loss",
        "0.2",
        "--delay-rounds",
        "2",
        "--crashes",
        "1@10+5,5@12+6 forgets",
        "--frozen",
        "0@20+4",
    ];
    run(folder.path(), "60", "one", &swarm);
    for count in ["2", "3"] {
        let (hosts, out) = (format!("127.0.0.1x{count}"), format!("on-{count}"));
        let output = run(folder.path(), "60", &out, &[&swarm[..], &["--hosts", &hosts]].concat());
        assert_same_run(folder.path(), &out, "one");
        let table = String::from_utf8(read(&folder.path().join(&out), "hosts.csv")).unwrap();
        assert_eq!(table.lines().count().to_string(), (count.parse::<usize>().unwrap() + 1).to_string());
        assert!(text(&output.stdout).contains("to it in a round"), "{}", text(&output.stdout));
    }
}

#[test]
fn emulated_boards_on_two_hosts_are_the_swarm_of_one() {
    let folder = tempfile::tempdir().unwrap();
    let swarm = ["--boards", "qemu", "--agents", "4", "--iid-loss", "0.2"];
    run(folder.path(), "20", "one", &swarm);
    run(folder.path(), "20", "two", &[&swarm[..], &["--hosts", "127.0.0.1x2"]].concat());
    assert_same_run(folder.path(), "two", "one");
}

/// `fabswarm host`, until it is dropped.
struct Host {
    child: Child,
    output: BufReader<ChildStdout>,
    address: String,
}

impl Host {
    fn start(folder: &Path) -> Self {
        let mut command = fabswarm(folder, &["host", "--listen", "127.0.0.1:0"]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        let address = line.trim_end().strip_prefix("listening on ").expect(&line).to_owned();
        Host { child, output, address }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts a run on two hosts that goes on until it is told to end, and waits for its first rows.
fn start_endless(folder: &Path, hosts: &[Host; 2], out: &str) -> Child {
    let addresses = format!("{},{}", hosts[0].address, hosts[1].address);
    let endless =
        ["run", "--rounds", "100000000", "--error-below", "0", "--agents", "4", "--boards", "native"];
    let mut command = fabswarm(folder, &[&endless[..], &["--out", out, "--hosts", &addresses]].concat());
    let starter = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let begun = Instant::now();
    while fs::read(folder.join(out).join("metrics.csv.part")).map_or(0, |rows| rows.len()) < 500 {
        assert!(begun.elapsed() < Duration::from_secs(300), "no row came");
        std::thread::sleep(Duration::from_millis(5));
    }
    starter
}

#[test]
fn ctrl_c_anywhere_ends_the_run_in_order_everywhere() {
    let folder = tempfile::tempdir().unwrap();
    let mut hosts = [Host::start(folder.path()), Host::start(folder.path())];
    let ends = |starter: Child, out: &str| {
        let output = starter.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
        let found = summary(&folder.path().join(out));
        assert_eq!(
            (&found["stopped_because"], &found["digest_mismatches"]),
            (&"interrupted".into(), &0.into())
        );
        let table = String::from_utf8(read(&folder.path().join(out), "hosts.csv")).unwrap();
        assert_eq!(table.lines().count(), 3, "{table}");
    };
    let starter = start_endless(folder.path(), &hosts, "starter");
    kill_process(Pid::from_child(&starter), Signal::INT).unwrap();
    ends(starter, "starter");
    for host in &mut hosts {
        for expected in ["run ", "the run has ended"] {
            let mut line = String::new();
            host.output.read_line(&mut line).unwrap();
            assert!(line.starts_with(expected), "{line}");
        }
    }
    let starter = start_endless(folder.path(), &hosts, "host");
    kill_process(Pid::from_child(&hosts[1].child), Signal::INT).unwrap();
    ends(starter, "host");
    assert!(hosts[1].child.wait().unwrap().success());
}

#[test]
fn a_host_that_is_killed_ends_the_run_and_the_other_waits_for_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let mut hosts = [Host::start(folder.path()), Host::start(folder.path())];
    let starter = start_endless(folder.path(), &hosts, "lost");
    hosts[1].child.kill().unwrap();
    let output = starter.wait_with_output().unwrap();
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{message}");
    assert!(
        message.contains(&format!("host {}", hosts[1].address)) && message.contains("help: "),
        "{message}"
    );
    let mut line = String::new();
    for expected in ["run ", "the run has ended"] {
        line.clear();
        hosts[0].output.read_line(&mut line).unwrap();
        assert!(line.starts_with(expected), "{line}");
    }
    let rest = hosts[0].address.clone();
    run(folder.path(), "10", "next", &["--agents", "4", "--boards", "native", "--hosts", &rest]);
}

#[test]
fn what_cannot_be_spread_over_hosts_is_refused_before_anything_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |more: &[&str], what: &str| {
        let output =
            fabswarm(folder.path(), &[&["run", "--hosts", "127.0.0.1x2"], more].concat()).output().unwrap();
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(message.contains(what) && message.contains("help: "), "{message}\ndoes not contain {what}");
    };
    refused(&[], "swarm.boards places no agent on one");
    refused(&["--boards", "native", "--pace", "slots"], "lets them keep their own time");
    refused(&["--boards", "native", "--agents", "1"], "for 2 hosts");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "something was written");
}
