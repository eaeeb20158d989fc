//! Measures emulated boards: instructions of a round, flash and RAM, and rounds per second of swarms.

use std::collections::BTreeMap;
use std::io;
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use object::{Object, ObjectSection, ObjectSymbol, SectionKind};

use fabswarm_attach::{self as attach, BoardKind};
use fabswarm_diagnostic::Diagnostic;
use fabswarm_sim::scenario::{Scenario, TopologyKind};

/// Counting takes about a second.
const COUNT_LIMIT: Duration = Duration::from_secs(120);

/// A part of a round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoundPart {
    /// Its purpose.
    pub name: String,
    /// Instructions it takes.
    pub ours: u64,
    /// Instructions of the same part in C, if there is a version of it.
    pub in_c: Option<u64>,
}

/// Counts the instructions of a round's parts on the emulated board.
///
/// # Errors
/// If the counting program does not build or run.
pub fn instructions() -> Result<Vec<RoundPart>> {
    let (emulator, program) = attach::counting_program()?;
    let failure = |messages: String| {
        let what = format!("{} did not count its instructions: {messages}", program.display());
        Diagnostic::new(what, "check that qemu-system-arm is version 7.2 or newer")
    };
    let output = Command::new(emulator)
        .args(["-M", "mps2-an386", "-icount", "shift=10,align=off,sleep=off", "-display", "none"])
        .args([
            "-monitor",
            "none",
            "-serial",
            "null",
            "-semihosting-config",
            "enable=on,target=native",
            "-kernel",
        ])
        .arg(&program)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .and_then(|child| output_within(child, COUNT_LIMIT))
        .map_err(|error| failure(error.to_string()))?;
    let printed = [output.stdout, output.stderr].concat();
    let printed = String::from_utf8_lossy(&printed);
    let parts: Option<Vec<RoundPart>> = printed.lines().map(round_part).collect();
    match parts {
        Some(parts) if output.status.success() && !parts.is_empty() => Ok(parts),
        _ => Err(failure(printed.into_owned()).into()),
    }
}

/// The output of a program, which is ended if it takes longer than `limit`.
fn output_within(mut child: Child, limit: Duration) -> io::Result<Output> {
    let begun = Instant::now();
    while child.try_wait()?.is_none() {
        if begun.elapsed() > limit {
            child.kill()?;
            child.wait()?;
            return Err(io::Error::other(format!("it did not end within {} s", limit.as_secs())));
        }
        thread::sleep(Duration::from_millis(20));
    }
    child.wait_with_output()
}

fn round_part(line: &str) -> Option<RoundPart> {
    let mut words = line.split_whitespace();
    let name = words.next()?.to_owned();
    let ours = words.next()?.parse().ok()?;
    let in_c = words.next().map(str::parse).transpose().ok()?;
    Some(RoundPart { name, ours, in_c })
}

/// Bytes that a part of the firmware takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImageBytes {
    /// In flash.
    pub flash: u64,
    /// In RAM, without the stack.
    pub ram: u64,
}

/// Parts of the firmware with substrings of their symbols' names; the first match counts.
const PARTS: &[(&str, &[&str])] = &[
    ("sealing", &["chacha20", "poly1305", "4seal", "6cipher", "universal_hash"]),
    ("FAB and problems", &["7problem", "6linear", "6ledger", "take_gradient"]),
    ("the agent", &["5agent", "speaker"]),
    ("graphs and random numbers", &["5graph", "3rng"]),
    ("frames, packets and record", &["4wire", "6packet", "12provisioning", "postcard", "serde"]),
    ("arithmetic and copying", &["compiler_builtins", "4libm", "__aeabi", "__mul", "__add", "__div"]),
    ("the firmware's tasks", &["fabswarm_firmware", "embassy", "heapless"]),
    ("the board", &["mps2_an386", "MEMORY", "POOL", "INTERRUPTS", "defmt"]),
];

/// The flash and RAM of an image.
#[derive(Clone, Debug)]
pub struct ImageSizes {
    /// By part, largest first.
    pub parts: Vec<(&'static str, ImageBytes)>,
    /// The total.
    pub all: ImageBytes,
}

/// Measures flash and RAM of the emulated board's image.
///
/// # Errors
/// If the image does not build or cannot be read.
pub fn sizes() -> Result<ImageSizes> {
    let path = attach::image(BoardKind::Qemu)?;
    let unreadable = |reason: String| {
        let what = format!("cannot read {}: {reason}", path.display());
        Diagnostic::new(what, "delete it; the next run builds it again")
    };
    let bytes = std::fs::read(&path).map_err(|error| unreadable(error.to_string()))?;
    let image = object::File::parse(&*bytes).map_err(|error| unreadable(error.to_string()))?;
    let mut all = ImageBytes::default();
    for section in image.sections() {
        match section.kind() {
            SectionKind::Text | SectionKind::ReadOnlyData => all.flash += section.size(),
            SectionKind::UninitializedData => all.ram += section.size(),
            SectionKind::Data => {
                all.flash += section.size();
                all.ram += section.size();
            }
            _ => {}
        }
    }
    let mut parts: BTreeMap<&str, ImageBytes> = BTreeMap::new();
    for symbol in image.symbols().filter(|symbol| symbol.size() > 0) {
        let name = symbol.name().unwrap_or_default();
        let fits = |(_, words): &&(&str, &[&str])| words.iter().any(|word| name.contains(word));
        let part = parts.entry(PARTS.iter().find(fits).map_or("the rest", |(part, _)| part)).or_default();
        if symbol.address() < RAM_START {
            part.flash += symbol.size();
        } else {
            part.ram += symbol.size();
        }
    }
    let named: u64 = parts.values().map(|part| part.flash).sum();
    parts.entry("the rest").or_default().flash += all.flash.saturating_sub(named);
    let mut parts: Vec<_> = parts.into_iter().collect();
    parts.sort_by_key(|(_, part)| std::cmp::Reverse(part.flash));
    Ok(ImageSizes { parts, all })
}

/// `[ram] origin` of the emulated board.
const RAM_START: u64 = 0x2000_0000;

/// Measures the rounds per second of a lock-step swarm of emulated boards, over `rounds` rounds or as many as `limit` has time for, and
/// their deepest stack.
///
/// # Errors
/// If it does not start, or a board is lost.
pub fn rounds_per_second(agents: usize, rounds: u32, limit: Duration) -> Result<(f64, Option<u32>)> {
    let mut scenario = Scenario::default();
    scenario.swarm.agents = agents;
    scenario.swarm.boards = "qemu".to_owned();
    if agents > 10 {
        scenario.network.topology = TopologyKind::Ring;
    }
    let mut swarm = attach::build(&scenario, None, &Arc::default())?;
    let begun = Instant::now();
    let mut timed = 0;
    while timed < rounds && begun.elapsed() < limit {
        swarm.step()?;
        timed += 1;
    }
    swarm.finish()?;
    let stack = swarm.boards().and_then(|boards| boards.deepest_stack_bytes());
    Ok((f64::from(timed) / begun.elapsed().as_secs_f64(), stack))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_hangs_is_ended() {
        let start = |script: &str| {
            let piped = Command::new("sh").args(["-c", script]).stdout(Stdio::piped()).spawn().unwrap();
            output_within(piped, Duration::from_secs(if script == "echo 7" { 60 } else { 0 }))
        };
        assert_eq!(start("echo 7").unwrap().stdout, b"7\n");
        assert!(start("exec sleep 1000").unwrap_err().to_string().contains("did not end"));
    }

    #[test]
    fn lines_of_the_count_are_read() {
        let pull = RoundPart { name: "pull".to_owned(), ours: 1193, in_c: Some(1380) };
        assert_eq!(round_part("pull 1193 1380"), Some(pull));
        assert_eq!(
            round_part("seal 15166"),
            Some(RoundPart { name: "seal".to_owned(), ours: 15166, in_c: None })
        );
        assert_eq!(round_part("push failed"), None);
    }
}
