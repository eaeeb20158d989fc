use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use super::super::tests::{EvaluationLog, faults, scenario, sharper, train, with_ledger};
use super::super::{Evaluation, TrainingOutcome, TrainingPlan, report};
use super::*;
use crate::device::{self, cpu::Cpu};
use crate::fab::{RemoteHosts, StatePart, TrackerImbalance};
use crate::training::checkpoint::Checkpoint;
use fabswarm_data::Cache;
use fabswarm_sim::record::RunFolder;
use fabswarm_sim::scenario::ResolvedScenario;

/// All hosts of a run in this process, one after the other.
#[derive(Debug)]
struct LocalHosts {
    blocks: Vec<Block>,
    trainers: Mutex<Vec<BlockTrainer<'static, Cpu<f32>>>>,
    /// Rounds that the hosts still do after they are halted.
    overrun: u32,
}

/// A parcel as it travels.
#[derive(Clone)]
struct Parcel {
    to: usize,
    part: ParcelPart,
    bytes: Vec<u8>,
}

/// Begins a round, and makes all parcels.
fn begin(trainer: &mut BlockTrainer<'_, Cpu<f32>>) -> Vec<Parcel> {
    let outgoing = trainer.begin_round().unwrap();
    let of = |parcel: OutgoingParcel| {
        let OutgoingParcel { to, part, .. } = parcel;
        Parcel { to, part, bytes: trainer.parcel(parcel).unwrap() }
    };
    outgoing.into_iter().map(of).collect()
}

/// Sums the imbalances of all hosts.
fn imbalances(trainers: &[BlockTrainer<'_, Cpu<f32>>]) -> Vec<TrackerImbalance> {
    let mut whole: Vec<TrackerImbalance> = Vec::new();
    for trainer in trainers {
        let parts = trainer.swarm().imbalances().unwrap();
        whole.resize(parts.len(), TrackerImbalance::default());
        whole.iter_mut().zip(&parts).for_each(|(whole, part)| whole.add(part));
    }
    whole
}

/// Neighbouring agents for each host, as many as `sizes` says.
fn blocks_of(sizes: &[usize]) -> Vec<Block> {
    let next = |first: &mut usize, &agents: &usize| {
        *first += agents;
        Some(Block { first: *first - agents, agents })
    };
    sizes.iter().scan(0, next).collect()
}

/// The hosts of a run at its start.
fn trainers_of<'a>(
    blocks: &[Block],
    prepared: &'a TrainingSetup,
    resolved: &'a ResolvedScenario,
) -> Vec<BlockTrainer<'a, Cpu<f32>>> {
    let part = |(host, block): (usize, &Block)| {
        let plan = TrainingPlan::of_block(Cpu::<f32>::new(), prepared, resolved, *block).unwrap();
        plan.start_block(host, blocks.to_vec()).unwrap()
    };
    blocks.iter().enumerate().map(part).collect()
}

impl RemoteHosts<f32> for LocalHosts {
    fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    fn read(&self, host: usize, part: StatePart, offset: usize, words: usize) -> device::Result<Vec<f32>> {
        self.trainers.lock().unwrap()[host].swarm().read_part(part, offset, words)
    }

    fn write(&self, host: usize, part: StatePart, offset: usize, words: &[f32]) -> device::Result<()> {
        self.trainers.lock().unwrap()[host].swarm_mut().write_part(part, offset, words)
    }

    fn set_rounds(&self, round: u32) -> device::Result<()> {
        let mut trainers = self.trainers.lock().unwrap();
        trainers.iter_mut().for_each(|trainer| trainer.swarm_mut().set_rounds(round));
        Ok(())
    }

    fn permit(&self, _: u32) -> device::Result<()> {
        Ok(())
    }

    fn wait_for(&self, round: u32) -> device::Result<()> {
        let mut trainers = self.trainers.lock().unwrap();
        while trainers[0].round() < round {
            let parcels: Vec<Vec<Parcel>> = trainers.iter_mut().map(begin).collect();
            for (host, trainer) in trainers.iter_mut().enumerate() {
                // Decisions come before trackers, which the descent does not need.
                let (decisions, trackers): (Vec<_>, Vec<_>) = trainer
                    .expected()
                    .unwrap()
                    .into_iter()
                    .partition(|parcel| parcel.part == ParcelPart::Decisions);
                for (half, expected) in [decisions, trackers].into_iter().enumerate() {
                    for ExpectedParcel { from, part, bytes } in expected {
                        let is_it = |parcel: &&Parcel| (parcel.to, parcel.part) == (host, part);
                        let parcel = parcels[from].iter().find(is_it).unwrap();
                        assert_eq!(parcel.bytes.len(), bytes, "both ends plan the same");
                        trainer.take(from, part, &parcel.bytes).unwrap();
                    }
                    if half == 0 {
                        trainer.descend().unwrap();
                    }
                }
                trainer.end_round().unwrap();
            }
        }
        Ok(())
    }

    fn halt(&self) -> device::Result<u32> {
        let round = self.trainers.lock().unwrap()[0].round() + self.overrun;
        self.wait_for(round)?;
        Ok(round)
    }

    fn imbalances(&self) -> device::Result<Vec<TrackerImbalance>> {
        Ok(imbalances(&self.trainers.lock().unwrap()))
    }
}

/// Trains with the agents dealt out to hosts, as many to each as `sizes` says.
fn train_on(
    sizes: &[usize],
    resolved: &ResolvedScenario,
    folder: &Path,
    resumes: bool,
) -> (TrainingOutcome, Vec<Evaluation>) {
    // The hosts of a run outlive its observer.
    let resolved: &'static ResolvedScenario = Box::leak(Box::new(resolved.clone()));
    let prepared: &'static TrainingSetup =
        Box::leak(Box::new(TrainingSetup::new(&Cache::at(folder), &resolved.scenario).unwrap()));
    let blocks = blocks_of(sizes);
    let trainers = Mutex::new(trainers_of(&blocks, prepared, resolved));
    let hosts = LocalHosts { blocks, trainers, overrun: 2 };
    let mut checkpoint = resumes.then(|| Checkpoint::open(folder, resolved).unwrap());
    let plan = TrainingPlan::of_block(Cpu::<f32>::new(), prepared, resolved, Block::NONE).unwrap();
    let mut trainer = plan.watch(Box::new(hosts), checkpoint.as_mut()).unwrap();
    let run = RunFolder::again(folder).unwrap();
    run.write(report::SCENARIO_FILE, resolved.to_repeatable_toml().as_bytes()).unwrap();
    let mut observer = EvaluationLog::default();
    let outcome = trainer.run(&run, &mut observer, &AtomicBool::new(false)).unwrap();
    (outcome, observer.0)
}

/// Compares all but times.
#[track_caller]
fn assert_same(
    found: &(TrainingOutcome, Vec<Evaluation>),
    expected: &(TrainingOutcome, Vec<Evaluation>),
    what: &str,
) {
    let timeless = |evaluations: &[Evaluation]| -> Vec<Evaluation> {
        evaluations
            .iter()
            .map(|evaluation| Evaluation { seconds: 0.0, round_seconds: None, memory: None, ..*evaluation })
            .collect()
    };
    assert_eq!(timeless(&found.1), timeless(&expected.1), "{what}");
    assert!(found.0.mean == expected.0.mean, "{what}");
    assert!(found.0.weights == expected.0.weights, "{what}");
    // Hosts add up their parts, so rounding differs; plain FAB over losses loses mass on one host and on many.
    let defects = [found.0.tracking_defect, expected.0.tracking_defect];
    assert!((defects[0] - defects[1]).abs() < 1e-5, "{what}: {defects:?}");
}

/// The words of a checkpoint, without the time in its header and the checksum that it changes.
fn words(folder: &Path) -> Vec<u8> {
    let bytes = std::fs::read(folder.join("checkpoint.safetensors")).unwrap();
    let header = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    bytes[8 + header..bytes.len() - 4].to_vec()
}

#[test]
fn a_swarm_on_several_hosts_computes_the_bits_of_one_process() {
    let worst = with_ledger(faults().pop().unwrap().1);
    let forgets = with_ledger(vec![("faults.crashes", "2@8+6 forgets".into())]);
    let lossy = vec![("faults.iid_loss", 0.3.into())];
    let momentum = vec![("algorithm.momentum", 0.5.into())];
    let seldom = vec![("network.blocks", 2.into()), ("network.exchange_every", 3.into())];
    for (method, changes) in [
        ("cleaning", vec![]),
        ("cleaning", lossy),
        ("cleaning", with_ledger(momentum.clone())),
        ("cleaning", worst.clone()),
        ("tuning", momentum),
        ("tuning", worst.clone()),
        ("cleaning", forgets),
        ("single-level-all", vec![]),
        ("single-level-all", vec![("training.rule", "push-sgd".into())]),
        ("single-level-clean", vec![("training.rule", "push-diging".into())]),
        ("single-level-noisy", vec![("training.rule", "push-saga".into())]),
        ("single-level-all", vec![("training.rule", "push-asgd".into()), ("algorithm.momentum", 0.2.into())]),
        ("cleaning", seldom.clone()),
        ("cleaning", sharper(vec![])),
        ("tuning", sharper(vec![("algorithm.momentum", 0.5.into())])),
        ("cleaning", sharper(worst.clone())),
        ("tuning", sharper(worst.clone())),
        ("tuning", [seldom, worst.clone()].concat()),
    ] {
        let own = [("training.method", method.into()), ("algorithm.eta_x", 0.01.into())];
        let resolved = scenario(&[&own[..], &changes].concat());
        let whole = tempfile::tempdir().unwrap();
        let expected = train(&resolved, whole.path(), false).unwrap();
        for sizes in [&[2, 2][..], &[1, 2, 1], &[0, 3, 1]] {
            let folder = tempfile::tempdir().unwrap();
            let what = format!("{method} {changes:?} on {sizes:?}");
            assert_same(&train_on(sizes, &resolved, folder.path(), false), &expected, &what);
            assert!(words(folder.path()) == words(whole.path()), "{what}: another checkpoint");
        }
    }
}

#[test]
fn a_run_goes_on_with_another_number_of_hosts() {
    let of = |epochs: i64| {
        let epochs = ("training.epochs", epochs.into());
        scenario(&[vec![epochs], with_ledger(faults().pop().unwrap().1)].concat())
    };
    let (whole, parts) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let expected = train(&of(3), whole.path(), false).unwrap();
    train_on(&[3, 1], &of(1), parts.path(), false);
    train_on(&[1, 1, 2], &of(2), parts.path(), true);
    let (resumed, _) = train(&of(3), parts.path(), true).unwrap();
    assert!(resumed.mean == expected.0.mean && resumed.weights == expected.0.weights);
    assert!(words(parts.path()) == words(whole.path()));
}
