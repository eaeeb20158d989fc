//! A hundred hosts of this process, on lines that lose, repeat, damage, reorder and delay.

use fabswarm_large::device::Block;
use fabswarm_large::training::{Evaluation, Trainer, TrainingObserver, TrainingOutcome, TrainingRound};
use fabswarm_sim::record::{self, RunFolder};

use super::*;

const HOSTS: usize = 100;
const AGENTS: usize = 1000;
/// How often each fault of a line happens.
const RATE: f64 = 0.001;

/// Tiny models, and links between a third of all pairs of hosts in every round.
fn wide(table: &Path) -> ResolvedScenario {
    let table = table.display();
    scenario_of(&format!(
        "version = 1\n[swarm]\nagents = {AGENTS}\n[network]\ntopology = \"erdos-renyi\"\nedge_probability = 0.004\n[training]\ndata = \"{table}\"\nmodel = \"softmax\"\nbatch = 3\nepochs = 2\nevaluate_every = 2\n"
    ))
}

/// Samples of an agent, the fewest that one may have: half of them to validate.
const SAMPLES: usize = 10;

/// Three classes around three corners, and fifteen samples to test.
fn table() -> String {
    let row = |number: usize| {
        let (class, split) = (number % 3, if number < SAMPLES * AGENTS { "train" } else { "test" });
        let [x, y] =
            [class % 2 * 60 + number * 7 % 11, class / 2 * 60 + number * 5 % 13].map(|at| at as f64 / 20.0);
        format!("{},{x},{y},{class},{},{split}\n", number % AGENTS, u8::from(number < SAMPLES / 2 * AGENTS))
    };
    "agent,x,y,label,validation,split\n".to_owned() + &(0..SAMPLES * AGENTS + 15).map(row).collect::<String>()
}

struct Nobody;

impl TrainingObserver for Nobody {
    fn round(&mut self, _: TrainingRound<'_>) {}

    fn evaluated(&mut self, _: &Evaluation) -> Result<(), record::Error> {
        Ok(())
    }
}

pub(super) fn train(trainer: &mut Trainer<'_, Cpu<f32>>, folder: &Path) -> TrainingOutcome {
    let folder = RunFolder::at(folder).unwrap();
    trainer.run(&folder, &mut Nobody, &AtomicBool::new(false)).unwrap()
}

#[test]
fn a_thousand_agents_on_a_hundred_hosts_compute_the_bits_of_one_process() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("table.csv");
    std::fs::write(&data, table()).unwrap();
    let resolved = wide(&data);
    let prepared = TrainingSetup::new(&Cache::at(folder.path()), &resolved.scenario).unwrap();
    let plan = TrainingPlan::new(Cpu::<f32>::new(), &prepared, &resolved).unwrap();
    let expected = train(&mut plan.start(None).unwrap(), &folder.path().join("one"));
    let hosts = HostsHere::start(HOSTS, 5, RATE, folder.path());
    let interrupted = Arc::new(AtomicBool::new(false));
    let (kind, text) = (training(&prepared), resolved.to_repeatable_toml());
    let policy = LossPolicy { patience: Duration::from_secs(120), ..LossPolicy::default() };
    let run = Arc::new(hosts.cluster(BUILD).start(&kind, &text, AGENTS, &interrupted, policy).unwrap());
    let plan = TrainingPlan::of_block(Cpu::<f32>::new(), &prepared, &resolved, Block::NONE).unwrap();
    let mut trainer = plan.watch(Box::new(ClusterSwarm(Arc::clone(&run))), None).unwrap();
    let found = train(&mut trainer, &folder.path().join("many"));
    assert!(found.mean == expected.mean && found.weights == expected.weights);
    let traffic = run.parts().unwrap().into_iter().map(|part| part.traffic);
    let (planned, received) = traffic.fold((0, 0), |(planned, received), traffic| {
        (planned + traffic.planned_received, received + traffic.received)
    });
    println!("{} rounds, {received} bytes between hosts", trainer.rounds());
    assert!(planned == received && received > 0);
}
