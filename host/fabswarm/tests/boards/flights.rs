//! Boards on serial ports that keep their own time: native boards behind pseudo-terminals, with a radio of their own. The host only
//! listens, by cable.

use crate::ether::Ether;
use crate::plugged::PluggedBoard;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn fabswarm(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fabswarm")).args(arguments).stdin(Stdio::null()).output().unwrap()
}

/// A run of as many boards as there are, all of which hear each other. Processes of a busy machine are late: slots have room for that.
fn run(folder: &Path, out: &Path, agents: &str, more: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fabswarm"));
    let boards = format!("serial:{}/usb-*", folder.display());
    command.args(["run", "--boards", &boards, "--agents", agents, "--trial", "--radio", "carried"]);
    command.args(["--period-ms", "350", "--out"]).arg(out).args(more).stdin(Stdio::null());
    command
}

fn boards(folder: &Path, agents: u64) -> Vec<PluggedBoard> {
    let ether = Ether::default();
    (1..=agents).map(|chip| PluggedBoard::with_radio(folder, chip, &ether)).collect()
}

fn read(out: &Path, file: &str) -> String {
    fs::read_to_string(out.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

fn summary(out: &Path) -> serde_json::Value {
    serde_json::from_str(&read(out, "summary.json")).unwrap()
}

/// The numbers in the first line of `fabswarm verify`: rounds, digests that are equal, and those that were not compared.
#[track_caller]
fn verified(out: &Path) -> ([u64; 3], String) {
    let output = fabswarm(&["verify", out.to_str().unwrap()]);
    let said = text(&output);
    assert!(output.status.success(), "{said}");
    let numbers = said
        .lines()
        .next()
        .unwrap()
        .split(|c: char| !c.is_ascii_digit())
        .filter_map(|word| word.parse().ok());
    let numbers: Vec<u64> = numbers.collect();
    (numbers.try_into().unwrap(), said)
}

/// A row of a flight with one bit of its digest flipped.
fn flipped(row: &str) -> String {
    let digest = row.split(',').nth(2).unwrap();
    let wrong = u32::from_str_radix(&digest[2..], 16).unwrap() ^ 1;
    row.replace(digest, &format!("{wrong:#010x}"))
}

#[track_caller]
fn wait_until(host: &mut Child, what: &str, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        let has_ended = host.try_wait().unwrap();
        assert!(has_ended.is_none() && begun.elapsed() < Duration::from_secs(120), "{what}: {has_ended:?}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// The last round in the metrics of a run that goes on.
fn last_round(out: &Path) -> u64 {
    let rows = fs::read_to_string(out.join("metrics.csv.part")).unwrap_or_default();
    let round = |row: &str| row.split(',').next()?.parse().ok();
    rows.lines().rev().find_map(round).unwrap_or(0)
}

fn signal(host: &Child, name: &str) {
    assert!(Command::new("kill").args([name, &host.id().to_string()]).status().unwrap().success());
}

#[test]
fn boards_on_serial_ports_fly_and_every_digest_is_verified() {
    let folder = tempfile::tempdir().unwrap();
    let _boards = boards(folder.path(), 4);
    // The second run finds boards that wait, as the first has ended their trial.
    for (out, more, ending) in [
        ("first", &["--extra-rounds", "0"][..], "converged"),
        ("second", &["--rounds", "40", "--error-below", "0"], "max-rounds"),
    ] {
        let out = folder.path().join(out);
        let output = run(folder.path(), &out, "4", more).output().unwrap();
        assert!(output.status.success(), "{}", text(&output));
        let summary = summary(&out);
        assert_eq!((&summary["stopped_because"], &summary["digest_mismatches"]), (&ending.into(), &0.into()));
        let ([rounds, equal, uncompared], said) = verified(&out);
        eprint!("{said}");
        assert!(rounds >= summary["rounds"].as_u64().unwrap() && equal > 3 * rounds, "{said}");
        // Those of the round in which the run ended.
        assert!(uncompared <= 8 && said.lines().count() == 1, "{said}");
        assert!(!out.join("boards/events.csv").exists(), "{}", read(&out, "boards/events.csv"));
    }

    let record = folder.path().join("second/boards/flight.csv");
    let flight = fs::read_to_string(&record).unwrap();
    let rows: Vec<&str> = flight.lines().collect();
    let row = rows[rows.len() / 2..].iter().find(|row| row.contains(",0x")).unwrap();
    let [round, agent] = [0, 1].map(|column| row.split(',').nth(column).unwrap());
    fs::write(&record, flight.replace(row, &flipped(row))).unwrap();
    let output = fabswarm(&["verify", folder.path().join("second").to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(4), "{}", text(&output));
    let expected = format!("the board of agent {agent} differs from its shadow after round {round}:");
    assert!(text(&output).contains(&expected), "{}\n{expected}", text(&output));
}

#[test]
fn a_board_flies_on_without_its_cable_and_what_it_did_not_report_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let boards = boards(folder.path(), 3);
    let out = folder.path().join("out");
    let endless = ["--rounds", "1000000", "--error-below", "0", "--metrics-every", "1"];
    let mut host = run(folder.path(), &out, "3", &endless).stdout(Stdio::null()).spawn().unwrap();
    wait_until(&mut host, "the first rounds", || last_round(&out) > 30);
    boards[1].unplug();
    let unplugged = last_round(&out);
    wait_until(&mut host, "rounds without a board", || last_round(&out) > unplugged + 20);
    boards[1].replug();
    let replugged = last_round(&out);
    wait_until(&mut host, "the rest", || last_round(&out) > replugged + 40);
    signal(&host, "-INT");
    assert_eq!(host.wait().unwrap().code(), Some(130));
    assert!(
        !boards[1].log().contains("boot 2, round 0") || boards[1].log().matches("starts, boot").count() == 2
    );

    let events = read(&out, "boards/events.csv");
    let line = |event: &str| {
        let found = events.lines().find(|line| line.split(',').nth(1) == Some("1") && line.contains(event));
        found.unwrap_or_else(|| panic!("{event} is not in\n{events}")).to_owned()
    };
    assert!(line(",lost,").contains("was unplugged"), "{events}");
    let returned = line(",returned,");
    assert!(returned.contains("reports from round ") && returned.contains("are missing"), "{events}");
    assert_eq!(events.lines().count(), 3, "{events}");

    // Every round has a row, also those without all boards: its error is that of the last x that each has reported.
    let metrics = read(&out, "metrics.csv");
    let rows: Vec<Vec<&str>> = metrics.lines().skip(1).map(|row| row.split(',').collect()).collect();
    assert!(rows.iter().enumerate().all(|(round, row)| row[0] == round.to_string()), "{metrics}");
    assert!(rows.iter().all(|row| row[1].parse::<f64>().unwrap().is_finite()), "{metrics}");
    let column =
        metrics.lines().next().unwrap().split(',').position(|name| name == "consensus_error").unwrap();
    let [before, after] = [10, rows.len() - 1].map(|row| rows[row][column]);
    assert!(before != "NaN" && after == "NaN", "{before} {after}");

    let ([_, equal, uncompared], said) = verified(&out);
    eprint!("{said}");
    // How much of what the others did since is uncompared depends on whose frames they took.
    let (_, missing) = said.split_once("agent 1 did not report rounds ").unwrap_or_else(|| panic!("{said}"));
    let [from, to] = [0, 1].map(|place| {
        let number = missing.split(|c: char| !c.is_ascii_digit()).filter(|word| !word.is_empty()).nth(place);
        number.unwrap().parse::<u64>().unwrap()
    });
    assert!(to - from >= 20 && equal >= 3 * 30 && uncompared >= to - from, "{said}");
    // What is known is compared all the same.
    let record = out.join("boards/flight.csv");
    let flight = fs::read_to_string(&record).unwrap();
    let row = flight.lines().find(|row| row.starts_with("20,2,0x")).unwrap();
    fs::write(&record, flight.replace(row, &row.replacen("0x", "0xf", 1).replacen("0xff", "0x0f", 1)))
        .unwrap();
    let output = fabswarm(&["verify", out.to_str().unwrap()]);
    assert_ne!(output.status.code(), Some(0), "{}", text(&output));
}

/// What it knew is lost, and so is what its shadow knew of it: it joins again, and the run goes on.
#[test]
fn a_board_that_restarts_in_flight_joins_again() {
    let folder = tempfile::tempdir().unwrap();
    let boards = boards(folder.path(), 3);
    let out = folder.path().join("out");
    let endless = ["--rounds", "1000000", "--error-below", "0", "--metrics-every", "1"];
    let mut host = run(folder.path(), &out, "3", &endless).stdout(Stdio::null()).spawn().unwrap();
    wait_until(&mut host, "the first rounds", || last_round(&out) > 20);
    // How soon it is let in again depends on the machine.
    let epochs_of_all = || boards[0].log().matches(" begins, with 3 members").count();
    let before = epochs_of_all();
    boards[2].reset();
    wait_until(&mut host, "the restart", || boards[2].log().contains("agent 2 starts, boot 2"));
    wait_until(&mut host, "a new epoch", || epochs_of_all() > before);
    let restarted = last_round(&out);
    wait_until(&mut host, "the rest", || last_round(&out) > restarted + 30);
    signal(&host, "-INT");
    assert_eq!(host.wait().unwrap().code(), Some(130));
    let events = read(&out, "boards/events.csv");
    assert!(events.contains(",2,lost,\"restarted by itself (started "), "{events}");
    assert!(events.contains(",2,returned,\"reports from round "), "{events}");
    let ([_, equal, uncompared], said) = verified(&out);
    eprint!("{said}");
    assert!(equal >= 3 * 20 && uncompared > 30 && said.contains("agent 2 began anew, in round "), "{said}");
    assert!(said.contains("agent 0 was in epoch "), "{said}");
}

#[test]
fn a_scenario_may_end_the_run_with_the_first_board_that_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let boards = boards(folder.path(), 2);
    let out = folder.path().join("out");
    let arguments =
        ["--rounds", "1000000", "--error-below", "0", "--metrics-every", "1", "--lost-boards", "fail"];
    let mut command = run(folder.path(), &out, "2", &arguments);
    let mut host = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    wait_until(&mut host, "the first rounds", || last_round(&out) > 5);
    boards[0].unplug();
    let output = host.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(4), "{}", text(&output));
    assert!(text(&output).contains("the board of agent 0 was unplugged in round "), "{}", text(&output));
    // What was reported until then is whole.
    let ([_, equal, uncompared], said) = verified(&out);
    assert!(equal > 2 * 5 && uncompared <= 4, "{said}");
}

/// A host that is killed cannot end the trial of its boards: nobody disturbs them before he is told to.
#[test]
fn boards_whose_host_was_killed_are_reset_by_hand() {
    let folder = tempfile::tempdir().unwrap();
    let _boards = boards(folder.path(), 2);
    let [killed, next] = ["killed", "next"].map(|out| folder.path().join(out));
    let endless = ["--rounds", "1000000", "--error-below", "0", "--metrics-every", "1"];
    let mut host = run(folder.path(), &killed, "2", &endless).stdout(Stdio::null()).spawn().unwrap();
    wait_until(&mut host, "the first rounds", || last_round(&killed) > 5);
    signal(&host, "-KILL");
    host.wait().unwrap();
    // Longer than boards take a page after their start.
    thread::sleep(Duration::from_secs(5));
    let output = run(folder.path(), &next, "2", &["--rounds", "20", "--error-below", "0"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    assert!(text(&output).contains("runs agent 0, in round "), "{}", text(&output));
    let ports = folder.path().join("usb-*").display().to_string();
    let reset = fabswarm(&["boards", "reset", &ports]);
    assert_eq!(
        text(&reset).matches("its trial is over, and it waits for a page").count(),
        2,
        "{}",
        text(&reset)
    );
    let output = run(folder.path(), &next, "2", &["--rounds", "20", "--error-below", "0"]).output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    verified(&next);
}

#[test]
fn agents_that_cannot_hear_each_other_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out").display().to_string();
    for (boards, expected) in [
        (
            "serial:1,native",
            "boards on serial ports speak by radio, which boards that this host starts do not have",
        ),
        ("serial:1,in-process", "agents in this process keep no time of their own"),
    ] {
        let output = fabswarm(&["run", "--boards", boards, "--pace", "slots", "--out", &out]);
        assert_eq!(output.status.code(), Some(2), "{}", text(&output));
        assert!(text(&output).contains(expected) && text(&output).contains("\nhelp: "), "{}", text(&output));
    }
    assert!(!folder.path().join("out").exists());
}
