//! Boards behind debug probes.

use super::FlashOrder;
use anyhow::{Result, bail};
use std::process::ExitCode;

#[cfg(not(feature = "probe"))]
pub(super) fn flash(order: &FlashOrder) -> Result<ExitCode> {
    bail!(
        "{} is flashed through debug probes, and this build of fabswarm reaches none\n{}",
        order.board.name,
        super::super::PROBE_HELP
    )
}

#[cfg(feature = "probe")]
pub(super) fn flash(order: &FlashOrder) -> Result<ExitCode> {
    use super::bars::FlashBars;
    use fabswarm_attach::{ChipFacts, ChipPage, FlashImage};
    use fabswarm_flash::probe;

    let FlashOrder { board, pages, chosen } = order;
    let swarm = pages.swarm;
    let found = probe::probes();
    if found.is_empty() {
        bail!(
            "no debug probe is plugged in\nhelp: plug in the boards by the USB ports of their probes; see `fabswarm doctor`"
        );
    }
    if board.probe.number_at.is_none() && (found.len() > 1 || chosen.len() > 1) {
        bail!(
            "a probe cannot read the number of a {}, and so not tell which agent it is\nhelp: plug in one board at a time, and use --agent N",
            board.name
        );
    }
    let image = FlashImage::read(&pages.image(board)?)?;
    let Some(job) = board.flash_job(image) else {
        bail!("boards/{}/board.toml names no chip\nhelp: write `chip`, as probe-rs calls it", board.name)
    };
    let page_of = |facts: &ChipFacts| {
        let agent = match facts.number {
            Some(number) => swarm.agent_of(number).filter(|agent| chosen.contains(agent)),
            None => chosen.first().copied(),
        };
        let Some(agent) = agent else { return Ok(None) };
        let boot = swarm.next_boot(&facts.boots).map_err(|error| error.to_string())?;
        let bytes = pages.page(&board.name, agent, boot).map_err(|error| error.to_string())?;
        Ok(Some(ChipPage { agent, chip: swarm.chips.get(&agent).copied(), bytes }))
    };
    let bars = FlashBars::new(found.iter().map(|probe| probe.name.as_str()));
    let probes = found.iter().map(probe::FoundProbe::open).collect();
    let outcomes = probe::flash_all(&job, probes, &page_of, &|index, step| bars.step(index, step));
    drop(bars);
    let mut code = ExitCode::SUCCESS;
    let mut left = chosen.clone();
    for (probe, outcome) in found.iter().zip(outcomes) {
        match outcome {
            Ok(Some(done)) => {
                left.retain(|agent| *agent != done.agent);
                println!("agent {}: {} ({} bytes, read back and equal)", done.agent, probe.name, done.bytes);
            }
            Ok(None) => {
                println!("{}: its chip is none of these agents in the swarm file: left as it is", probe.name)
            }
            Err(error) => {
                eprintln!("error: {} {error}", probe.name);
                code = ExitCode::from(super::super::FAILED);
            }
        }
    }
    if !left.is_empty() {
        println!("not flashed: agents {left:?}; their chips were not found, or have failed");
    }
    Ok(code)
}
