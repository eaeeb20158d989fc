//! `fabswarm host`: lets this machine compute agents of runs that are started elsewhere.

use std::io::Read as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use anyhow::Result;
use clap::{Arg, ArgMatches, Command, value_parser};

use super::{device, flags, interrupt};
use fabswarm_data::Cache;
use fabswarm_diagnostic::Diagnostic;
use fabswarm_large::device::Block;
use fabswarm_mesh::RunEnd;
use fabswarm_mesh::certificates::{self, Credentials, STARTER};
use fabswarm_mesh::cluster::Cluster;
use fabswarm_mesh::daemon::{self, HostConfig, HostDevice, HostEvent};
use fabswarm_mesh::hosts_file::{Host, HostList};
use fabswarm_mesh::local::LISTENING;
use fabswarm_mesh::message::HostStatus;
use fabswarm_sim::record::{bytes, counted};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

pub(super) fn command() -> Command {
    let folder = "A new folder: one folder in it for each host, one for the machine that starts runs";
    let listen = flags::option("listen", "ADDRESS", "Where to wait for runs; port 0 takes a free one");
    Command::new("host")
        .about("Let this machine take part in runs that are started elsewhere with `train --hosts`")
        .args_conflicts_with_subcommands(true)
        .subcommand(
            Command::new("new-cluster")
                .about("Make certificates for hosts, which networks beyond this machine need")
                .arg(flags::path("folder", "FOLDER", folder).required(true))
                .arg(hosts_argument()),
        )
        .subcommand(
            Command::new("status")
                .about("Print the hosts that answer, and their runs")
                .arg(hosts_argument())
                .arg(cluster_argument()),
        )
        .arg(cluster_argument())
        .arg(listen.default_value("127.0.0.1:7447").value_parser(value_parser!(SocketAddr)))
        .arg(flags::option("name", "NAME", "Name of this host [default: the address]"))
        .args(device::arguments())
        .arg(flags::switch("until-eof", "End when standard input closes, and print nothing but the address"))
}

/// `--hosts HOSTS`.
fn hosts_argument() -> Arg {
    let help = "A hosts.toml, or addresses such as 10.0.0.11:7447,10.0.0.12:7447";
    flags::option("hosts", "HOSTS", help).required(true)
}

/// The flag that names the folder with this machine's certificate.
pub(super) fn cluster_argument() -> Arg {
    let help = "The folder that `fabswarm host new-cluster` made for this machine; on loopback each user has keys without one";
    flags::path_option("cluster", "FOLDER", help)
}

/// The cluster that this flag names; without it, the one that processes of this user share on loopback.
pub(super) fn credentials(matches: &ArgMatches) -> Result<Credentials, Diagnostic> {
    let folder = matches.get_one::<PathBuf>("cluster");
    folder.map_or_else(Credentials::of_this_user, |folder| Credentials::open(folder))
}

pub(super) fn run(matches: &ArgMatches) -> Result<ExitCode> {
    match matches.subcommand() {
        Some(("status", matches)) => return status(matches),
        Some(("new-cluster", matches)) => return new_cluster(matches),
        _ => {}
    }
    let address = *matches.get_one::<SocketAddr>("listen").expect("it has a default");
    allow_open_files();
    interrupt::is_expected();
    let interrupted = interrupt::on_ctrl_c()?;
    let is_child = matches.get_flag("until-eof");
    if is_child {
        let flag = Arc::clone(&interrupted);
        std::thread::spawn(move || {
            // Whatever comes, it is the end that counts.
            let _ = std::io::stdin().read_to_end(&mut Vec::new());
            flag.store(true, Ordering::Relaxed);
        });
    }
    let name = matches.get_one::<String>("name").cloned();
    let gpu = device::gpu(matches)?.map(|gpu| HostDevice::Gpu(gpu, device::precision(matches)));
    let device = gpu.unwrap_or(HostDevice::Cpu);
    let refused = |refusal: &str| {
        eprintln!("note: somebody was refused: {refusal} (said once, however often it tries)");
    };
    let setup = HostConfig { name, address, credentials: credentials(matches)?, device, refused };
    let mut observe = |event: HostEvent| match event {
        HostEvent::Listening(address) => outln!("{LISTENING}{address}"),
        _ if is_child => {}
        HostEvent::Begun(plan) => {
            let Block { first, agents } = plan.hosts[plan.host].block;
            let (agents, hosts) = (counted(agents, "agent"), counted(plan.hosts.len(), "host"));
            outln!("run {}: {agents} from number {first} on, {hosts} in all", plan.run);
        }
        HostEvent::Ended(RunEnd::Ended) => outln!("the run has ended"),
        HostEvent::Ended(RunEnd::Abandoned) => outln!("the run ended: the process that started it is gone"),
        HostEvent::Ended(RunEnd::Failed(what)) => eprintln!("error: {what}"),
    };
    daemon::serve(&setup, &Cache::from_environment(), &interrupted, &mut observe)?;
    Ok(ExitCode::SUCCESS)
}

/// Raises the limit of open files as far as the system lets a user: every connection takes one.
fn allow_open_files() {
    let limit = getrlimit(Resource::Nofile);
    // A host with fewer still answers its members.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

/// The hosts that `--hosts` names.
fn named(matches: &ArgMatches) -> Result<Vec<Host>> {
    let given = matches.get_one::<String>("hosts").map_or("", String::as_str);
    match HostList::read(given)? {
        HostList::Running(hosts) => Ok(hosts),
        HostList::Local(_) => anyhow::bail!(fault!(
            "`--hosts {given}` are hosts that a run starts for itself";
            "name addresses or a hosts.toml"
        )),
    }
}

fn new_cluster(matches: &ArgMatches) -> Result<ExitCode> {
    let folder = matches.get_one::<PathBuf>("folder").expect("it is required");
    let hosts = named(matches)?;
    certificates::new_cluster(folder, &hosts)?;
    let folder = folder.display();
    outln!("carry each folder to its machine, over a way that nobody else can read:");
    for Host { name, address, .. } in &hosts {
        outln!("  {folder}/{name}: `fabswarm host --listen {address} --cluster {name}`");
    }
    outln!("  {folder}/{STARTER}: `fabswarm train … --hosts … --cluster {STARTER}`");
    outln!("{folder}/ca.key can make members: keep it where no host is, or remove it");
    Ok(ExitCode::SUCCESS)
}

fn status(matches: &ArgMatches) -> Result<ExitCode> {
    let (hosts, credentials) = (named(matches)?, credentials(matches)?);
    let mut code = ExitCode::SUCCESS;
    for host in hosts {
        let name = host.name.clone();
        match Cluster::dial(vec![host], &credentials).and_then(|cluster| cluster.status()) {
            Ok(status) => status.iter().for_each(|status| outln!("{name}: {}", line(status))),
            Err(error) => {
                eprintln!("error: {error}");
                code = ExitCode::from(1);
            }
        }
    }
    Ok(code)
}

/// One host, on a line.
fn line(status: &HostStatus) -> String {
    let free = status.free_bytes.map_or(String::new(), |free| format!(", {} free", bytes(free)));
    let run = match &status.run {
        None => "waits for a run".to_owned(),
        Some(run) => {
            let round = run.round.map_or("prepares".to_owned(), |round| format!("round {round}"));
            let Block { first, agents } = run.block;
            let (run, agents, traffic) = (&run.run, counted(agents, "agent"), run.traffic);
            let [sent, received] = [traffic.sent, traffic.received].map(bytes);
            format!("run {run}, {agents} from number {first} on, {round}, {sent} sent, {received} received")
        }
    };
    format!("{}{free}, build {}, {run}", status.device, status.build)
}
