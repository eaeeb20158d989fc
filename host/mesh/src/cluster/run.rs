//! A run on several hosts, as seen by the process that started it.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fabswarm_large::device::Block;

use super::heartbeat::Heartbeat;
use super::swarm::HostMemory;
use super::unexpected;
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
    name: String,
    peers: Arc<Vec<HostPeer>>,
    pub(super) blocks: Vec<Block>,
    command_seq: AtomicU64,
    /// The last round that all hosts are known to have done.
    pub(super) round: AtomicU32,
    interrupted: Arc<AtomicBool>,
    heartbeat: Option<Heartbeat>,
    /// Memory of hosts on this machine, in which their state is read.
    pub(super) memory: Mutex<HostMemory>,
    /// Why the last request to a host failed.
    failure: Mutex<Option<String>>,
}

impl ClusterRun {
    /// Starts a run with a plan for each host.
    pub(super) fn begin(
        plans: Vec<RunPlan>,
        peers: Vec<HostPeer>,
        interrupted: &Arc<AtomicBool>,
    ) -> Result<Self, Error> {
        let name = plans.first().map(|plan| plan.run.clone()).unwrap_or_default();
        let peers = Arc::new(peers);
        let cluster = ClusterRun {
            heartbeat: Some(Heartbeat::start(&name, &peers)),
            blocks: plans.iter().enumerate().map(|(host, plan)| plan.hosts[host].block).collect(),
            command_seq: AtomicU64::new(0),
            round: AtomicU32::new(0),
            interrupted: Arc::clone(interrupted),
            memory: Mutex::default(),
            failure: Mutex::default(),
            name,
            peers,
        };
        for (host, plan) in plans.into_iter().enumerate() {
            cluster.ask(host, &Request::Begin(Box::new(plan)), &[])?;
        }
        cluster.wait_for_all(0)?;
        Ok(cluster)
    }

    pub(crate) fn ask(
        &self,
        host: usize,
        request: &Request,
        body: &[u8],
    ) -> Result<(Response, Vec<u8>), Error> {
        self.peers[host].ask(&self.name, request, body, &|| false).inspect_err(|error| {
            *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.to_string());
        })
    }

    /// Why a host failed, if one did.
    pub fn failure(&self) -> Option<String> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The name of this run, which no other has.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn unexpected(&self, host: usize, response: &Response) -> Error {
        unexpected(&self.peers[host], response)
    }

    /// The last round that all hosts have done.
    pub fn round(&self) -> u32 {
        self.round.load(Ordering::Relaxed)
    }

    /// A number for a command that is larger than those of all earlier ones, which hosts ignore from then on.
    pub(super) fn next_seq(&self) -> u64 {
        self.command_seq.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub(super) fn hosts(&self) -> std::ops::Range<usize> {
        0..self.peers.len()
    }

    pub(super) fn wait_for_all(&self, round: u32) -> Result<(), Error> {
        for host in self.hosts() {
            loop {
                match self.ask(host, &Request::Reached { round }, &[])? {
                    (Response::Reached { round: reached, is_leaving }, _) => {
                        if is_leaving {
                            // The run ends in an orderly way, as the user of a host asked.
                            self.interrupted.store(true, Ordering::Relaxed);
                        }
                        if reached >= round {
                            break;
                        }
                        std::thread::sleep(PAUSE);
                    }
                    (other, _) => return Err(self.unexpected(host, &other)),
                }
            }
        }
        self.round.store(round, Ordering::Relaxed);
        Ok(())
    }

    /// The work of each host so far.
    ///
    /// # Errors
    /// When a host does not answer.
    pub fn parts(&self) -> Result<Vec<HostPart>, Error> {
        let of = |host: usize| match self.ask(host, &Request::Traffic, &[])? {
            (Response::Traffic(traffic), _) => {
                Ok(HostPart { name: self.peers[host].name.clone(), block: self.blocks[host], traffic })
            }
            (other, _) => Err(self.unexpected(host, &other)),
        };
        self.hosts().map(of).collect()
    }
}

/// A host's part of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPart {
    /// Its name.
    pub name: String,
    /// The agents that it computed.
    pub block: Block,
    /// Its bytes and times.
    pub traffic: HostTraffic,
}

/// The parts of all hosts as CSV: the `hosts.csv` of a run folder.
pub fn table(parts: &[HostPart]) -> String {
    let mut text = "host,first_agent,agents,planned_sent_bytes,sent_bytes,planned_received_bytes,received_bytes,repeated_chunks,exchange_seconds,compute_seconds,hidden_seconds,received_shared_bytes\n".to_owned();
    for HostPart { name, block: Block { first, agents }, traffic } in parts {
        let HostTraffic { planned_sent, sent, planned_received, received, received_shared, .. } = traffic;
        let [exchange, compute, hidden] = [traffic.exchange_us, traffic.compute_us, traffic.hidden_us]
            .map(|time_us| format!("{:.3}", time_us as f64 / 1e6));
        let (name, repeated) = (name.replace('"', "\"\""), traffic.repeated_chunks);
        text += &format!(
            "\"{name}\",{first},{agents},{planned_sent},{sent},{planned_received},{received},{repeated},"
        );
        text += &format!("{exchange},{compute},{hidden},{received_shared}\n");
    }
    text
}

impl Drop for ClusterRun {
    fn drop(&mut self) {
        self.heartbeat.take();
        let end = crate::message::pack(&(self.name(), Request::End));
        for peer in self.peers.iter() {
            // A host that none of these requests reaches ends the run when it misses the heartbeat.
            let mut is_told = false;
            for _ in 0..END_TRIES {
                peer.line.ask(end.clone(), END_TIMEOUT, &mut |_, _| {
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
