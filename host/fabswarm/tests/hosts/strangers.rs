//! Peers outside a cluster are refused while a run goes on: real processes on loopback, with certificates.

use std::fs;
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use fabswarm_mesh::certificates::{new_cluster, new_cluster_until};
use fabswarm_mesh::hosts_file::Host;
use rustix::process::{Pid, Signal, kill_process};

const TRAINING: [&str; 9] =
    ["train", "--data", "sample", "--model", "softmax", "--agents", "5", "--batch", "16"];
/// Attempts of each stranger that sends bytes; those with certificates try again by themselves, many times in their five seconds.
const ATTEMPTS: usize = 20;

fn fabswarm(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fabswarm"));
    command.current_dir(folder).args(arguments).stdin(Stdio::null()).env("RAYON_NUM_THREADS", "1");
    command
}

/// On a busy machine hosts may lose each other, and go back to a checkpoint before they go on.
const TIMEOUT: Duration = Duration::from_secs(240);

/// Waits for something; what the processes said is shown where it never comes.
fn wait_for(what: &str, processes: &[&Mutex<String>], is_there: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_there() {
        let said =
            || processes.iter().map(|said| format!("\n---\n{}", said.lock().unwrap())).collect::<String>();
        assert!(begun.elapsed() < TIMEOUT, "{what} never came{}", said());
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The output of a process so far.
fn listen(output: impl Read + Send + 'static) -> Arc<Mutex<String>> {
    let heard = Arc::new(Mutex::new(String::new()));
    let said = Arc::clone(&heard);
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            *said.lock().unwrap() += &(line + "\n");
        }
    });
    heard
}

/// A process that does not outlive the test.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// `fabswarm host` with a member's certificate and room for few open files: itself, its address, and what it says on standard error.
fn start(folder: &Path, member: &str) -> (Process, String, Arc<Mutex<String>>) {
    let limited = "ulimit -n 128 && exec \"$0\" host --listen 127.0.0.1:0 --cluster ours/$1";
    let mut command = Command::new("sh");
    command.args(["-c", limited, env!("CARGO_BIN_EXE_fabswarm"), member]).current_dir(folder);
    command.stdin(Stdio::null()).env("RAYON_NUM_THREADS", "1");
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let printed = listen(child.stdout.take().unwrap());
    let said = listen(child.stderr.take().unwrap());
    let process = Process(child);
    wait_for("the address", &[&said], || printed.lock().unwrap().contains('\n'));
    let line = printed.lock().unwrap().lines().next().unwrap().to_owned();
    let address = line.strip_prefix("listening on ").expect(&line).to_owned();
    (process, address, said)
}

/// Waits for somebody who asked a host how it is, and learned nothing.
fn is_refused(mut stranger: Process) {
    let [mut told, mut error] = [String::new(), String::new()];
    stranger.0.stdout.take().unwrap().read_to_string(&mut told).unwrap();
    stranger.0.stderr.take().unwrap().read_to_string(&mut error).unwrap();
    assert_eq!(stranger.0.wait().unwrap().code(), Some(1), "{told}{error}");
    assert!(told.is_empty() && error.contains("takes this certificate"), "{told}{error}");
}

#[test]
fn strangers_are_refused_once_in_the_log_and_the_run_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let host = |name: &str| Host { name: name.to_owned(), address: "127.0.0.1:0".to_owned(), agents: None };
    let year_of = |name: &str| if name == "old" { 2020 } else { 2100 };
    new_cluster_until(&path("ours"), &["h0", "h1", "old", "left"].map(host), &year_of).unwrap();
    new_cluster(&path("other"), &[host("h0")]).unwrap();
    fs::write(path("ours/h0/cluster.toml"), "members = [\"h0\", \"h1\", \"old\", \"starter\"]\n").unwrap();
    let (_first, address, said) = start(folder.path(), "h0");
    let (_second, second, said_by_second) = start(folder.path(), "h1");
    let hosts = [("h0", &address), ("h1", &second)]
        .map(|(name, address)| format!("[[host]]\nname = \"{name}\"\naddress = \"{address}\"\n"));
    fs::write(path("hosts.toml"), hosts.concat()).unwrap();
    let many = ["--epochs", "1000000", "--hosts", "hosts.toml", "--cluster", "ours/starter", "--out", "many"];
    let mut command = fabswarm(folder.path(), &[&TRAINING[..], &many].concat());
    let mut starter = Process(command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap());
    let starter_said = listen(starter.0.stderr.take().unwrap());
    let rows = || fs::read_to_string(path("many/metrics.csv.part")).map_or(0, |text| text.lines().count());
    let everybody: [&Mutex<String>; 3] = [&starter_said, &said, &said_by_second];
    wait_for("a row", &everybody, || rows() > 3);

    // More connections than the host may have open files; none of them says anything.
    let silent: Vec<TcpStream> = (0..400).map(|_| TcpStream::connect(&address).unwrap()).collect();
    let ask = |more: &[&str]| {
        let mut command = fabswarm(folder.path(), &[&["host", "status", "--hosts", &address], more].concat());
        Process(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
    };
    let strangers = [
        (&["--cluster", "ours/left"][..], "is not in this host's cluster.toml"),
        (&["--cluster", "other/starter"], "does not take"),
        (&["--cluster", "ours/old"], "has expired"),
        (&[], "does not take"),
    ];
    let asking = strangers.map(|(arguments, _)| ask(arguments));
    for length in [1, 100, 100_000].into_iter().cycle().take(ATTEMPTS) {
        let mut stranger = TcpStream::connect(&address).unwrap();
        // A refused peer may be cut off before it has sent everything.
        let _ = stranger.write_all(&vec![0x5a; length]);
    }
    asking.into_iter().for_each(is_refused);
    for (arguments, reason) in strangers {
        // A busy machine may not have come to it in five seconds.
        while !said.lock().unwrap().contains(reason) {
            is_refused(ask(arguments));
        }
    }
    wait_for("the note on bytes", &everybody, || said.lock().unwrap().contains("not what hosts send"));
    let member = ["host", "status", "--hosts", &address, "--cluster", "ours/h1"];
    let is_answered = || fabswarm(folder.path(), &member).output().unwrap().status.success();
    wait_for("an answer beside strangers", &everybody, is_answered);
    drop(silent);
    let before = rows();
    wait_for("a row after the strangers", &everybody, || rows() > before + 3);

    kill_process(Pid::from_child(&starter.0), Signal::INT).unwrap();
    let code = starter.0.wait().unwrap().code();
    assert_eq!(code, Some(130), "{}", starter_said.lock().unwrap());
    let said = said.lock().unwrap();
    for (_, reason) in strangers {
        assert_eq!(said.matches(reason).count(), 1, "{said}");
    }
    assert!(said.lines().all(|line| line.starts_with("note: somebody was refused: ")), "{said}");
    assert_eq!(*said_by_second.lock().unwrap(), "");
    let summary = fs::read(path("many/summary.json")).unwrap();
    let summary: serde_json::Value = serde_json::from_slice(&summary).unwrap();
    let epochs = (summary["epochs"].as_f64().unwrap().ceil() as u32).to_string();
    let one = ["--device", "cpu", "--epochs", &epochs, "--out", "one"];
    assert!(fabswarm(folder.path(), &[&TRAINING[..], &one].concat()).output().unwrap().status.success());
    let metrics = |run: &str| fs::read_to_string(path(run).join("metrics.csv")).unwrap();
    assert!(metrics("many").lines().count() > 4 && metrics("one").starts_with(&metrics("many")));
}
