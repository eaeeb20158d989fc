//! Hosts of this process that are killed and stalled while the others go on, by seed.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicUsize;
use std::time::Instant;

use fabswarm_large::device::Block;
use fabswarm_large::training::{Evaluation, TrainingObserver, TrainingRound};
use fabswarm_shared::rng::{Purpose, Stream};
use fabswarm_sim::record::{self, RunFolder};

use super::*;
use crate::cluster::HostNews;

/// Small models, and an epoch is a round, so that all hosts are looked at after each.
fn small(table: &Path) -> ResolvedScenario {
    let table = table.display();
    scenario_of(&format!(
        "version = 1\n[swarm]\nagents = 5\n[training]\ndata = \"{table}\"\nmodel = \"softmax\"\nbatch = 200\nepochs = 10\ncheckpoint_every = 2\n[algorithm]\nkind = \"ledger\"\n[faults]\niid_loss = 0.2\ndelay_rounds = 2\n"
    ))
}

/// Three classes around three corners, twelve samples of each of five agents and fifteen to test.
fn table() -> String {
    let row = |number: u32| {
        let (class, agent, split) = (number % 3, number % 5, if number < 60 { "train" } else { "test" });
        let [x, y] = [class % 2 * 60 + number * 7 % 11, class / 2 * 60 + number * 5 % 13]
            .map(|at| f64::from(at) / 20.0);
        format!("{agent},{x},{y},{class},{},{split}\n", u8::from(number.is_multiple_of(4)))
    };
    "agent,x,y,label,validation,split\n".to_owned() + &(0..75).map(row).collect::<String>()
}

const HOSTS: usize = 4;
/// Hosts that are away at once at most, so that the others can go on.
const MOST_AWAY: usize = 2;
const SCHEDULES: u64 = 200;
/// Schedules that are gone through side by side: they mostly wait.
const AT_ONCE: u64 = 20;
/// Long enough that a machine which is busy with other tests loses no host by itself.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often each fault of a line happens.
const RATE: f64 = 0.02;

static LOST: AtomicUsize = AtomicUsize::new(0);
static BACK: AtomicUsize = AtomicUsize::new(0);
static REMEMBERED: AtomicUsize = AtomicUsize::new(0);

fn count(news: &HostNews) {
    match news {
        HostNews::Lost { .. } => LOST.fetch_add(1, Ordering::Relaxed),
        HostNews::Back { has_memory, .. } => {
            REMEMBERED.fetch_add(usize::from(*has_memory), Ordering::Relaxed);
            BACK.fetch_add(1, Ordering::Relaxed)
        }
    };
}

/// Checks the books of all hosts after every round, and then does to one of them what the seed says.
struct FaultSchedule<'h> {
    hosts: &'h HostsHere,
    swarm: ClusterSwarm,
    draws: Stream,
    away: BTreeSet<usize>,
    rounds: u32,
}

impl FaultSchedule<'_> {
    /// Lets all hosts go on, and waits a while until those that are lost could come back.
    fn bring_all_back(&mut self) {
        self.hosts.wake();
        self.away.clear();
        let begun = Instant::now();
        let is_missing = |host: &usize| self.swarm.is_lost(*host) && !self.swarm.returning().contains(host);
        while (0..HOSTS).any(|host| is_missing(&host)) && begun.elapsed() < 2 * PATIENCE {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl TrainingObserver for FaultSchedule<'_> {
    fn round(&mut self, _: TrainingRound<'_>) {}

    fn evaluated(&mut self, evaluation: &Evaluation) -> Result<(), record::Error> {
        self.rounds = evaluation.round;
        let defect = self.swarm.imbalances().unwrap()[0].defect();
        assert!(defect < 1e-5, "the books are off by {defect} after round {}", evaluation.round);
        let (deed, host) = (self.draws.below(6), self.draws.below(HOSTS as u32) as usize);
        let is_spared = self.away.len() == MOST_AWAY || self.away.contains(&host);
        match deed {
            0 if !is_spared => {
                self.hosts.kill(host, self.swarm.0.name());
                self.away.insert(host);
            }
            1 if !is_spared => {
                self.hosts.stall(host);
                self.away.insert(host);
            }
            2 | 3 if !self.away.is_empty() => self.bring_all_back(),
            _ => {}
        }
        Ok(())
    }
}

fn go_through(seed: u64) {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("table.csv");
    std::fs::write(&data, table()).unwrap();
    let resolved = small(&data);
    let prepared = TrainingSetup::new(&Cache::at(folder.path()), &resolved.scenario).unwrap();
    let hosts = HostsHere::start(HOSTS, seed, RATE, folder.path());
    let interrupted = Arc::new(AtomicBool::new(false));
    let policy = LossPolicy { outlives: true, patience: PATIENCE, news: count };
    let (kind, text) = (training(&prepared), resolved.to_repeatable_toml());
    let run = hosts.cluster(BUILD).start(&kind, &text, 5, &interrupted, policy).unwrap();
    let swarm = ClusterSwarm(Arc::new(run));
    let plan = TrainingPlan::of_block(Cpu::<f32>::new(), &prepared, &resolved, Block::NONE).unwrap();
    let mut trainer = plan.watch(Box::new(swarm.clone()), None).unwrap();
    let kept = RunFolder::at(&folder.path().join("run")).unwrap();
    trainer.keep(&kept).unwrap();
    let draws = Stream::new(seed, 99, 0, Purpose::Air);
    let mut schedule = FaultSchedule { hosts: &hosts, swarm, draws, away: BTreeSet::new(), rounds: 0 };
    let outcome = trainer
        .run(&kept, &mut schedule, &interrupted)
        .unwrap_or_else(|error| panic!("schedule {seed}: {error}"));
    assert_eq!(schedule.rounds, trainer.rounds());
    assert!(outcome.tracking_defect < 1e-5, "schedule {seed}: {}", outcome.tracking_defect);
    hosts.wake();
}

#[test]
fn whatever_happens_to_hosts_the_others_go_on_and_the_books_balance() {
    std::thread::scope(|scope| {
        for first in 0..AT_ONCE {
            scope.spawn(move || (first..SCHEDULES).step_by(AT_ONCE as usize).for_each(go_through));
        }
    });
    let [lost, back, remembered] = [&LOST, &BACK, &REMEMBERED].map(|count| count.load(Ordering::Relaxed));
    println!("{lost} losses, {back} returns, {remembered} of them with memory");
    assert!(lost > SCHEDULES as usize / 2 && back > SCHEDULES as usize / 4);
    assert!(remembered > 0 && remembered < back);
}
