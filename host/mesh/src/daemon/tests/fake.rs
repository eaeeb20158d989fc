//! Hosts of this process, on lines that lose, repeat, reorder and delay what passes them, by seed.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::mpsc;

use fabswarm_shared::rng::{Purpose, Stream};

use super::super::*;
use crate::cluster::Cluster;
use crate::hosts_file::Host;
use crate::line::{HostLine, HostPeer, TakeAnswer};

/// A way to a host of this process that loses, repeats, reorders and delays what passes it, by seed.
#[derive(Debug)]
struct FaultyLine {
    to: Arc<HostDaemon>,
    draws: Mutex<Stream>,
    /// How often each of these happens.
    rate: f64,
}

#[derive(Debug)]
pub(crate) struct ReplyChannel(pub(crate) mpsc::Sender<HostMessage>);

impl Replies for ReplyChannel {
    fn reply(&self, answer: HostMessage) {
        // The requester may have stopped waiting.
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

    fn ask_once(&self, question: &HostMessage) -> mpsc::Receiver<HostMessage> {
        let (sender, receiver) = mpsc::channel();
        self.to.answer(question, Box::new(ReplyChannel(sender)));
        receiver
    }
}

impl HostLine for FaultyLine {
    fn ask(&self, question: HostMessage, _: Duration, take: &mut TakeAnswer<'_>) {
        if self.happens() {
            return;
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
            let (answer, is_last) = match answers.recv_timeout(waits) {
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
            let times = 1 + usize::from(self.happens());
            let (front, back) = answer.body.split_at(self.below(answer.body.len() + 1));
            if (0..times).any(|_| !take(&answer.head, &[front, back])) {
                return;
            }
        }
    }
}

pub(crate) const BUILD: &str = "test";

/// Hosts of this process, until they are dropped.
pub(crate) struct FakeHosts {
    states: Vec<Arc<HostDaemon>>,
    pub(crate) interrupted: Arc<AtomicBool>,
    threads: Vec<std::thread::JoinHandle<()>>,
    seed: u64,
    rate: f64,
}

impl FakeHosts {
    pub(crate) fn start(count: usize, seed: u64, rate: f64, cache: &Path) -> Self {
        let name = |number| format!("h{number}");
        let states: Vec<Arc<HostDaemon>> = (0..count)
            .map(|number| Arc::new(HostDaemon::new(name(number), BUILD.to_owned(), HostDevice::Cpu)))
            .collect();
        let interrupted = Arc::new(AtomicBool::new(false));
        let mut hosts = FakeHosts { states, interrupted, threads: Vec::new(), seed, rate };
        for number in 0..count {
            let (state, interrupted) = (Arc::clone(&hosts.states[number]), Arc::clone(&hosts.interrupted));
            let (states, cache) = (hosts.states.clone(), Cache::at(cache));
            hosts.threads.push(std::thread::spawn(move || {
                let dial = |_: &RunPlan, to: usize| Ok(peer(&states, [number, to], seed, rate));
                state.take_part(&cache, &dial, &interrupted, &mut |_| {});
            }));
        }
        hosts
    }

    pub(crate) fn cluster(&self, build: &str) -> Cluster {
        self.cluster_at(build, |_| String::new())
    }

    /// Hosts that know each other's addresses, which nobody listens at.
    pub(crate) fn cluster_at(&self, build: &str, address: impl Fn(usize) -> String) -> Cluster {
        let host =
            |number: usize| Host { name: format!("h{number}"), address: address(number), agents: None };
        let all = 0..self.states.len();
        let peer = |to: usize| peer(&self.states, [all.end, to], self.seed, self.rate);
        Cluster::of(all.clone().map(host).collect(), all.clone().map(peer).collect(), build.to_owned())
    }
}

impl Drop for FakeHosts {
    fn drop(&mut self) {
        self.interrupted.store(true, Ordering::Relaxed);
        // A host that is not told that its run is over would wait for the starter.
        for host in 0..self.states.len() {
            let run = self.states[host].run().as_ref().map(|run| run.plan.run.clone());
            let (sender, _receiver) = mpsc::channel();
            let end = run.map(|run| pack(&(run, Request::End)));
            end.iter().for_each(|end| {
                self.states[host].answer(end, Box::new(ReplyChannel(sender.clone())));
            });
        }
        self.states.iter().for_each(|state| state.changed.notify_all());
        for thread in self.threads.drain(..) {
            assert!(thread.join().is_ok() || std::thread::panicking());
        }
    }
}

fn peer(states: &[Arc<HostDaemon>], ends: [usize; 2], seed: u64, rate: f64) -> HostPeer {
    let [from, to] = ends;
    let draws = Mutex::new(Stream::new(seed, (from * 64 + to) as u32, 0, Purpose::Air));
    let line = FaultyLine { to: Arc::clone(&states[to]), draws, rate };
    HostPeer::new(format!("h{to}"), Box::new(line))
}
