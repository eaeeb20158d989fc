mod both_ends;
pub(crate) mod fake;
mod losses;
mod many;
mod near;

use std::path::Path;

use fabswarm_large::device::cpu::Cpu;
use fabswarm_large::fab::RemoteHosts as _;
use fabswarm_large::training::{TrainingPlan, TrainingSetup};
use fabswarm_sim::scenario::{ResolvedScenario, ScenarioCommand, resolve_text_for};

use self::fake::{BUILD, HostsHere};
use super::*;
use crate::cluster::{ClusterSwarm, LossPolicy};
use crate::message::BODY_MAX;

fn scenario(more: &str) -> ResolvedScenario {
    let text = format!(
        "version = 1\n[swarm]\nagents = 4\n[training]\ndata = \"sample\"\nmodel = \"softmax\"\nbatch = 30\ntrain_samples = 200\ntest_samples = 20\nepochs = 3\n{more}"
    );
    scenario_of(&text)
}

fn scenario_of(text: &str) -> ResolvedScenario {
    resolve_text_for(ScenarioCommand::Train, Some((Path::new("test.toml"), text)), &[]).unwrap()
}

fn training(prepared: &TrainingSetup) -> RunKind {
    RunKind::Training { digest: prepared.digest() }
}

const LEDGER: &str =
    "[algorithm]\nkind = \"ledger\"\n[faults]\niid_loss = 0.2\ndelay_rounds = 2\ncrashes = \"1@2+2\"\n";

#[test]
fn hosts_stop_in_one_round_wherever_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let resolved = scenario(LEDGER);
    let prepared = TrainingSetup::new(&Cache::at(folder.path()), &resolved.scenario).unwrap();
    let hosts = HostsHere::start(3, 7, 0.1, folder.path());
    let interrupted = Arc::new(AtomicBool::new(false));
    let run = hosts
        .cluster(BUILD)
        .start(&training(&prepared), &resolved.to_repeatable_toml(), 4, &interrupted, LossPolicy::default())
        .unwrap();
    let run = Arc::new(run);
    let swarm = ClusterSwarm(Arc::clone(&run));
    let mut stopped = 0;
    for _ in 0..3 {
        swarm.permit(6).unwrap();
        let round = swarm.halt().unwrap();
        assert!(round >= stopped && round <= 6, "{round} after {stopped}");
        stopped = round;
        let parts = run.parts().unwrap();
        assert!(parts.iter().all(|part| part.traffic.received == part.traffic.planned_received));
        assert!(swarm.imbalances().unwrap()[0].defect() < 1e-5);
    }
    // Who leaves is heard of by who started the run, and the round still ends.
    hosts.interrupted.store(true, Ordering::Relaxed);
    swarm.permit(6).unwrap();
    swarm.wait_for(6).unwrap();
    assert!(interrupted.load(Ordering::Relaxed));
}

/// Lines lose and repeat pieces, and what is asked for again is not computed from another piece.
#[test]
fn imbalances_come_in_as_many_messages_as_they_take() {
    let folder = tempfile::tempdir().unwrap();
    let resolved = scenario_of(
        "version = 1\n[swarm]\nagents = 2\n[training]\ndata = \"sample\"\nmodel_width = 512\nbatch = 8\nepochs = 1\n",
    );
    let prepared = TrainingSetup::new(&Cache::at(folder.path()), &resolved.scenario).unwrap();
    let hosts = HostsHere::start(2, 9, 0.2, folder.path());
    let (kind, interrupted) = (training(&prepared), Arc::new(AtomicBool::new(false)));
    let cluster = hosts.cluster(BUILD);
    let run = cluster.start(&kind, &resolved.to_repeatable_toml(), 2, &interrupted, LossPolicy::default());
    let swarm = ClusterSwarm(Arc::new(run.unwrap()));
    let numbers = 2 * 2 * prepared.parameters();
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
    let folder = tempfile::tempdir().unwrap();
    let resolved = scenario("");
    let prepared = TrainingSetup::new(&Cache::at(folder.path()), &resolved.scenario).unwrap();
    let hosts = HostsHere::start(2, 1, 0.0, folder.path());
    let interrupted = Arc::new(AtomicBool::new(false));
    let start = |build: &str, digest: String| {
        hosts.cluster(build).start(
            &RunKind::Training { digest },
            &resolved.to_repeatable_toml(),
            4,
            &interrupted,
            LossPolicy::default(),
        )
    };
    let refusal = |build: &str, digest: String| start(build, digest).unwrap_err().to_string();
    let other = refusal("older", prepared.digest());
    assert!(other.contains("host h0: it runs build test") && other.contains("build older"), "{other}");
    let data = refusal(BUILD, "0000".to_owned());
    assert!(data.contains("its samples or weights of `sample`") && data.contains("help: "), "{data}");
    let run = start(BUILD, prepared.digest()).unwrap();
    let busy = refusal(BUILD, prepared.digest());
    assert!(busy.contains("already") && busy.contains("help: "), "{busy}");
    drop(run);
    start(BUILD, prepared.digest()).unwrap();
}

#[test]
fn a_plan_of_blocks_sums_to_no_less_than_the_swarm() {
    let folder = tempfile::tempdir().unwrap();
    let resolved = scenario("");
    let prepared = TrainingSetup::new(&Cache::at(folder.path()), &resolved.scenario).unwrap();
    let plan = |first, agents| {
        let block = fabswarm_large::device::Block { first, agents };
        TrainingPlan::of_block(Cpu::<f32>::new(), &prepared, &resolved, block).unwrap().plan().clone()
    };
    let (whole, part, none) = (plan(0, 4), plan(0, 2), plan(0, 0));
    assert!(part.state < whole.state && 2 * part.state > whole.state && none.state == 0);
}
