//! Swarms on several hosts, as real processes on loopback.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// A run of a moment, on the sample.
const SMALL: [&str; 10] =
    ["--data", "sample", "--model", "softmax", "--agents", "5", "--batch", "16", "--checkpoint-every", "1"];

fn fabswarm(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fabswarm"));
    command.current_dir(folder).stdin(Stdio::null()).env("RAYON_NUM_THREADS", "1");
    command
}

fn train(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = fabswarm(folder);
    command.arg("train").args(SMALL).args(arguments);
    command
}

#[track_caller]
fn succeed(mut command: Command) -> Output {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    output
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

fn read(folder: &Path, name: &str) -> Vec<u8> {
    fs::read(folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// `fabswarm host`, until it is dropped.
struct Host {
    child: Child,
    output: BufReader<ChildStdout>,
    address: String,
}

impl Host {
    fn start(folder: &Path, address: &str) -> Self {
        let mut command = fabswarm(folder);
        command.args(["host", "--listen", address]).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        let address = line.trim_end().strip_prefix("listening on ").expect(&line).to_owned();
        Host { child, output, address }
    }

    fn next_line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn hosts_file(folder: &Path, hosts: &[&Host]) {
    let host = |(number, host): (usize, &&Host)| {
        format!("[[host]]\nname = \"h{number}\"\naddress = \"{}\"\n", host.address)
    };
    fs::write(folder.join("hosts.toml"), hosts.iter().enumerate().map(host).collect::<String>()).unwrap();
}

fn wait_for(what: &str, is_there: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_there() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what} never came");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn two_and_three_hosts_leave_the_bytes_of_one_process() {
    let folder = tempfile::tempdir().unwrap();
    let faults = ["--algorithm", "ledger", "--iid-loss", "0.2", "--delay-rounds", "2", "--crashes", "2@8+6"];
    for (name, flags) in
        [("fab", &["--epochs", "3"][..]), ("ledger", &[&["--epochs", "2"], &faults[..]].concat())]
    {
        let run = |out: &str, more: &[&str]| {
            succeed(train(folder.path(), &[flags, &["--out", out], more].concat()));
            folder.path().join(out)
        };
        let one = run(&format!("{name}-1"), &["--device", "cpu"]);
        for (count, shares_memory) in [(2, true), (2, false), (3, true)] {
            let many = run(
                &format!("{name}-{count}-{shares_memory}"),
                &["--hosts", &format!("127.0.0.1x{count}"), "--shared-memory", &shares_memory.to_string()],
            );
            let [planned, sent, received, shared] = ["planned_sent", "sent", "received", "received_shared"]
                .map(|column| of_hosts(&many, &format!("{column}_bytes")).iter().sum::<u64>());
            assert!(planned > 0 && sent == planned && received == planned, "{name} on {count} hosts");
            assert_eq!(shared, if shares_memory { received } else { 0 }, "{name} on {count} hosts");
            for file in ["metrics.csv", "weights.csv", "model.safetensors"] {
                assert!(read(&many, file) == read(&one, file), "{name} on {count} hosts: another {file}");
            }
        }
    }
}

/// A column of `hosts.csv`, which has a row per host.
fn of_hosts(folder: &Path, column: &str) -> Vec<u64> {
    let table = String::from_utf8(read(folder, "hosts.csv")).unwrap();
    let mut lines = table.lines().map(|line| line.split(','));
    let at = lines.next().unwrap().position(|name| name == column).unwrap();
    lines.map(|mut line| line.nth(at).unwrap().parse().unwrap()).collect()
}

/// `planned_sent_bytes` and `sent_bytes` of all hosts.
fn sent(folder: &Path) -> (u64, u64) {
    let sum = |column| of_hosts(folder, column).iter().sum();
    (sum("planned_sent_bytes"), sum("sent_bytes"))
}

#[test]
fn hosts_that_exchange_every_fourth_round_leave_the_bytes_of_blocks_in_one_process() {
    let folder = tempfile::tempdir().unwrap();
    let run = |out: &str, more: &[&str]| {
        let flags = ["--algorithm", "ledger", "--iid-loss", "0.2", "--epochs", "2", "--out", out];
        succeed(train(folder.path(), &[&flags[..], more].concat()));
        folder.path().join(out)
    };
    let one = run("one", &["--device", "cpu", "--exchange-every", "4", "--blocks", "2"]);
    let many = run("many", &["--hosts", "127.0.0.1x2", "--exchange-every", "4"]);
    let often = run("often", &["--hosts", "127.0.0.1x2"]);
    for file in ["metrics.csv", "weights.csv", "model.safetensors"] {
        assert!(read(&many, file) == read(&one, file), "another {file}");
    }
    let ((planned, counted), (_, each_round)) = (sent(&many), sent(&often));
    assert_eq!(planned, counted);
    assert!(counted > 0 && counted * 3 < each_round, "{counted} bytes, {each_round} in every round");
}

#[test]
fn hosts_that_run_take_part_in_one_run_after_the_other() {
    let folder = tempfile::tempdir().unwrap();
    let mut hosts = [Host::start(folder.path(), "127.0.0.1:0"), Host::start(folder.path(), "127.0.0.1:0")];
    hosts_file(folder.path(), &[&hosts[0], &hosts[1]]);
    let status = || {
        let output = succeed({
            let mut command = fabswarm(folder.path());
            command.args(["host", "status", "--hosts", "hosts.toml"]);
            command
        });
        text(&output.stdout).to_owned()
    };
    let waiting = status();
    assert_eq!(waiting.lines().filter(|line| line.contains("waits for a run")).count(), 2, "{waiting}");
    let one = succeed(train(folder.path(), &["--epochs", "1", "--out", "one", "--device", "cpu"]));
    drop(one);
    for out in ["first", "second"] {
        succeed(train(folder.path(), &["--epochs", "1", "--hosts", "hosts.toml", "--out", out]));
        let metrics = |name: &str| read(&folder.path().join(name), "metrics.csv");
        assert!(metrics(out) == metrics("one"));
        for host in &mut hosts {
            assert!(host.next_line().starts_with("run "));
            assert_eq!(host.next_line(), "the run has ended\n");
        }
    }
    assert_eq!(status().lines().filter(|line| line.contains("waits for a run")).count(), 2);
    for host in &mut hosts {
        host.signal(Signal::TERM);
        assert!(host.child.wait().unwrap().success());
        assert!(std::net::TcpListener::bind(&host.address).is_ok(), "the port is free again");
    }
}

#[test]
fn ctrl_c_anywhere_ends_the_run_in_order_everywhere() {
    let folder = tempfile::tempdir().unwrap();
    let mut hosts = [Host::start(folder.path(), "127.0.0.1:0"), Host::start(folder.path(), "127.0.0.1:0")];
    hosts_file(folder.path(), &[&hosts[0], &hosts[1]]);
    let endless = |out: &str| {
        let mut command =
            train(folder.path(), &["--epochs", "1000000", "--hosts", "hosts.toml", "--out", out]);
        let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        wait_for("a checkpoint", || folder.path().join(out).join("checkpoint.safetensors").exists());
        child
    };
    let ends = |child: Child, out: &str| {
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
        let summary = read(&folder.path().join(out), "summary.json");
        let round = serde_json::from_slice::<serde_json::Value>(&summary).unwrap()["rounds"].clone();
        assert!(
            text(&output.stderr).contains(&format!("continues from round {round}")),
            "{}",
            text(&output.stderr)
        );
    };
    let starter = endless("starter");
    kill_process(Pid::from_child(&starter), Signal::INT).unwrap();
    ends(starter, "starter");
    for host in &mut hosts {
        assert!(host.next_line().starts_with("run "));
        assert_eq!(host.next_line(), "the run has ended\n");
    }
    let starter = endless("host");
    hosts[1].signal(Signal::INT);
    ends(starter, "host");
    assert!(hosts[1].child.wait().unwrap().success());
    // One process continues a run that two hosts began.
    let more = ["train", "--resume", "host", "--device", "cpu", "--epochs", "1000000"];
    let mut resumed = fabswarm(folder.path());
    let child = resumed.args(more).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let id = Pid::from_child(&child);
    let before = fs::metadata(folder.path().join("host/checkpoint.safetensors")).unwrap().modified().unwrap();
    wait_for("a checkpoint", || {
        fs::metadata(folder.path().join("host/checkpoint.safetensors"))
            .is_ok_and(|file| file.modified().unwrap() != before)
    });
    kill_process(id, Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(text(&output.stdout).contains("continuing from round "), "{}", text(&output.stdout));
}

/// Carries everything between two ends until it is cut, and again when it is not.
struct TcpRelay {
    address: String,
    is_cut: Arc<AtomicBool>,
}

impl TcpRelay {
    fn to(address: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (own, to) = (listener.local_addr().unwrap().to_string(), address.to_owned());
        let is_cut = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&is_cut);
        std::thread::spawn(move || {
            for near in listener.incoming().flatten() {
                let Ok(far) = TcpStream::connect(&to) else { continue };
                for (from, into) in [(&near, &far), (&far, &near)] {
                    let (from, into) = (from.try_clone().unwrap(), into.try_clone().unwrap());
                    let flag = Arc::clone(&flag);
                    std::thread::spawn(move || carry(from, into, &flag));
                }
            }
        });
        TcpRelay { address: own, is_cut }
    }
}

fn carry(mut from: TcpStream, mut into: TcpStream, is_cut: &AtomicBool) {
    let mut bytes = vec![0; 1 << 16];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        while is_cut.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(5));
        }
        if into.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    let _ = (from.shutdown(std::net::Shutdown::Both), into.shutdown(std::net::Shutdown::Both));
}

#[test]
fn a_host_that_stalls_is_cut_off_or_is_killed_and_comes_back_costs_no_bit() {
    let folder = tempfile::tempdir().unwrap();
    let mut hosts = [Host::start(folder.path(), "127.0.0.1:0"), Host::start(folder.path(), "127.0.0.1:0")];
    let relay = TcpRelay::to(&hosts[0].address);
    hosts[0].address.clone_from(&relay.address);
    hosts_file(folder.path(), &[&hosts[0], &hosts[1]]);
    let long = ["--epochs", "30", "--checkpoint-every", "5", "--algorithm", "ledger", "--iid-loss", "0.2"];
    let long = |more: &[&str]| {
        let mut command = fabswarm(folder.path());
        command.arg("train").args(&SMALL[..8]).args(long).args(more);
        command
    };
    succeed(long(&["--out", "one", "--device", "cpu"]));
    let on_hosts = ["--hosts", "hosts.toml", "--on-host-loss", "wait", "--host-timeout", "4"];
    let mut command = long(&[&on_hosts[..], &["--out", "many"]].concat());
    let mut starter = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut messages = BufReader::new(starter.stderr.take().unwrap()).lines().map(Result::unwrap);
    let go_on = || {
        let part = folder.path().join("many/metrics.csv.part");
        let rows = || fs::read_to_string(&part).map_or(0, |text| text.lines().count());
        let before = rows();
        wait_for("a row", || rows() > before + 1);
    };
    go_on();
    hosts[0].signal(Signal::STOP);
    std::thread::sleep(Duration::from_secs(1));
    hosts[0].signal(Signal::CONT);
    go_on();
    relay.is_cut.store(true, Ordering::Relaxed);
    let mut is_waiting = || messages.by_ref().any(|line| line.contains("waiting for all hosts"));
    assert!(is_waiting());
    relay.is_cut.store(false, Ordering::Relaxed);
    go_on();
    hosts[1].signal(Signal::KILL);
    hosts[1].child.wait().unwrap();
    assert!(is_waiting());
    let address = hosts[1].address.clone();
    hosts[1] = Host::start(folder.path(), &address);
    let rest: Vec<String> = messages.collect();
    assert!(starter.wait().unwrap().success(), "{rest:?}");
    for file in ["metrics.csv", "weights.csv", "model.safetensors"] {
        let of = |run: &str| read(&folder.path().join(run), file);
        assert!(of("many") == of("one"), "another {file}");
    }
}

#[test]
fn what_cannot_be_a_run_on_hosts_is_refused_before_anything_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |hosts: &str, more: &[&str]| {
        let output = train(folder.path(), &[&["--hosts", hosts], more].concat()).output().unwrap();
        let message = text(&output.stderr).to_owned();
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(message.contains("help: "), "{message}");
        message
    };
    assert!(refused("127.0.0.1:1", &[]).contains("host 127.0.0.1:1 at 127.0.0.1:1 cannot be reached"));
    assert!(refused("127.0.0.1x9", &[]).contains("the scenario has 5 agents, for 9 hosts"));
    assert!(refused("127.0.0.1x2", &["--device", "cuda:99"]).contains("--device cpu"));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "something was written");
}
