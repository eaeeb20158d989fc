//! Real boards on serial ports, played by native boards behind pseudo-terminals: whatever happens to a port ends in a rejoin or in a
//! clear error.

use crate::plugged::{Garble, PluggedBoard, clean, plug};
use crate::support::{Ended, Folder, Running, assert_contains};
use fabswarm_attach::BoardKind;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// A native board on a clean line.
fn board(folder: &Path, chip: u64) -> PluggedBoard {
    PluggedBoard::of_kind(BoardKind::Native, folder, chip)
}

/// A run on all ports in the folder; `places` ends the word that says where agents are.
fn run(folder: &Folder, places: &str, more: &str) -> Command {
    folder.fabswarm(&format!("run --boards serial:{}/usb-*{places} {more}", folder.display()))
}

/// Starts a run that goes on, and waits for its first rounds.
fn start_endless(folder: &Folder, places: &str, agents: u32) -> Running {
    let endless = format!("--agents {agents} --rounds 1000000 --error-below 0 --out out");
    let mut host = Running::start(run(folder, places, &endless));
    host.wait_for("the first rounds", |_| folder.last_round("out") >= 50);
    host
}

#[test]
fn boards_on_serial_ports_match_the_simulator() {
    let folder = Folder::new();
    let boards: Vec<PluggedBoard> = (1..=3).map(|chip| board(&folder, chip)).collect();
    // A second run finds the boards in the middle of the first one.
    for out in ["first", "second"] {
        let flags = format!("--rounds 60 --error-below 0 --iid-loss 0.2 --out {out}");
        Ended::from(run(&folder, ":3,in-process", &flags).output().unwrap()).check(0, "");
        assert_eq!(folder.digests(out), [180, 0]);
    }
    // By the order of chips, whatever the order of ports.
    assert_contains(&boards[1].log(), "agent 1 starts, boot 1, round 0");
}

#[test]
fn a_board_that_is_unplugged_reset_or_disturbed_rejoins() {
    let folder = Folder::new();
    let boards: Vec<PluggedBoard> = (1..=3).map(|chip| board(&folder, chip)).collect();
    let mut host = start_endless(&folder, ":3,in-process:1", 4);
    boards[0].unplug();
    boards[1].reset();
    boards[2].far().as_mut().unwrap().write_all(b"noise\0 \0half a frame").unwrap();
    host.wait_for("rounds without them", |_| folder.last_round("out") >= 200);
    boards[0].replug();
    let is_back = |board: &PluggedBoard| {
        let log = board.log();
        let last = log.rfind("starts, boot").map(|at| &log[at..]).unwrap_or_default();
        !last.is_empty() && !last.starts_with("starts, boot 1,")
    };
    host.wait_for("the boards", |_| is_back(&boards[0]) && is_back(&boards[1]));
    let back = folder.last_round("out");
    host.wait_for("rounds with all boards", |_| folder.last_round("out") > back + 100);
    let ended = host.interrupt();
    assert_contains(&ended.stderr, "agent 0: its board was unplugged in round");
    assert_contains(&ended.stderr, "agent 1: its board restarted by itself in round");
    assert_eq!(folder.summary("out")["digest_mismatches"], 0);
}

/// In place of a hub or a relay, the commands of the rig kill the process of the board and let it start again.
#[test]
fn power_is_cut_by_the_commands_of_a_rig() {
    let folder = Folder::new();
    let board = board(&folder, 0xA1);
    let [off, on] = &board.commands;
    let rig = |number: &str, port: &str, off: &str| {
        let chip = format!("[[chip]]\nnumber = {number:?}\nport = {port:?}\noff = {off:?}\non = {on:?}\n");
        folder.write("rig.toml", chip);
    };
    let crash = "--agents 3 --rounds 200 --error-below 0 --crashes '0@50+20 forgets' --rig rig.toml --out";
    let runs = |out| Ended::from(run(&folder, ":1,in-process", &format!("{crash} {out}")).output().unwrap());
    let port = folder.join("usb-fabswarm_161").display().to_string();
    for (number, port, off, expected) in [
        ("a2", &*port, &**off, "the rig has no chip 00000000000000a1, which is on "),
        ("a1", "/dev/null", off, "and the rig has it on /dev/null"),
        ("a1", &port, "echo no hub >&2; false", "`echo no hub >&2; false` failed: exit status: 1, no hub"),
    ] {
        rig(number, port, off);
        assert_contains(&runs("failed").stderr, expected);
    }
    folder.write("rig.toml", "[[chip]]\nnumber = 1\n");
    assert_contains(&runs("refused").stderr, "cannot use the rig ");
    let log = folder.join("power.log").display().to_string();
    rig("a1", &port, &format!("{off} && echo off >> {log}"));
    runs("out").check(0, "");
    assert_eq!(folder.read("power.log").lines().count(), 1);
    assert_eq!(folder.digests("out"), [180, 0]);
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
fn a_line_that_destroys_packets_costs_nothing() {
    // More than any packet is long, and about half of a frame.
    for (fault, bytes) in [(spoil as Garble, 600), (lose, 200)] {
        disturbed_board_goes_on([fault, clean], bytes);
        disturbed_board_goes_on([clean, fault], bytes);
    }
}

fn disturbed_board_goes_on(garble: [Garble; 2], bytes: u32) {
    let folder = Folder::new();
    let board = PluggedBoard::start(BoardKind::Native, &folder, 1, "usb-fabswarm_1", garble);
    let mut host = start_endless(&folder, ":1,in-process:2", 3);
    let begun = folder.last_round("out");
    SPOILED.store(bytes, Ordering::Relaxed);
    host.wait_for("rounds after that", |_| {
        SPOILED.load(Ordering::Relaxed) == 0 && folder.last_round("out") > begun + 200
    });
    host.interrupt();
    assert!(!board.log().contains("starts, boot 2"));
    assert_eq!(folder.summary("out")["digest_mismatches"], 0);
}

/// Checks what a run says that finds no board it can use.
#[track_caller]
fn is_refused<const N: usize>(folder: &Folder, expected: [&str; N]) {
    let begun = Instant::now();
    let ended = Ended::from(run(folder, ":1,in-process", "--out out").output().unwrap());
    ended.check(2, "\nhelp: ");
    assert!(begun.elapsed() < Duration::from_secs(30), "it took {:?}", begun.elapsed());
    expected.iter().for_each(|part| assert_contains(&ended.stderr, part));
}

#[test]
fn ports_without_a_usable_board_are_named() {
    is_refused(&Folder::new(), ["places 1 agent on serial ports, and there are 0 boards"]);
    // A run waits some seconds for a port to say something.
    thread::scope(|scope| {
        scope.spawn(|| {
            let folder = Folder::new();
            let _silent = plug(&folder.join("usb-silent"));
            is_refused(&folder, ["usb-silent answers"]);
        });
        scope.spawn(|| {
            let folder = Folder::new();
            // As a receiver at another baud rate sees it: no byte is what it was.
            let other_rate: Garble = |byte| Some(byte.rotate_left(3) ^ 0x55);
            let _garbled =
                PluggedBoard::start(BoardKind::Native, &folder, 1, "usb-garbled", [other_rate, other_rate]);
            is_refused(&folder, ["bytes that are no packets of fabswarm"]);
        });
    });
}

#[test]
fn two_boards_with_one_identity_are_refused() {
    let folder = Folder::new();
    let _boards = ["usb-one", "usb-two"]
        .map(|name| PluggedBoard::start(BoardKind::Native, &folder, 0xE661, name, [clean, clean]));
    is_refused(&folder, ["usb-one and ", "chip 000000000000e661"]);
}

#[test]
fn firmware_of_another_schema_is_named() {
    let folder = Folder::new();
    let mut far = plug(&folder.join("usb-old"));
    // The start of a boot packet of an older format: its name, its schema, and what nobody here can read.
    let mut line = [0; 64];
    let boot = [&[1, 4][..], b"pico", &[7], &[0; 9]].concat();
    let length = fabswarm_shared::wire::stream::encode(&boot, &mut line).unwrap();
    // Its process ends with the test.
    thread::spawn(move || {
        loop {
            let _ = far.write_all(&line[..length]);
            thread::sleep(Duration::from_millis(50));
        }
    });
    is_refused(&folder, ["the board `pico` on", "schema 0x00000007"]);
}

/// Drawn, provisioned, listed, reset and watched: everything but a run.
#[test]
fn plugged_boards_become_a_swarm() {
    let folder = Folder::new();
    let boards = [0xB, 0xA].map(|chip| board(&folder, chip));
    let ports = folder.join("usb-*").display().to_string();
    let prints = |line: &str| folder.succeeds(line).stdout;

    let listed = prints(&format!("boards list {ports}"));
    assert_contains(&listed, "native, chip 000000000000000a, this build");
    assert_contains(&listed, "no provisioning record where the board looks for it");

    let drawn = prints(&format!("swarm new swarm.toml --ports {ports}"));
    assert_contains(&drawn, "10 agents, 2 of them on known chips");
    assert_contains(&drawn, "`fabswarm boards provision --swarm swarm.toml`");
    let provisioned = prints(&format!("boards provision --swarm swarm.toml {ports}"));
    let next_boot = |agent: usize| -> u32 {
        let noted = folder.read("swarm.toml");
        let boots = noted.split_once("[boots]\n").unwrap().1;
        let next = boots.lines().find_map(|line| line.strip_prefix(&format!("{agent} = ")));
        next.unwrap().parse().unwrap()
    };
    // The file notes the first boot behind those of the page.
    let boots = [0, 1].map(|agent| next_boot(agent) - (1 << 20));
    assert_contains(&provisioned, &format!(": agent 0, boot {}, record ", boots[0]));
    assert_contains(&boards[0].log(), &format!("agent 1 starts, boot {}, round 0", boots[1]));

    let reset = prints(&format!("boards reset {ports}"));
    assert_eq!(reset.matches(": restarted").count(), 2, "{reset}");
    let listed = prints(&format!("boards list {ports}"));
    assert_contains(&listed, "chip 000000000000000a, this build");
    assert_contains(&listed, &format!("agent 0, boot {}", boots[0] + 1));
    let lit = prints(&format!("boards identify {ports}"));
    assert_eq!(lit.matches("its light is on").count(), 2, "{lit}");
    let seen = prints(&format!("boards monitor {ports} --seconds 1"));
    assert_contains(&seen, "usb-fabswarm_11 agent 1   native started for an unknown reason: boot ");
    assert_contains(&seen, "usb-fabswarm_10 agent 0 ");
    assert_eq!(seen.matches(" packets in 1 s").count(), 2, "{seen}");
    // Boot packets come 20 times a second, all alike.
    assert!(seen.lines().count() < 12 && seen.matches(" times").count() == 2, "{seen}");
}

/// Boards that keep their own time, in rounds that take minutes, are disturbed by nobody who asks who they are.
#[test]
fn a_board_in_flight_is_left_alone() {
    let folder = Folder::new();
    let board = board(&folder, 0xA);
    let ports = folder.join("usb-*").display().to_string();
    let prints = |line: &str| folder.succeeds(line).stdout;
    folder.write("slots.toml", "version = 1\n[swarm]\npace = \"slots\"\n[radio]\nperiod_ms = 200000.0\n");
    prints(&format!("swarm new swarm.toml slots.toml --ports {ports}"));
    let provision = format!("boards provision --swarm swarm.toml {ports}");
    prints(&provision);

    let listed = prints(&format!("boards list {ports}"));
    assert!(listed.contains("runs agent 0, in round 0") || listed.contains("agent 0, boot "), "{listed}");
    assert_contains(&prints(&format!("boards identify {ports}")), "its light is on");
    folder.ends(&provision, 4, "runs agent 0, in round 0\nhelp: wait until its trial is over");
    assert_eq!(board.log().matches("agent 0 starts").count(), 1, "{}", board.log());
    let left_out = folder.succeeds(&format!("swarm new other.toml --ports {ports}")).stderr;
    assert_contains(&left_out, "left out: the board on ");

    assert_contains(&prints(&format!("boards reset {ports}")), ": restarted");
    assert_eq!(board.log().matches("agent 0 starts").count(), 2, "{}", board.log());
}
