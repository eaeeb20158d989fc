//! All boards at once.

use super::{FlashError, FlashJob, FlashStep, FlashedBoard, StepReport};
use std::thread;

/// Flashes all boards at once, one thread per way to a board, and returns what became of each.
pub(crate) fn flash_all<Way: Send>(
    job: &FlashJob,
    ways: Vec<Way>,
    flash: impl Fn(Way, &dyn Fn(FlashStep)) -> Result<Option<FlashedBoard>, FlashError> + Sync,
    report: &StepReport<'_>,
) -> Vec<Result<Option<FlashedBoard>, FlashError>> {
    if let Err(error) = job.image.check(job.image_room) {
        return ways.iter().map(|_| Err(error.clone().into())).collect();
    }
    let flash = &flash;
    thread::scope(|scope| {
        let boards = ways
            .into_iter()
            .enumerate()
            .map(|(index, way)| scope.spawn(move || flash(way, &|step| report(index, step))));
        let boards: Vec<_> = boards.collect();
        let lost = || FlashError::Failed { purpose: "flash", reason: "its thread panicked".to_owned() };
        boards.into_iter().map(|board| board.join().unwrap_or_else(|_| Err(lost()))).collect()
    })
}
