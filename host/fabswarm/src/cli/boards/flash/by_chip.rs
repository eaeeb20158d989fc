//! Boards that are known by the numbers of their chips: behind debug probes, or by Espressif's boot ROMs.

use super::super::{FAILED, chips, flash_job};
use super::FlashConfig;
use anyhow::{Result, bail};
use fabswarm_attach::{ChipFacts, ChipPage, FlashImage};
use fabswarm_diagnostic::Diagnostic;
use fabswarm_flash::{FlashStep, FlashedBoard, PageChoice, StepReport, esp, probe};
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use std::process::ExitCode;

/// Flashes boards through debug probes.
pub(super) fn flash_by_probe(config: &FlashConfig) -> Result<ExitCode> {
    let FlashConfig { board, pages, chosen, .. } = config;
    let mut found = probe::probes();
    let rig = pages.rig.as_ref().filter(|rig| rig.has_probes());
    let numbers: Vec<Option<u64>> = match rig {
        Some(rig) => {
            found.retain(|probe| rig.chip_behind(&probe.name).is_some());
            found.iter().map(|probe| rig.chip_behind(&probe.name)).collect()
        }
        None => vec![None; found.len()],
    };
    if found.is_empty() {
        bail!(fault!(
            "no debug probe{} is plugged in", if rig.is_some() { " of the rig" } else { "" };
            "plug in the boards by the USB ports of their probes; see `fabswarm doctor`"
        ));
    }
    if rig.is_none() && board.probe.number_at.is_none() && (found.len() > 1 || chosen.len() > 1) {
        bail!(fault!(
            "a probe cannot read the number of a {}, and so not tell which agent it is", board.name;
            "plug in one board at a time, and use --agent N; or let a rig say which `probe` belongs to which chip"
        ));
    }
    let job = flash_job(board, FlashImage::read(&pages.image(board)?)?)?;
    let names: Vec<String> = found.iter().map(|probe| probe.name.clone()).collect();
    let probes = found.iter().map(probe::FoundProbe::open).zip(numbers).collect();
    Ok(flash(config, &names, |page_of, report| probe::flash_all(&job, probes, page_of, report)))
}

/// Flashes boards with Espressif's chips by their boot ROMs.
pub(super) fn flash_by_port(config: &FlashConfig, pattern: Option<&str>) -> Result<ExitCode> {
    let FlashConfig { board, pages, chosen, .. } = config;
    if let Some(agent) =
        chosen.iter().find(|agent| chosen.len() == 1 && !pages.swarm.chips.contains_key(agent))
    {
        bail!(fault!(
            "the swarm file has no chip for agent {agent}";
            "write the number of its chip under [chips]; `fabswarm boards list --board {}` reads it", board.name
        ));
    }
    let ports = chips::esp_ports(pattern, pages.rig.as_ref());
    if ports.is_empty() {
        bail!(fault!(
            "no ESP32 is plugged in";
            "plug it in by the USB port of the chip, or name another port with --port; see `fabswarm doctor`"
        ));
    }
    let mut job = flash_job(board, FlashImage::default())?;
    job.image = esp::read_image(&pages.image(board)?, &job.chip)?;
    let names: Vec<String> = ports.iter().map(|port| port.path.display().to_string()).collect();
    Ok(flash(config, &names, |page_of, report| esp::flash_all(&job, ports, page_of, report)))
}

/// Flashes all boards at once with a bar for each, and prints what became of them and who was not flashed.
fn flash(
    config: &FlashConfig,
    names: &[String],
    flash: impl FnOnce(&PageChoice<'_>, &StepReport<'_>) -> Vec<Result<Option<FlashedBoard>, Diagnostic>>,
) -> ExitCode {
    let all = MultiProgress::new();
    let style = ProgressStyle::with_template("{prefix} {bar:30} {bytes:>11}/{total_bytes:<11} {msg}");
    let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
    let bar = |name: &String| {
        let bar = all.add(ProgressBar::new(0)).with_style(style.clone());
        bar.set_prefix(name.clone());
        bar
    };
    let bars: Vec<ProgressBar> = names.iter().map(bar).collect();
    let report = |index: usize, step: FlashStep| match step {
        FlashStep::More(bytes) => bars[index].inc_length(bytes),
        FlashStep::Now(what) => bars[index].set_message(what),
        FlashStep::Done(bytes) => bars[index].inc(bytes),
    };
    let outcomes = flash(&|facts| page_of(config, facts), &report);
    // Lines printed from here on stand alone.
    let _ = all.clear();
    let mut left = config.chosen.clone();
    let mut code = ExitCode::SUCCESS;
    for (name, outcome) in names.iter().zip(outcomes) {
        match outcome {
            Ok(Some(done)) => {
                left.retain(|agent| *agent != done.agent);
                outln!("agent {}: {name} ({} bytes, read back and equal)", done.agent, done.bytes);
            }
            Ok(None) => outln!("{name}: its chip is none of these agents in the swarm file: left as it is"),
            Err(error) => {
                eprintln!("error: {name}: {error}");
                code = ExitCode::from(FAILED);
            }
        }
    }
    if !left.is_empty() {
        let left: Vec<String> = left.iter().map(usize::to_string).collect();
        outln!("not flashed: agents {}; their chips were not found, or have failed", left.join(", "));
    }
    code
}

/// The page for a chip, if it is one of the chosen agents. A chip that cannot tell its number is the only one.
fn page_of(config: &FlashConfig, facts: &ChipFacts) -> Result<Option<ChipPage>, Diagnostic> {
    let FlashConfig { board, pages, chosen, .. } = config;
    let swarm = pages.swarm;
    let agent = match facts.number {
        Some(number) => swarm.agent_of(number).filter(|agent| chosen.contains(agent)),
        None => chosen.first().copied(),
    };
    let Some(agent) = agent else { return Ok(None) };
    // Both what the board has counted and what the file has given away: either may be lost.
    let boot = swarm.take_boot(config.file, agent, swarm.next_boot(&facts.boots)?)?;
    let bytes = pages.page(&board.name, agent, boot)?;
    Ok(Some(ChipPage { agent, chip: swarm.chips.get(&agent).copied(), bytes }))
}
