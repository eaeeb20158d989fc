//! Hosts of one machine, on lines that lose, repeat, damage, reorder and delay what they say about their memory.

use fabswarm_large::device::Block;

use super::many::train;
use super::*;
use crate::cluster::HostPart;

const HOSTS: usize = 3;

/// Trains on hosts at these addresses; returns whether the bits are those of one process, and what each host did.
fn train_at(address: impl Fn(usize) -> String, more: &str, rate: f64) -> (bool, Vec<HostPart>) {
    let folder = tempfile::tempdir().unwrap();
    let resolved = scenario(more);
    let prepared = TrainingSetup::new(&Cache::at(folder.path()), &resolved.scenario).unwrap();
    let plan = TrainingPlan::new(Cpu::<f32>::new(), &prepared, &resolved).unwrap();
    let expected = train(&mut plan.start(None).unwrap(), &folder.path().join("one"));
    let hosts = HostsHere::start(HOSTS, 3, rate, folder.path());
    let interrupted = Arc::new(AtomicBool::new(false));
    let (kind, text) = (training(&prepared), resolved.to_repeatable_toml());
    let cluster = hosts.cluster_at(BUILD, address);
    let run = Arc::new(cluster.start(&kind, &text, 4, &interrupted, LossPolicy::default()).unwrap());
    let plan = TrainingPlan::of_block(Cpu::<f32>::new(), &prepared, &resolved, Block::NONE).unwrap();
    let mut trainer = plan.watch(Box::new(ClusterSwarm(Arc::clone(&run))), None).unwrap();
    let found = train(&mut trainer, &folder.path().join("many"));
    (found.mean == expected.mean && found.weights == expected.weights, run.parts().unwrap())
}

#[test]
fn hosts_that_share_memory_compute_the_bits_of_one_process() {
    let on_one_machine = |number: usize| format!("127.0.0.1:{}", number + 1);
    for more in ["", LEDGER] {
        let (is_same, parts) = train_at(on_one_machine, more, 0.1);
        assert!(is_same, "{more}");
        for HostPart { name, traffic, .. } in parts {
            assert!(traffic.received > 0 && traffic.received == traffic.planned_received, "{name}");
            assert_eq!(traffic.received_shared, traffic.received, "{name}");
        }
    }
}

#[test]
fn only_hosts_at_one_address_share_memory() {
    let two_machines = |number: usize| format!("10.0.0.{}:7447", 1 + number / 2);
    let (is_same, parts) = train_at(two_machines, "", 0.0);
    assert!(is_same);
    let shared = |host: usize| parts[host].traffic.received_shared;
    assert!(shared(0) + shared(1) > 0 && shared(2) == 0, "{parts:?}");
    assert!(parts.iter().all(|part| part.traffic.received == part.traffic.planned_received));
    assert!(shared(0) < parts[0].traffic.received, "it hears the other machine too");
}
