//! Boards with Espressif's chips, by their boot ROMs.

use super::FlashOrder;
use super::bars::FlashBars;
use super::by_chip;
use anyhow::{Result, bail};
use fabswarm_flash::esp;
use std::process::ExitCode;

pub(super) fn flash(order: &FlashOrder, pattern: Option<&str>) -> Result<ExitCode> {
    let FlashOrder { board, pages, chosen, .. } = order;
    if let Some(agent) =
        chosen.iter().find(|agent| chosen.len() == 1 && !pages.swarm.chips.contains_key(agent))
    {
        bail!(
            "the swarm file has no chip for agent {agent}\nhelp: write the number of its chip under [chips]; `fabswarm boards list --board {}` reads it",
            board.name
        );
    }
    let ports = super::super::chips::esp_ports(pattern);
    if ports.is_empty() {
        bail!(
            "no ESP32 is plugged in\nhelp: plug it in by the USB port of the chip, or name another port with --port; see `fabswarm doctor`"
        );
    }
    let Some(chip) = &board.chip else {
        bail!("boards/{}/board.toml names no chip\nhelp: write `chip`, as espflash calls it", board.name)
    };
    let image = esp::read_image(&pages.image(board)?, chip)?;
    let Some(job) = board.flash_job(image) else { bail!("boards/{}/board.toml names no chip", board.name) };
    let names: Vec<String> = ports.iter().map(|port| port.path.display().to_string()).collect();
    let bars = FlashBars::new(names.iter().map(String::as_str));
    let page_of = |facts: &_| by_chip::page_of(order, facts);
    let outcomes = esp::flash_all(&job, ports, &page_of, &|index, step| bars.step(index, step));
    drop(bars);
    Ok(by_chip::print_outcomes(order, names.iter().map(String::as_str), outcomes))
}
