//! `fabswarm bench`: rounds per second, beside NumPy.

#[cfg(feature = "boards")]
mod boards;
#[cfg(feature = "large")]
mod large;

use std::process::ExitCode;

use anyhow::Result;
use clap::{ArgMatches, Command, value_parser};

use super::flags;
use crate::bench::{self, BenchCase, CASES, LEDGER_CASES, LedgerEngine, NumPy};
use fabswarm_sim::process_memory;
use fabswarm_sim::scenario::{PrecisionKind, TopologyKind};

pub(super) fn command() -> Command {
    let commands: &[Command] = &[
        #[cfg(feature = "boards")]
        boards::command(),
        #[cfg(feature = "large")]
        large::command(),
    ];
    let repeats = flags::option("repeats", "N", "Repeats of each measurement; the median counts");
    let seconds = flags::option("seconds", "NUMBER", "Least time of one repeat");
    Command::new("bench")
        .about("Time the in-process swarm beside a dense NumPy implementation, in the same run")
        .subcommands(commands)
        .arg(repeats.default_value("5").value_parser(value_parser!(u32).range(1..)))
        .arg(seconds.default_value("1").value_parser(duration))
}

pub(super) fn run(matches: &ArgMatches) -> Result<ExitCode> {
    match matches.subcommand() {
        #[cfg(feature = "boards")]
        Some(("boards", matches)) => return boards::run(matches),
        #[cfg(feature = "large")]
        Some(("large", matches)) => return large::run(matches),
        _ => {}
    }
    let repeats = matches.get_one::<u32>("repeats").copied().unwrap_or(5);
    let seconds = matches.get_one::<f64>("seconds").copied().unwrap_or(1.0);
    eprintln!("preparing NumPy in a virtual environment of its own");
    let numpy = NumPy::prepare();
    if let Err(error) = &numpy {
        eprintln!("NumPy is left out: {error}");
    }
    outln!("plain FAB, policy evaluation, 45 scalars per agent; rounds per second, median of {repeats}\n");
    outln!("  agents  links                     f32          f64    NumPy f64   f32/Np   f64/Np");
    for case in CASES {
        let (mut singles, mut doubles, mut peers) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..repeats {
            singles.push(bench::measure(&case, PrecisionKind::F32, seconds)?);
            doubles.push(bench::measure(&case, PrecisionKind::F64, seconds)?);
            if let (true, Ok(numpy)) = (case.fits_dense_matrices(), &numpy) {
                peers.push(numpy.measure(&case, seconds)?);
            }
        }
        outln!("{}", row(&case, bench::median(&singles), bench::median(&doubles), &peers));
    }
    recorded(repeats, seconds)?;
    for case in CASES.iter().filter(|case| !case.fits_dense_matrices()) {
        let gigabytes = case.dense_bytes() / 1_000_000_000;
        outln!(
            "\n{} agents: one dense matrix would take {gigabytes} GB, so NumPy is not asked.",
            case.agents
        );
    }
    ledger(repeats, seconds, numpy.as_ref().ok())?;
    match process_memory::peak_resident_bytes() {
        Some(bytes) => outln!("peak memory of this process: {} MB", bytes / 1_000_000),
        None => outln!("peak memory of this process: unknown on this system"),
    }
    Ok(ExitCode::SUCCESS)
}

/// Parses the duration of a measurement.
fn duration(text: &str) -> Result<f64, String> {
    const LONGEST: f64 = 3600.0;
    match text.parse() {
        Ok(seconds) if (0.0..=LONGEST).contains(&seconds) => Ok(seconds),
        _ => Err(format!("give a number from 0 to {LONGEST}")),
    }
}

/// Measures what recording costs: the first case as `fabswarm run` does it.
fn recorded(repeats: u32, seconds: f64) -> Result<()> {
    let case = &CASES[0];
    let (mut plain, mut recorded) = (Vec::new(), Vec::new());
    for _ in 0..repeats {
        let rate = bench::measure(case, PrecisionKind::F32, seconds)?;
        plain.push(rate);
        recorded.push(bench::measure_recorded(case, (rate * seconds) as u64 + 1000)?);
    }
    let (plain, recorded) = (bench::median(&plain), bench::median(&recorded));
    outln!(
        "\n{} agents, f32, as `fabswarm run` with metrics, files and figure: {recorded:.1} rounds per second, {:.2} of bare rounds",
        case.agents,
        recorded / plain
    );
    Ok(())
}

/// Measures what agents, frames, the air and sealing cost compared with plain arrays.
fn ledger(repeats: u32, seconds: f64, numpy: Option<&NumPy>) -> Result<()> {
    let ways = [
        (LedgerEngine::Arrays, "on arrays, without frames"),
        (LedgerEngine::Frames, "agents, frames and channel"),
        (LedgerEngine::SealedFrames, "the same, frames encrypted"),
    ];
    for case in LEDGER_CASES {
        let (mut rates, mut peers) = ([const { Vec::new() }; 3], Vec::new());
        for _ in 0..repeats {
            for ((way, _), rates) in ways.iter().zip(&mut rates) {
                rates.push(bench::measure_ledger(&case, *way, seconds)?);
            }
            if let Some(numpy) = numpy {
                peers.push(numpy.measure(&case, seconds)?);
            }
        }
        let medians = rates.map(|rates| bench::median(&rates));
        outln!(
            "\nledger, balance checked, {} agents, paper topology, ν = {}; rounds per second, median of {repeats}\n",
            case.agents,
            case.edge_probability
        );
        for ((_, name), rate) in ways.iter().zip(medians) {
            outln!("{name:<28} {rate:>12.1} {:>6.2} of arrays", rate / medians[0]);
        }
        if !peers.is_empty() {
            let peer = bench::median(&peers);
            let ratio = medians[2] / peer;
            outln!("NumPy, plain FAB, dense f64  {peer:>12.1} {ratio:>6.2} times as fast: encrypted frames");
        }
        outln!(
            "encryption takes {:.0} % of a round with encrypted frames",
            100.0 * (1.0 - medians[2] / medians[1])
        );
    }
    Ok(())
}

fn row(case: &BenchCase, single: f64, double: f64, peers: &[f64]) -> String {
    let links = match case.topology {
        TopologyKind::Paper => format!("paper, ν = {}", case.edge_probability),
        topology => topology.to_string(),
    };
    let (peer, single_ratio, double_ratio) = if peers.is_empty() {
        ("–".to_owned(), "–".to_owned(), "–".to_owned())
    } else {
        let peer = bench::median(peers);
        (format!("{peer:.1}"), format!("{:.1}", single / peer), format!("{:.1}", double / peer))
    };
    format!(
        "{:>8}  {links:<16} {single:>12.1} {double:>12.1} {peer:>12} {single_ratio:>8} {double_ratio:>8}",
        case.agents
    )
}
