//! A hundred hosts of this process, on lines that lose, repeat, reorder and delay.

use super::*;

const HOSTS: usize = 100;
const AGENTS: usize = 1000;
/// Samples of an agent, the fewest that one may have.
const SAMPLES: usize = 10;
const RATE: f64 = 0.001;
/// Links between a third of all pairs of hosts in every round.
const LINKS: &str = "batch = 3\nepochs = 2\nevaluate_every = 2\n[network]\ntopology = \"erdos-renyi\"\nedge_probability = 0.004\n";

#[test]
fn a_thousand_agents_on_a_hundred_hosts_compute_the_bits_of_one_process() {
    let case = TrainingCase::tiny(AGENTS, SAMPLES, LINKS);
    let hosts = case.hosts(HOSTS, 5, RATE);
    let traffic = case.compare(hosts.cluster(BUILD), HOST_TIMEOUT).into_iter().map(|part| part.traffic);
    let (planned, received) = traffic.fold((0, 0), |(planned, received), traffic| {
        (planned + traffic.planned_received, received + traffic.received)
    });
    println!("{received} bytes between hosts");
    assert!(planned == received && received > 0);
}
