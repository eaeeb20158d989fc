//! Hosts of one machine, on lines that lose, repeat, reorder and delay what they say about their memory.

use super::*;
use fabswarm_large::fab::{StatePart, VectorPart};
use fabswarm_large::training::block::to_words;

/// Trains on three hosts at these addresses.
fn train_at(address: impl Fn(usize) -> String, more: &str, rate: f64) -> Vec<HostPart> {
    let case = TrainingCase::new(&format!("{SMALL}{more}"));
    let hosts = case.hosts(3, 3, rate);
    case.compare(hosts.cluster_at(BUILD, address), HOST_TIMEOUT)
}

#[test]
fn hosts_that_share_memory_compute_the_bits_of_one_process() {
    let on_one_machine = |number: usize| format!("127.0.0.1:{}", number + 1);
    for more in ["", LEDGER] {
        for HostPart { name, traffic, .. } in train_at(on_one_machine, more, 0.1) {
            assert!(traffic.received > 0 && traffic.received == traffic.planned_received, "{name}");
            assert_eq!(traffic.received_shared, traffic.received, "{name}");
        }
    }
}

#[test]
fn state_of_a_host_on_this_machine_is_read_in_its_memory() {
    let case = TrainingCase::new(SMALL);
    let hosts = case.hosts(1, 3, 0.0);
    let swarm = case.start(hosts.cluster(BUILD), HOST_TIMEOUT).unwrap();
    let part = StatePart::Lower(VectorPart::Decisions);
    let read = |shares| {
        let request = Request::Read { round: 0, part, offset: 7, words: 100, shares };
        swarm.0.ask(0, &request, &[]).unwrap()
    };
    let (answer, bytes) = read(false);
    assert_eq!(answer, Response::Words);
    assert!(matches!(read(true).0, Response::SharedWords(_)));
    assert_eq!(swarm.read(0, part, 7, 100).unwrap(), to_words(&bytes));
}

#[test]
fn only_hosts_at_one_address_share_memory() {
    let two_machines = |number: usize| format!("10.0.0.{}:7447", 1 + number / 2);
    let parts = train_at(two_machines, "", 0.0);
    let shared = |host: usize| parts[host].traffic.received_shared;
    assert!(shared(0) + shared(1) > 0 && shared(2) == 0, "{parts:?}");
    assert!(parts.iter().all(|part| part.traffic.received == part.traffic.planned_received));
    assert!(shared(0) < parts[0].traffic.received, "it hears the other machine too");
}
