//! All boards at once.

use super::checks::failed;
use super::{FlashJob, FlashStep, FlashedBoard, StepReport};
use fabswarm_diagnostic::Diagnostic;
use std::thread;

/// Flashes all boards at once, one thread per way to a board, and returns what became of each.
pub(crate) fn flash_all<Way: Send>(
    job: &FlashJob,
    ways: Vec<Way>,
    flash: impl Fn(Way, &dyn Fn(FlashStep)) -> Result<Option<FlashedBoard>, Diagnostic> + Sync,
    report: &StepReport<'_>,
) -> Vec<Result<Option<FlashedBoard>, Diagnostic>> {
    if let Err(error) = job.image.check(job.image_room) {
        return ways.iter().map(|_| Err(error.clone())).collect();
    }
    let flash = &flash;
    thread::scope(|scope| {
        let boards = ways
            .into_iter()
            .enumerate()
            .map(|(index, way)| scope.spawn(move || flash(way, &|step| report(index, step))));
        let boards: Vec<_> = boards.collect();
        let lost = || failed("flash", "its thread panicked");
        boards.into_iter().map(|board| board.join().unwrap_or_else(|_| Err(lost()))).collect()
    })
}
