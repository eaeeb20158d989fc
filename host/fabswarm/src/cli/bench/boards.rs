//! `fabswarm bench boards`: instructions, memory and speed of emulated boards.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, ensure};
use clap::{ArgMatches, Command, value_parser};

use super::super::flags;
use crate::bench::boards::{ImageBytes, instructions, rounds_per_second, sizes};
use fabswarm_attach::on_path;

/// Compiles the C kernels that ours are compared with.
const C_COMPILER: &str = "arm-none-eabi-gcc";

/// Swarms, and how many rounds of each are timed.
const SWARMS: [(usize, u32); 3] = [(10, 2000), (32, 500), (100, 200)];

pub(super) fn command() -> Command {
    Command::new("boards").about(
        "Count the instructions of a round on the emulated Cortex-M4F beside plain C, list flash and RAM by part, and time swarms",
    )
    .arg(
        flags::option("seconds", "S", "How long each swarm is timed at most").default_value("60").value_parser(value_parser!(u64).range(1..=3600)),
    )
}

pub(super) fn run(matches: &ArgMatches) -> Result<ExitCode> {
    let sizes = sizes()?;
    outln!("bytes of mps2-an386, room for 16 members\n\n{:<28} {:>8} {:>8}", "part", "flash", "RAM");
    for (name, ImageBytes { flash, ram }) in sizes {
        outln!("{name:<28} {flash:>8} {ram:>8}");
    }

    print_instructions()?;

    outln!("\nlock-step over Ethernet, frames encrypted\n\nboards   rounds/s  deepest stack");
    let limit = Duration::from_secs(matches.get_one::<u64>("seconds").copied().unwrap_or(60));
    for (boards, rounds) in SWARMS {
        let (rate, stack) = rounds_per_second(boards, rounds, limit)?;
        let stack = stack.map_or("–".to_owned(), |bytes| format!("{bytes} bytes"));
        outln!("{boards:>6} {rate:>10.0} {stack:>14}");
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints what a round takes, where the compiler for the C kernels beside ours is installed.
fn print_instructions() -> Result<()> {
    if on_path(C_COMPILER).is_none() {
        outln!("\ninstructions are not counted: {C_COMPILER} is not on the PATH");
        outln!("help: run `apt-get install gcc-arm-none-eabi`");
        return Ok(());
    }
    let parts = instructions()?;
    ensure!(parts == instructions()?, "two counts of the same instructions differ");
    outln!("\ninstructions of a round's parts (5 features, 20 states, 2 others heard), twice the same\n");
    outln!("{:<16} {:>8} {:>8}", "part", "ours", "C -O3");
    for part in &parts {
        let in_c = part.in_c.map_or("–".to_owned(), |count| count.to_string());
        outln!("{:<16} {:>8} {in_c:>8}", part.name, part.ours);
    }
    Ok(())
}
