pub(crate) mod fake;
mod methods;
mod near;

use std::path::Path;

use fabswarm_large::device::Block;
use fabswarm_large::fab::RemoteHosts as _;
use fabswarm_large::training::checkpoint::Checkpoint;
use fabswarm_large::training::report::SCENARIO_FILE;
use fabswarm_large::training::{
    Evaluation, TrainingObserver, TrainingOutcome, TrainingPlan, TrainingRound, TrainingSetup,
};
use fabswarm_sim::record::{self, RunFolder};
use fabswarm_sim::scenario::{ResolvedScenario, ScenarioCommand, resolve_text_for};

use self::fake::{BUILD, FakeHosts};
use super::*;
use crate::Error;
use crate::cluster::{Cluster, ClusterSwarm, HostPart};
use crate::message::BODY_MAX;

const SMALL: &str = "[swarm]\nagents = 4\n[training]\ndata = \"sample\"\nmodel = \"softmax\"\nbatch = 30\ntrain_samples = 200\ntest_samples = 20\nepochs = 3\n";
const LEDGER: &str =
    "[algorithm]\nkind = \"ledger\"\n[faults]\niid_loss = 0.2\ndelay_rounds = 2\ncrashes = \"1@2+2\"\n";

/// Long enough that a machine which is busy with other tests loses no host.
const HOST_TIMEOUT: Duration = Duration::from_secs(120);

/// A scenario with its samples, in a folder of its own.
struct TrainingCase {
    folder: tempfile::TempDir,
    resolved: ResolvedScenario,
    prepared: TrainingSetup,
    interrupted: Arc<AtomicBool>,
}

impl TrainingCase {
    fn new(text: &str) -> Self {
        Self::in_folder(tempfile::tempdir().unwrap(), text)
    }

    fn in_folder(folder: tempfile::TempDir, text: &str) -> Self {
        let text = format!("version = 1\n{text}");
        let file = Some((Path::new("test.toml"), text.as_str()));
        let resolved = resolve_text_for(ScenarioCommand::Train, file, &[]).unwrap();
        let prepared = TrainingSetup::new(&Cache::at(folder.path()), &resolved.scenario).unwrap();
        TrainingCase { folder, resolved, prepared, interrupted: Arc::default() }
    }

    /// Tiny models, and three classes around three corners: `samples` samples per agent, half of them to validate, and fifteen to
    /// test.
    fn tiny(agents: usize, samples: usize, more: &str) -> Self {
        let row = |number: usize| {
            let (class, split) = (number % 3, if number < samples * agents { "train" } else { "test" });
            let [x, y] = [class % 2 * 60 + number * 7 % 11, class / 2 * 60 + number * 5 % 13]
                .map(|at| at as f64 / 20.0);
            let validates = u8::from(number < samples / 2 * agents);
            format!("{},{x},{y},{class},{validates},{split}\n", number % agents)
        };
        let rows: String = (0..samples * agents + 15).map(row).collect();
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("table.csv");
        std::fs::write(&data, format!("agent,x,y,label,validation,split\n{rows}")).unwrap();
        let data = data.display();
        let text =
            format!("[swarm]\nagents = {agents}\n[training]\ndata = \"{data}\"\nmodel = \"softmax\"\n{more}");
        Self::in_folder(folder, &text)
    }

    fn hosts(&self, count: usize, seed: u64, rate: f64) -> FakeHosts {
        FakeHosts::start(count, seed, rate, self.folder.path())
    }

    fn start(&self, cluster: Cluster, host_timeout: Duration) -> Result<ClusterSwarm, Error> {
        let (text, agents) = (self.resolved.to_repeatable_toml(), self.resolved.scenario.swarm.agents);
        let run = cluster.start(self.prepared.digest(), &text, agents, &self.interrupted, host_timeout)?;
        Ok(ClusterSwarm(Arc::new(run)))
    }

    fn plan(&self, block: Block) -> TrainingPlan<'_, Cpu<f32>> {
        TrainingPlan::of_block(Cpu::<f32>::new(), &self.prepared, &self.resolved, block).unwrap()
    }

    /// Trains in one process, or on hosts; from the beginning, or from the checkpoint in the folder of that name.
    fn train(
        &self,
        hosts: Option<&ClusterSwarm>,
        name: &str,
        resumes: bool,
    ) -> (TrainingOutcome, Vec<Evaluation>) {
        let path = self.folder.path().join(name);
        let mut checkpoint = resumes.then(|| Checkpoint::open(&path, &self.resolved).unwrap());
        let trainer = match hosts {
            None => self.plan(Block::whole(self.resolved.scenario.swarm.agents)).start(checkpoint.as_mut()),
            Some(hosts) => self.plan(Block::NONE).watch(Box::new(hosts.clone()), checkpoint.as_mut()),
        };
        std::fs::create_dir_all(&path).unwrap();
        let folder = RunFolder::again(&path).unwrap();
        folder.write(SCENARIO_FILE, self.resolved.to_repeatable_toml().as_bytes()).unwrap();
        let mut log = EvaluationLog::default();
        let outcome = trainer.unwrap().run(Some(&folder), &mut log, &self.interrupted).unwrap();
        (outcome, log.0)
    }

    /// The words of a checkpoint, without the time in its header and the checksum that it changes.
    fn checkpoint(&self, name: &str) -> Vec<u8> {
        let bytes = std::fs::read(self.folder.path().join(name).join("checkpoint.safetensors")).unwrap();
        let header = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
        bytes[8 + header..bytes.len() - 4].to_vec()
    }

    /// Trains in one process and on these hosts, to the same bits; returns what each host did.
    fn compare(&self, cluster: Cluster, host_timeout: Duration) -> Vec<HostPart> {
        let (expected, expected_log) = self.train(None, "one", false);
        let swarm = self.start(cluster, host_timeout).unwrap();
        let (found, found_log) = self.train(Some(&swarm), "many", false);
        assert_eq!(found_log, expected_log);
        assert!(found.mean == expected.mean && found.weights == expected.weights, "other bits");
        assert!(self.checkpoint("many") == self.checkpoint("one"), "another checkpoint");
        // Hosts add up their parts, so rounding differs; plain FAB over losses loses mass on one host and on many.
        let defects = [found.tracking_defect, expected.tracking_defect];
        assert!((defects[0] - defects[1]).abs() < 1e-5, "{defects:?}");
        swarm.0.parts().unwrap()
    }
}

/// All evaluations, without what they took.
#[derive(Default)]
struct EvaluationLog(Vec<Evaluation>);

impl TrainingObserver for EvaluationLog {
    fn round(&mut self, _: TrainingRound<'_>) {}

    fn evaluated(&mut self, now: &Evaluation) -> Result<(), record::Error> {
        self.0.push(Evaluation { seconds: 0.0, round_seconds: None, memory: None, ..*now });
        Ok(())
    }
}

#[test]
fn hosts_stop_in_one_round_wherever_they_are() {
    let case = TrainingCase::new(&format!("{SMALL}{LEDGER}"));
    let hosts = case.hosts(3, 7, 0.1);
    let swarm = case.start(hosts.cluster(BUILD), HOST_TIMEOUT).unwrap();
    let mut stopped = 0;
    for _ in 0..3 {
        swarm.permit(6).unwrap();
        let round = swarm.halt().unwrap();
        assert!(round >= stopped && round <= 6, "{round} after {stopped}");
        stopped = round;
        let parts = swarm.0.parts().unwrap();
        assert!(parts.iter().all(|part| part.traffic.received == part.traffic.planned_received));
        assert!(swarm.imbalances().unwrap()[0].defect() < 1e-5);
    }
    // The starter learns that a host leaves, and the round still ends.
    hosts.interrupted.store(true, Ordering::Relaxed);
    swarm.permit(6).unwrap();
    swarm.wait_for(6).unwrap();
    assert!(case.interrupted.load(Ordering::Relaxed));
}

/// Lines lose and repeat pieces, and what is asked for again is not computed from another piece.
#[test]
fn imbalances_come_in_as_many_messages_as_they_take() {
    let case = TrainingCase::new(
        "[swarm]\nagents = 2\n[training]\ndata = \"sample\"\nmodel_width = 512\nbatch = 8\nepochs = 1\n",
    );
    let hosts = case.hosts(2, 9, 0.2);
    let swarm = case.start(hosts.cluster(BUILD), HOST_TIMEOUT).unwrap();
    let numbers = 2 * 2 * case.prepared.parameters();
    assert!(numbers * size_of::<f64>() > BODY_MAX, "they take more than one message");
    for round in [1, 2] {
        swarm.permit(round).unwrap();
        swarm.wait_for(round).unwrap();
        let lower = &swarm.imbalances().unwrap()[0];
        assert!(lower.sums.len() == lower.sizes.len() && 2 * lower.sums.len() >= numbers);
        let [sums, sizes] =
            [&lower.sums, &lower.sizes].map(|all| all.iter().map(|one| one.abs()).sum::<f64>());
        assert!(sizes > 0.0 && sums < 1e-5 * sizes && lower.defect() < 1e-5, "{sums} of {sizes}");
    }
}

#[test]
fn hosts_refuse_other_builds_other_data_and_a_second_run() {
    let case = TrainingCase::new(SMALL);
    let hosts = case.hosts(2, 1, 0.0);
    let start = |build: &str| case.start(hosts.cluster(build), HOST_TIMEOUT);
    let other = start("older").unwrap_err().to_string();
    assert!(other.contains("host h0: it runs build test") && other.contains("build older"), "{other}");
    let (cluster, text) = (hosts.cluster(BUILD), case.resolved.to_repeatable_toml());
    let data = cluster.start("0000", &text, 4, &case.interrupted, HOST_TIMEOUT);
    let data = data.unwrap_err().to_string();
    assert!(data.contains("its samples or weights of `sample`") && data.contains("help: "), "{data}");
    let run = start(BUILD).unwrap();
    let busy = start(BUILD).unwrap_err().to_string();
    assert!(busy.contains("already") && busy.contains("help: "), "{busy}");
    drop(run);
    start(BUILD).unwrap();
}

/// On lines that lose, repeat, reorder and delay, with links between a third of all pairs of hosts in every round.
#[test]
fn a_thousand_agents_on_a_hundred_hosts_compute_the_bits_of_one_process() {
    let links = "batch = 3\nepochs = 2\nevaluate_every = 2\n[network]\ntopology = \"erdos-renyi\"\nedge_probability = 0.004\n";
    // Ten samples are the fewest that an agent may have.
    let case = TrainingCase::tiny(1000, 10, links);
    let hosts = case.hosts(100, 5, 0.001);
    let traffic = case.compare(hosts.cluster(BUILD), HOST_TIMEOUT).into_iter().map(|part| part.traffic);
    let (planned, received) = traffic.fold((0, 0), |(planned, received), traffic| {
        (planned + traffic.planned_received, received + traffic.received)
    });
    println!("{received} bytes between hosts");
    assert!(planned == received && received > 0);
}

/// Agents that the scenario has not would have ended the host.
#[test]
fn a_plan_with_other_agents_is_refused_and_the_host_goes_on() {
    let case = TrainingCase::new(SMALL);
    let hosts = case.hosts(1, 1, 0.0);
    let (cluster, text) = (hosts.cluster(BUILD), case.resolved.to_repeatable_toml());
    let refusal = cluster.start(case.prepared.digest(), &text, 1000, &case.interrupted, HOST_TIMEOUT);
    let refusal = refusal.unwrap_err().to_string();
    assert!(refusal.contains("does not give each agent to one host"), "{refusal}");
    case.start(hosts.cluster(BUILD), HOST_TIMEOUT).unwrap();
}

#[test]
fn a_plan_of_blocks_sums_to_no_less_than_the_swarm() {
    let case = TrainingCase::new(SMALL);
    let state = |agents| case.plan(Block { first: 0, agents }).plan().state;
    let [whole, part, none] = [4, 2, 0].map(state);
    assert!(part < whole && 2 * part > whole && none == 0);
}
