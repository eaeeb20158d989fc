//! What parcels cost on their way between two processes, and what a round of a scenario takes on hosts.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use fabswarm_large::device::Block;
use fabswarm_large::device::cpu::Cpu;
use fabswarm_large::fab::{ParcelPart, RemoteHosts as _};
use fabswarm_large::training::block::{BlockTrainer, ExpectedParcel, Parcel};
use fabswarm_large::training::{TrainingPlan, TrainingSetup};
use fabswarm_sim::scenario::ResolvedScenario;

use crate::Error;
use crate::chunks::CHUNK_BYTES;
use crate::cluster::{Cluster, ClusterSwarm, HostPart, LossPolicy};
use crate::daemon::chosen;
use crate::hosted::HostedRun;
use crate::hosts_file::Host;
use crate::line::{FetchedParcel, Peer, Replies};
use crate::message::{HostPlace, PROTOCOL, Request, RunKind, RunOrder, unpack};
use crate::zenoh_line::{ZenohLine, ZenohListener};

/// The run that a parcel is served for, and its only round.
const RUN: &str = "bench";
const ROUND: u32 = 1;
/// The numbers of who has the parcel and who fetches it.
const SERVER: usize = 0;
const RECEIVER: usize = 1;

/// Where a parcel can be fetched: as hosts do, and over plain TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParcelAddresses {
    pub hosts: SocketAddr,
    pub plain: SocketAddr,
}

/// Serves one parcel of so many bytes, as often as it is asked for, until this process ends.
///
/// # Errors
/// When it cannot listen.
pub fn serve_parcel(bytes: usize) -> Result<ParcelAddresses, Error> {
    let loopback = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let refused =
        |error: std::io::Error| Error::Listen { address: loopback.to_string(), what: error.to_string() };
    let hosts = chosen(loopback)?;
    let listener = ZenohListener::listen(&hosts.to_string(), None)?;
    let plain = TcpListener::bind(loopback).map_err(refused)?;
    let addresses = ParcelAddresses { hosts, plain: plain.local_addr().map_err(refused)? };
    let place = |name: &str| HostPlace {
        name: name.to_owned(),
        address: String::new(),
        block: Block { first: 0, agents: 0 },
    };
    let run = Arc::new(HostedRun::new(RunOrder {
        run: RUN.to_owned(),
        protocol: PROTOCOL,
        build: String::new(),
        kind: RunKind::Training { digest: String::new() },
        scenario: String::new(),
        hosts: vec![place("server"), place("receiver")],
        host: SERVER,
        outlives_loss: false,
        patience_ms: 60_000,
        shares_memory: false,
    }));
    let parcel: Vec<u8> = (0..bytes).map(|at| (at % 251) as u8).collect();
    run.offer(ROUND, ParcelPart::Decisions, RECEIVER, parcel.clone().into())?;
    let answering = Arc::clone(&run);
    std::thread::spawn(move || answering.answer_waiting(&AtomicBool::new(false)));
    std::thread::spawn(move || {
        loop {
            if let Some((question, replies)) = listener.next(Duration::from_secs(1)) {
                answer(&run, &question, replies);
            }
        }
    });
    std::thread::spawn(move || {
        for mut stream in plain.incoming().flatten() {
            // One byte asks for it; who has heard enough hangs up.
            let mut question = [0];
            while stream.read_exact(&mut question).is_ok()
                && parcel.chunks(CHUNK_BYTES).all(|chunk| stream.write_all(chunk).is_ok())
            {}
        }
    });
    Ok(addresses)
}

fn answer(run: &HostedRun, question: &[u8], replies: Box<dyn Replies>) {
    if let Ok((request @ (Request::Parcel { .. } | Request::Alive { .. }), body)) = unpack(&[question]) {
        run.answer(request, &body.to_vec(), replies);
    }
}

/// Seconds that a parcel of so many bytes took, each time it was fetched.
#[derive(Clone, Debug, Default)]
pub struct ParcelTimes {
    pub hosts: Vec<f64>,
    pub plain: Vec<f64>,
}

/// Fetches a parcel in both ways in turn, `repeats` times each after one that does not count.
///
/// # Errors
/// When who serves it cannot be asked.
pub fn fetch_parcels(addresses: ParcelAddresses, bytes: usize, repeats: usize) -> Result<ParcelTimes, Error> {
    let gone = |error: std::io::Error| Error::Gone { host: RUN.to_owned(), what: error.to_string() };
    let line = ZenohLine::dial(RUN, &addresses.hosts.to_string(), None)?;
    let peer = Peer::new(RUN.to_owned(), Box::new(line));
    let mut plain = TcpStream::connect(addresses.plain).map_err(gone)?;
    let (mut times, mut by_tcp) = (ParcelTimes::default(), vec![0; bytes]);
    for repeat in 0..=repeats {
        // A run is given up by hosts that hear nothing of who started it.
        peer.ask(&Request::Alive { run: RUN.to_owned() }, &[], &|| false)?;
        let begun = Instant::now();
        let fetched = peer.fetch(RUN, ROUND, ParcelPart::Decisions, RECEIVER, bytes, &|| false)?;
        let by_hosts = begun.elapsed();
        if let FetchedParcel::Chunks { parcel, .. } = fetched {
            peer.give_back(parcel);
        }
        let begun = Instant::now();
        plain.write_all(&[0]).map_err(gone)?;
        plain.read_exact(&mut by_tcp).map_err(gone)?;
        if repeat > 0 {
            times.plain.push(begun.elapsed().as_secs_f64());
            times.hosts.push(by_hosts.as_secs_f64());
        }
    }
    Ok(times)
}

/// What rounds take on each host by itself, and what it exchanges with the others.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RoundCosts {
    /// Seconds per round for each host, from its decisions to its gradient: trackers come in meanwhile.
    pub descent: Vec<f64>,
    /// Those of the rest of a round.
    pub rest: Vec<f64>,
    pub decisions: LinkBytes,
    pub trackers: LinkBytes,
}

/// Bytes per round on the link of each host.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkBytes {
    pub sent: Vec<f64>,
    pub received: Vec<f64>,
}

impl LinkBytes {
    fn none(hosts: usize) -> Self {
        LinkBytes { sent: vec![0.0; hosts], received: vec![0.0; hosts] }
    }

    /// Those of the busiest link of a host, in its busier direction.
    pub fn busiest(&self) -> f64 {
        longest(&self.sent).max(longest(&self.received))
    }
}

fn longest(times: &[f64]) -> f64 {
    times.iter().copied().fold(0.0, f64::max)
}

impl RoundCosts {
    /// Bytes per round over the busiest link of a host, in its busier direction.
    pub fn busiest(&self) -> f64 {
        self.decisions.busiest() + self.trackers.busiest()
    }

    /// Seconds of a round where every host is a machine of its own, on links of so many bytes per second.
    pub fn on_machines(&self, bytes_per_s: f64) -> f64 {
        let hidden = self.trackers.busiest() / bytes_per_s;
        longest(&self.rest) + self.decisions.busiest() / bytes_per_s + longest(&self.descent).max(hidden)
    }

    /// Seconds of a round where all hosts share one machine, so that nothing passes beside anything, and what they exchange passes
    /// at so many bytes per second.
    pub fn on_one_machine(&self, bytes_per_s: f64) -> f64 {
        let computed: f64 = self.descent.iter().chain(&self.rest).sum();
        let received: f64 = self.decisions.received.iter().chain(&self.trackers.received).sum();
        computed + received / bytes_per_s
    }
}

/// Computes rounds of all `blocks` here, one after the other, after one that does not count.
///
/// # Errors
/// When the scenario cannot be computed here.
pub fn measure_blocks(
    prepared: &TrainingSetup,
    resolved: &ResolvedScenario,
    blocks: &[Block],
    rounds: u32,
) -> Result<RoundCosts, Error> {
    let start = |(host, &block): (usize, &Block)| -> Result<_, Error> {
        let plan = TrainingPlan::of_block(Cpu::<f32>::new(), prepared, resolved, block)?;
        Ok(plan.start_block(host, blocks.to_vec(), false)?)
    };
    let mut trainers: Vec<BlockTrainer<'_, Cpu<f32>>> =
        blocks.iter().enumerate().map(start).collect::<Result<_, _>>()?;
    let (hosts, nothing) = (blocks.len(), || vec![0.0; blocks.len()]);
    let mut costs = RoundCosts {
        descent: nothing(),
        rest: nothing(),
        decisions: LinkBytes::none(hosts),
        trackers: LinkBytes::none(hosts),
    };
    for round in 0..=rounds {
        let share = if round > 0 { 1.0 / f64::from(rounds) } else { 0.0 };
        let mut parcels: Vec<Vec<Parcel>> = Vec::new();
        for (trainer, rest) in trainers.iter_mut().zip(&mut costs.rest) {
            let begun = Instant::now();
            let outgoing = trainer.begin_round()?;
            parcels.push(trainer.parcels(&outgoing)?);
            *rest += share * begun.elapsed().as_secs_f64();
        }
        for (host, trainer) in trainers.iter_mut().enumerate() {
            let (begun, expected) = (Instant::now(), trainer.expected());
            let mut descent = Duration::ZERO;
            for part in ParcelPart::ALL {
                for &ExpectedParcel { from, bytes, .. } in
                    expected.iter().filter(|parcel| parcel.part == part)
                {
                    let is_it = |parcel: &&Parcel| (parcel.to, parcel.part) == (host, part);
                    if let Some(parcel) = parcels[from].iter().find(is_it) {
                        trainer.take(from, part, &parcel.bytes)?;
                    }
                    let links = match part {
                        ParcelPart::Decisions => &mut costs.decisions,
                        ParcelPart::Trackers => &mut costs.trackers,
                    };
                    links.received[host] += share * bytes as f64;
                    links.sent[from] += share * bytes as f64;
                }
                if part == ParcelPart::Decisions {
                    let begun = Instant::now();
                    trainer.descend()?;
                    descent = begun.elapsed();
                }
            }
            trainer.end_round()?;
            costs.descent[host] += share * descent.as_secs_f64();
            costs.rest[host] += share * begun.elapsed().saturating_sub(descent).as_secs_f64();
        }
    }
    Ok(costs)
}

/// Seconds of a round on hosts that run, after one that does not count; and what each host has done. Hosts of one machine share
/// memory where `shares_memory`.
///
/// # Errors
/// When the hosts cannot agree on the run.
pub fn measure_hosts(
    hosts: Vec<Host>,
    prepared: &TrainingSetup,
    resolved: &ResolvedScenario,
    rounds: u32,
    shares_memory: bool,
) -> Result<(f64, Vec<HostPart>), Error> {
    let interrupted = Arc::new(AtomicBool::new(false));
    let kind = RunKind::Training { digest: prepared.digest() };
    let (scenario, agents) = (resolved.to_repeatable_toml(), resolved.scenario.swarm.agents);
    let cluster = Cluster::dial(hosts, None)?.sharing_memory(shares_memory);
    let run = cluster.start(&kind, &scenario, agents, &interrupted, LossPolicy::default())?;
    let swarm = ClusterSwarm(Arc::new(run));
    let go_to = |round: u32| -> Result<(), Error> {
        let stopped = |error: fabswarm_large::device::Error| Error::Training(error.into());
        swarm.permit(round).map_err(stopped)?;
        swarm.wait_for(round).map_err(stopped)
    };
    go_to(1)?;
    let begun = Instant::now();
    go_to(1 + rounds)?;
    let seconds = begun.elapsed().as_secs_f64() / f64::from(rounds);
    Ok((seconds, swarm.0.parts()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parcel_comes_in_both_ways() {
        let bytes = 2 * CHUNK_BYTES + 17;
        let addresses = serve_parcel(bytes).unwrap();
        let times = fetch_parcels(addresses, bytes, 2).unwrap();
        assert_eq!([times.hosts.len(), times.plain.len()], [2, 2]);
    }

    #[test]
    fn a_round_takes_what_its_slowest_part_takes() {
        let costs = RoundCosts {
            descent: vec![1.0, 3.0],
            rest: vec![0.5, 0.25],
            decisions: LinkBytes { sent: vec![20.0, 10.0], received: vec![10.0, 20.0] },
            trackers: LinkBytes { sent: vec![40.0, 10.0], received: vec![10.0, 40.0] },
        };
        // Two seconds of decisions, and trackers beside the gradient, or a gradient beside trackers.
        assert!((costs.on_machines(10.0) - (0.5 + 2.0 + 4.0)).abs() < 1e-12);
        assert!((costs.on_machines(20.0) - (0.5 + 1.0 + 3.0)).abs() < 1e-12);
        assert!((costs.on_one_machine(10.0) - (4.75 + 8.0)).abs() < 1e-12);
    }
}
