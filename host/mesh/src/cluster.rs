//! The hosts of a run, as seen by who started it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fabswarm_large::device::{self, Block};
use fabswarm_large::fab::{Imbalance, RemoteHosts};

use crate::Error;
use crate::certificates::Credentials;
use crate::daemon::{build_id, other_build};
use crate::hosts_file::Host;
use crate::line::Peer;
use crate::message::{
    Answer, HostPlace, HostStatus, HostTraffic, PROTOCOL, Request, RunOrder, to_bytes, to_words,
};
use crate::zenoh_line::ZenohLine;

/// Words of state in one message.
const PIECE: usize = 128 << 10;
/// How often hosts hear that whoever started their run is still there.
const ALIVE_EVERY: Duration = Duration::from_secs(3);

/// How often a host is told that its run is over, and how long each time.
const FAREWELLS: usize = 5;
const FAREWELL: Duration = Duration::from_secs(1);

/// Hosts that a run can be started on.
#[derive(Debug)]
pub struct Cluster {
    hosts: Vec<Host>,
    peers: Vec<Peer>,
    build: String,
}

impl Cluster {
    /// Dials all hosts, and asks who they are.
    ///
    /// # Errors
    /// When one cannot be reached or runs another build.
    pub fn dial(hosts: Vec<Host>, credentials: Option<&Credentials>) -> Result<Self, Error> {
        let dial = |host: &Host| -> Result<Peer, Error> {
            let line = ZenohLine::dial(&host.name, &host.address, credentials)?;
            Ok(Peer::new(host.name.clone(), Box::new(line)))
        };
        let peers = hosts.iter().map(dial).collect::<Result<_, _>>()?;
        Ok(Cluster::of(hosts, peers, build_id()))
    }

    /// Hosts that are reached already.
    pub(crate) fn of(hosts: Vec<Host>, peers: Vec<Peer>, build: String) -> Self {
        Cluster { hosts, peers, build }
    }

    /// Who is there.
    ///
    /// # Errors
    /// When one does not answer.
    pub fn status(&self) -> Result<Vec<HostStatus>, Error> {
        self.peers.iter().map(status).collect()
    }

    /// Whether no host takes part in the run of that name any more; those that do are told that it is over.
    ///
    /// # Errors
    /// When one does not answer.
    pub fn is_free_of(&self, run: &str) -> Result<bool, Error> {
        for peer in &self.peers {
            peer.ask(&Request::End { run: run.to_owned() }, &[], &|| false)?;
        }
        Ok(self.status()?.iter().all(|status| status.run.is_none()))
    }

    /// Starts a run of `agents` agents on all hosts, which is ended when what is returned is dropped. `interrupted` is set when the
    /// user of a host wants it to end.
    ///
    /// # Errors
    /// When the hosts cannot agree on it.
    pub fn start(
        self,
        scenario: &str,
        digest: String,
        agents: usize,
        interrupted: &Arc<AtomicBool>,
    ) -> Result<ClusterRun, Error> {
        let blocks = deal(&self.hosts, agents)?;
        for peer in &self.peers {
            let there = status(peer)?;
            if there.build != self.build || there.protocol != PROTOCOL {
                let what = other_build(&there.build, there.protocol, &self.build, PROTOCOL);
                return Err(Error::Refused { host: peer.name.clone(), what });
            }
        }
        let places: Vec<HostPlace> = self
            .hosts
            .iter()
            .zip(&blocks)
            .map(|(host, &block)| HostPlace { name: host.name.clone(), address: host.address.clone(), block })
            .collect();
        let run = run_name();
        let shared = Arc::new(RunPeers { run: run.clone(), peers: self.peers });
        let cluster = ClusterRun {
            heartbeat: Some(Heartbeat::start(Arc::clone(&shared))),
            shared,
            blocks,
            order: AtomicU64::new(0),
            round: AtomicU64::new(0),
            interrupted: Arc::clone(interrupted),
        };
        for host in 0..places.len() {
            let order = RunOrder {
                run: run.clone(),
                protocol: PROTOCOL,
                build: self.build.clone(),
                scenario: scenario.to_owned(),
                digest: digest.clone(),
                hosts: places.clone(),
                host,
            };
            cluster.ask(host, &Request::Begin(Box::new(order)), &[])?;
        }
        cluster.wait_for_all(0)?;
        Ok(cluster)
    }
}

fn status(peer: &Peer) -> Result<HostStatus, Error> {
    match peer.ask(&Request::Status, &[], &|| false)? {
        (Answer::Status(status), _) => Ok(*status),
        (other, _) => Err(unexpected(peer, &other)),
    }
}

fn unexpected(peer: &Peer, answer: &Answer) -> Error {
    Error::Malformed { host: peer.name.clone(), what: format!("{answer:?}") }
}

/// Tells this run from all others of these hosts.
fn run_name() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("{:x}-{:x}", now.as_micros(), std::process::id())
}

/// The agents of each host: as many as it asks for, and of the rest equally many for each other host.
///
/// # Errors
/// When that leaves an agent without a host, or a host without an agent.
pub fn deal(hosts: &[Host], agents: usize) -> Result<Vec<Block>, Error> {
    let wanted: usize = hosts.iter().filter_map(|host| host.agents).sum();
    let others = hosts.iter().filter(|host| host.agents.is_none()).count();
    let refused = |what: String| Error::HostList {
        given: hosts.iter().map(|host| host.name.as_str()).collect::<Vec<_>>().join(", "),
        what,
        remedy: "change swarm.agents, or `agents` of the hosts, so that every agent has one host and every host an agent",
    };
    let Some(rest) = agents.checked_sub(wanted).filter(|&rest| rest >= others && (others > 0 || rest == 0))
    else {
        return Err(refused(format!(
            "the scenario has {agents} agents, for {} hosts of which {} ask for {wanted}",
            hosts.len(),
            hosts.len() - others
        )));
    };
    let (mut first, mut dealt) = (0, 0);
    let block = |host: &Host| {
        let agents = host.agents.unwrap_or_else(|| {
            dealt += 1;
            rest / others + usize::from(dealt <= rest % others)
        });
        first += agents;
        Block { first: first - agents, agents }
    };
    Ok(hosts.iter().map(block).collect())
}

#[derive(Debug)]
struct RunPeers {
    run: String,
    peers: Vec<Peer>,
}

/// A run on several hosts.
#[derive(Debug)]
pub struct ClusterRun {
    shared: Arc<RunPeers>,
    blocks: Vec<Block>,
    order: AtomicU64,
    /// The last round that all hosts are known to have done.
    round: AtomicU64,
    interrupted: Arc<AtomicBool>,
    heartbeat: Option<Heartbeat>,
}

impl ClusterRun {
    fn ask(&self, host: usize, request: &Request, body: &[u8]) -> Result<(Answer, Vec<u8>), Error> {
        self.shared.peers[host].ask(request, body, &|| false)
    }

    fn run(&self) -> String {
        self.shared.run.clone()
    }

    /// What tells this run from others.
    pub fn name(&self) -> &str {
        &self.shared.run
    }

    /// The last round that all hosts have done.
    pub fn round(&self) -> u32 {
        self.round.load(Ordering::Relaxed) as u32
    }

    fn next_order(&self) -> u64 {
        self.order.fetch_add(1, Ordering::Relaxed) + 1
    }

    fn hosts(&self) -> std::ops::Range<usize> {
        0..self.shared.peers.len()
    }

    fn wait_for_all(&self, round: u32) -> Result<(), Error> {
        for host in self.hosts() {
            loop {
                match self.ask(host, &Request::Reached { run: self.run(), round }, &[])?.0 {
                    Answer::Reached { round: reached, is_leaving } => {
                        if is_leaving {
                            self.interrupted.store(true, Ordering::Relaxed);
                        }
                        if reached >= round {
                            break;
                        }
                        // A host that is leaving answers before it is there.
                        std::thread::sleep(Duration::from_millis(20));
                    }
                    other => return Err(unexpected(&self.shared.peers[host], &other)),
                }
            }
        }
        self.round.store(round.into(), Ordering::Relaxed);
        Ok(())
    }

    fn halt_all(&self) -> Result<u32, Error> {
        let order = self.next_order();
        let mut last = 0;
        for host in self.hosts() {
            match self.ask(host, &Request::Halt { run: self.run(), order }, &[])?.0 {
                Answer::Reached { round, .. } => last = last.max(round),
                other => return Err(unexpected(&self.shared.peers[host], &other)),
            }
        }
        self.permit_all(last)?;
        self.wait_for_all(last)?;
        Ok(last)
    }

    fn permit_all(&self, until: u32) -> Result<(), Error> {
        let order = self.next_order();
        for host in self.hosts() {
            self.ask(host, &Request::Permit { run: self.run(), order, until }, &[])?;
        }
        Ok(())
    }

    /// The imbalances of one host, in as many pieces as they take.
    fn imbalances_of(&self, host: usize) -> Result<Vec<Imbalance>, Error> {
        let mut numbers: Vec<f64> = Vec::new();
        loop {
            let request = Request::Imbalances { run: self.run(), round: self.round(), offset: numbers.len() };
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

    /// What each host has done so far.
    ///
    /// # Errors
    /// When a host does not answer.
    pub fn parts(&self) -> Result<Vec<HostPart>, Error> {
        let of = |host: usize| match self.ask(host, &Request::Traffic { run: self.run() }, &[])?.0 {
            Answer::Traffic(traffic) => {
                let name = self.shared.peers[host].name.clone();
                Ok(HostPart { name, block: self.blocks[host], traffic })
            }
            other => Err(unexpected(&self.shared.peers[host], &other)),
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
}

/// The parts of all hosts as CSV: what `hosts.csv` of a run folder has.
pub fn table(parts: &[HostPart]) -> String {
    let mut text = "host,first_agent,agents,planned_sent_bytes,sent_bytes,planned_received_bytes,received_bytes,repeated_chunks\n".to_owned();
    for HostPart { name, block, traffic } in parts {
        let HostTraffic { planned_sent, sent, planned_received, received, repeated_chunks } = traffic;
        let name = name.replace('"', "\"\"");
        text += &format!(
            "\"{name}\",{},{},{planned_sent},{sent},{planned_received},{received},{repeated_chunks}\n",
            block.first, block.agents
        );
    }
    text
}

/// A run on several hosts in the place of agents that are computed here.
#[derive(Clone, Debug)]
pub struct ClusterSwarm(pub Arc<ClusterRun>);

impl RemoteHosts<f32> for ClusterSwarm {
    fn blocks(&self) -> &[Block] {
        &self.0.blocks
    }

    fn read(&self, host: usize, part: &str, offset: usize, words: usize) -> device::Result<Vec<f32>> {
        let mut all = Vec::with_capacity(words);
        while all.len() < words {
            let (offset, words) = (offset + all.len(), PIECE.min(words - all.len()));
            let request = Request::Read {
                run: self.0.run(),
                round: self.0.round(),
                part: part.to_owned(),
                offset,
                words,
            };
            match self.0.ask(host, &request, &[])? {
                (Answer::Words, body) if body.len() == words * size_of::<f32>() => {
                    all.extend(to_words(&body))
                }
                (other, _) => return Err(unexpected(&self.0.shared.peers[host], &other).into()),
            }
        }
        Ok(all)
    }

    fn write(&self, host: usize, part: &str, offset: usize, words: &[f32]) -> device::Result<()> {
        for (number, words) in words.chunks(PIECE).enumerate() {
            let (round, part, offset) = (self.0.round(), part.to_owned(), offset + number * PIECE);
            let request = Request::Write { run: self.0.run(), round, part, offset };
            self.0.ask(host, &request, &to_bytes(words))?;
        }
        Ok(())
    }

    fn set_rounds(&self, round: u32) -> device::Result<()> {
        for host in self.0.hosts() {
            self.0.ask(host, &Request::SetRounds { run: self.0.run(), round }, &[])?;
        }
        self.0.round.store(round.into(), Ordering::Relaxed);
        Ok(())
    }

    fn permit(&self, round: u32) -> device::Result<()> {
        Ok(self.0.permit_all(round)?)
    }

    fn wait_for(&self, round: u32) -> device::Result<()> {
        Ok(self.0.wait_for_all(round)?)
    }

    fn halt(&self) -> device::Result<u32> {
        Ok(self.0.halt_all()?)
    }

    fn imbalances(&self) -> device::Result<Vec<Imbalance>> {
        let mut whole: Vec<Imbalance> = Vec::new();
        for host in self.0.hosts() {
            let parts = self.0.imbalances_of(host)?;
            whole.resize(parts.len(), Imbalance::default());
            whole.iter_mut().zip(&parts).for_each(|(whole, part)| whole.add(part));
        }
        Ok(whole)
    }
}

impl Drop for ClusterRun {
    fn drop(&mut self) {
        self.heartbeat.take();
        let end = crate::message::pack(&Request::End { run: self.run() }, &[]);
        for peer in &self.shared.peers {
            // One that never hears it ends the run when it misses the heartbeat.
            let mut is_told = false;
            for _ in 0..FAREWELLS {
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

/// Lets hosts know, now and then, that whoever started their run is there.
#[derive(Debug)]
struct Heartbeat {
    stop: mpsc::Sender<()>,
    thread: Option<JoinHandle<()>>,
}

impl Heartbeat {
    fn start(shared: Arc<RunPeers>) -> Self {
        let (stop, stopped) = mpsc::channel();
        let alive = crate::message::pack(&Request::Alive { run: shared.run.clone() }, &[]);
        let thread = std::thread::spawn(move || {
            while stopped.recv_timeout(ALIVE_EVERY) == Err(mpsc::RecvTimeoutError::Timeout) {
                for peer in &shared.peers {
                    peer.line.ask(alive.clone(), ALIVE_EVERY, &mut |_| false);
                }
            }
        });
        Heartbeat { stop, thread: Some(thread) }
    }
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        let _ = self.stop.send(());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_agent_has_a_host() {
        let host = |agents| Host { name: "a".to_owned(), address: "127.0.0.1:1".to_owned(), agents };
        let dealt = |wishes: &[Option<usize>], agents| {
            let hosts: Vec<Host> = wishes.iter().map(|&wish| host(wish)).collect();
            let blocks = deal(&hosts, agents)?;
            Ok::<_, Error>(blocks.iter().map(|block| (block.first, block.agents)).collect::<Vec<_>>())
        };
        assert_eq!(dealt(&[None, None, None], 10).unwrap(), [(0, 4), (4, 3), (7, 3)]);
        assert_eq!(dealt(&[None, Some(6), None], 10).unwrap(), [(0, 2), (2, 6), (8, 2)]);
        assert_eq!(dealt(&[Some(6), Some(4)], 10).unwrap(), [(0, 6), (6, 4)]);
        for (wishes, agents) in [
            (&[None, None][..], 1),
            (&[Some(6), Some(3)], 10),
            (&[Some(11), None], 10),
            (&[Some(10), None], 10),
        ] {
            let refusal = dealt(wishes, agents).unwrap_err().to_string();
            assert!(refusal.contains(&format!("{agents} agents")) && refusal.contains("help: "), "{refusal}");
        }
    }
}
