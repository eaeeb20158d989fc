//! `fabswarm boards monitor`: what boards say, by their cables and through their debug probes.

mod logs;

use super::super::flags;
use super::FAILED;
use super::ports::{ports, ports_argument, report, some_ports};
use anyhow::Result;
use clap::{ArgMatches, Command, value_parser};
use fabswarm_attach::BoardFile;
use fabswarm_attach::packet::{BoardIdentity, Boot, Packet, Telemetry};
use fabswarm_attach::serial;
use logs::ProbedLogs;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

pub(super) fn command() -> Command {
    let board = "The kind of the boards, a folder of boards/: their logs are read through debug probes";
    Command::new("monitor")
        .about("Print what all boards say, one colour per agent: boot packets and telemetry, and their logs through probes; no board is disturbed")
        .arg(ports_argument())
        .arg(flags::option("board", "BOARD", board))
        .arg(
            flags::option("seconds", "S", "How long")
                .default_value("10")
                .value_parser(value_parser!(u64).range(1..=86_400)),
        )
}

pub(super) fn run(matches: &ArgMatches) -> Result<ExitCode> {
    let board = matches.get_one::<String>("board").map(|board| BoardFile::read(board)).transpose()?;
    let logs = board.as_ref().map(ProbedLogs::find).transpose()?;
    let ports = if logs.is_some() { ports(matches) } else { some_ports(matches)? };
    let seconds = matches.get_one::<u64>("seconds").copied().unwrap_or(10);
    let time = Duration::from_secs(seconds);
    let agents: Mutex<BTreeMap<PathBuf, u16>> = Mutex::default();
    let print_packet = |path: &Path, packet: &Packet| {
        let mut agents = agents.lock().unwrap_or_else(PoisonError::into_inner);
        match packet {
            Packet::Boot(Boot { page: Ok(BoardIdentity { agent, .. }), .. })
            | Packet::Telemetry(Telemetry { agent, .. }, _) => {
                agents.insert(path.to_owned(), *agent);
            }
            _ => {}
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let agent = agents.get(path).copied();
        let who = agent.map_or_else(|| "–".to_owned(), |agent| format!("agent {agent}"));
        // Printed under the lock: lines of several boards do not mix.
        println!("{} {}", paint(agent, format!("{name} {who:<9}")), packet_line(packet));
    };
    let print_message = |probe: &str, message: &str| println!("{probe} {message}");
    let (logged, packets) = thread::scope(|scope| {
        let logged = scope.spawn(|| logs.map(|logs| logs.follow(time, &print_message)).unwrap_or_default());
        let packets = serial::monitor(&ports, time, print_packet);
        (logged.join().unwrap_or_default(), packets)
    });
    let counted =
        packets.into_iter().map(|outcome| outcome.map(|packets| format!("{packets} packets in {seconds} s")));
    let mut code = report(&ports, counted);
    for (probe, outcome) in logged {
        match outcome {
            Ok(messages) => println!("{probe}: {messages} messages in {seconds} s"),
            Err(error) => {
                eprintln!("error: {probe}: {error}");
                code = ExitCode::from(FAILED);
            }
        }
    }
    Ok(code)
}

/// One colour per agent, where the terminal has colours.
fn paint(agent: Option<u16>, text: String) -> console::StyledObject<String> {
    const COLOURS: [u8; 12] = [2, 3, 4, 5, 6, 9, 10, 11, 12, 13, 14, 208];
    match agent {
        Some(agent) => console::style(text).color256(COLOURS[usize::from(agent) % COLOURS.len()]),
        None => console::style(text),
    }
}

fn packet_line(packet: &Packet) -> String {
    match packet {
        Packet::Boot(boot) => {
            let Boot { board, reset, page, .. } = boot;
            let who = match page {
                Ok(identity) => format!("boot {}, round {}", identity.boot, identity.round),
                Err(error) => error.to_string(),
            };
            let panic = fabswarm_attach::last_panic(boot)
                .map(|message| format!("; its last run ended in a panic: {message}"));
            format!("{board} started {reset}: {who}{}", panic.unwrap_or_default())
        }
        Packet::Telemetry(telemetry, _) => format!(
            "round {}, epoch {}, digest {:08x}, heard {}, refused {}, late {}{}",
            telemetry.round,
            telemetry.epoch,
            telemetry.digest,
            telemetry.heard,
            telemetry.refused,
            telemetry.late,
            if telemetry.is_stopped { ", stopped by a fault" } else { "" }
        ),
        Packet::Frame(frame) => format!("frame of {} bytes", frame.len()),
        other => format!("{other:?}"),
    }
}
