//! Boards on serial ports that keep their own time: native boards behind pseudo-terminals, with a radio of their own. The host only
//! listens, by cable.

use crate::ether::Ether;
use crate::plugged::PluggedBoard;
use crate::support::{Ended, Folder, Running, assert_contains, wait_for};
use rustix::process::Signal;
use std::process::Command;
use std::thread;
use std::time::Duration;

/// A run of as many boards as there are, all of which hear each other. Processes of a busy machine are late: slots have room for that.
fn run(folder: &Folder, out: &str, agents: u64, more: &str) -> Command {
    let swarm = format!("--boards serial:{}/usb-* --agents {agents} --out {out}", folder.display());
    folder.fabswarm(&format!("run {swarm} --trial --radio carried --period-ms 350 {more}"))
}

/// Starts a run that goes on, and waits for its first rounds.
fn start_endless(folder: &Folder, agents: u64, rounds: usize, more: &str) -> Running {
    let flags = format!("--rounds 1000000 --error-below 0 --metrics-every 1 {more}");
    let mut host = Running::start(run(folder, "out", agents, &flags));
    host.wait_for("the first rounds", |_| folder.last_round("out") > rounds);
    host
}

fn boards(folder: &Folder, agents: u64) -> Vec<PluggedBoard> {
    let ether = Ether::default();
    (1..=agents).map(|chip| PluggedBoard::with_radio(folder, chip, &ether)).collect()
}

/// The numbers in the first line of `fabswarm verify`: rounds, digests that are equal, and those that were not compared.
#[track_caller]
fn verified(folder: &Folder, out: &str) -> ([u64; 3], String) {
    let said = folder.succeeds(&format!("verify {out}")).to_string();
    let first = said.lines().next().unwrap();
    let numbers = first.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse().ok());
    (numbers.collect::<Vec<u64>>().try_into().unwrap(), said)
}

/// Flips one bit of the digest in a row of a flight, and checks that it is found.
#[track_caller]
fn a_flipped_bit_is_found(folder: &Folder, out: &str, row: &str) {
    let [round, agent, digest] = [0, 1, 2].map(|column| row.split(',').nth(column).unwrap());
    let wrong = format!("{:#010x}", u32::from_str_radix(&digest[2..], 16).unwrap() ^ 1);
    let record = format!("{out}/boards/flight.csv");
    folder.write(&record, folder.read(&record).replace(row, &row.replace(digest, &wrong)));
    let expected = format!("the board of agent {agent} differs from its shadow after round {round}:");
    folder.ends(&format!("verify {out} --junit verdict.xml"), 4, &expected);
    let report = folder.read("verdict.xml");
    assert!(report.contains("failures=\"1\"") && report.contains("differs from its shadow"), "{report}");
}

#[test]
fn boards_on_serial_ports_fly_and_every_digest_is_verified() {
    let folder = Folder::new();
    let boards = boards(&folder, 4);
    // The second run finds boards that wait, as the first has ended their trial.
    for (out, more, ending) in [
        ("first", "--extra-rounds 0 --error-below 0.3", "converged"),
        ("second", "--rounds 20 --error-below 0", "max-rounds"),
    ] {
        Ended::from(run(&folder, out, 4, more).output().unwrap()).check(0, "");
        let summary = folder.summary(out);
        assert_eq!((&summary["stopped_because"], &summary["digest_mismatches"]), (&ending.into(), &0.into()));
        let ([rounds, equal, uncompared], said) = verified(&folder, out);
        assert!(rounds >= summary["rounds"].as_u64().unwrap() && equal > 3 * rounds, "{said}");
        // Those of the round in which the run ended.
        assert!(uncompared <= 8 && said.lines().count() == 1, "{said}");
        assert!(!folder.join(out).join("boards/events.csv").exists());
    }
    let flight = folder.read("second/boards/flight.csv");
    let rows: Vec<&str> = flight.lines().collect();
    let row = rows[rows.len() / 2..].iter().find(|row| row.contains(",0x")).unwrap();
    a_flipped_bit_is_found(&folder, "second", row);
    // Regression: a board that got power later flew yesterday's trial, alone.
    let count = |what: &str| boards[0].log().matches(what).count();
    let before = ["no provisioning record", "agent 0 starts"].map(count);
    boards[0].reset();
    wait_for("a start without a page", || count("no provisioning record") > before[0]);
    assert_eq!(count("agent 0 starts"), before[1], "{}", boards[0].log());
}

#[test]
fn a_board_flies_on_without_its_cable_and_what_it_did_not_report_is_told() {
    let folder = Folder::new();
    let boards = boards(&folder, 3);
    let mut host = start_endless(&folder, 3, 14, "");
    boards[1].unplug();
    let unplugged = folder.last_round("out");
    host.wait_for("rounds without a board", |_| folder.last_round("out") > unplugged + 8);
    boards[1].replug();
    let replugged = folder.last_round("out");
    host.wait_for("the rest", |_| folder.last_round("out") > replugged + 12);
    host.interrupt();
    assert!(
        !boards[1].log().contains("boot 2, round 0") || boards[1].log().matches("starts, boot").count() == 2
    );

    let events = folder.read("out/boards/events.csv");
    let line = |event: &str| {
        let found = events.lines().find(|line| line.split(',').nth(1) == Some("1") && line.contains(event));
        found.unwrap_or_else(|| panic!("{event} is not in\n{events}")).to_owned()
    };
    assert_contains(&line(",lost,"), "was unplugged");
    let returned = line(",returned,");
    assert!(returned.contains("reports from round ") && returned.contains("are missing"), "{events}");
    assert_eq!(events.lines().count(), 3, "{events}");

    // Every round has a row, also those without all boards: its error is that of the last x that each has reported.
    let metrics = folder.read("out/metrics.csv");
    let rows: Vec<Vec<&str>> = metrics.lines().skip(1).map(|row| row.split(',').collect()).collect();
    assert!(rows.iter().enumerate().all(|(round, row)| row[0] == round.to_string()), "{metrics}");
    assert!(rows.iter().all(|row| row[1].parse::<f64>().unwrap().is_finite()), "{metrics}");
    let column =
        metrics.lines().next().unwrap().split(',').position(|name| name == "consensus_error").unwrap();
    let [before, after] = [10, rows.len() - 1].map(|row| rows[row][column]);
    assert!(before != "NaN" && after == "NaN", "{before} {after}");

    let ([_, equal, uncompared], said) = verified(&folder, "out");
    // How much of what the others did since is uncompared depends on whose frames they took.
    let (_, missing) = said.split_once("agent 1 did not report rounds ").unwrap_or_else(|| panic!("{said}"));
    let [from, to] = [0, 1].map(|place| {
        let number = missing.split(|c: char| !c.is_ascii_digit()).filter(|word| !word.is_empty()).nth(place);
        number.unwrap().parse::<u64>().unwrap()
    });
    assert!(to - from >= 8 && equal >= 3 * 14 && uncompared >= to - from, "{said}");
    // The known states are compared all the same.
    let flight = folder.read("out/boards/flight.csv");
    a_flipped_bit_is_found(&folder, "out", flight.lines().find(|row| row.starts_with("10,2,0x")).unwrap());
}

/// Its knowledge is lost, and so is its shadow's of it: it joins again, and the run goes on.
#[test]
fn a_board_that_restarts_in_flight_joins_again() {
    let folder = Folder::new();
    let boards = boards(&folder, 3);
    let mut host = start_endless(&folder, 3, 8, "");
    // How soon it is let in again depends on the machine.
    let epochs_of_all = || boards[0].log().matches(" begins, with 3 members").count();
    let before = epochs_of_all();
    boards[2].reset();
    host.wait_for("the restart", |_| boards[2].log().contains("agent 2 starts, boot 2"));
    host.wait_for("a new epoch", |_| epochs_of_all() > before);
    let restarted = folder.last_round("out");
    host.wait_for("the rest", |_| folder.last_round("out") > restarted + 10);
    host.interrupt();
    let events = folder.read("out/boards/events.csv");
    assert_contains(&events, ",2,lost,\"restarted by itself (started ");
    assert_contains(&events, ",2,returned,\"reports from round ");
    let ([_, equal, uncompared], said) = verified(&folder, "out");
    assert!(equal >= 3 * 8 && uncompared > 10 && said.contains("agent 2 began anew, in round "), "{said}");
    assert_contains(&said, "agent 0 was in epoch ");
}

#[test]
fn a_scenario_may_end_the_run_with_the_first_board_that_is_lost() {
    let folder = Folder::new();
    let boards = boards(&folder, 2);
    let host = start_endless(&folder, 2, 5, "--lost-boards fail");
    boards[0].unplug();
    host.ends().check(4, "the board of agent 0 was unplugged in round ");
    // The reports until then are whole.
    let ([_, equal, uncompared], said) = verified(&folder, "out");
    assert!(equal > 2 * 5 && uncompared <= 4, "{said}");
}

/// A host that is killed cannot end the trial of its boards: nobody disturbs them before he is told to.
#[test]
fn boards_whose_host_was_killed_are_reset_by_hand() {
    let folder = Folder::new();
    let _boards = boards(&folder, 2);
    let host = start_endless(&folder, 2, 5, "");
    host.signal(Signal::KILL);
    host.ends();
    // Longer than boards take a page after their start.
    thread::sleep(Duration::from_secs(5));
    let next = || Ended::from(run(&folder, "next", 2, "--rounds 20 --error-below 0").output().unwrap());
    next().check(2, "runs agent 0, in round ");
    let reset = folder.succeeds(&format!("boards reset {}", folder.join("usb-*").display()));
    let waiting = "its trial is over, and it waits for a provisioning record";
    assert_eq!(reset.stdout.matches(waiting).count(), 2, "{reset}");
    next().check(0, "");
    verified(&folder, "next");
}

#[test]
fn agents_that_cannot_hear_each_other_are_refused() {
    let folder = Folder::new();
    let refuses = |boards: &str, expected: &str| {
        folder.refuses(&format!("run --boards {boards} --pace slots --out out"), expected);
    };
    refuses("serial:1,native", "speak by radio, which boards that this host starts do not have");
    refuses("serial:1,in-process", "agents in this process keep no time of their own");
    let unapplied = "does not apply faults.crashes, faults.frozen to such boards";
    refuses("native --crashes 2@30+10 --frozen 1@5+5", unapplied);
    refuses("serial --iid-loss 0.2", "does not apply faults.iid_loss to such boards");
}
