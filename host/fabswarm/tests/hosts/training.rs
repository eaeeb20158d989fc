//! Swarms that compute on several hosts.

use crate::support::{Folder, Running, assert_contains};
use crate::{Host, fabswarm, hosts_file};
use rustix::process::Signal;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// A run of a moment, on the sample.
const SMALL: &str = "train --data sample --model softmax --agents 5 --batch 16";

fn train(folder: &Folder, flags: &str) -> Command {
    fabswarm(folder, &format!("{SMALL} --checkpoint-every 1 {flags}"))
}

#[track_caller]
fn succeeds(command: Command) {
    Running::start(command).ends().check(0, "");
}

/// Two hosts, which `hosts.toml` names.
fn two_hosts(folder: &Folder) -> [Host; 2] {
    let hosts = [(); 2].map(|()| Host::start(fabswarm(folder, "host --listen 127.0.0.1:0")));
    hosts_file(folder, [&hosts[0].address, &hosts[1].address]);
    hosts
}

/// Checks that two runs have the same results.
#[track_caller]
fn assert_same(folder: &Folder, one: &str, other: &str) {
    for file in ["metrics.csv", "weights.csv", "model.safetensors"] {
        let read = |run: &str| fs::read(folder.join(run).join(file)).unwrap();
        assert!(read(one) == read(other), "{one} and {other}: another {file}");
    }
}

/// The sum of a column of `hosts.csv`, which has a row per host.
fn of_hosts(folder: &Folder, run: &str, column: &str) -> u64 {
    let table = folder.read(&format!("{run}/hosts.csv"));
    let mut lines = table.lines().map(|line| line.split(','));
    let at = lines.next().unwrap().position(|name| name == column).unwrap();
    lines.map(|mut line| line.nth(at).unwrap().parse::<u64>().unwrap()).sum()
}

#[test]
fn a_port_that_is_taken_is_refused_with_a_free_one() {
    let folder = Folder::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let host = fabswarm(&folder, &format!("host --listen {}", taken.local_addr().unwrap()));
    Running::start(host).ends().check(2, "127.0.0.1:0 takes any that is free");
}

#[test]
fn two_and_three_hosts_leave_the_bytes_of_one_process() {
    let folder = Folder::new();
    let faults = "--epochs 2 --algorithm ledger --iid-loss 0.2 --delay-rounds 2 --crashes 2@8+6";
    for (name, flags) in [("fab", "--epochs 3"), ("ledger", faults)] {
        succeeds(train(&folder, &format!("{flags} --device cpu --out {name}")));
        for (count, shares_memory) in [(2, true), (2, false), (3, true)] {
            let many = format!("{name}-{count}-{shares_memory}");
            let hosts = format!("--hosts 127.0.0.1x{count} --shared-memory {shares_memory}");
            succeeds(train(&folder, &format!("{flags} {hosts} --out {many}")));
            let [planned, sent, received, shared] = ["planned_sent", "sent", "received", "received_shared"]
                .map(|column| of_hosts(&folder, &many, &format!("{column}_bytes")));
            assert!(planned > 0 && sent == planned && received == planned, "{many}");
            assert_eq!(shared, if shares_memory { received } else { 0 }, "{many}");
            assert_same(&folder, &many, name);
        }
    }
}

#[test]
fn hosts_that_exchange_every_fourth_round_leave_the_bytes_of_blocks_in_one_process() {
    let folder = Folder::new();
    for (out, flags) in [
        ("one", "--device cpu --exchange-every 4 --blocks 2"),
        ("many", "--hosts 127.0.0.1x2 --exchange-every 4"),
        ("often", "--hosts 127.0.0.1x2"),
    ] {
        let lossy = "--algorithm ledger --iid-loss 0.2 --epochs 2";
        succeeds(train(&folder, &format!("{lossy} {flags} --out {out}")));
    }
    assert_same(&folder, "many", "one");
    let counted = of_hosts(&folder, "many", "sent_bytes");
    assert_eq!(of_hosts(&folder, "many", "planned_sent_bytes"), counted);
    let each_round = of_hosts(&folder, "often", "sent_bytes");
    assert!(counted > 0 && counted * 3 < each_round, "{counted} bytes, {each_round} in every round");
}

#[test]
fn hosts_that_run_take_part_in_one_run_after_the_other() {
    let folder = Folder::new();
    let hosts = two_hosts(&folder);
    let are_waiting = || {
        let status = folder.succeeds("host status --hosts hosts.toml");
        assert_eq!(status.stdout.matches("waits for a run").count(), 2, "{status}");
    };
    are_waiting();
    succeeds(train(&folder, "--epochs 1 --out one --device cpu"));
    for (out, runs) in [("first", 1), ("second", 2)] {
        succeeds(train(&folder, &format!("--epochs 1 --hosts hosts.toml --out {out}")));
        assert_same(&folder, out, "one");
        hosts.iter().for_each(|host| host.wait_for_runs(runs));
    }
    are_waiting();
    for Host { process, address } in hosts {
        process.signal(Signal::TERM);
        process.ends().check(0, "");
        assert!(TcpListener::bind(&address).is_ok(), "the port is free again");
    }
}

#[test]
fn ctrl_c_anywhere_ends_the_run_in_order_everywhere() {
    let folder = Folder::new();
    let [first, second] = two_hosts(&folder);
    let endless = |out: &str| {
        let flags = format!("--epochs 1000000 --hosts hosts.toml --out {out}");
        let mut starter = Running::start(train(&folder, &flags));
        let checkpoint = folder.join(out).join("checkpoint.safetensors");
        starter.wait_for("a checkpoint", |_| checkpoint.exists());
        starter
    };
    let ends = |starter: Running, out: &str| {
        let ended = starter.ends();
        let round = folder.summary(out)["rounds"].to_string();
        ended.check(130, &format!("continues from round {round}"));
    };
    let starter = endless("starter");
    starter.signal(Signal::INT);
    ends(starter, "starter");
    [&first, &second].into_iter().for_each(|host| host.wait_for_runs(1));
    let starter = endless("host");
    second.process.signal(Signal::INT);
    ends(starter, "host");
    second.process.ends().check(0, "");
    // One process continues a run that two hosts began.
    let checkpoint = folder.join("host/checkpoint.safetensors");
    let written = || fs::metadata(&checkpoint).and_then(|file| file.modified()).ok();
    let before = written();
    let more = "train --resume host --device cpu --epochs 1000000";
    let mut resumed = Running::start(fabswarm(&folder, more));
    resumed.wait_for("a checkpoint", |_| written().is_some_and(|now| Some(now) != before));
    assert_contains(&resumed.interrupt().stdout, "continuing from round ");
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
        thread::spawn(move || {
            for near in listener.incoming().flatten() {
                let Ok(far) = TcpStream::connect(&to) else { continue };
                for (from, into) in [(&near, &far), (&far, &near)] {
                    let (from, into) = (from.try_clone().unwrap(), into.try_clone().unwrap());
                    let flag = Arc::clone(&flag);
                    thread::spawn(move || carry(from, into, &flag));
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
            thread::sleep(Duration::from_millis(5));
        }
        if into.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    let _ = (from.shutdown(std::net::Shutdown::Both), into.shutdown(std::net::Shutdown::Both));
}

#[test]
fn a_host_that_stalls_is_cut_off_or_is_killed_and_comes_back_costs_no_bit() {
    let folder = Folder::new();
    let [first, second] = two_hosts(&folder);
    let relay = TcpRelay::to(&first.address);
    hosts_file(&folder, [&relay.address, &second.address]);
    let long = format!("{SMALL} --epochs 30 --checkpoint-every 5 --algorithm ledger --iid-loss 0.2");
    succeeds(fabswarm(&folder, &format!("{long} --out one --device cpu")));
    let on_hosts = "--hosts hosts.toml --on-host-loss wait --host-timeout 4 --out many";
    let mut starter = Running::start(fabswarm(&folder, &format!("{long} {on_hosts}")));
    let goes_on = |starter: &mut Running| {
        let before = folder.last_round("many");
        starter.wait_for("a row", |_| folder.last_round("many") > before);
    };
    let waits = |starter: &mut Running, times: usize| {
        let waiting = "waiting for all hosts";
        starter.wait_for(waiting, |starter| starter.said().matches(waiting).count() >= times);
    };
    goes_on(&mut starter);
    first.process.signal(Signal::STOP);
    thread::sleep(Duration::from_secs(1));
    first.process.signal(Signal::CONT);
    goes_on(&mut starter);
    relay.is_cut.store(true, Ordering::Relaxed);
    waits(&mut starter, 1);
    relay.is_cut.store(false, Ordering::Relaxed);
    goes_on(&mut starter);
    second.process.signal(Signal::KILL);
    second.process.ends();
    waits(&mut starter, 2);
    let _second = Host::start(fabswarm(&folder, &format!("host --listen {}", second.address)));
    starter.ends().check(0, "");
    assert_same(&folder, "many", "one");
}

#[test]
fn what_cannot_be_a_run_on_hosts_is_refused_before_anything_is_written() {
    let folder = Folder::new();
    for (hosts, expected) in [
        ("127.0.0.1:1", "host 127.0.0.1:1 at 127.0.0.1:1 cannot be reached"),
        ("127.0.0.1x9", "the scenario has 5 agents, for 9 hosts"),
        ("127.0.0.1x2 --device cuda:99", "--device cpu"),
    ] {
        folder.refuses(&format!("{SMALL} --hosts {hosts}"), expected);
    }
}
