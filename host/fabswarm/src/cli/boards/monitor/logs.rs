//! The logs of boards, through their debug probes.

use anyhow::Result;
#[cfg(feature = "flash")]
use anyhow::bail;
use fabswarm_attach::BoardFile;
use fabswarm_diagnostic::Diagnostic;

/// Is told the name of a probe and a message from the board behind it.
pub(super) type LogPrinter<'a> = dyn Fn(&str, &str) + Sync + 'a;

/// The outcome of each probe: the number of its messages, or its error.
pub(super) type LogOutcomes = Vec<(String, Result<usize, Diagnostic>)>;

/// Nothing: this build reaches no probes.
#[cfg(not(feature = "flash"))]
pub(super) enum ProbedLogs {}

#[cfg(not(feature = "flash"))]
impl ProbedLogs {
    pub(super) fn find(board: &BoardFile) -> Result<Self> {
        Err(super::super::unreachable_chips(format_args!("--board {}", board.name)))
    }

    pub(super) fn follow(&self, _: &(dyn Fn() -> bool + Sync), _: &LogPrinter<'_>) -> LogOutcomes {
        match *self {}
    }
}

/// The boards of one kind that have a probe, and the image that they run.
#[cfg(feature = "flash")]
pub(super) struct ProbedLogs {
    board: String,
    image: std::path::PathBuf,
    job: fabswarm_flash::FlashJob,
    probes: Vec<fabswarm_flash::probe::FoundProbe>,
}

#[cfg(feature = "flash")]
impl ProbedLogs {
    /// Looks for probes, and builds the image unless it is up to date: a log holds only the numbers of its messages.
    pub(super) fn find(board: &BoardFile) -> Result<Self> {
        use fabswarm_attach::{FlashImage, ImageFormat};
        if board.format == ImageFormat::EspIdf {
            bail!(fault!("the log of {} is not read through a probe", board.name; "leave out --board"));
        }
        let probes = fabswarm_flash::probe::probes();
        if probes.is_empty() {
            bail!(fault!(
                "no debug probe is plugged in";
                "plug in the boards by the USB ports of their probes; see `fabswarm doctor`"
            ));
        }
        let image = board.build()?;
        let job = super::super::flash_job(board, FlashImage::read(&image)?)?;
        Ok(Self { board: board.name.clone(), image, job, probes })
    }

    /// Prints what the boards log while `goes_on`, all at once.
    pub(super) fn follow(&self, goes_on: &(dyn Fn() -> bool + Sync), print: &LogPrinter<'_>) -> LogOutcomes {
        use fabswarm_attach::LogDecoder;
        use fabswarm_flash::probe::{FoundProbe, follow_log};
        let follow = |found: &FoundProbe| -> Result<usize, Diagnostic> {
            let mut decoder = LogDecoder::new(&self.board, &self.image)?;
            let probe = found.open()?;
            let (block_at, mut messages) = (decoder.block_at, 0);
            let mut take = |bytes: &[u8]| {
                for message in decoder.decode(bytes) {
                    messages += 1;
                    print(&found.name, &message);
                }
            };
            follow_log(&self.job, probe, block_at, &|| goes_on(), &mut take)?;
            Ok(messages)
        };
        let outcomes = fabswarm_attach::serial::on_all(self.probes.iter(), follow);
        self.probes.iter().map(|found| found.name.clone()).zip(outcomes).collect()
    }
}
