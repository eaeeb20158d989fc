//! `fabswarm run --hosts`: boards on other hosts; the air, the shadows of all agents and the run folder are here.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Result;
use clap::{Arg, ArgMatches};

use super::super::host;
use fabswarm_attach::build_shadows;
use fabswarm_mesh::boards::RemoteBoards;
use fabswarm_mesh::certificates::Credentials;
use fabswarm_mesh::cluster::{self, Cluster, ClusterRun, HostPart};
use fabswarm_mesh::hosts_file::HostList;
use fabswarm_mesh::line::PATIENCE;
use fabswarm_mesh::local::LocalHosts;
use fabswarm_mesh::message::{RunKey, RunKind};
use fabswarm_sim::record::{agents, bytes};
use fabswarm_sim::scenario::ResolvedScenario;
use fabswarm_sim::sealing::SwarmKey;
use fabswarm_sim::swarm::Swarm;
use fabswarm_sim::task::OwnProblem;

/// The hosts of a run with boards.
pub(super) struct BoardHosts {
    run: Arc<ClusterRun>,
    /// Ended last, when the run on them is over.
    _local: Option<LocalHosts>,
}

/// `--hosts` and `--cluster`.
pub(super) fn arguments() -> Vec<Arg> {
    let hosts = Arg::new("hosts").long("hosts").value_name("HOSTS").hide_short_help(true);
    let help =
        "Run the boards on these hosts: a hosts.toml, addresses, or 127.0.0.1x2 for two on this machine";
    vec![hosts.help(help), host::cluster_argument().hide_short_help(true).requires("hosts")]
}

/// The swarm, and the hosts that its boards are on if `--hosts` names some.
pub(super) fn build(
    matches: &ArgMatches,
    resolved: &ResolvedScenario,
    own: Option<&OwnProblem>,
    interrupted: &Arc<AtomicBool>,
) -> Result<(Option<BoardHosts>, Box<dyn Swarm>)> {
    let Some(given) = matches.get_one::<String>("hosts") else {
        return Ok((None, fabswarm_attach::build(&resolved.scenario, own, interrupted)?));
    };
    let list = HostList::read(given)?;
    cluster::assign_blocks(&list.hosts(), resolved.scenario.swarm.agents)?;
    let credentials = host::credentials(matches)?;
    let mut hosts = None;
    let swarm = build_shadows(&resolved.scenario, own, |remote, key| {
        let found = hosts.insert(BoardHosts::start(&list, credentials, resolved, key, interrupted)?);
        Ok(Box::new(RemoteBoards::new(Arc::clone(&found.run), remote)))
    })?;
    Ok((hosts, swarm))
}

impl BoardHosts {
    fn start(
        list: &HostList,
        credentials: Credentials,
        resolved: &ResolvedScenario,
        key: Option<&SwarmKey>,
        interrupted: &Arc<AtomicBool>,
    ) -> Result<Self, fabswarm_mesh::Error> {
        let local = match list {
            HostList::Local(_) => {
                Some(LocalHosts::start(list.hosts(), |_| LocalHosts::ON_CPU.map(str::to_owned))?)
            }
            HostList::Running(_) => None,
        };
        // The hosts of this machine are started without a folder of certificates.
        let credentials = if local.is_some() { Credentials::of_this_user()? } else { credentials };
        let hosts = local.as_ref().map_or_else(|| list.hosts(), |local| local.hosts.clone());
        let kind = RunKind::Boards { key: key.map(|key| RunKey(*key.bytes())) };
        let (scenario, count) = (resolved.to_repeatable_toml(), resolved.scenario.swarm.agents);
        let cluster = Cluster::dial(hosts, &credentials)?;
        let run = cluster.start(&kind, &scenario, count, interrupted, PATIENCE)?;
        Ok(BoardHosts { run: Arc::new(run), _local: local })
    }

    /// Says what each host had to do with the run, which took so many rounds.
    pub(super) fn conclude(&self, folder: &Path, rounds: u64) -> Result<()> {
        // A host that is lost has nothing to say; the run has said so.
        let Ok(parts) = self.run.parts() else { return Ok(()) };
        std::fs::write(folder.join("hosts.csv"), cluster::table(&parts))?;
        for HostPart { name, block, traffic, .. } in parts {
            let per_round = bytes(traffic.received / rounds.max(1));
            println!(
                "{name}: {} from number {} on, {per_round} to it in a round",
                agents(block.agents),
                block.first
            );
        }
        Ok(())
    }
}
