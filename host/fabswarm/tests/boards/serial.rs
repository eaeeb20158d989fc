//! Real boards on serial ports, played by native boards behind pseudo-terminals: whatever happens to a port ends in a rejoin or in a
//! clear error.

use crate::plugged::{Garble, PluggedBoard, clean, plug};
use fabswarm_attach::BoardKind;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// A native board on a clean line.
fn board(folder: &Path, chip: u64) -> PluggedBoard {
    PluggedBoard::of_kind(BoardKind::Native, folder, chip)
}

fn run(folder: &Path, out: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fabswarm"));
    let boards = format!("serial:{}/usb-*", folder.display());
    command.args(["run", "--boards"]).arg(boards + arguments[0]).args(&arguments[1..]).arg("--out").arg(out);
    command.stdin(Stdio::null());
    command
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn summary(out: &Path) -> serde_json::Value {
    serde_json::from_slice(&fs::read(out.join("summary.json")).unwrap()).unwrap()
}

#[test]
fn boards_on_serial_ports_match_the_simulator() {
    let folder = tempfile::tempdir().unwrap();
    let boards: Vec<PluggedBoard> = (1..=3).map(|chip| board(folder.path(), chip)).collect();
    let arguments = [":3,in-process", "--rounds", "60", "--error-below", "0", "--iid-loss", "0.2"];
    // A second run finds the boards in the middle of the first one.
    for out in ["first", "second"] {
        let out = folder.path().join(out);
        let output = run(folder.path(), &out, &arguments).output().unwrap();
        assert!(output.status.success(), "{}", text(&output));
        let summary = summary(&out);
        assert_eq!((&summary["digest_checks"], &summary["digest_mismatches"]), (&180.into(), &0.into()));
    }
    // By the order of chips, whatever the order of ports.
    assert!(boards[1].log().contains("agent 1 starts, boot 1, round 0"), "{}", boards[1].log());
}

/// Waits until a run has recorded more than `rounds` rounds.
#[track_caller]
fn wait_for_rounds(out: &Path, rounds: usize) {
    let begun = Instant::now();
    let recorded = || fs::read_to_string(out.join("metrics.csv.part")).unwrap_or_default().lines().count();
    while recorded() < rounds {
        assert!(begun.elapsed() < Duration::from_secs(60), "timed out");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_board_that_is_unplugged_reset_or_disturbed_rejoins() {
    let folder = tempfile::tempdir().unwrap();
    let boards: Vec<PluggedBoard> = (1..=3).map(|chip| board(folder.path(), chip)).collect();
    let out = folder.path().join("out");
    let arguments = [":3,in-process:1", "--agents", "4", "--rounds", "1000000", "--error-below", "0"];
    let mut host =
        run(folder.path(), &out, &arguments).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for_rounds(&out, 50);
    boards[0].unplug();
    boards[1].reset();
    boards[2].far().as_mut().unwrap().write_all(b"noise\0 \0half a frame").unwrap();
    wait_for_rounds(&out, 200);
    boards[0].replug();
    let begun = Instant::now();
    let is_back = |board: &PluggedBoard| {
        let log = board.log();
        let last = log.rfind("starts, boot").map(|at| &log[at..]).unwrap_or_default();
        !last.is_empty() && !last.starts_with("starts, boot 1,")
    };
    while !is_back(&boards[0]) || !is_back(&boards[1]) {
        if begun.elapsed() > Duration::from_secs(30) {
            host.kill().unwrap();
            let output = host.wait_with_output().unwrap();
            panic!("{}\n{}\n{}", text(&output), boards[0].log(), boards[1].log());
        }
        thread::sleep(Duration::from_millis(20));
    }
    // Some rounds with all boards, then the end.
    thread::sleep(Duration::from_secs(2));
    let stderr = interrupt(host);
    assert!(stderr.contains("agent 0: its board was unplugged in round"), "{stderr}");
    assert!(stderr.contains("agent 1: its board restarted by itself in round"), "{stderr}");
    assert_eq!(summary(&out)["digest_mismatches"], 0);
}

/// Ends a run that goes on, and returns what it said.
#[track_caller]
fn interrupt(mut host: Child) -> String {
    assert!(host.try_wait().unwrap().is_none(), "the run is over");
    assert!(Command::new("kill").args(["-INT", &host.id().to_string()]).status().unwrap().success());
    let output = host.wait_with_output().unwrap();
    let stderr = text(&output);
    assert_eq!(output.status.code(), Some(130), "{stderr}");
    stderr
}

/// Bytes that are still to be changed or lost.
static SPOILED: AtomicU32 = AtomicU32::new(0);

/// Whether this byte is one of them.
fn is_spoiled() -> bool {
    SPOILED.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
}

fn spoil(byte: u8) -> Option<u8> {
    Some(if is_spoiled() { byte ^ 0x55 } else { byte })
}

fn lose(byte: u8) -> Option<u8> {
    (!is_spoiled()).then_some(byte)
}

/// Packets with wrong bytes, and frames of which only a part comes, on both ways.
#[test]
fn a_line_that_destroys_a_packet_costs_a_rejoin_and_not_the_run() {
    // More than any packet is long, and about half of a frame.
    for (fault, bytes) in [(spoil as Garble, 600), (lose, 200)] {
        disturbed_board_rejoins([fault, clean], bytes);
        disturbed_board_rejoins([clean, fault], bytes);
    }
}

fn disturbed_board_rejoins(garble: [Garble; 2], bytes: u32) {
    let folder = tempfile::tempdir().unwrap();
    let board = PluggedBoard::start(BoardKind::Native, folder.path(), 1, "usb-fabswarm_1", garble);
    let out = folder.path().join("out");
    let arguments = [":1,in-process:2", "--agents", "3", "--rounds", "1000000", "--error-below", "0"];
    let mut host =
        run(folder.path(), &out, &arguments).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for_rounds(&out, 50);
    SPOILED.store(bytes, Ordering::Relaxed);
    let begun = Instant::now();
    while !board.log().contains("starts, boot 2") {
        if begun.elapsed() > Duration::from_secs(30) {
            host.kill().unwrap();
            panic!("{}\n{}", text(&host.wait_with_output().unwrap()), board.log());
        }
        thread::sleep(Duration::from_millis(20));
    }
    let stderr = interrupt(host);
    assert!(stderr.contains("agent 0: its board was disturbed on its line in round"), "{stderr}");
    assert_eq!(summary(&out)["digest_mismatches"], 0);
}

/// What a run says that finds no board it can use.
#[track_caller]
fn refusal(folder: &Path) -> String {
    let begun = Instant::now();
    let output = run(folder, &folder.join("out"), &[":1,in-process"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    assert!(begun.elapsed() < Duration::from_secs(30), "it took {:?}", begun.elapsed());
    let stderr = text(&output);
    assert!(stderr.contains("\nhelp: "), "{stderr}");
    stderr
}

#[test]
fn ports_without_a_usable_board_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let nothing = refusal(folder.path());
    assert!(nothing.contains("places 1 agents on serial ports, and there are 0 boards"), "{nothing}");

    let silent = plug(&folder.path().join("usb-silent"));
    let message = refusal(folder.path());
    assert!(message.contains("usb-silent answers"), "{message}");
    drop(silent);
    fs::remove_file(folder.path().join("usb-silent")).unwrap();

    // As a receiver at another baud rate sees it: no byte is what it was.
    let other_rate: Garble = |byte| Some(byte.rotate_left(3) ^ 0x55);
    let garbled =
        PluggedBoard::start(BoardKind::Native, folder.path(), 1, "usb-garbled", [other_rate, other_rate]);
    let message = refusal(folder.path());
    assert!(message.contains("bytes that are no packets of fabswarm"), "{message}");
    drop(garbled);
}

#[test]
fn two_boards_with_one_identity_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let _boards = ["usb-one", "usb-two"]
        .map(|name| PluggedBoard::start(BoardKind::Native, folder.path(), 0xE661, name, [clean, clean]));
    let message = refusal(folder.path());
    assert!(message.contains("usb-one and ") && message.contains("chip 000000000000e661"), "{message}");
}

#[test]
fn firmware_of_another_schema_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let mut far = plug(&folder.path().join("usb-old"));
    // The start of a boot packet of an older format: its name, its schema, and what nobody here can read.
    let mut line = [0; 64];
    let boot = [&[1, 4][..], b"pico", &[7], &[0; 9]].concat();
    let length = fabswarm_shared::wire::stream::encode(&boot, &mut line).unwrap();
    let is_over = Arc::new(AtomicBool::new(false));
    let end = is_over.clone();
    let old = thread::spawn(move || {
        while !end.load(Ordering::Relaxed) {
            let _ = far.write_all(&line[..length]);
            thread::sleep(Duration::from_millis(50));
        }
    });
    let message = refusal(folder.path());
    is_over.store(true, Ordering::Relaxed);
    old.join().unwrap();
    assert!(message.contains("the board `pico` on") && message.contains("schema 0x00000007"), "{message}");
}

/// What a command prints that must succeed.
#[track_caller]
fn prints(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_fabswarm")).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    String::from_utf8(output.stdout).unwrap()
}

/// Drawn, provisioned, listed, reset and watched: everything but a run.
#[test]
fn plugged_boards_become_a_swarm() {
    let folder = tempfile::tempdir().unwrap();
    let boards: Vec<PluggedBoard> = [0xB, 0xA].map(|chip| board(folder.path(), chip)).into();
    let [swarm, ports] = ["swarm.toml", "usb-*"].map(|name| folder.path().join(name).display().to_string());

    let listed = prints(&["boards", "list", &ports]);
    assert!(listed.contains("native, chip 000000000000000a, this build"), "{listed}");
    assert!(listed.contains("no provisioning page where the board looks for it"), "{listed}");

    let drawn = prints(&["swarm", "new", &swarm, "--ports", &ports]);
    assert!(drawn.contains("10 agents, 2 of them on known chips"), "{drawn}");
    let provisioned = prints(&["boards", "provision", "--swarm", &swarm, &ports]);
    assert!(provisioned.contains(": agent 0, boot 1, page "), "{provisioned}");
    assert!(boards[0].log().contains("agent 1 starts, boot 1, round 0"), "{}", boards[0].log());

    let reset = prints(&["boards", "reset", &ports]);
    assert_eq!(reset.matches(": restarted").count(), 2, "{reset}");
    let listed = prints(&["boards", "list", &ports]);
    assert!(
        listed.contains("chip 000000000000000a, this build") && listed.contains("agent 0, boot 2"),
        "{listed}"
    );
    let lit = prints(&["boards", "identify", &ports]);
    assert_eq!(lit.matches("its light is on").count(), 2, "{lit}");
    let seen = prints(&["boards", "monitor", &ports, "--seconds", "1"]);
    assert!(seen.contains("usb-fabswarm_11 agent 1   native started for an unknown reason: boot "), "{seen}");
    assert!(seen.contains("usb-fabswarm_10 agent 0 "), "{seen}");
    assert_eq!(seen.matches(" packets in 1 s").count(), 2, "{seen}");
}

/// Boards that keep their own time, in rounds that take minutes, are disturbed by nobody who asks who they are.
#[test]
fn a_board_in_flight_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let board = board(folder.path(), 0xA);
    let [scenario, swarm, ports] =
        ["slots.toml", "swarm.toml", "usb-*"].map(|name| folder.path().join(name).display().to_string());
    fs::write(&scenario, "version = 1\n[swarm]\npace = \"slots\"\n[radio]\nperiod_ms = 200000.0\n").unwrap();
    prints(&["swarm", "new", &swarm, &scenario, "--ports", &ports]);
    prints(&["boards", "provision", "--swarm", &swarm, &ports]);

    let listed = prints(&["boards", "list", &ports]);
    assert!(listed.contains("runs agent 0, in round 0") || listed.contains("agent 0, boot 1"), "{listed}");
    let lit = prints(&["boards", "identify", &ports]);
    assert!(lit.contains("its light is on"), "{lit}");
    let mut provision = Command::new(env!("CARGO_BIN_EXE_fabswarm"));
    let output = provision.args(["boards", "provision", "--swarm", &swarm, &ports]).output().unwrap();
    assert_eq!(output.status.code(), Some(4));
    let refused = text(&output);
    assert!(refused.contains("runs agent 0, in round 0\nhelp: wait until its trial is over"), "{refused}");
    assert_eq!(board.log().matches("agent 0 starts").count(), 1, "{}", board.log());

    let reset = prints(&["boards", "reset", &ports]);
    assert!(reset.contains(": restarted"), "{reset}");
    assert!(board.log().contains("agent 0 starts, boot 2"), "{}", board.log());
}
