//! Boards on several hosts form one swarm.

use crate::support::{Folder, Running, assert_contains};
use rustix::process::Signal;

#[track_caller]
fn assert_same_run(folder: &Folder, found: &str, expected: &str) {
    let [metrics, wanted] = [found, expected].map(|out| folder.read(&format!("{out}/metrics.csv")));
    assert!(metrics == wanted, "another metrics.csv");
    let [counted, wanted] = [found, expected].map(|out| folder.summary(out));
    for key in ["digest_checks", "digest_mismatches", "frames_sent", "copies_lost", "copies_refused"] {
        assert_eq!(counted[key], wanted[key], "{key}");
    }
    assert_eq!(counted["digest_mismatches"], 0);
    assert!(counted["digest_checks"].as_u64() > Some(0));
    assert_eq!(folder.names(&format!("{found}/boards")), folder.names(&format!("{expected}/boards")));
}

#[test]
fn native_boards_on_two_hosts_are_the_swarm_of_one() {
    let folder = Folder::new();
    let swarm = "run --rounds 60 --error-below 0 --boards native:4,in-process:1,native:2 --agents 7 --iid-loss 0.2 \
                 --delay-rounds 2 --crashes '1@10+5,5@12+6 forgets' --frozen 0@20+4";
    folder.succeeds(&format!("{swarm} --out one"));
    let ended = folder.succeeds(&format!("{swarm} --out two --hosts 127.0.0.1x2"));
    assert_same_run(&folder, "two", "one");
    assert_eq!(folder.read("two/hosts.csv").lines().count(), 3);
    assert_contains(&ended.stdout, "to it in a round");
}

/// `fabswarm host`, and its address.
fn start_host(folder: &Folder) -> (Running, String) {
    let mut host = Running::start(folder.fabswarm("host --listen 127.0.0.1:0"));
    host.wait_for("its address", |host| host.printed().contains('\n'));
    let printed = host.printed();
    let address = printed.trim_end().strip_prefix("listening on ").expect(&printed).to_owned();
    (host, address)
}

/// Starts a run on hosts that goes on until it is told to end, and waits for its first rows.
fn start_endless(folder: &Folder, hosts: &str, out: &str) -> Running {
    let swarm = "run --rounds 100000000 --error-below 0 --agents 4 --boards native";
    let mut starter = Running::start(folder.fabswarm(&format!("{swarm} --out {out} --hosts {hosts}")));
    starter.wait_for("a row", |_| folder.last_round(out) > 5);
    starter
}

/// Ctrl-C at the host that started it or at another ends a run in order; the end of a host is an error.
#[test]
fn a_run_ends_everywhere_and_hosts_wait_for_the_next() {
    let folder = Folder::new();
    let ((mut first, address), (second, other)) = (start_host(&folder), start_host(&folder));
    let hosts = format!("{address},{other}");
    let mut ends = 0;
    let mut has_ended = |first: &mut Running| {
        ends += 1;
        first.wait_for("its end", |host| host.printed().matches("the run has ended\n").count() == ends);
    };
    let is_interrupted = |out: &str| {
        let found = folder.summary(out);
        assert_eq!(
            (&found["stopped_because"], &found["digest_mismatches"]),
            (&"interrupted".into(), &0.into())
        );
        assert_eq!(folder.read(&format!("{out}/hosts.csv")).lines().count(), 3);
    };
    start_endless(&folder, &hosts, "starter").interrupt();
    is_interrupted("starter");
    has_ended(&mut first);
    let starter = start_endless(&folder, &hosts, "host");
    second.signal(Signal::INT);
    starter.ends().check(130, "");
    is_interrupted("host");
    second.ends().check(0, "");
    has_ended(&mut first);

    let (third, other) = start_host(&folder);
    let starter = start_endless(&folder, &format!("{address},{other}"), "lost");
    third.signal(Signal::KILL);
    let ended = starter.ends();
    ended.check(4, &format!("host {other}"));
    assert_contains(&ended.stderr, "help: ");
    has_ended(&mut first);
    let next = "run --rounds 10 --error-below 0 --agents 4 --boards native --out next";
    folder.succeeds(&format!("{next} --hosts {address}"));
}

#[test]
fn what_cannot_be_spread_over_hosts_is_refused_before_anything_is_written() {
    let folder = Folder::new();
    for (flags, expected) in [
        ("", "swarm.boards places no agent on one"),
        ("--boards native --pace slots", "lets them keep their own time"),
        ("--boards native --agents 1", "for 2 hosts"),
    ] {
        folder.refuses(&format!("run --hosts 127.0.0.1x2 {flags}"), expected);
    }
}
