use std::collections::VecDeque;
use std::path::Path;
use std::sync::mpsc;

use fabswarm_large::fab::RemoteHosts as _;
use fabswarm_large::training::{TrainingPlan, TrainingSetup};
use fabswarm_shared::rng::{Purpose, Stream};
use fabswarm_sim::scenario::{ResolvedScenario, ScenarioCommand, resolve_text_for};

use super::*;
use crate::cluster::{Cluster, ClusterSwarm, LossPolicy};
use crate::hosts_file::Host;
use crate::line::HostLine;

/// A way to a host of this process that loses, repeats, damages, reorders and delays what passes it, by seed.
#[derive(Debug)]
struct FaultyLine {
    to: Arc<HostState>,
    draws: Mutex<Stream>,
    /// How often each of these happens.
    rate: f64,
}

struct ReplyChannel(mpsc::Sender<Vec<u8>>);

impl Replies for ReplyChannel {
    fn reply(&self, answer: Vec<u8>) {
        // Nobody waits for it any more.
        let _ = self.0.send(answer);
    }
}

impl FaultyLine {
    fn happens(&self) -> bool {
        self.draws.lock().unwrap().uniform_f64() < self.rate
    }

    fn below(&self, count: usize) -> usize {
        self.draws.lock().unwrap().below(count as u32) as usize
    }

    fn ask_once(&self, question: &[u8]) -> mpsc::Receiver<Vec<u8>> {
        let (sender, receiver) = mpsc::channel();
        self.to.answer(question, Box::new(ReplyChannel(sender)));
        receiver
    }
}

impl HostLine for FaultyLine {
    fn ask(&self, mut question: Vec<u8>, _: Duration, take: &mut dyn FnMut(&[u8]) -> bool) {
        if self.happens() {
            return;
        }
        if self.happens() {
            let at = self.below(question.len());
            question[at] ^= 1;
        }
        if self.happens() {
            drop(self.ask_once(&question));
        }
        let answers = self.ask_once(&question);
        if self.happens() {
            std::thread::sleep(Duration::from_millis(3));
        }
        // A stalled host, and a link that breaks between two answers: what comes later is not heard.
        let (mut late, mut waits) = (VecDeque::new(), Duration::from_millis(500));
        loop {
            let (mut answer, is_last) = match answers.recv_timeout(waits) {
                Ok(answer) => (answer, false),
                Err(_) => match late.pop_front() {
                    Some(answer) => (answer, true),
                    None => return,
                },
            };
            waits = Duration::from_millis(5);
            if self.happens() {
                continue;
            }
            if self.happens() && !is_last {
                late.push_back(answer);
                continue;
            }
            if self.happens() {
                let at = self.below(answer.len());
                answer[at] ^= 1;
            }
            let times = 1 + usize::from(self.happens());
            if (0..times).any(|_| !take(&answer)) {
                return;
            }
        }
    }
}

const BUILD: &str = "test";

/// Hosts of this process, until they are dropped.
struct HostsHere {
    states: Vec<Arc<HostState>>,
    interrupted: Arc<AtomicBool>,
    threads: Vec<std::thread::JoinHandle<()>>,
    seed: u64,
    rate: f64,
}

impl HostsHere {
    fn start(count: usize, seed: u64, rate: f64, cache: &Path) -> Self {
        let name = |number| format!("h{number}");
        let states: Vec<Arc<HostState>> =
            (0..count).map(|number| Arc::new(HostState::new(name(number), BUILD.to_owned()))).collect();
        let interrupted = Arc::new(AtomicBool::new(false));
        let mut hosts = HostsHere { states, interrupted, threads: Vec::new(), seed, rate };
        for number in 0..count {
            let (state, interrupted) = (Arc::clone(&hosts.states[number]), Arc::clone(&hosts.interrupted));
            let (states, cache) = (hosts.states.clone(), Cache::at(cache));
            hosts.threads.push(std::thread::spawn(move || {
                let dial = |_: &RunOrder, to: usize| Ok(peer(&states, number + 1, to, seed, rate));
                state.take_part(&cache, &dial, &interrupted, &mut |_| {});
            }));
        }
        hosts
    }

    fn cluster(&self, build: &str) -> Cluster {
        let host = |number: usize| Host { name: format!("h{number}"), address: String::new(), agents: None };
        let peer = |to: usize| peer(&self.states, 0, to, self.seed, self.rate);
        let all = 0..self.states.len();
        Cluster::of(all.clone().map(host).collect(), all.map(peer).collect(), build.to_owned())
    }
}

impl Drop for HostsHere {
    fn drop(&mut self) {
        self.interrupted.store(true, Ordering::Relaxed);
        self.states.iter().for_each(|state| state.changed.notify_all());
        for thread in self.threads.drain(..) {
            assert!(thread.join().is_ok() || std::thread::panicking());
        }
    }
}

fn peer(states: &[Arc<HostState>], from: usize, to: usize, seed: u64, rate: f64) -> Peer {
    let draws = Stream::new(seed, (from * 64 + to) as u32, 0, Purpose::Air);
    let line = FaultyLine { to: Arc::clone(&states[to]), draws: Mutex::new(draws), rate };
    Peer::new(format!("h{to}"), Box::new(line))
}

fn scenario(more: &str) -> ResolvedScenario {
    let text = format!(
        "version = 1\n[swarm]\nagents = 4\n[training]\ndata = \"sample\"\nmodel = \"softmax\"\nbatch = 30\ntrain_samples = 200\ntest_samples = 20\nepochs = 3\n{more}"
    );
    resolve_text_for(ScenarioCommand::Train, Some((Path::new("test.toml"), &text)), &[]).unwrap()
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
        .start(&resolved.to_repeatable_toml(), prepared.digest(), 4, &interrupted, LossPolicy::default())
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

#[test]
fn hosts_refuse_other_builds_other_data_and_a_second_run() {
    let folder = tempfile::tempdir().unwrap();
    let resolved = scenario("");
    let prepared = TrainingSetup::new(&Cache::at(folder.path()), &resolved.scenario).unwrap();
    let hosts = HostsHere::start(2, 1, 0.0, folder.path());
    let interrupted = Arc::new(AtomicBool::new(false));
    let start = |build: &str, digest: String| {
        hosts.cluster(build).start(
            &resolved.to_repeatable_toml(),
            digest,
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
