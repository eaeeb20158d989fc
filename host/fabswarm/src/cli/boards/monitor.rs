//! `fabswarm boards monitor`: what boards say, by their cables and through their debug probes.

mod logs;

use super::super::{flags, interrupt};
use super::FAILED;
use super::ports::{ports, ports_argument, report, some_ports};
use anyhow::Result;
use clap::{ArgMatches, Command, value_parser};
use fabswarm_attach::BoardFile;
use fabswarm_attach::packet::{BoardIdentity, Boot, Packet, Telemetry};
use fabswarm_attach::serial;
use fabswarm_sim::record::counted;
use logs::ProbedLogs;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How long a line that repeats is counted before the count is printed.
const COUNT_FOR: Duration = Duration::from_secs(5);

/// The lines of a port so far.
#[derive(Default)]
struct PortLines {
    agent: Option<u16>,
    last: String,
    /// How often the last line came again since the count was printed.
    repeats: usize,
    counted: Option<Instant>,
}

impl PortLines {
    /// Returns what to print for a packet: of a line that repeats, the count now and then.
    fn take(&mut self, line: String) -> Vec<String> {
        if line != self.last {
            let counted = self.take_count();
            (self.last, self.counted) = (line.clone(), Some(Instant::now()));
            return counted.into_iter().chain([line]).collect();
        }
        self.repeats += 1;
        if self.counted.is_some_and(|since| since.elapsed() < COUNT_FOR) {
            return Vec::new();
        }
        self.counted = Some(Instant::now());
        self.take_count().into_iter().collect()
    }

    fn take_count(&mut self) -> Option<String> {
        let repeats = std::mem::take(&mut self.repeats);
        (repeats > 0).then(|| format!("… {repeats} times"))
    }

    fn print(&self, path: &Path, text: &str) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let who = self.agent.map_or_else(|| "–".to_owned(), |agent| format!("agent {agent}"));
        outln!("{} {text}", paint(self.agent, format!("{name} {who:<9}")));
    }
}

pub(super) fn command() -> Command {
    let board = "The kind of the boards, a folder of boards/: their logs are read through debug probes";
    let seconds = flags::option("seconds", "S", "How long [default: until Ctrl-C]");
    Command::new("monitor")
        .about("Print boot packets and telemetry of all boards, and their logs through probes, one colour per agent; no board is disturbed")
        .arg(ports_argument())
        .arg(flags::option("board", "BOARD", board))
        .arg(seconds.value_parser(value_parser!(u64).range(1..=86_400)))
}

pub(super) fn run(matches: &ArgMatches) -> Result<ExitCode> {
    let board = matches.get_one::<String>("board").map(|board| BoardFile::read(board)).transpose()?;
    let logs = board.as_ref().map(ProbedLogs::find).transpose()?;
    let ports = if logs.is_some() { ports(matches) } else { some_ports(matches, None)? };
    let limit = matches.get_one::<u64>("seconds").copied();
    interrupt::is_expected();
    let (begun, interrupted) = (Instant::now(), interrupt::on_ctrl_c()?);
    let goes_on = || {
        let is_over = limit.is_some_and(|limit| begun.elapsed() >= Duration::from_secs(limit));
        !is_over && !interrupted.load(Ordering::Relaxed)
    };
    let lines: Mutex<BTreeMap<PathBuf, PortLines>> = Mutex::default();
    let print_packet = |path: &Path, packet: &Packet| {
        // Printed under the lock: lines of several boards do not mix.
        let mut lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
        let port = lines.entry(path.to_owned()).or_default();
        if let Packet::Boot(Boot { page: Ok(BoardIdentity { agent, .. }), .. })
        | Packet::Telemetry(Telemetry { agent, .. }, _) = packet
        {
            port.agent = Some(*agent);
        }
        port.take(packet_line(packet)).iter().for_each(|text| port.print(path, text));
    };
    let print_message = |probe: &str, message: &str| outln!("{probe} {message}");
    let (logged, packets) = thread::scope(|scope| {
        let follow = || logs.map(|logs| logs.follow(&goes_on, &print_message)).unwrap_or_default();
        let logged = scope.spawn(follow);
        let packets = serial::monitor(&ports, goes_on, print_packet);
        (logged.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), packets)
    });
    for (path, port) in &mut lines.into_inner().unwrap_or_else(PoisonError::into_inner) {
        if let Some(count) = port.take_count() {
            port.print(path, &count);
        }
    }
    let seconds = limit.unwrap_or_else(|| begun.elapsed().as_secs());
    let packet_counts = packets
        .into_iter()
        .map(|outcome| outcome.map(|packets| format!("{} in {seconds} s", counted(packets, "packet"))));
    let mut code = report(&ports, packet_counts);
    for (probe, outcome) in logged {
        match outcome {
            Ok(messages) => outln!("{probe}: {} in {seconds} s", counted(messages, "message")),
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
            let panic = boot.panic.map(|message| format!("; its last run ended in a panic: {message}"));
            let panic = panic.unwrap_or_default();
            fabswarm_attach::printable(&format!("{board} started {reset}: {who}{panic}"))
        }
        Packet::Telemetry(telemetry, _) => {
            let Telemetry { round, epoch, digest, heard, refused, .. } = telemetry;
            let stopped = if telemetry.is_stopped { ", stopped by a fault" } else { "" };
            format!(
                "round {round}, epoch {epoch}, digest {digest:08x}, heard {heard}, refused {refused}{stopped}"
            )
        }
        Packet::Frame(frame) => format!("frame of {} bytes", frame.len()),
        other => format!("{other:?}"),
    }
}
