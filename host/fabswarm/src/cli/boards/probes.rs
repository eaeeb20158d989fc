//! Debug probes that are plugged in, and the chips behind them.

use anyhow::{Result, bail};
use clap::Arg;

/// What a probe is good for, or what the chip behind it says.
#[cfg_attr(not(feature = "probe"), allow(dead_code, reason = "this build finds none"))]
pub(in crate::cli) struct ProbeLine {
    pub(in crate::cli) name: String,
    pub(in crate::cli) what: String,
    /// The number of the chip.
    pub(in crate::cli) chip: Option<u64>,
}

/// How the boards behind probes are named.
pub(in crate::cli) fn board_argument() -> Arg {
    Arg::new("board")
        .long("board")
        .value_name("BOARD")
        .help("The kind of the boards behind debug probes, a folder of boards/: the numbers of their chips are read")
}

/// The probes that are plugged in. If their boards are named, their chips are read too.
#[cfg(feature = "probe")]
pub(in crate::cli) fn probes(board: Option<&String>) -> Result<Vec<ProbeLine>> {
    use fabswarm_attach::{BoardFile, FlashImage};
    use fabswarm_flash::probe;

    let job = match board.map(|board| BoardFile::read(board)).transpose()? {
        None => None,
        // Reading takes no image.
        Some(file) => match file.flash_job(FlashImage::default()).filter(|job| job.number_at.is_some()) {
            None => bail!(
                "a probe cannot read the number of a {}\nhelp: it tells its number over its cable once it has the firmware",
                file.name
            ),
            job => job,
        },
    };
    let line = |found: probe::FoundProbe| {
        let chip = job.as_ref().map(|job| found.open().and_then(|probe| probe::read_chip(job, probe)));
        let what = match &chip {
            None if found.is_accessible => {
                "debug probe; with --board BOARD, the number of its chip is read".to_owned()
            }
            None => "debug probe, which you may not use\nhelp: `fabswarm doctor` says how to get access"
                .to_owned(),
            Some(Ok(facts)) => format!("debug probe, chip {:016x}", facts.number.unwrap_or_default()),
            Some(Err(error)) => error.to_string(),
        };
        ProbeLine { name: found.name, what, chip: chip.and_then(Result::ok).and_then(|facts| facts.number) }
    };
    Ok(probe::probes().into_iter().map(line).collect())
}

#[cfg(not(feature = "probe"))]
pub(in crate::cli) fn probes(board: Option<&String>) -> Result<Vec<ProbeLine>> {
    match board {
        None => Ok(Vec::new()),
        Some(_) => bail!("--board: this build of fabswarm reaches no debug probes\n{}", super::PROBE_HELP),
    }
}
