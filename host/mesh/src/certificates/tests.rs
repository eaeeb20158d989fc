use std::os::unix::fs::PermissionsExt as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use fabswarm_data::Cache;

use super::*;
use crate::cluster::Cluster;
use crate::daemon::{HostConfig, HostDevice, HostEvent, serve};

fn host(name: &str) -> Host {
    Host { name: name.to_owned(), address: "127.0.0.1:0".to_owned(), agents: None }
}

/// Runs `test` with the address of a host that has these credentials.
fn with_host(credentials: &Credentials, cache: &Path, test: impl FnOnce(&str)) {
    let setup = HostConfig {
        name: None,
        address: "127.0.0.1:0".parse().unwrap(),
        credentials: credentials.clone(),
        device: HostDevice::Cpu,
        refused: |_| {},
    };
    let interrupted = AtomicBool::new(false);
    let (sender, listening) = mpsc::channel();
    std::thread::scope(|scope| {
        let interrupted = &interrupted;
        scope.spawn(move || {
            let mut observe = |event| {
                if let HostEvent::Listening(address) = event {
                    sender.send(address.to_string()).unwrap();
                }
            };
            serve(&setup, &Cache::at(cache), interrupted, &mut observe).unwrap();
        });
        let address = listening.recv_timeout(Duration::from_secs(30)).unwrap();
        let tested = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| test(&address)));
        interrupted.store(true, Ordering::Relaxed);
        tested.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
}

fn asks(address: &str, credentials: &Credentials) -> Result<String, crate::Error> {
    let host = Host { address: address.to_owned(), ..host("a") };
    Ok(Cluster::dial(vec![host], credentials)?.status()?.remove(0).name)
}

#[test]
fn hosts_that_show_another_certificate_are_not_believed() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let of = |name: &str| Credentials::open(&path(name)).unwrap();
    let year_of = |name: &str| if name == "old" { 2020 } else { 2100 };
    new_cluster_until(&path("ours"), &[host("a"), host("b"), host("old")], &year_of).unwrap();
    new_cluster(&path("other"), &[host("a")]).unwrap();
    with_host(&of("ours/a"), folder.path(), |address| {
        // A machine that is busy with other things may take longer than one dial waits.
        assert!((0..5).any(|_| asks(address, &of("ours/b")).is_ok()));
    });
    // One has expired, the other is of another cluster.
    std::thread::scope(|scope| {
        for shown in ["ours/old", "other/a"].map(of) {
            scope.spawn(|| {
                let shown = shown;
                with_host(&shown, folder.path(), |address| assert!(asks(address, &of("ours/b")).is_err()));
            });
        }
    });
}

#[test]
fn keys_are_private_and_what_is_there_is_never_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cluster");
    new_cluster(&path, &[host("a")]).unwrap();
    for name in ["", "ca.key", "a", "a/host.key", "starter/host.key"] {
        let mode = std::fs::metadata(path.join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{name} is readable for others");
    }
    let refusal = |found: Result<(), Diagnostic>| {
        let message = found.unwrap_err().to_string();
        assert!(message.contains("help: "), "{message}");
        message
    };
    assert!(refusal(new_cluster(&path, &[host("a")])).contains("exists"));
    for name in ["../a", "a/b", "starter", ".a", "a b"] {
        let message = refusal(new_cluster(&folder.path().join("other"), &[host(name)]));
        assert!(message.contains(&format!("host `{name}`")), "{message}");
    }
    let message = refusal(Credentials::open(&path).map(|_| ()));
    assert!(message.contains("host.pem"), "{message}");
}

#[test]
fn a_loopback_host_answers_processes_of_its_own_user_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let of = |name: &str| Credentials::of_user_in(&path(name)).unwrap();
    // Several processes make the folder at once; one of them wins, and all have its keys.
    let all: Vec<Credentials> = std::thread::scope(|scope| {
        let made: Vec<_> = (0..4).map(|_| scope.spawn(|| of("cache/user"))).collect();
        made.into_iter().map(|made| made.join().unwrap()).collect()
    });
    with_host(&all[0], folder.path(), |address| {
        assert!(all[1..].iter().all(|own| (0..5).any(|_| asks(address, own).is_ok())));
        let refusal = asks(address, &of("cache/other")).unwrap_err().to_string();
        assert!(refusal.contains("takes this certificate"), "{refusal}");
    });
    let left = std::fs::read_dir(path("cache")).unwrap().count();
    assert_eq!(left, 2, "nothing but the two folders is left");
    for address in ["10.0.0.1:7447", "0.0.0.0:7447", "[::]:7447"] {
        let refusal = all[0].check(address.parse().unwrap()).unwrap_err().to_string();
        assert!(refusal.contains(address) && refusal.contains("new-cluster"), "{refusal}");
    }
    std::fs::set_permissions(path("cache/user"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let refusal = Credentials::of_user_in(&path("cache/user")).unwrap_err().to_string();
    assert!(refusal.contains("others could read") && refusal.contains("FABSWARM_CACHE"), "{refusal}");
}
