//! Peers outside a cluster are refused while a run goes on: real processes on loopback, with certificates.

use crate::support::{Folder, Running, wait_for};
use crate::{Host, fabswarm, hosts_file};
use fabswarm_mesh::certificates::{new_cluster, new_cluster_until};
use fabswarm_mesh::hosts_file::Host as Listed;
use std::io::Write as _;
use std::net::TcpStream;

const TRAINING: &str = "train --data sample --model softmax --agents 5 --batch 16";
/// Attempts of each stranger that sends bytes; those with certificates try again by themselves, many times in their five seconds.
const ATTEMPTS: usize = 20;

/// A host with a member's certificate and room for few open files.
fn start(folder: &Folder, member: &str) -> Host {
    let line = format!("host --listen 127.0.0.1:0 --cluster ours/{member}");
    let mut command = folder.shell_command(&format!("ulimit -n 128 && exec \"$FABSWARM\" {line}"));
    command.env("RAYON_NUM_THREADS", "1");
    Host::start(command)
}

/// Waits for somebody who asked a host how it is, and learned nothing.
fn is_refused(stranger: Running) {
    let ended = stranger.ends();
    ended.check(1, "takes this certificate");
    assert_eq!(ended.stdout, "");
}

#[test]
fn strangers_are_refused_once_in_the_log_and_the_run_goes_on() {
    let folder = Folder::new();
    let host = |name: &str| Listed { name: name.to_owned(), address: "127.0.0.1:0".to_owned(), agents: None };
    let year_of = |name: &str| if name == "old" { 2020 } else { 2100 };
    new_cluster_until(&folder.join("ours"), &["h0", "h1", "old", "left"].map(host), &year_of).unwrap();
    new_cluster(&folder.join("other"), &[host("h0")]).unwrap();
    folder.write("ours/h0/cluster.toml", "members = [\"h0\", \"h1\", \"old\", \"starter\"]\n");
    let [first, second] = ["h0", "h1"].map(|member| start(&folder, member));
    hosts_file(&folder, [&first.address, &second.address]);
    let many = "--epochs 1000000 --hosts hosts.toml --cluster ours/starter --out many";
    let mut starter = Running::start(fabswarm(&folder, &format!("{TRAINING} {many}")));
    starter.wait_for("a row", |_| folder.last_round("many") > 0);

    // More connections than the host may have open files; none of them says anything.
    let silent: Vec<TcpStream> = (0..400).map(|_| TcpStream::connect(&first.address).unwrap()).collect();
    let status = format!("host status --hosts {}", first.address);
    let ask = |cluster: &str| Running::start(fabswarm(&folder, &format!("{status} {cluster}")));
    let strangers = [
        ("--cluster ours/left", "is not in this host's cluster.toml"),
        ("--cluster other/starter", "does not take"),
        ("--cluster ours/old", "has expired"),
        ("", "does not take"),
    ];
    let asking = strangers.map(|(cluster, _)| ask(cluster));
    for length in [1, 100, 100_000].into_iter().cycle().take(ATTEMPTS) {
        let mut stranger = TcpStream::connect(&first.address).unwrap();
        // A refused peer may be cut off before it has sent everything.
        let _ = stranger.write_all(&vec![0x5a; length]);
    }
    asking.into_iter().for_each(is_refused);
    for (cluster, reason) in strangers {
        // A busy machine may not have come to it in five seconds.
        while !first.process.said().contains(reason) {
            is_refused(ask(cluster));
        }
    }
    wait_for("the note on bytes", || first.process.said().contains("not what hosts send"));
    wait_for("an answer beside strangers", || ask("--cluster ours/h1").ends().code == Some(0));
    drop(silent);
    let before = folder.last_round("many");
    starter.wait_for("a row after the strangers", |_| folder.last_round("many") > before);

    starter.interrupt();
    let said = first.process.said();
    for (_, reason) in strangers {
        assert_eq!(said.matches(reason).count(), 1, "{said}");
    }
    assert!(said.lines().all(|line| line.starts_with("note: somebody was refused: ")), "{said}");
    assert_eq!(second.process.said(), "");
    let epochs = folder.summary("many")["epochs"].as_f64().unwrap().ceil();
    folder.succeeds(&format!("{TRAINING} --device cpu --epochs {epochs} --out one"));
    let metrics = |run: &str| folder.read(&format!("{run}/metrics.csv"));
    assert!(metrics("many").lines().count() > 2 && metrics("one").starts_with(&metrics("many")));
}
