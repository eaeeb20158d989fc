//! Hosts of this process that are killed and stalled while the others go on, by seed.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicUsize;
use std::time::Instant;

use fabswarm_large::fab::{StatePart, VectorPart};
use fabswarm_shared::rng::{Purpose, Stream};
use fabswarm_sim::air::LinkSource;

use super::both_ends::BothEnds;
use super::*;
use crate::cluster::LossEvent;

/// An epoch is a round, so that all hosts are looked at after each.
fn small() -> TrainingCase {
    let more = "batch = 200\nepochs = 10\ncheckpoint_every = 2\n[algorithm]\nkind = \"ledger\"\n[faults]\niid_loss = 0.2\ndelay_rounds = 2\n";
    TrainingCase::tiny(5, 12, more)
}

const HOSTS: usize = 4;
/// Hosts that are away at once at most, so that the others can go on.
const MOST_AWAY: usize = 2;
const SCHEDULES: u64 = 200;
/// Schedules that are gone through side by side: they mostly wait.
const AT_ONCE: u64 = 20;
/// Long enough that a machine which is busy with other tests loses no host by itself.
const PATIENCE: Duration = Duration::from_secs(5);
const RATE: f64 = 0.02;

static LOST: AtomicUsize = AtomicUsize::new(0);
static BACK: AtomicUsize = AtomicUsize::new(0);
static REMEMBERED: AtomicUsize = AtomicUsize::new(0);
static COMPARED: AtomicUsize = AtomicUsize::new(0);
static UNPROVED: AtomicUsize = AtomicUsize::new(0);

fn count(event: &LossEvent) {
    match event {
        LossEvent::Lost { .. } => LOST.fetch_add(1, Ordering::Relaxed),
        LossEvent::Back { has_memory, .. } => {
            REMEMBERED.fetch_add(usize::from(*has_memory), Ordering::Relaxed);
            BACK.fetch_add(1, Ordering::Relaxed)
        }
    };
}

/// Words of a part of a host's y and z; nothing where it is lost, or is lost with that.
fn read_part(swarm: &ClusterSwarm, host: usize, part: VectorPart, words: usize) -> Option<Vec<f32>> {
    if swarm.is_lost(host) {
        return None;
    }
    let read = swarm.read(host, StatePart::Lower(part), 0, words);
    read.map_err(|error| assert!(swarm.lose(host, &error), "{error}")).ok()
}

fn both_ends(case: &TrainingCase, blocks: &[Block], rounds: u32) -> BothEnds {
    let plan = case.plan(blocks[0]);
    let trainer = plan.start_block(0, blocks.to_vec(), true).unwrap();
    let audiences = LinkSource::new(&case.resolved.scenario).unwrap().audiences(rounds);
    BothEnds::new(&trainer, blocks, audiences)
}

/// Checks the books of all hosts after every round, and then does to one of them what the seed says.
struct FaultSchedule<'h> {
    hosts: &'h FakeHosts,
    swarm: ClusterSwarm,
    draws: Stream,
    away: BTreeSet<usize>,
    rounds: u32,
    ends: BothEnds,
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
        let compared = self.ends.compare(&|host, part, words| read_part(&self.swarm, host, part, words));
        compared.unwrap_or_else(|what| panic!("after round {}: {what}", evaluation.round));
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
    let case = small();
    let hosts = case.hosts(HOSTS, seed, RATE);
    let policy = LossPolicy { outlives: true, patience: PATIENCE, observe: count };
    let swarm = case.start(hosts.cluster(BUILD), policy).unwrap();
    let plan = case.plan(Block::NONE);
    let mut trainer = plan.watch(Box::new(swarm.clone()), None).unwrap();
    let kept = RunFolder::at(&case.folder.path().join("run")).unwrap();
    trainer.keep(&kept).unwrap();
    let draws = Stream::new(seed, 99, 0, Purpose::Air);
    let ends = both_ends(&case, swarm.blocks(), trainer.rounds());
    let mut schedule = FaultSchedule { hosts: &hosts, swarm, draws, away: BTreeSet::new(), rounds: 0, ends };
    let outcome = trainer
        .run(&kept, &mut schedule, &case.interrupted)
        .unwrap_or_else(|error| panic!("schedule {seed}: {error}"));
    assert_eq!(schedule.rounds, trainer.rounds());
    assert!(outcome.tracking_defect < 1e-5, "schedule {seed}: {}", outcome.tracking_defect);
    COMPARED.fetch_add(schedule.ends.compared, Ordering::Relaxed);
    UNPROVED.fetch_add(schedule.ends.unproved, Ordering::Relaxed);
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
    let [compared, unproved] = [&COMPARED, &UNPROVED].map(|count| count.load(Ordering::Relaxed));
    println!("{compared} links compared at both ends, {unproved} of them not proved");
    assert!(compared > 100 * SCHEDULES as usize && unproved < compared / 100);
}

/// Changes the state of a host as if it had taken more over a link: its own books balance.
fn take_more(swarm: &ClusterSwarm, host: usize, vector: usize, link: usize, taken: &[f64], more: &[f64]) {
    let words = taken.len();
    let mut t = swarm.read(host, StatePart::Lower(VectorPart::Trackers), vector * words, words).unwrap();
    let more: Vec<f32> = more.iter().map(|&word| word as f32).collect();
    t.iter_mut().zip(&more).for_each(|(t, more)| *t += more);
    swarm.write(host, StatePart::Lower(VectorPart::Trackers), vector * words, &t).unwrap();
    let sums = taken.iter().zip(&more).map(|(taken, &more)| taken + f64::from(more));
    let (whole, rest): (Vec<f32>, Vec<f32>) =
        sums.map(|sum| (sum as f32, (sum - f64::from(sum as f32)) as f32)).unzip();
    swarm
        .write(host, StatePart::Lower(VectorPart::Taken), 2 * link * words, &[whole, rest].concat())
        .unwrap();
}

/// Mass that is taken twice, or from another sender, balances on every host; comparing both ends reveals it.
#[test]
fn mass_that_no_sender_set_aside_is_noticed() {
    let case = small();
    for wrong in ["nothing", "doubled", "from another sender"] {
        let hosts = case.hosts(HOSTS, 3, 0.0);
        let policy = LossPolicy { outlives: true, patience: PATIENCE, observe: count };
        let swarm = case.start(hosts.cluster(BUILD), policy).unwrap();
        let mut ends = both_ends(&case, swarm.blocks(), 10);
        let read = |host: usize, part: VectorPart, words: usize| read_part(&swarm, host, part, words);
        for round in 1..=5 {
            swarm.permit(round).unwrap();
            swarm.wait_for(round).unwrap();
            ends.compare(&read).unwrap();
        }
        let has_taken = |receiver: usize, sender: usize| {
            let host = ends.host_of(receiver);
            host != ends.host_of(sender)
                && ends.taken(host, ends.link(receiver, sender)).iter().any(|&word| word != 0.0)
        };
        let heard = |receiver: usize| (0..5).filter(move |&sender| has_taken(receiver, sender));
        let two = |receiver: usize| Some((receiver, heard(receiver).next()?, heard(receiver).nth(1)?));
        let (receiver, sender, other) = (0..5).find_map(two).expect("an agent hears two other hosts");
        let (host, link) = (ends.host_of(receiver), ends.link(receiver, sender));
        let taken = ends.taken(host, link).to_vec();
        let others = ends.sum(ends.host_of(other), other).to_vec();
        let more: Vec<f64> = match wrong {
            "nothing" => vec![0.0; taken.len()],
            "from another sender" => others.iter().zip(&taken).map(|(other, taken)| other - taken).collect(),
            _ => taken.clone(),
        };
        take_more(&swarm, host, receiver, link, &taken, &more);
        let defect = swarm.imbalances().unwrap()[0].defect();
        assert!(defect < 1e-5, "{wrong}: a host notices it by itself, {defect}");
        match (wrong, ends.compare(&read)) {
            ("nothing", found) => found.unwrap(),
            (_, Err(what)) => assert!(what.contains(&format!("from agent {sender} of host")), "{what}"),
            (_, Ok(())) => panic!("{wrong}: it is not noticed"),
        }
    }
}
