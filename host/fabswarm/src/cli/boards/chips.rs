//! Chips that are asked without their firmware: through debug probes, or by their boot ROMs.

use super::super::flags;
use anyhow::Result;
#[cfg(feature = "flash")]
use anyhow::bail;
use clap::Arg;
use fabswarm_attach::BoardFile;
#[cfg(feature = "flash")]
use fabswarm_attach::{FlashImage, ImageFormat, Rig};
#[cfg(feature = "flash")]
use fabswarm_flash::{esp, probe};

/// A probe's use, or the answer of the chip behind a probe or port.
#[cfg_attr(not(feature = "flash"), allow(dead_code, reason = "this build finds none"))]
pub(in crate::cli) struct ChipLine {
    /// The probe or port.
    pub(in crate::cli) name: String,
    pub(in crate::cli) what: String,
    /// The number of the chip.
    pub(in crate::cli) chip: Option<u64>,
}

/// How the boards are named whose chips are asked.
pub(in crate::cli) fn board_argument() -> Arg {
    let help = "The kind of the boards, a folder of boards/: the numbers of their chips are read through probes, or by their boot ROMs";
    flags::option("board", "BOARD", help)
}

/// The probes that are plugged in. If boards are named, the chips behind their probes or, of ESP32s, their ports.
#[cfg(feature = "flash")]
pub(in crate::cli) fn chips(board: Option<&String>, ports: Option<&str>) -> Result<Vec<ChipLine>> {
    let board = board.map(|board| BoardFile::read(board)).transpose()?;
    match &board {
        Some(board) if board.format == ImageFormat::EspIdf => behind_ports(board, ports),
        _ => behind_probes(board.as_ref()),
    }
}

#[cfg(not(feature = "flash"))]
pub(in crate::cli) fn chips(board: Option<&String>, _: Option<&str>) -> Result<Vec<ChipLine>> {
    match board {
        None => Ok(Vec::new()),
        Some(board) => {
            let board = BoardFile::read(board)?;
            Err(super::unreachable_chips(format_args!("--board {}", board.name)))
        }
    }
}

#[cfg(feature = "flash")]
fn behind_probes(board: Option<&BoardFile>) -> Result<Vec<ChipLine>> {
    let job = match board {
        None => None,
        // Reading takes no image.
        Some(file) => match file.flash_job(FlashImage::default()).filter(|job| job.number_at.is_some()) {
            None => bail!(fault!(
                "a probe cannot read the number of a {}", file.name;
                "it tells its number over its cable once it has the firmware"
            )),
            job => job,
        },
    };
    let line = |found: probe::FoundProbe| {
        let chip = job.as_ref().map(|job| found.open().and_then(|probe| probe::read_chip(job, probe)));
        let what = match &chip {
            None if found.is_accessible => {
                "debug probe; with --board BOARD, the number of its chip is read".to_owned()
            }
            None => "debug probe, which you may not use (see `fabswarm doctor`)".to_owned(),
            Some(Ok(facts)) => format!("debug probe, chip {:016x}", facts.number.unwrap_or_default()),
            Some(Err(error)) => error.to_string(),
        };
        ChipLine { name: found.name, what, chip: chip.and_then(Result::ok).and_then(|facts| facts.number) }
    };
    Ok(probe::probes().into_iter().map(line).collect())
}

/// The chosen ports, or those that are surely of Espressif's chips.
#[cfg(feature = "flash")]
pub(super) fn esp_ports(pattern: Option<&str>, rig: Option<&Rig>) -> Vec<esp::EspPort> {
    let ports = Rig::ports(rig, pattern);
    let ports = ports.iter().map(|path| esp::EspPort::new(path));
    ports.filter(|port| pattern.is_some() || port.is_espressif()).collect()
}

#[cfg(feature = "flash")]
fn behind_ports(board: &BoardFile, pattern: Option<&str>) -> Result<Vec<ChipLine>> {
    let job = super::flash_job(board, FlashImage::default())?;
    let line = |port: esp::EspPort| {
        let facts = esp::read_chip(&job, &port);
        let chip = facts.as_ref().ok().and_then(|facts| facts.number);
        let what = match &facts {
            Ok(_) => format!("boot ROM, chip {:016x}", chip.unwrap_or_default()),
            Err(error) => error.to_string(),
        };
        ChipLine { name: port.path.display().to_string(), what, chip }
    };
    Ok(esp_ports(pattern, None).into_iter().map(line).collect())
}
