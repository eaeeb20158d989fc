//! `fabswarm swarm new`: the private file of a swarm of real boards.

use super::boards::chips::{board_argument, chips};
use super::flags;
use anyhow::{Result, bail};
use clap::{ArgMatches, Command};
use fabswarm_attach::{SwarmFile, serial};
use fabswarm_sim::record::counted;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

pub(super) fn command() -> Command {
    let scenario = "Scenario file of the swarm [default: the default scenario]";
    let chips = "Chips of agents 0, 1, …, in hexadecimal digits [default: all that are plugged in]";
    let new = Command::new("new")
        .about("Draw the key of a swarm, and give an agent to every board that is plugged in")
        .arg(flags::path("file", "FILE", "File to write; only you can read it").required(true))
        .arg(flags::path("scenario", "SCENARIO", scenario))
        .arg(flags::option("chips", "CHIP,…", chips).value_delimiter(','))
        .arg(flags::option("ports", "PATTERN", "Serial ports to look at [default: all USB serial ports]"))
        .arg(board_argument());
    Command::new("swarm")
        .about("Make the private file of a swarm of real boards")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .args(flags::boards_dir())
        .subcommand(new)
}

pub(super) fn run(matches: &ArgMatches) -> Result<ExitCode> {
    let Some(("new", matches)) = matches.subcommand() else {
        unreachable!("clap asks for one of the sub-commands")
    };
    let Some(path) = matches.get_one::<PathBuf>("file") else { bail!("FILE is missing") };
    let (mut numbers, mut has_firmware) = (Vec::new(), false);
    match matches.get_many::<String>("chips") {
        Some(listed) => {
            for chip in listed {
                let number = u64::from_str_radix(chip.trim(), 16);
                let Ok(number) = number else {
                    bail!(fault!(
                        "`{chip}` is not the number of a chip";
                        "write it in hexadecimal digits, as `fabswarm boards list` does"
                    ))
                };
                numbers.push(number);
            }
        }
        None => {
            let pattern = matches.get_one::<String>("ports").map(String::as_str);
            let ports = serial::ports(pattern);
            for (port, outcome) in ports.iter().zip(serial::identify_all(&ports)) {
                let chip = outcome.map(|board| board.chip);
                numbers.extend(chip.as_ref().ok().copied().flatten());
                match chip {
                    Ok(Some(_)) => has_firmware = true,
                    Ok(None) => eprintln!("left out: the board on {} has no number", port.display()),
                    Err(trouble) => eprintln!("left out: {trouble}"),
                }
            }
            for line in chips(matches.get_one("board"), pattern)? {
                if line.chip.is_none() && matches.contains_id("board") {
                    bail!("{}: {}", line.name, line.what);
                }
                numbers.extend(line.chip);
            }
            numbers.sort_unstable();
            // A board may be there by its cable and by its probe.
            numbers.dedup();
        }
    }
    if let Some(pair) = numbers.iter().enumerate().find(|(at, chip)| numbers[..*at].contains(chip)) {
        bail!(fault!("chip {:016x} is there twice", pair.1; "a chip runs one agent"));
    }
    // A number above that of any swarm before.
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    // The file may be used from another folder.
    let scenario = matches.get_one::<PathBuf>("scenario").map(std::path::absolute).transpose()?;
    let swarm = SwarmFile::draw(scenario, &numbers, u32::try_from(now).unwrap_or(u32::MAX))?;
    // Refuses a scenario that boards cannot run, before anything is written.
    let pages = swarm.prepare()?;
    pages.check("native")?;
    let agents = pages.agents();
    if numbers.len() > agents {
        bail!(fault!(
            "there are {}, and the scenario has {}",
            counted(numbers.len(), "board"),
            counted(agents, "agent");
            "unplug some, or raise swarm.agents"
        ));
    }
    swarm.write(path)?;
    let (path, agents) = (path.display(), counted(agents, "agent"));
    outln!("{path}: a new key, {agents}, {} of them on known chips", numbers.len());
    let board = matches.get_one::<String>("board").map_or("BOARD", String::as_str);
    if has_firmware {
        outln!(
            "give boards that are flashed their provisioning records with `fabswarm boards provision --swarm {path}`"
        );
    } else {
        outln!("flash them with `fabswarm boards flash --swarm {path} --all --board {board}`");
    }
    Ok(ExitCode::SUCCESS)
}
