//! The hosts of a run, as seen by the process that started it.

mod heartbeat;
mod run;
mod swarm;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fabswarm_diagnostic::Diagnostic;
use fabswarm_large::device::Block;

pub use self::run::{ClusterRun, HostPart, table};
pub use self::swarm::ClusterSwarm;
use crate::Error;
use crate::certificates::Credentials;
use crate::daemon::{build_id, clock_s, other_build};
use crate::hosts_file::Host;
use crate::line::HostPeer;
use crate::message::{HostBlock, HostStatus, PROTOCOL, Request, Response, RunPlan};
use crate::zenoh_line::ZenohLine;

/// Seconds that the clocks of hosts may differ by, the round trip included.
const CLOCKS_APART_S: u64 = 60;

/// Hosts that a run can be started on.
#[derive(Debug)]
pub struct Cluster {
    hosts: Vec<Host>,
    peers: Vec<HostPeer>,
    build: String,
    shares_memory: bool,
}

impl Cluster {
    /// Dials all hosts.
    ///
    /// # Errors
    /// When one cannot be reached or runs another build.
    pub fn dial(hosts: Vec<Host>, credentials: &Credentials) -> Result<Self, Error> {
        let dial = |host: &Host| ZenohLine::dial(&host.name, &host.address, credentials);
        let peers = hosts.iter().map(dial).collect::<Result<_, _>>()?;
        Ok(Cluster::of(hosts, peers, build_id()))
    }

    /// Hosts that are reached already.
    pub(crate) fn of(hosts: Vec<Host>, peers: Vec<HostPeer>, build: String) -> Self {
        Cluster { hosts, peers, build, shares_memory: true }
    }

    /// Sets whether hosts of one machine share memory in a run. They do by default.
    #[must_use]
    pub fn sharing_memory(self, shares_memory: bool) -> Self {
        Cluster { shares_memory, ..self }
    }

    /// The status of each host.
    ///
    /// # Errors
    /// When one does not answer.
    pub fn status(&self) -> Result<Vec<HostStatus>, Error> {
        self.peers.iter().map(status).collect()
    }

    /// Ends the run of that name on all hosts. Returns whether none takes part in any run now.
    ///
    /// # Errors
    /// When one does not answer.
    pub fn is_free_of(&self, run: &str) -> Result<bool, Error> {
        for peer in &self.peers {
            peer.ask(run, &Request::End, &[], &|| false)?;
        }
        Ok(self.status()?.iter().all(|status| status.run.is_none()))
    }

    /// Starts a run of `agents` agents with data of that `digest` on all hosts, which is ended when what is returned is dropped. `interrupted` is set when the
    /// user of a host wants it to end; a host that is silent for longer than `host_timeout` is lost, and the run fails.
    ///
    /// # Errors
    /// When the hosts cannot agree on it.
    pub fn start(
        self,
        digest: &str,
        scenario: &str,
        agents: usize,
        interrupted: &Arc<AtomicBool>,
        host_timeout: Duration,
    ) -> Result<ClusterRun, Error> {
        let blocks = assign_blocks(&self.hosts, agents)?;
        for peer in &self.peers {
            let there = status(peer)?;
            if there.build != self.build || there.protocol != PROTOCOL {
                let what = other_build(&there.build, there.protocol, &self.build, PROTOCOL);
                return Err(Error::refused(&peer.name, what));
            }
            if let Some(what) = clock_difference(there.clock_s, clock_s()) {
                return Err(Error::refused(&peer.name, what));
            }
        }
        let places = self.hosts.iter().zip(&blocks).map(|(host, &block)| HostBlock {
            name: host.name.clone(),
            address: host.address.clone(),
            block,
        });
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let first = RunPlan {
            run: format!("{:x}-{:x}", now.as_micros(), std::process::id()),
            protocol: PROTOCOL,
            build: self.build.clone(),
            digest: digest.to_owned(),
            scenario: scenario.to_owned(),
            hosts: places.collect(),
            host: 0,
            host_timeout_ms: u64::try_from(host_timeout.as_millis()).unwrap_or(u64::MAX),
            shares_memory: self.shares_memory,
        };
        let plans = (0..blocks.len()).map(|host| RunPlan { host, ..first.clone() }).collect();
        let peers = self.peers.into_iter().map(|peer| HostPeer { host_timeout, ..peer }).collect();
        ClusterRun::begin(plans, peers, interrupted)
    }
}

/// An error if the clock of a host is too far off: certificates have dates, and key numbers of swarms are times.
fn clock_difference(there_s: u64, here_s: u64) -> Option<Diagnostic> {
    let (off_s, way) = match there_s.checked_sub(here_s) {
        Some(ahead) => (ahead, "ahead of"),
        None => (here_s - there_s, "behind"),
    };
    (off_s > CLOCKS_APART_S).then(|| {
        let what = format!("its clock is {off_s} s {way} that of this machine");
        Diagnostic::new(what, "set both by the same time server, as `timedatectl set-ntp true` does")
    })
}

fn status(peer: &HostPeer) -> Result<HostStatus, Error> {
    match peer.ask("", &Request::Status, &[], &|| false)? {
        (Response::Status(status), _) => Ok(*status),
        (other, _) => Err(unexpected(peer, &other)),
    }
}

fn unexpected(peer: &HostPeer, answer: &Response) -> Error {
    Error::malformed(&peer.name, format!("{answer:?}"))
}

/// Assigns agents to hosts: as many as a host asks for, and equal shares of the rest to all others.
///
/// # Errors
/// When that leaves an agent without a host, or a host without an agent.
pub fn assign_blocks(hosts: &[Host], agents: usize) -> Result<Vec<Block>, Diagnostic> {
    let wanted: usize = hosts.iter().filter_map(|host| host.agents).sum();
    let others = hosts.iter().filter(|host| host.agents.is_none()).count();
    let Some(rest) = agents.checked_sub(wanted).filter(|&rest| rest >= others && (others > 0 || rest == 0))
    else {
        let names = hosts.iter().map(|host| host.name.as_str()).collect::<Vec<_>>().join(", ");
        let (count, asking) = (hosts.len(), hosts.len() - others);
        let hosts = format!("{count} hosts of which {asking} ask for {wanted}");
        return Err(Diagnostic::new(
            format!("`--hosts {names}`: the scenario has {agents} agents, for {hosts}"),
            "change swarm.agents, or `agents` of the hosts, so that every agent has one host and every host an agent",
        ));
    };
    let (mut first, mut assigned) = (0, 0);
    let block = |host: &Host| {
        let agents = host.agents.unwrap_or_else(|| {
            assigned += 1;
            rest / others + usize::from(assigned <= rest % others)
        });
        first += agents;
        Block { first: first - agents, agents }
    };
    Ok(hosts.iter().map(block).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_that_are_minutes_apart_are_named() {
        let near = [1000, 1060, 1000 - CLOCKS_APART_S];
        assert_eq!(near.map(|there| clock_difference(there, 1000)), [None, None, None]);
        let told = |there| clock_difference(there, 1000).unwrap();
        assert_eq!(told(1100).what(), "its clock is 100 s ahead of that of this machine");
        assert_eq!(told(10).what(), "its clock is 990 s behind that of this machine");
    }

    #[test]
    fn every_agent_has_a_host() {
        let host = |agents| Host { name: "a".to_owned(), address: "127.0.0.1:1".to_owned(), agents };
        let assigned = |wishes: &[Option<usize>], agents| {
            let hosts: Vec<Host> = wishes.iter().map(|&wish| host(wish)).collect();
            let blocks = assign_blocks(&hosts, agents)?;
            Ok::<_, Diagnostic>(blocks.iter().map(|block| (block.first, block.agents)).collect::<Vec<_>>())
        };
        assert_eq!(assigned(&[None, None, None], 10).unwrap(), [(0, 4), (4, 3), (7, 3)]);
        assert_eq!(assigned(&[None, Some(6), None], 10).unwrap(), [(0, 2), (2, 6), (8, 2)]);
        assert_eq!(assigned(&[Some(6), Some(4)], 10).unwrap(), [(0, 6), (6, 4)]);
        for (wishes, agents) in [
            (&[None, None][..], 1),
            (&[Some(6), Some(3)], 10),
            (&[Some(11), None], 10),
            (&[Some(10), None], 10),
        ] {
            let refusal = assigned(wishes, agents).unwrap_err().to_string();
            assert!(refusal.contains(&format!("{agents} agents")) && refusal.contains("help: "), "{refusal}");
        }
    }
}
