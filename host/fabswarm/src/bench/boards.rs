//! Measures emulated boards: instructions of a round, flash and RAM, and rounds per second of swarms.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use object::{Object, ObjectSection, ObjectSymbol, SectionKind};

use fabswarm_attach::{self as attach, BoardKind};
use fabswarm_diagnostic::Diagnostic;
use fabswarm_sim::scenario::{Scenario, TopologyKind};

/// Seconds that counting may take; it takes about one.
const COUNT_LIMIT: &str = "120";

/// A part of a round, and the instructions that it takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RoundPart {
    pub(crate) name: String,
    pub(crate) ours: u64,
    /// Instructions of the same part in C, if there is a version of it.
    pub(crate) in_c: Option<u64>,
}

/// Counts the instructions of a round's parts on the emulated board.
pub(crate) fn instructions() -> Result<Vec<RoundPart>> {
    let (emulator, program) = attach::counting_program()?;
    let failure = |messages: String| {
        let what = format!("{} did not count its instructions: {messages}", program.display());
        Diagnostic::new(what, "check that qemu-system-arm is version 7.2 or newer")
    };
    let output = Command::new("timeout")
        .arg(COUNT_LIMIT)
        .arg(emulator)
        .args("-M mps2-an386 -icount shift=10,align=off,sleep=off -display none -monitor none".split(' '))
        .args("-serial null -semihosting-config enable=on,target=native -kernel".split(' '))
        .arg(&program)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| failure(error.to_string()))?;
    if output.status.code() == Some(124) {
        return Err(failure(format!("it did not end within {COUNT_LIMIT} s")).into());
    }
    let printed = [output.stdout, output.stderr].concat();
    let printed = String::from_utf8_lossy(&printed);
    let parts: Option<Vec<RoundPart>> = printed.lines().map(round_part).collect();
    match parts {
        Some(parts) if output.status.success() && !parts.is_empty() => Ok(parts),
        _ => Err(failure(printed.into_owned()).into()),
    }
}

fn round_part(line: &str) -> Option<RoundPart> {
    let mut words = line.split_whitespace();
    let name = words.next()?.to_owned();
    let ours = words.next()?.parse().ok()?;
    let in_c = words.next().map(str::parse).transpose().ok()?;
    Some(RoundPart { name, ours, in_c })
}

/// Bytes that a part of the firmware takes in flash, and in RAM without the stack.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ImageBytes {
    pub(crate) flash: u64,
    pub(crate) ram: u64,
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

/// Measures flash and RAM of the emulated board's image: of its parts, largest first, and then of all.
pub(crate) fn sizes() -> Result<Vec<(&'static str, ImageBytes)>> {
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
    parts.push(("all", all));
    Ok(parts)
}

/// `[ram] origin` of the emulated board.
const RAM_START: u64 = 0x2000_0000;

/// Measures the rounds per second of a lock-step swarm of emulated boards, over `rounds` rounds or as many as `limit` has time for, and
/// their deepest stack.
pub(crate) fn rounds_per_second(agents: usize, rounds: u32, limit: Duration) -> Result<(f64, Option<u32>)> {
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
