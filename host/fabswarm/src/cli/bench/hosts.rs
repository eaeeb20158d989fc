//! `fabswarm bench hosts`: what passes between two processes, and what rounds of a scenario take on links of several speeds.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::{Child, Command as Process, ExitCode, Stdio};

use anyhow::{Context as _, Result};
use clap::{Arg, ArgMatches, Command, value_parser};

use super::super::flags;
use crate::bench::median;
use fabswarm_large::data::Cache;
use fabswarm_large::training::{TrainingSetup, setup};
use fabswarm_mesh::bench::{self, ParcelAddresses, RoundCosts};
use fabswarm_mesh::cluster::{self, HostPart};
use fabswarm_mesh::hosts_file::HostList;
use fabswarm_mesh::local::LocalHosts;
use fabswarm_sim::record::bytes;
use fabswarm_sim::scenario::{self, Flag, ScenarioCommand};

const GIB: f64 = (1_u64 << 30) as f64;
const MIB: usize = 1 << 20;
/// Links whose rounds are predicted, in Gb/s.
const LINKS_GBPS: [u32; 4] = [1, 10, 25, 100];

pub(in crate::cli) fn command() -> Command {
    let number = |name: &'static str, default: &'static str, help: &'static str| {
        let parser = value_parser!(u32).range(1..=4096);
        Arg::new(name).long(name).value_name("N").default_value(default).value_parser(parser).help(help)
    };
    Command::new("hosts")
        .about("Time parcels between two processes beside plain TCP, and predict rounds on faster and slower links")
        .arg(
            Arg::new("scenario")
                .value_name("SCENARIO")
                .help("Scenario file (TOML) of `train` [default: sample data, models 1024 wide]")
                .value_parser(value_parser!(PathBuf)),
        )
        .arg(number("hosts", "2", "Hosts on this machine"))
        .arg(number("rounds", "10", "Rounds that are timed"))
        .arg(number("mebibytes", "64", "Size of a parcel between two processes"))
        .arg(number("repeats", "9", "Times it is fetched in each way; the median counts"))
        .arg(
            Arg::new("serve")
                .long("serve")
                .hide(true)
                .value_parser(value_parser!(usize))
                .help("Serve a parcel of so many bytes until standard input closes"),
        )
}

/// Another process of this program that has a parcel, until it is dropped.
struct ParcelServer {
    child: Child,
    addresses: ParcelAddresses,
}

impl ParcelServer {
    fn start(bytes: usize) -> Result<Self> {
        let mut child = Process::new(std::env::current_exe()?)
            .args(["bench", "hosts", "--serve", &bytes.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start a second process of this program")?;
        let output = child.stdout.take();
        let unknown = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
        // From here on it ends with this value, whatever happens.
        let mut server =
            ParcelServer { child, addresses: ParcelAddresses { hosts: unknown, plain: unknown } };
        let mut lines = BufReader::new(output.context("the second process has no output")?).lines();
        let ParcelAddresses { hosts, plain } = &mut server.addresses;
        for address in [hosts, plain] {
            *address = lines.next().context("the second process ended before it listened")??.parse()?;
        }
        Ok(server)
    }
}

impl Drop for ParcelServer {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

fn serve(bytes: usize) -> Result<ExitCode> {
    let ParcelAddresses { hosts, plain } = bench::serve_parcel(bytes)?;
    println!("{hosts}\n{plain}");
    // Whatever comes, it is the end that counts.
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    Ok(ExitCode::SUCCESS)
}

pub(in crate::cli) fn run(matches: &ArgMatches) -> Result<ExitCode> {
    if let Some(&bytes) = matches.get_one::<usize>("serve") {
        return serve(bytes);
    }
    let number = |name| matches.get_one::<u32>(name).copied().unwrap_or(1);
    let (hosts, rounds, repeats) = (number("hosts"), number("rounds"), number("repeats") as usize);
    let size = number("mebibytes") as usize * MIB;
    let server = ParcelServer::start(size)?;
    let times = bench::fetch_parcels(server.addresses, size, repeats)?;
    drop(server);
    let [rate, plain] = [&times.hosts, &times.plain].map(|times| size as f64 / median(times));
    println!("{} from one process to another over loopback, median of {repeats}\n", bytes(size as u64));
    println!("{:<28} {:>8.2} GiB/s", "as hosts fetch a parcel", rate / GIB);
    println!("{:<28} {:>8.2} GiB/s", "plain TCP", plain / GIB);
    println!("{:<28} {:>8.2}\n", "ratio", rate / plain);

    let file = matches.get_one::<PathBuf>("scenario");
    let defaults = || -> Result<Vec<Flag>> {
        let named = |name, value| Flag::named(ScenarioCommand::Train, name, value);
        Ok(vec![named("data", "sample".into())?, named("model-width", 1024.into())?])
    };
    let given = if file.is_some() { Vec::new() } else { defaults()? };
    let mut resolved = scenario::resolve_for(ScenarioCommand::Train, file.map(PathBuf::as_path), &given)?;
    flags::print_notes(&resolved);
    setup::make_paths_absolute(&mut resolved);
    let list = HostList::read(&format!("127.0.0.1x{hosts}"))?;
    let blocks = cluster::deal(&list.hosts(), resolved.scenario.swarm.agents)?;
    let prepared = TrainingSetup::new(&Cache::from_environment()?, &resolved.scenario)?;
    let costs = bench::measure_blocks(&prepared, &resolved, &blocks, rounds)?;
    let local = LocalHosts::start(list.hosts(), |_| LocalHosts::ON_CPU.map(str::to_owned))?;
    let measure = |shares_memory| {
        bench::measure_hosts(local.hosts.clone(), &prepared, &resolved, rounds, shares_memory)
    };
    let ((by_tcp, tcp_parts), (in_memory, memory_parts)) = (measure(false)?, measure(true)?);
    drop(local);
    println!(
        "{} agents of {} parameters on {hosts} hosts, {} over the busiest link in a round, mean of {rounds} rounds\n",
        resolved.scenario.swarm.agents,
        prepared.parameters(),
        bytes(costs.busiest() as u64)
    );
    println!("{}", table(&costs, rate, [by_tcp, in_memory]));
    println!("{}", timeline("over TCP, ms", &tcp_parts, rounds + 1));
    print!("{}", timeline("in shared memory, ms", &memory_parts, rounds + 1));
    Ok(ExitCode::SUCCESS)
}

/// What each host spent its rounds on, in milliseconds per round.
fn timeline(what: &str, parts: &[HostPart], rounds: u32) -> String {
    let mut text =
        format!("{what:<20} {:>12} {:>12} {:>22}\n", "parcels", "the rest", "of it beside parcels");
    for HostPart { name, traffic, .. } in parts {
        let times = [traffic.exchange_us, traffic.compute_us, traffic.hidden_us];
        let [exchange, compute, hidden] = times.map(|time| time as f64 / 1e3 / f64::from(rounds));
        text += &format!("{name:<20} {exchange:>12.1} {compute:>12.1} {hidden:>22.1}\n");
    }
    text
}

/// Predicted rounds by links, and those measured over TCP and in shared memory.
fn table(costs: &RoundCosts, loopback: f64, [by_tcp, in_memory]: [f64; 2]) -> String {
    let mut text = format!("{:<54} {:>12}\n", "a round", "ms");
    let mut row = |what: &str, seconds: f64| text += &format!("{what:<54} {:>12.1}\n", 1e3 * seconds);
    for link in LINKS_GBPS {
        let bytes_per_s = f64::from(link) * 1e9 / 8.0;
        row(&format!("a machine per host, {link} Gb/s, predicted"), costs.on_machines(bytes_per_s));
    }
    row("all hosts on this machine, over TCP, predicted", costs.on_one_machine(loopback));
    row("all hosts on this machine, over TCP, measured", by_tcp);
    row("all hosts on this machine, in shared memory, measured", in_memory);
    text
}

#[cfg(test)]
mod tests {
    use fabswarm_mesh::bench::LinkBytes;

    use super::*;

    #[test]
    fn rounds_are_predicted_for_every_link() {
        let link = LinkBytes { sent: vec![5e7, 0.0], received: vec![0.0, 5e7] };
        let (descent, rest) = (vec![0.01, 0.02], vec![0.0, 0.0]);
        let costs = RoundCosts { descent, rest, decisions: link.clone(), trackers: link };
        let text = table(&costs, 1e9, [0.14, 0.11]);
        let last: Vec<&str> = text.lines().skip(1).map(|line| line.rsplit(' ').next().unwrap()).collect();
        assert_eq!(last, ["800.0", "80.0", "36.0", "24.0", "130.0", "140.0", "110.0"], "{text}");
    }
}
