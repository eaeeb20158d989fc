//! Boards behind debug probes, one thread each.

mod log;

pub use log::follow_log;

use super::checks::{causes, chain, failed, first_difference, not_opened, pieces, unplugged};
use super::{ChipFacts, FlashJob, FlashStep, FlashedBoard, PageChoice, StepReport, parallel};
use fabswarm_diagnostic::Diagnostic;
use probe_rs::flashing::{DownloadOptions, FlashProgress, ProgressEvent, ProgressOperation};
use probe_rs::probe::DebugProbeError;
pub use probe_rs::probe::Probe;
use probe_rs::probe::list::{Accessibility, Lister, ProbeListItem};
use probe_rs::{MemoryInterface, Permissions, Session};
use std::error::Error;

/// Bytes that are read back at once.
const CHUNK_BYTES: usize = 4096;

/// A probe that is plugged in.
#[derive(Clone, Debug)]
pub struct FoundProbe {
    /// Its product name and its serial number, which never changes.
    pub name: String,
    /// Whether this user may use it.
    pub is_accessible: bool,
    item: ProbeListItem,
}

impl FoundProbe {
    /// Opens it.
    ///
    /// # Errors
    /// If another program uses it, or this user may not.
    pub fn open(&self) -> Result<Probe, Diagnostic> {
        self.item.info.open().map_err(|error| not_opened(&causes(&error)))
    }
}

/// The probes that are plugged in, in the order of their names.
#[must_use]
pub fn probes() -> Vec<FoundProbe> {
    let found = |item: ProbeListItem| {
        let serial = item.info.serial_number.as_deref().unwrap_or("without a serial number");
        FoundProbe {
            name: format!("{} {serial}", item.info.identifier),
            is_accessible: item.accessibility == Accessibility::Accessible,
            item,
        }
    };
    let mut probes: Vec<FoundProbe> = Lister::new().list_all_with_access().into_iter().map(found).collect();
    probes.sort_by(|one, other| one.name.cmp(&other.name));
    probes
}

/// Flashes all boards at once, one thread per probe, and returns what became of each. `None` is a board that was left as it is. A probe may
/// come with the number of the chip that is known to be behind it: some chips cannot tell theirs.
pub fn flash_all(
    job: &FlashJob,
    probes: Vec<(Result<Probe, Diagnostic>, Option<u64>)>,
    page_of: &PageChoice<'_>,
    report: &StepReport<'_>,
) -> Vec<Result<Option<FlashedBoard>, Diagnostic>> {
    parallel::flash_all(
        job,
        probes,
        |(probe, number), report| flash(job, probe?, number, page_of, report),
        report,
    )
}

/// Reads what the chip behind a probe tells, and changes nothing.
///
/// # Errors
/// If it does not answer, is locked, or is another part.
pub fn read_chip(job: &FlashJob, probe: Probe) -> Result<ChipFacts, Diagnostic> {
    facts(job, &mut attach(job, probe)?)
}

fn attach(job: &FlashJob, probe: Probe) -> Result<Session, Diagnostic> {
    // Without the permission to erase: a locked chip is reported, never unlocked.
    probe.attach(job.chip.as_str(), Permissions::new()).map_err(|error| {
        let chip = &job.chip;
        if is_missing_permission(&error) {
            Diagnostic::new(
                "the chip is locked: only erasing all of it opens it, and with it the boot numbers that it has used",
                format!(
                    "run `probe-rs erase --chip {chip} --allow-erase-all`, then draw a new key with `fabswarm swarm new`, as no number may be used twice under one key"
                ),
            )
        } else if is_unplugged(&error) {
            unplugged("answer")
        } else {
            let remedy = "check the power of the board and the cable between probe and chip, and --board";
            Diagnostic::new(format!("no {chip} answers: {}", causes(&error)), remedy)
        }
    })
}

fn facts(job: &FlashJob, session: &mut Session) -> Result<ChipFacts, Diagnostic> {
    let failed = failure("tell which chip it is");
    let mut core = session.core(0).map_err(&failed)?;
    if let Some(part) = job.part {
        let found = core.read_word_32(part.at).map_err(&failed)? & part.mask;
        if found != part.value {
            let (chip, part) = (&job.chip, part.value);
            let what = format!("the chip says that it is part {found:#x}, and {chip} is part {part:#x}");
            return Err(Diagnostic::new(what, "choose its board with --board"));
        }
    }
    let number = job.number_at.map(|at| -> Result<u64, Diagnostic> {
        let mut words = [0; 2];
        core.read_32(at, &mut words).map_err(&failed)?;
        Ok(u64::from(words[1]) << 32 | u64::from(words[0]))
    });
    let mut boots = vec![0; job.boots.bytes as usize];
    core.read(job.boots.origin, &mut boots).map_err(failure("tell its boot numbers"))?;
    Ok(ChipFacts { number: number.transpose()?, boots })
}

fn flash(
    job: &FlashJob,
    probe: Probe,
    known: Option<u64>,
    page_of: &PageChoice<'_>,
    report: &dyn Fn(FlashStep),
) -> Result<Option<FlashedBoard>, Diagnostic> {
    let mut session = attach(job, probe)?;
    let mut facts = facts(job, &mut session)?;
    if let (Some(number), Some(known)) = (facts.number, known.filter(|known| facts.number != Some(*known))) {
        return Err(Diagnostic::new(
            format!("chip {number:016x} is behind this probe, and the rig has chip {known:016x} there"),
            "connect the probe to that board, or correct `probe` in the rig",
        ));
    }
    facts.number = facts.number.or(known);
    let Some(page) = job.page_for(&facts, page_of)? else { return Ok(None) };
    let bytes: usize = job.parts(&page).map(|(_, bytes)| bytes.len()).sum();
    report(FlashStep::More((bytes + facts.boots.len()) as u64));
    write(&mut session, job.parts(&page), report)?;
    report(FlashStep::Now("reading back"));
    let failed = failure("be read back");
    let mut core = session.core(0).map_err(&failed)?;
    let parts = job.parts(&page).chain([(job.boots.origin, &facts.boots[..])]);
    for (address, expected) in parts.flat_map(|part| pieces(part, CHUNK_BYTES)) {
        let mut found = vec![0; expected.len()];
        core.read(address, &mut found).map_err(&failed)?;
        first_difference(address, expected, &found).map_or(Ok(()), Err)?;
        report(FlashStep::Done(expected.len() as u64));
    }
    core.reset().map_err(failure("start"))?;
    Ok(Some(FlashedBoard { agent: page.agent, bytes }))
}

/// Erases the sectors that `parts` are in, and writes them.
fn write<'a>(
    session: &mut Session,
    parts: impl Iterator<Item = (u64, &'a [u8])>,
    report: &dyn Fn(FlashStep),
) -> Result<(), Diagnostic> {
    let failed = |error: probe_rs::flashing::FlashError| failure("be written")(error);
    let mut loader = session.target().flash_loader();
    for (address, bytes) in parts {
        loader.add_data(address, bytes).map_err(failed)?;
    }
    let mut options = DownloadOptions::new();
    options.progress = FlashProgress::new(|event| match event {
        ProgressEvent::AddProgressBar { total: Some(total), .. } => report(FlashStep::More(total)),
        ProgressEvent::Started(ProgressOperation::Erase) => report(FlashStep::Now("erasing")),
        ProgressEvent::Started(ProgressOperation::Program) => report(FlashStep::Now("writing")),
        ProgressEvent::Progress { size, .. } => report(FlashStep::Done(size)),
        _ => {}
    });
    loader.commit(session, options).map_err(failed)
}

/// Translates errors of the library.
fn failure<E: Error + 'static>(purpose: &'static str) -> impl Fn(E) -> Diagnostic {
    move |error| match is_unplugged(&error) {
        true => unplugged(purpose),
        false => failed(purpose, &causes(&error)),
    }
}

fn is_unplugged(error: &(dyn Error + 'static)) -> bool {
    chain(error).any(|error| matches!(error.downcast_ref(), Some(DebugProbeError::Usb(_))))
}

/// Whether the library would have had to erase the chip.
fn is_missing_permission(error: &(dyn Error + 'static)) -> bool {
    use probe_rs::architecture::arm::ArmError;
    chain(error).any(|error| {
        matches!(error.downcast_ref(), Some(ArmError::MissingPermissions(_)))
            || matches!(error.downcast_ref(), Some(probe_rs::Error::MissingPermissions(_)))
    })
}
