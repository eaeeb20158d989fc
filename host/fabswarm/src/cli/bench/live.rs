//! `fabswarm bench live`: what the page costs a run.

use crate::bench::{self, live};
use anyhow::Result;
use clap::{Arg, ArgMatches, Command, value_parser};
use std::process::ExitCode;

pub(in crate::cli) fn command() -> Command {
    let number = |name: &'static str, default: &'static str, help: &'static str| {
        let parser = value_parser!(u32).range(1..);
        Arg::new(name).long(name).value_name("N").default_value(default).value_parser(parser).help(help)
    };
    Command::new("live")
        .about("Time a run of a thousand agents without and with the live page open, in the same run")
        .arg(number("repeats", "5", "Repeats of each measurement; the median counts"))
        .arg(number("rounds", "300", "Rounds of one repeat"))
}

pub(in crate::cli) fn run(matches: &ArgMatches) -> Result<ExitCode> {
    let number = |name| matches.get_one::<u32>(name).copied().unwrap_or(1);
    let (repeats, rounds) = (number("repeats"), u64::from(number("rounds")));
    let (mut unseen, mut seen, mut shares) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..repeats {
        let (without, with) = (live::measure_unseen(rounds)?, live::measure_seen(rounds)?);
        unseen.push(without);
        seen.push(with);
        shares.push(with / without);
    }
    println!(
        "{} agents, sealed frames, {rounds} rounds as `fabswarm run` does them; rounds per second, median of {repeats}\n",
        live::CASE.agents
    );
    println!("{:<28} {:>8.1}", "nobody looks", bench::median(&unseen));
    println!("{:<28} {:>8.1}", "the page is open", bench::median(&seen));
    println!("{:<28} {:>8.3}", "median of the pairs' ratios", bench::median(&shares));
    Ok(ExitCode::SUCCESS)
}
