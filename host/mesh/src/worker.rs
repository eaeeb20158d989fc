//! The rounds of a run on this host.

use std::fmt::Display;
use std::path::Path;
use std::time::Instant;

use fabswarm_data::Cache;
use fabswarm_diagnostic::Diagnostic;
use fabswarm_large::device::Block;
use fabswarm_large::device::cpu::Cpu;
use fabswarm_large::device::cuda::Cuda;
use fabswarm_large::device::shared::SharedMemory;
use fabswarm_large::fab::ParcelPart;
use fabswarm_large::training::block::{BlockTrainer, HostParcel};
use fabswarm_large::training::{TrainingPlan, TrainingSetup};
use fabswarm_sim::scenario::{ScenarioCommand, resolve_text_for};

use crate::Error;
use crate::daemon::HostDevice;
use crate::hosted::{HostWork, HostedRun, OfferedParcel, RunEnd};
use crate::line::{FetchedParcel, HostPeer};
use crate::message::RunPlan;
use crate::near::NearMemory;
use crate::state_answers::StateAnswers;

/// Dials a host of a run by its number.
pub(crate) type Dial<'d> = dyn Fn(&RunPlan, usize) -> Result<HostPeer, Diagnostic> + 'd;

/// Takes part in a run until it is over.
///
/// # Errors
/// When the run cannot begin or go on here. The host keeps the reason for the starter of the run.
pub(crate) fn work(
    run: &HostedRun,
    cache: &Cache,
    device: &HostDevice,
    dial: &Dial<'_>,
) -> Result<RunEnd, Error> {
    let ended = match device {
        HostDevice::Cpu => take_part(run, cache, Cpu::<f32>::new(), dial),
        HostDevice::Gpu(gpu, precision) => Cuda::on(gpu, *precision)
            .map_err(Error::from)
            .and_then(|device| take_part(run, cache, device, dial)),
    };
    ended.inspect_err(|error| run.fail(error.to_string()))
}

fn take_part<D: SharedMemory>(
    run: &HostedRun,
    cache: &Cache,
    device: D,
    dial: &Dial<'_>,
) -> Result<RunEnd, Error> {
    let plan = &run.plan;
    // The other hosts by number; nothing for this one.
    let peer = |host: usize| -> Result<Option<HostPeer>, Diagnostic> {
        let other = (host != plan.host).then(|| dial(plan, host)).transpose()?;
        Ok(other.map(|peer| HostPeer { host_timeout: run.host_timeout(), ..peer }))
    };
    let peers = (0..plan.hosts.len()).map(peer).collect::<Result<Vec<_>, _>>()?;
    let refused = |what: &dyn Display| Error::refused(&plan.hosts[plan.host].name, what);
    let file = (Path::new("scenario.toml"), plan.scenario.as_str());
    let resolved =
        resolve_text_for(ScenarioCommand::Train, Some(file), &[]).map_err(|error| refused(&error))?;
    let prepared = TrainingSetup::new(cache, &resolved.scenario)?;
    if prepared.digest() != plan.digest {
        let training = &resolved.scenario.training;
        let what = format!(
            "its samples or weights of `{}` and `{}` differ from those of whoever starts the run",
            training.data, training.model
        );
        let remedy = "fetch them again on both with `fabswarm data fetch --force`, or copy the file";
        return Err(refused(&Diagnostic::new(what, remedy)));
    }
    let blocks: Vec<Block> = plan.hosts.iter().map(|host| host.block).collect();
    let is_next = |next: usize, block: &Block| next.checked_add(block.agents).filter(|_| block.first == next);
    if blocks.iter().try_fold(0, is_next) != Some(resolved.scenario.swarm.agents) {
        return Err(refused(&"the plan of the run does not give each agent to one host"));
    }
    let training = TrainingPlan::of_block(device, &prepared, &resolved, blocks[plan.host])?;
    let mut trainer = training.start_block(plan.host, blocks)?;
    let mut near = NearMemory::share(run, trainer.swarm().device(), &peers);
    run.reach(trainer.round());
    let mut answers = StateAnswers::new(plan);
    loop {
        match run.next() {
            HostWork::Over(end) => return Ok(end),
            HostWork::Task(task) => answers.answer(run, &mut trainer, task)?,
            HostWork::Round => {
                answers.forget();
                match round(run, &mut trainer, &mut near, &peers) {
                    // A host ends only when it is told to.
                    Err(Error::Over) => {}
                    done => done?,
                }
            }
        }
    }
}

fn round<D: SharedMemory>(
    run: &HostedRun,
    trainer: &mut BlockTrainer<'_, D>,
    near: &mut NearMemory<D>,
    peers: &[Option<HostPeer>],
) -> Result<(), Error> {
    let (round, begun) = (trainer.round() + 1, Instant::now());
    for outgoing in trainer.begin_round()? {
        let parcel = match near.parcel(run, trainer, outgoing)? {
            Some(parcel) => OfferedParcel::Shared { parcel, bytes: outgoing.bytes },
            None => trainer.parcel(outgoing)?.into(),
        };
        run.offer(round, outgoing.part, outgoing.host, parcel)?;
    }
    let asked = Instant::now();
    let (decisions, trackers): (Vec<_>, Vec<_>) =
        trainer.expected().into_iter().partition(|expected| expected.part == ParcelPart::Decisions);
    for expected in decisions {
        let parcel = fetch(run, peers, round, expected)?;
        take(run, trainer, near, peers, expected, parcel)?;
    }
    let waited = asked.elapsed();
    // Trackers come in while the gradient is computed.
    let (fetched, came_in, descended) = std::thread::scope(|scope| {
        let fetch_all = || {
            let begun = Instant::now();
            let all: Vec<_> =
                trackers.iter().map(|&expected| (expected, fetch(run, peers, round, expected))).collect();
            (all, begun.elapsed())
        };
        let fetching = (!trackers.is_empty()).then(|| scope.spawn(fetch_all));
        let descended = trainer.descend();
        let missing = Instant::now();
        let (all, came_in) = fetching.map_or_else(Default::default, |thread| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        (all, came_in, descended.map(|()| missing))
    });
    let missing = descended?;
    for (expected, parcel) in fetched {
        take(run, trainer, near, peers, expected, parcel?)?;
    }
    let still_waited = missing.elapsed();
    trainer.end_round()?;
    let exchange = waited + still_waited;
    run.spend(exchange, begun.elapsed().saturating_sub(exchange), came_in.saturating_sub(still_waited));
    run.reach(round);
    Ok(())
}

fn fetch(
    run: &HostedRun,
    peers: &[Option<HostPeer>],
    round: u32,
    HostParcel { host: from, part, bytes }: HostParcel,
) -> Result<FetchedParcel, Error> {
    let peer = peers[from].as_ref().expect("no host has parcels for itself");
    peer.fetch(&run.plan.run, round, part, run.plan.host, bytes, &|| run.is_over())
}

fn take<D: SharedMemory>(
    run: &HostedRun,
    trainer: &mut BlockTrainer<'_, D>,
    near: &mut NearMemory<D>,
    peers: &[Option<HostPeer>],
    expected: HostParcel,
    parcel: FetchedParcel,
) -> Result<(), Error> {
    match parcel {
        FetchedParcel::Shared(slabs) => {
            run.received_shared(expected.bytes);
            trainer.take_shared(expected, &slabs, &mut near.opened)?;
        }
        FetchedParcel::Chunks { parcel, repeated } => {
            run.received(parcel.len(), repeated);
            trainer.take(expected, &parcel)?;
            if let Some(peer) = &peers[expected.host] {
                peer.give_back(parcel);
            }
        }
    }
    Ok(())
}
