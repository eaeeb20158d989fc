//! Emulated Picos behind serial ports: a crash and a replug in the middle of a run, by UART and by USB.

use crate::plugged::PluggedBoard;
use fabswarm_attach::BoardKind;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// Rounds that were recorded so far.
fn rounds(out: &Path) -> usize {
    fs::read_to_string(out.join("metrics.csv.part")).unwrap_or_default().lines().count()
}

/// One Pico is unplugged, and runs on as with a battery; the other is reset by the scenario. Both rejoin by themselves.
#[track_caller]
fn picos_are_replugged(kind: BoardKind) {
    let folder = tempfile::tempdir().unwrap();
    let boards: Vec<PluggedBoard> =
        [1, 2].map(|chip| PluggedBoard::of_kind(kind, folder.path(), chip)).into();
    let out = folder.path().join("out");
    let said = Arc::new(Mutex::new(String::new()));
    let wait_until = |what: &str, holds: &dyn Fn() -> bool| {
        let begun = Instant::now();
        while !holds() {
            if begun.elapsed() > Duration::from_secs(240) {
                let logs: Vec<String> = boards.iter().map(PluggedBoard::log).collect();
                panic!("{what} did not happen:\n{}\n{logs:?}\n{} rounds", said.lock().unwrap(), rounds(&out));
            }
            thread::sleep(Duration::from_millis(20));
        }
    };
    wait_until("the start", &|| boards.iter().all(PluggedBoard::has_spoken));
    let mut host = Command::new(env!("CARGO_BIN_EXE_fabswarm"))
        .args(["run", "--boards", &format!("serial:{}/usb-*:2,in-process", folder.path().display())])
        .args(["--rounds", "1000000", "--error-below", "0", "--crashes", "1@20+5 forgets", "--out"])
        .arg(&out)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (heard, stderr) = (said.clone(), BufReader::new(host.stderr.take().unwrap()));
    let listener = thread::spawn(move || {
        stderr.lines().map_while(Result::ok).for_each(|line| *heard.lock().unwrap() += &(line + "\n"));
    });
    let said = || said.lock().unwrap().clone();
    wait_until("the crash", &|| rounds(&out) > 40);
    boards[0].unplug();
    wait_until("the loss", &|| said().contains("agent 0: its board was unplugged in round"));
    boards[0].replug();
    wait_until("the return", &|| said().contains("agent 0: its board is back in boot "));
    let back = rounds(&out);
    wait_until("the rest", &|| rounds(&out) > back.max(100) + 30);
    assert!(Command::new("kill").args(["-INT", &host.id().to_string()]).status().unwrap().success());
    assert_eq!(host.wait().unwrap().code(), Some(130), "{}", said());
    listener.join().unwrap();
    let summary: serde_json::Value =
        serde_json::from_slice(&fs::read(out.join("summary.json")).unwrap()).unwrap();
    // Of the Pico that was not unplugged, every round but those of its crash; of the other, those before and after.
    let (checks, rounds) = (summary["digest_checks"].as_u64().unwrap(), summary["rounds"].as_u64().unwrap());
    assert!(checks > rounds - 5 + 40 && rounds >= 100, "{summary:#}\n{}", said());
    assert_eq!(summary["digest_mismatches"], 0);
}

#[test]
fn a_pico_is_replugged_by_uart() {
    picos_are_replugged(BoardKind::Pico);
}

#[test]
fn a_pico_is_replugged_by_usb() {
    picos_are_replugged(BoardKind::PicoUsb);
}
