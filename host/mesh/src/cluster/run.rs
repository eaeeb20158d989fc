//! A run on several hosts, as seen by the process that started it.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fabswarm_large::device::{self, Block};
use fabswarm_large::fab::Imbalance;

use super::heartbeat::{Heartbeat, RunPeers, SignOfLife};
use super::losses::{LossEvent, LossPolicy, LostHosts};
use super::{status, unexpected};
use crate::Error;
use crate::line::HostPeer;
use crate::message::{HostTraffic, Request, Response, RunPlan};

/// How often a host is told that its run is over, and how long each attempt waits for a response.
const END_TRIES: usize = 5;
const END_TIMEOUT: Duration = Duration::from_secs(1);
/// Pause before a leaving host, which responds early, is asked again.
const PAUSE: Duration = Duration::from_millis(20);

/// A run on several hosts.
#[derive(Debug)]
pub struct ClusterRun {
    pub(super) shared: Arc<RunPeers>,
    pub(crate) blocks: Vec<Block>,
    plans: Vec<RunPlan>,
    /// The number of the last command.
    command_seq: AtomicU64,
    /// The last round that all hosts are known to have done.
    pub(super) round: AtomicU64,
    interrupted: Arc<AtomicBool>,
    heartbeat: Option<Heartbeat>,
    pub(super) policy: LossPolicy,
    /// A loss before the first round is an error.
    has_begun: AtomicBool,
    pub(super) losses: LostHosts,
    /// For each host the last command that admitted it: other hosts' suspicions count from there on.
    pub(super) admissions: Vec<AtomicU64>,
    /// For each host how many rounds it was lost for.
    pub(super) silent_rounds: Vec<AtomicU32>,
    /// Why the last request to a host failed.
    failure: Mutex<Option<String>>,
    /// The imbalances of each host at the last checkpoint that holds its state.
    pub(super) checkpointed_imbalances: Mutex<Vec<Option<Vec<Imbalance>>>>,
}

impl ClusterRun {
    /// Starts a run with a plan for each host.
    pub(super) fn begin(
        plans: Vec<RunPlan>,
        peers: Vec<HostPeer>,
        policy: LossPolicy,
        interrupted: &Arc<AtomicBool>,
    ) -> Result<Self, Error> {
        let run = plans.first().map(|plan| plan.run.clone()).unwrap_or_default();
        let shared = Arc::new(RunPeers::new(run, peers));
        let cluster = ClusterRun {
            heartbeat: Some(Heartbeat::start(&shared, policy.patience)),
            blocks: plans.iter().enumerate().map(|(host, plan)| plan.hosts[host].block).collect(),
            command_seq: AtomicU64::new(0),
            round: AtomicU64::new(0),
            interrupted: Arc::clone(interrupted),
            policy,
            has_begun: AtomicBool::new(false),
            losses: LostHosts::default(),
            admissions: plans.iter().map(|_| AtomicU64::new(0)).collect(),
            silent_rounds: plans.iter().map(|_| AtomicU32::new(0)).collect(),
            failure: Mutex::default(),
            checkpointed_imbalances: Mutex::new(vec![None; plans.len()]),
            shared,
            plans,
        };
        for (host, plan) in cluster.plans.iter().enumerate() {
            cluster.ask(host, &Request::Begin(Box::new(plan.clone())), &[])?;
        }
        cluster.wait_for_all(0)?;
        cluster.has_begun.store(true, Ordering::Relaxed);
        Ok(cluster)
    }

    /// Asks a host. Another host that is lost meanwhile does not hold it up.
    pub(crate) fn ask(
        &self,
        host: usize,
        request: &Request,
        body: &[u8],
    ) -> Result<(Response, Vec<u8>), Error> {
        self.ask_or_lose(host, request, body).inspect_err(|error| {
            *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.to_string());
        })
    }

    /// Why a host failed, if one did.
    pub fn failure(&self) -> Option<String> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn ask_or_lose(&self, host: usize, request: &Request, body: &[u8]) -> Result<(Response, Vec<u8>), Error> {
        let peer = &self.shared.peers[host];
        loop {
            match peer.ask(&self.shared.run, request, body, &|| self.suspect().is_some()) {
                Err(Error::Over) => {}
                answer => return answer,
            }
            if let Some((suspect, what)) = self.suspect() {
                let gone = Error::gone(self.host_name(suspect), what);
                if !self.lose(suspect, &gone) || suspect == host {
                    return Err(gone);
                }
            }
        }
    }

    /// A host that seems to be lost, and why.
    fn suspect(&self) -> Option<(usize, String)> {
        if !self.policy.outlives || !self.has_begun.load(Ordering::Relaxed) {
            return None;
        }
        let present = self.present();
        let signs: Vec<_> = present.iter().map(|&host| (host, self.shared.sign(host))).collect();
        let is_still = |&(_, sign): &&(usize, SignOfLife)| sign.at.elapsed() >= self.policy.patience;
        if let Some(&(host, _)) = signs.iter().find(is_still) {
            return Some((host, format!("it has said nothing for {} s", self.policy.patience.as_secs_f32())));
        }
        let since = |host: usize| self.admissions[host].load(Ordering::Relaxed);
        signs.iter().find_map(|(other, sign)| {
            let is_missed = |host: &&usize| present.contains(*host) && sign.seq >= since(**host);
            let host = *sign.suspected.iter().find(is_missed)?;
            Some((host, format!("host {} does not hear it", self.host_name(*other))))
        })
    }

    /// The name of this run, which no other has.
    pub fn name(&self) -> &str {
        &self.shared.run
    }

    pub(crate) fn host_name(&self, host: usize) -> &str {
        &self.shared.peers[host].name
    }

    pub(crate) fn unexpected(&self, host: usize, response: &Response) -> Error {
        unexpected(&self.shared.peers[host], response)
    }

    /// Ends the run in an orderly way, as the user of a host asked.
    pub(crate) fn interrupt(&self) {
        self.interrupted.store(true, Ordering::Relaxed);
    }

    /// The last round that all hosts have done.
    pub fn round(&self) -> u32 {
        self.round.load(Ordering::Relaxed) as u32
    }

    pub(super) fn next_seq(&self) -> u64 {
        self.command_seq.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub(crate) fn hosts(&self) -> std::ops::Range<usize> {
        0..self.shared.peers.len()
    }

    /// The hosts that are not lost.
    pub(super) fn present(&self) -> Vec<usize> {
        self.hosts().filter(|&host| !self.losses.has(host)).collect()
    }

    /// Notes that a host failed, and tells the others to go on without it; returns whether they do.
    pub(super) fn lose(&self, host: usize, why: &dyn ToString) -> bool {
        let is_last = self.present().iter().all(|&other| other == host);
        if !self.policy.outlives || !self.has_begun.load(Ordering::Relaxed) || is_last {
            return false;
        }
        let round = self.round();
        if self.losses.add(host, round) {
            let name = self.host_name(host).to_owned();
            (self.policy.observe)(&LossEvent::Lost { host: name, round, why: why.to_string() });
            self.present().into_iter().all(|other| self.exclude(other, host).is_ok())
        } else {
            true
        }
    }

    /// Tells a host to go on without another one.
    pub(super) fn exclude(&self, host: usize, without: usize) -> Result<(), Error> {
        let exclusion = |seq| Request::ExcludeHost { seq, host: without };
        self.command(host, exclusion).map(drop)
    }

    /// Sends a command to a host that is not lost. A host ignores commands older than its last, so a command gets a new number where
    /// a loss has led to others meanwhile.
    pub(super) fn command(
        &self,
        host: usize,
        request: impl Fn(u64) -> Request,
    ) -> Result<Option<Response>, Error> {
        loop {
            let seq = self.next_seq();
            let answer = self.tell(host, &request(seq))?;
            if answer.is_none() || self.command_seq.load(Ordering::Relaxed) == seq {
                return Ok(answer);
            }
        }
    }

    /// Asks a host that is not lost; `None` where it is lost with that.
    fn tell(&self, host: usize, request: &Request) -> Result<Option<Response>, Error> {
        if self.losses.has(host) {
            return Ok(None);
        }
        match self.ask(host, request, &[]) {
            Ok((answer, _)) => Ok(Some(answer)),
            Err(error) if self.lose(host, &error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(super) fn wait_for_all(&self, round: u32) -> Result<(), Error> {
        for host in self.present() {
            loop {
                match self.tell(host, &Request::Reached { round })? {
                    None => break,
                    Some(Response::Reached { round: reached, is_leaving }) => {
                        if is_leaving {
                            self.interrupt();
                        }
                        if reached >= round {
                            break;
                        }
                        std::thread::sleep(PAUSE);
                    }
                    Some(other) => return Err(self.unexpected(host, &other)),
                }
            }
        }
        self.round.store(round.into(), Ordering::Relaxed);
        Ok(())
    }

    /// Brings a host to the present round. Returns whether it still had its state.
    pub(super) fn bring_back(
        &self,
        host: usize,
        restore: &mut dyn FnMut() -> device::Result<()>,
    ) -> Result<bool, device::Error> {
        let (peer, run, round) = (&self.shared.peers[host], self.name(), self.round());
        let has_memory = status(peer)?.run.is_some_and(|there| there.run == run);
        if !has_memory {
            self.ask(host, &Request::Begin(Box::new(self.plans[host].clone())), &[])?;
            self.ask(host, &Request::Reached { round: 0 }, &[])?;
            self.ask(host, &Request::SetRounds { round }, &[])?;
            restore()?;
        }
        let excluded = self.losses.hosts().into_iter().filter(|&other| other != host).collect();
        let rejoin = Request::Rejoin { seq: self.next_seq(), round, excluded };
        match self.ask(host, &rejoin, &[]) {
            Ok(_) => Ok(has_memory),
            Err(error) => {
                // The next attempt begins the run anew.
                self.ask(host, &Request::End, &[])?;
                Err(error.into())
            }
        }
    }

    /// The work of each host so far. The traffic of lost hosts is not known.
    ///
    /// # Errors
    /// When a host does not answer.
    pub fn parts(&self) -> Result<Vec<HostPart>, Error> {
        let of = |host: usize| {
            let traffic = match self.tell(host, &Request::Traffic)? {
                None => HostTraffic::default(),
                Some(Response::Traffic(traffic)) => traffic,
                Some(other) => return Err(self.unexpected(host, &other)),
            };
            let name = self.host_name(host).to_owned();
            let silent_rounds = self.silent_rounds[host].load(Ordering::Relaxed);
            Ok(HostPart { name, block: self.blocks[host], traffic, silent_rounds })
        };
        self.hosts().map(of).collect()
    }
}

/// A host's part of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPart {
    pub name: String,
    pub block: Block,
    pub traffic: HostTraffic,
    /// Rounds in which the others went on without it.
    pub silent_rounds: u32,
}

/// The parts of all hosts as CSV: the `hosts.csv` of a run folder.
pub fn table(parts: &[HostPart]) -> String {
    let mut text = "host,first_agent,agents,planned_sent_bytes,sent_bytes,planned_received_bytes,received_bytes,repeated_chunks,exchange_seconds,compute_seconds,hidden_seconds,silent_rounds,received_shared_bytes\n".to_owned();
    for HostPart { name, block, traffic, silent_rounds } in parts {
        let seconds = |time_us: u64| time_us as f64 / 1e6;
        let name = name.replace('"', "\"\"");
        text += &format!(
            "\"{name}\",{},{},{},{},{},{},{},{:.3},{:.3},{:.3},{silent_rounds},{}\n",
            block.first,
            block.agents,
            traffic.planned_sent,
            traffic.sent,
            traffic.planned_received,
            traffic.received,
            traffic.repeated_chunks,
            seconds(traffic.exchange_us),
            seconds(traffic.compute_us),
            seconds(traffic.hidden_us),
            traffic.received_shared,
        );
    }
    text
}

impl Drop for ClusterRun {
    fn drop(&mut self) {
        self.heartbeat.take();
        let end = crate::message::pack(&(self.name(), Request::End));
        for (host, peer) in self.shared.peers.iter().enumerate() {
            // A host that none of these requests reaches ends the run when it misses the heartbeat.
            let mut is_told = false;
            for _ in 0..if self.losses.has(host) { 1 } else { END_TRIES } {
                peer.line.ask(end.clone(), END_TIMEOUT, &mut |_| {
                    is_told = true;
                    false
                });
                if is_told {
                    break;
                }
            }
        }
    }
}
