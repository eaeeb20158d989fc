//! `fabswarm train --hosts`: the agents are computed on other hosts, the run folder is kept here.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Result, bail};
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgMatches, value_parser};

use super::super::device::of_local_hosts;
use super::super::live::LivePage;
use super::super::{flags, host, interrupt};
use super::{TrainingJob, open_folder, prepare};
use fabswarm_large::device::{self, Block, Device};
use fabswarm_large::training::TrainingPlan;
use fabswarm_large::training::checkpoint::Checkpoint;
use fabswarm_mesh::certificates::Credentials;
use fabswarm_mesh::cluster::{self, Cluster, ClusterSwarm, HostPart};
use fabswarm_mesh::hosts_file::{Host, HostList};
use fabswarm_mesh::local::LocalHosts;
use fabswarm_sim::record::{RunFolder, bytes, counted};
use fabswarm_sim::scenario::{Flag, ResolvedScenario, Scenario, ScenarioCommand};

/// How often hosts that are lost are looked for.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// The flags about hosts.
pub(super) fn arguments() -> [Arg; 5] {
    let hosts =
        "Compute the agents on these hosts: a hosts.toml, addresses, or 127.0.0.1x2 for two on this machine";
    let hosts_in_full = "Compute the agents on these hosts, where `fabswarm host` runs: a hosts.toml, or addresses such as 10.0.0.11:7447,10.0.0.12:7447. 127.0.0.1x2 starts two hosts on this machine, for a first try";
    let loss = "When a host is lost: end, or wait for it and go on from the last checkpoint";
    let timeout = "How long a host may say nothing before it is lost";
    let memory = "Whether hosts of one machine hand parcels over in memory that they share, from GPU to GPU where they have some";
    [
        flags::option("hosts", "HOSTS", hosts).long_help(hosts_in_full),
        host::cluster_argument().hide_short_help(true),
        flags::option("on-host-loss", "WORD", loss)
            .default_value("end")
            .value_parser(PossibleValuesParser::new(["end", "wait"])),
        flags::option("host-timeout", "SECONDS", timeout)
            .default_value("15")
            .value_parser(value_parser!(u64).range(1..=86_400))
            .hide_short_help(true),
        flags::option("shared-memory", "BOOL", memory)
            .default_value("true")
            .value_parser(value_parser!(bool))
            .hide_short_help(true),
    ]
}

/// The flag that makes a block of each host, where links between hosts are not always up and the scenario has no blocks itself.
pub(super) fn blocks_of(given: &str, scenario: &Scenario) -> Result<Option<Flag>> {
    let hosts = HostList::read(given)?.hosts();
    let network = &scenario.network;
    if network.exchange_every == 1 || network.blocks > 1 || hosts.len() == 1 {
        return Ok(None);
    }
    if hosts.iter().any(|host| host.agents.is_some()) {
        bail!(fault!(
        "`--hosts {given}`: `network.exchange_every = {}` needs equal blocks, and some hosts ask for a number of agents", network.exchange_every;
        "leave `agents` of the hosts away, or set network.blocks yourself"
        ));
    }
    let count = i64::try_from(hosts.len())?;
    Ok(Some(Flag::named(ScenarioCommand::Train, "blocks", count.into())?))
}

/// Trains on the hosts that `given` names; what is evaluated here is computed on a device that `new_device` makes.
pub(super) fn train<D: Device<Scalar = f32>>(
    given: &str,
    matches: &ArgMatches,
    resolved: &ResolvedScenario,
    mut resumed: Option<(RunFolder, Checkpoint)>,
    page: &LivePage,
    new_device: &dyn Fn() -> device::Result<D>,
) -> Result<ExitCode> {
    let list = HostList::read(given)?;
    cluster::assign_blocks(&list.hosts(), resolved.scenario.swarm.agents)?;
    let credentials = host::credentials(matches)?;
    let waits = matches.get_one::<String>("on-host-loss").is_some_and(|word| word == "wait");
    let host_timeout = Duration::from_secs(*matches.get_one("host-timeout").expect("it has a default"));
    let shares_memory = *matches.get_one("shared-memory").expect("it has a default");
    let prepared = prepare(resolved)?;
    let interrupted = interrupt::on_ctrl_c()?;
    // Ended last, when the run on them is over.
    let local = match &list {
        HostList::Local(_) => Some(LocalHosts::start(list.hosts(), of_local_hosts(matches)?)?),
        HostList::Running(_) => None,
    };
    // The hosts of this machine are started without a folder of certificates.
    let credentials = if local.is_some() { Credentials::of_this_user()? } else { credentials };
    let hosts = local.as_ref().map_or_else(|| list.hosts(), |local| local.hosts.clone());
    let device = counted(hosts.len(), "host");
    let job = TrainingJob { prepared: &prepared, resolved, device, page, interrupted: &interrupted };
    let (digest, scenario) = (prepared.digest(), resolved.to_repeatable_toml());
    loop {
        // Nobody is computed here.
        let planned = TrainingPlan::of_block(new_device()?, &prepared, resolved, Block::NONE)?;
        let cluster = Cluster::dial(hosts.clone(), &credentials)?.sharing_memory(shares_memory);
        let agents_of_all = resolved.scenario.swarm.agents;
        let run = cluster.start(digest, &scenario, agents_of_all, &interrupted, host_timeout)?;
        let run = Arc::new(run);
        for HostPart { name, block, .. } in run.parts()? {
            outln!("{name}: {} from number {} on", counted(block.agents, "agent"), block.first);
        }
        let (folder, mut checkpoint) = resumed.unzip();
        let swarm = Box::new(ClusterSwarm(Arc::clone(&run)));
        let mut trainer = planned.watch(swarm, checkpoint.as_mut())?;
        let (begun, folder) = (trainer.round(), open_folder(folder, resolved)?);
        if waits {
            trainer.keep(&folder)?;
        }
        let is_resumed = checkpoint.is_some();
        let trained = job.run_rounds(&mut trainer, &folder, is_resumed)?;
        let checkpointed = trainer.checkpointed();
        drop(trainer);
        let may_wait = waits && local.is_none() && !interrupted.load(Ordering::Relaxed);
        if let Some(what) = run.failure().filter(|_| trained.is_err() && may_wait) {
            eprintln!("note: {what}\nnote: waiting for all hosts, to go on from the last checkpoint");
            let name = run.name().to_owned();
            drop(run);
            wait_for_all(&hosts, &credentials, &name, &interrupted);
            if !interrupted.load(Ordering::Relaxed) {
                let checkpoint = Checkpoint::open(folder.path(), resolved)?;
                resumed = Some((folder, checkpoint));
                continue;
            }
            return Ok(job.report(trained, &folder, checkpointed));
        }
        let code = job.report(trained, &folder, checkpointed);
        // A host that is lost has nothing to say; the run has said so.
        if let Ok(parts) = run.parts() {
            folder.write("hosts.csv", cluster::table(&parts).as_bytes())?;
            out!("{}", between_hosts(&parts, run.round() - begun));
        }
        drop(run);
        page.keep_page_open(&interrupted);
        return Ok(code);
    }
}

/// Waits until every host is there and has forgotten the run of that name, or until `interrupted`.
fn wait_for_all(hosts: &[Host], credentials: &Credentials, run: &str, interrupted: &AtomicBool) {
    let is_ready = |host: &Host| {
        Cluster::dial(vec![host.clone()], credentials)
            .and_then(|cluster| cluster.is_free_of(run))
            .unwrap_or(false)
    };
    while !interrupted.load(Ordering::Relaxed) && !hosts.iter().all(is_ready) {
        std::thread::sleep(LOOK_EVERY);
    }
}

/// Bytes between hosts, planned and counted.
fn between_hosts(parts: &[HostPart], rounds: u32) -> String {
    let per_round = |count: u64| bytes(count / u64::from(rounds.max(1)));
    let line = |HostPart { name, traffic, .. }: &HostPart| {
        let per_round_ms = |time_us: u64| time_us as f64 / 1e3 / f64::from(rounds.max(1));
        format!(
            "{name}, per round: {} sent ({} planned), {} received ({} planned), {} of these in shared memory; {:.1} ms waiting for parcels, {:.1} ms computing, {:.1} ms of these while parcels came in; {} chunks asked for again in all\n",
            per_round(traffic.sent),
            per_round(traffic.planned_sent),
            per_round(traffic.received),
            per_round(traffic.planned_received),
            per_round(traffic.received_shared),
            per_round_ms(traffic.exchange_us),
            per_round_ms(traffic.compute_us),
            per_round_ms(traffic.hidden_us),
            traffic.repeated_chunks,
        )
    };
    parts.iter().map(line).collect()
}
