//! A run on several hosts, as seen by who started it.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fabswarm_large::device::{self, Block};
use fabswarm_large::fab::Imbalance;

use super::heartbeat::{Heartbeat, RunPeers, SignOfLife};
use super::losses::{HostNews, LossPolicy, Losses};
use super::{status, unexpected};
use crate::Error;
use crate::line::Peer;
use crate::message::{Answer, HostTraffic, Request, RunOrder};

/// How often a host is told that its run is over, and how long each time.
const FAREWELLS: usize = 5;
const FAREWELL: Duration = Duration::from_secs(1);
/// Pause before a host is asked again that answers early.
const PAUSE: Duration = Duration::from_millis(20);

/// A run on several hosts.
#[derive(Debug)]
pub struct ClusterRun {
    pub(super) shared: Arc<RunPeers>,
    pub(crate) blocks: Vec<Block>,
    orders: Vec<RunOrder>,
    order: AtomicU64,
    /// The last round that all hosts are known to have done.
    pub(super) round: AtomicU64,
    interrupted: Arc<AtomicBool>,
    heartbeat: Option<Heartbeat>,
    policy: LossPolicy,
    /// A loss before the first round is an error.
    has_begun: AtomicBool,
    losses: Losses,
    /// For each host the last order that let it take part: what others say of it counts from there on.
    admissions: Vec<AtomicU64>,
    /// For each host how many rounds it was lost for.
    silent_rounds: Vec<AtomicU32>,
    /// The last question that a host did not answer, and why.
    failure: Mutex<Option<String>>,
    /// The imbalances of each host at the last checkpoint it is in.
    kept: Mutex<Vec<Option<Vec<Imbalance>>>>,
}

impl ClusterRun {
    /// Starts a run with an order for each host.
    pub(super) fn begin(
        orders: Vec<RunOrder>,
        peers: Vec<Peer>,
        policy: LossPolicy,
        interrupted: &Arc<AtomicBool>,
    ) -> Result<Self, Error> {
        let run = orders.first().map(|order| order.run.clone()).unwrap_or_default();
        let shared = Arc::new(RunPeers::new(run, peers));
        let cluster = ClusterRun {
            heartbeat: Some(Heartbeat::start(&shared, policy.patience)),
            blocks: orders.iter().enumerate().map(|(host, order)| order.hosts[host].block).collect(),
            order: AtomicU64::new(0),
            round: AtomicU64::new(0),
            interrupted: Arc::clone(interrupted),
            policy,
            has_begun: AtomicBool::new(false),
            losses: Losses::default(),
            admissions: orders.iter().map(|_| AtomicU64::new(0)).collect(),
            silent_rounds: orders.iter().map(|_| AtomicU32::new(0)).collect(),
            failure: Mutex::default(),
            kept: Mutex::new(vec![None; orders.len()]),
            shared,
            orders,
        };
        for (host, order) in cluster.orders.iter().enumerate() {
            cluster.ask(host, &Request::Begin(Box::new(order.clone())), &[])?;
        }
        cluster.wait_for_all(0)?;
        cluster.has_begun.store(true, Ordering::Relaxed);
        Ok(cluster)
    }

    /// Asks a host; hosts that are lost on the way do not make it wait.
    pub(crate) fn ask(
        &self,
        host: usize,
        request: &Request,
        body: &[u8],
    ) -> Result<(Answer, Vec<u8>), Error> {
        self.ask_or_lose(host, request, body).inspect_err(|error| {
            *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.to_string());
        })
    }

    /// Why a host failed, if one did: what ended the run where it could not go on without it.
    pub fn failure(&self) -> Option<String> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn ask_or_lose(&self, host: usize, request: &Request, body: &[u8]) -> Result<(Answer, Vec<u8>), Error> {
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
        // What others say of it counts from the order on that let it take part.
        let since = |host: usize| self.admissions[host].load(Ordering::Relaxed);
        signs.iter().find_map(|(other, sign)| {
            let is_missed = |host: &&usize| present.contains(*host) && sign.order >= since(**host);
            let host = *sign.unheard.iter().find(is_missed)?;
            Some((host, format!("host {} does not hear it", self.shared.peers[*other].name)))
        })
    }

    /// What tells this run from others.
    pub fn name(&self) -> &str {
        &self.shared.run
    }

    /// What a host is called.
    pub(crate) fn host_name(&self, host: usize) -> &str {
        &self.shared.peers[host].name
    }

    /// Ends the run in order: a user wants it to.
    pub(crate) fn interrupt(&self) {
        self.interrupted.store(true, Ordering::Relaxed);
    }

    /// The last round that all hosts have done.
    pub fn round(&self) -> u32 {
        self.round.load(Ordering::Relaxed) as u32
    }

    fn next_order(&self) -> u64 {
        self.order.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// All hosts, by number.
    pub(crate) fn hosts(&self) -> std::ops::Range<usize> {
        0..self.shared.peers.len()
    }

    /// Those that are not lost.
    pub(super) fn present(&self) -> Vec<usize> {
        self.hosts().filter(|&host| !self.losses.has(host)).collect()
    }

    pub(super) fn is_lost(&self, host: usize) -> bool {
        self.losses.has(host)
    }

    pub(super) fn outlives_loss(&self) -> bool {
        self.policy.outlives
    }

    /// Notes that a host failed, and tells the others to go on without it; returns whether they do.
    pub(super) fn lose(&self, host: usize, why: &dyn ToString) -> bool {
        let is_last = self.present().iter().all(|&other| other == host);
        if !self.policy.outlives || !self.has_begun.load(Ordering::Relaxed) || is_last {
            return false;
        }
        let round = self.round();
        if self.losses.add(host, round) {
            let name = self.shared.peers[host].name.clone();
            (self.policy.news)(&HostNews::Lost { host: name, round, why: why.to_string() });
            self.present().into_iter().all(|other| self.order_silence(other, host).is_ok())
        } else {
            true
        }
    }

    /// Tells a host to go on without another one.
    fn order_silence(&self, host: usize, without: usize) -> Result<(), Error> {
        let silence = |order| Request::Silence { order, host: without };
        self.order(host, silence).map(drop)
    }

    /// Gives an order to a host that is there. Each has a number of its own, and a new one where a loss has led to other orders
    /// meanwhile: a host follows none that is older than its last.
    fn order(&self, host: usize, request: impl Fn(u64) -> Request) -> Result<Option<Answer>, Error> {
        loop {
            let order = self.next_order();
            let answer = self.tell(host, &request(order))?;
            if answer.is_none() || self.order.load(Ordering::Relaxed) == order {
                return Ok(answer);
            }
        }
    }

    /// Asks a host that is there; nothing where it is lost with that.
    fn tell(&self, host: usize, request: &Request) -> Result<Option<Answer>, Error> {
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
                    Some(Answer::Reached { round: reached, is_leaving }) => {
                        if is_leaving {
                            self.interrupt();
                        }
                        if reached >= round {
                            break;
                        }
                        // A host that is leaving answers before it is there.
                        std::thread::sleep(PAUSE);
                    }
                    Some(other) => return Err(unexpected(&self.shared.peers[host], &other)),
                }
            }
        }
        self.round.store(round.into(), Ordering::Relaxed);
        Ok(())
    }

    pub(super) fn halt_all(&self) -> Result<u32, Error> {
        let mut last = self.round();
        for host in self.present() {
            match self.order(host, |order| Request::Halt { order })? {
                None => {}
                Some(Answer::Reached { round, .. }) => last = last.max(round),
                Some(other) => return Err(unexpected(&self.shared.peers[host], &other)),
            }
        }
        self.permit_all(last)?;
        self.wait_for_all(last)?;
        Ok(last)
    }

    pub(super) fn permit_all(&self, until: u32) -> Result<(), Error> {
        for host in self.present() {
            self.order(host, |order| Request::Permit { order, until })?;
        }
        Ok(())
    }

    /// Lost hosts that have answered since.
    pub(super) fn returning(&self) -> Vec<usize> {
        let answered = |host: &usize| self.losses.may_return(*host, self.shared.sign(*host).at);
        self.losses.hosts().into_iter().filter(answered).collect()
    }

    /// Lets a lost host take part again after the present round, in which all others stand.
    pub(super) fn readmit(
        &self,
        host: usize,
        restore: &mut dyn FnMut() -> device::Result<()>,
    ) -> Result<(), Error> {
        let Ok(has_memory) = self.bring_back(host, restore) else {
            self.losses.postpone(host);
            return Ok(());
        };
        let (others, round) = (self.present(), self.round());
        self.admissions[host].store(self.next_order(), Ordering::Relaxed);
        // From here on it hears of whoever is lost, like all others.
        if let Some(since) = self.losses.remove(host) {
            self.silent_rounds[host].fetch_add(round - since, Ordering::Relaxed);
            let name = self.shared.peers[host].name.clone();
            (self.policy.news)(&HostNews::Back { host: name, round, has_memory });
        }
        for lost in self.losses.hosts() {
            self.order_silence(host, lost)?;
        }
        for other in others {
            self.order(other, |order| Request::Admit { order, host })?;
            // It must not be waited for, whoever was told last.
            if self.losses.has(host) {
                return self.present().into_iter().try_for_each(|other| self.order_silence(other, host));
            }
        }
        Ok(())
    }

    /// Brings a host to the present round; returns whether it still had its state.
    fn bring_back(
        &self,
        host: usize,
        restore: &mut dyn FnMut() -> device::Result<()>,
    ) -> Result<bool, device::Error> {
        let (peer, run, round) = (&self.shared.peers[host], self.name(), self.round());
        let has_memory = status(peer)?.run.is_some_and(|there| there.run == run);
        if !has_memory {
            self.ask(host, &Request::Begin(Box::new(self.orders[host].clone())), &[])?;
            self.ask(host, &Request::Reached { round: 0 }, &[])?;
            self.ask(host, &Request::SetRounds { round }, &[])?;
            restore()?;
        }
        let silent = self.losses.hosts().into_iter().filter(|&other| other != host).collect();
        let rejoin = Request::Rejoin { order: self.next_order(), round, silent };
        match self.ask(host, &rejoin, &[]) {
            Ok(_) => Ok(has_memory),
            Err(error) => {
                // A run that is over there begins anew the next time.
                self.ask(host, &Request::End, &[])?;
                Err(error.into())
            }
        }
    }

    fn kept(&self) -> MutexGuard<'_, Vec<Option<Vec<Imbalance>>>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The imbalances of a host; of one that is lost those of the checkpoint that has its state.
    pub(super) fn imbalances_of(&self, host: usize) -> Result<Vec<Imbalance>, Error> {
        if !self.losses.has(host) {
            match self.ask_for_imbalances(host) {
                Err(error) if self.lose(host, &error) => {}
                found => return found,
            }
        }
        Ok(self.kept()[host].clone().unwrap_or_default())
    }

    /// Notes the imbalances of a state that is in a checkpoint.
    pub(super) fn keep_imbalances(&self) -> Result<(), Error> {
        for host in self.present() {
            let found = self.imbalances_of(host)?;
            self.kept()[host] = Some(found);
        }
        Ok(())
    }

    /// The imbalances of one host, in as many pieces as they take.
    fn ask_for_imbalances(&self, host: usize) -> Result<Vec<Imbalance>, Error> {
        let mut numbers: Vec<f64> = Vec::new();
        loop {
            let request = Request::Imbalances { round: self.round(), offset: numbers.len() };
            let (answer, body) = self.ask(host, &request, &[])?;
            let Answer::Imbalances(sums) = answer else {
                return Err(unexpected(&self.shared.peers[host], &answer));
            };
            numbers.extend(body.as_chunks().0.iter().map(|number| f64::from_le_bytes(*number)));
            if numbers.len() >= 2 * sums.iter().sum::<usize>() || body.is_empty() {
                let mut rest = numbers.into_iter();
                let part = |count: usize| Imbalance {
                    sums: rest.by_ref().take(count).collect(),
                    sizes: rest.by_ref().take(count).collect(),
                };
                return Ok(sums.into_iter().map(part).collect());
            }
        }
    }

    /// What each host has done so far; of those that are lost it is not known.
    ///
    /// # Errors
    /// When a host does not answer.
    pub fn parts(&self) -> Result<Vec<HostPart>, Error> {
        let of = |host: usize| {
            let traffic = match self.tell(host, &Request::Traffic)? {
                None => HostTraffic::default(),
                Some(Answer::Traffic(traffic)) => traffic,
                Some(other) => return Err(unexpected(&self.shared.peers[host], &other)),
            };
            let name = self.shared.peers[host].name.clone();
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

/// The parts of all hosts as CSV: what `hosts.csv` of a run folder has.
pub fn table(parts: &[HostPart]) -> String {
    let mut text = "host,first_agent,agents,planned_sent_bytes,sent_bytes,planned_received_bytes,received_bytes,repeated_chunks,exchange_seconds,compute_seconds,hidden_seconds,silent_rounds,received_shared_bytes\n".to_owned();
    for HostPart { name, block, traffic, silent_rounds } in parts {
        let HostTraffic {
            planned_sent,
            sent,
            planned_received,
            received,
            received_shared,
            repeated_chunks,
            exchange_us,
            compute_us,
            hidden_us,
        } = *traffic;
        let [exchange, compute, hidden] = [exchange_us, compute_us, hidden_us].map(|time| time as f64 / 1e6);
        let name = name.replace('"', "\"\"");
        text += &format!(
            "\"{name}\",{},{},{planned_sent},{sent},{planned_received},{received},{repeated_chunks},{exchange:.3},{compute:.3},{hidden:.3},{silent_rounds},{received_shared}\n",
            block.first, block.agents
        );
    }
    text
}

impl Drop for ClusterRun {
    fn drop(&mut self) {
        self.heartbeat.take();
        let end = crate::message::pack(&(self.name(), Request::End));
        for (host, peer) in self.shared.peers.iter().enumerate() {
            // One that never hears it ends the run when it misses the heartbeat.
            let mut is_told = false;
            for _ in 0..if self.losses.has(host) { 1 } else { FAREWELLS } {
                peer.line.ask(end.clone(), FAREWELL, &mut |_| {
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
