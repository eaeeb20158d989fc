//! Boards behind debug probes.

use super::FlashOrder;
use super::bars::FlashBars;
use super::by_chip;
use anyhow::{Result, bail};
use fabswarm_attach::FlashImage;
use fabswarm_flash::probe;
use std::process::ExitCode;

pub(super) fn flash(order: &FlashOrder) -> Result<ExitCode> {
    let FlashOrder { board, pages, chosen, .. } = order;
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
    let bars = FlashBars::new(found.iter().map(|probe| probe.name.as_str()));
    let probes = found.iter().map(probe::FoundProbe::open).collect();
    let page_of = |facts: &_| by_chip::page_of(order, facts);
    let outcomes = probe::flash_all(&job, probes, &page_of, &|index, step| bars.step(index, step));
    drop(bars);
    Ok(by_chip::print_outcomes(order, found.iter().map(|probe| probe.name.as_str()), outcomes))
}
