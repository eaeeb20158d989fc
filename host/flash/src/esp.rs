//! Boards with Espressif's chips: their boot ROMs take images over a serial port, one thread each.

mod boot_rom;

use super::{
    ChipFacts, FlashImage, FlashJob, FlashStep, FlashedBoard, PageChoice, StepReport, checks::causes,
    image::unreadable, parallel,
};
use boot_rom::BootRom;
use espflash::flasher::{FlashData, FlashSettings};
use espflash::image_format::idf::IdfBootloaderFormat;
use espflash::target::Chip;
use fabswarm_diagnostic::Diagnostic;
use serialport::{SerialPortType, UsbPortInfo};
use std::path::{Path, PathBuf};

/// The number of Espressif among the makers of USB devices.
const ESPRESSIF: u16 = 0x303A;

/// A serial port that may lead to a boot ROM.
#[derive(Clone, Debug)]
pub struct EspPort {
    /// Its path.
    pub path: PathBuf,
    usb: UsbPortInfo,
}

impl EspPort {
    /// The port of that path.
    #[must_use]
    pub fn new(path: &Path) -> Self {
        let device = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let usb = usb_ports().into_iter().find(|(port, _)| *port == device).map(|(_, usb)| usb);
        let unknown = UsbPortInfo {
            vid: 0,
            pid: 0,
            serial_number: None,
            manufacturer: None,
            product: None,
            interface: None,
        };
        Self { path: path.to_owned(), usb: usb.unwrap_or(unknown) }
    }

    /// Whether it is the USB port of one of Espressif's chips. Others may be anything.
    #[must_use]
    pub fn is_espressif(&self) -> bool {
        self.usb.vid == ESPRESSIF
    }
}

/// The devices of the serial ports on USB, and what they are.
fn usb_ports() -> Vec<(PathBuf, UsbPortInfo)> {
    // The library panics without it.
    if !Path::new("/sys/class/tty").is_dir() {
        return Vec::new();
    }
    let ports = serialport::available_ports().unwrap_or_default().into_iter();
    let usb = ports.filter_map(|port| match port.port_type {
        SerialPortType::UsbPort(usb) => Some((PathBuf::from(port.port_name), usb)),
        _ => None,
    });
    usb.collect()
}

/// Reads an ELF file and makes of it what the flash of `chip` holds: boot loader, table of partitions and image.
///
/// # Errors
/// If it is no image of that chip, or does not fit its partition.
pub fn read_image(path: &Path, chip: &str) -> Result<FlashImage, Diagnostic> {
    let refuse = |reason: &str| {
        let what = format!("{} cannot be made an image of {chip}: {reason}", path.display());
        Diagnostic::new(what, "build it for fewer scalars, members or problems")
    };
    let elf = std::fs::read(path).map_err(|error| unreadable(path, error))?;
    let kind: Chip = chip.parse().map_err(|_| refuse("espflash does not know this chip"))?;
    let settings = FlashData::new(FlashSettings::default(), 0, None, kind, kind.default_xtal_frequency());
    let format = IdfBootloaderFormat::new(&elf, &settings, None, None, None, None)
        .map_err(|error| refuse(&causes(&error)))?;
    let parts = format.flash_segments().map(|part| (part.addr.into(), part.data.into_owned()));
    Ok(FlashImage::from_parts(parts.collect()))
}

/// Flashes all boards at once, one thread per port, and returns what became of each. `None` is a board that was left as it is.
pub fn flash_all(
    job: &FlashJob,
    ports: Vec<EspPort>,
    page_of: &PageChoice<'_>,
    report: &StepReport<'_>,
) -> Vec<Result<Option<FlashedBoard>, Diagnostic>> {
    parallel::flash_all(job, ports, |port, report| flash(job, &port, page_of, report), report)
}

/// Reads what a chip tells, and restarts it.
///
/// # Errors
/// If its boot ROM does not answer, or it is another chip.
pub fn read_chip(job: &FlashJob, port: &EspPort) -> Result<ChipFacts, Diagnostic> {
    let mut rom = BootRom::reach(&job.chip, port)?;
    let facts = facts(job, &mut rom);
    rom.restart()?;
    facts
}

fn facts(job: &FlashJob, rom: &mut BootRom) -> Result<ChipFacts, Diagnostic> {
    let number = Some(rom.number()?);
    let boots = rom.read(job.boots.origin, job.boots.bytes as usize)?;
    Ok(ChipFacts { number, boots })
}

fn flash(
    job: &FlashJob,
    port: &EspPort,
    page_of: &PageChoice<'_>,
    report: &dyn Fn(FlashStep),
) -> Result<Option<FlashedBoard>, Diagnostic> {
    let mut rom = BootRom::reach(&job.chip, port)?;
    let outcome = write(job, &mut rom, page_of, report);
    // It was stopped to be asked: one that is left as it is goes on too.
    let restarted = rom.restart();
    let flashed = outcome?;
    restarted?;
    Ok(flashed)
}

fn write(
    job: &FlashJob,
    rom: &mut BootRom,
    page_of: &PageChoice<'_>,
    report: &dyn Fn(FlashStep),
) -> Result<Option<FlashedBoard>, Diagnostic> {
    let facts = facts(job, rom)?;
    let Some(page) = job.page_for(&facts, page_of)? else { return Ok(None) };
    let bytes: usize = job.parts(&page).map(|(_, bytes)| bytes.len()).sum();
    report(FlashStep::More(2 * bytes as u64));
    report(FlashStep::Now("writing"));
    rom.write(job.parts(&page), report)?;
    report(FlashStep::Now("reading back"));
    job.parts(&page).try_for_each(|part| rom.compare(part, report))?;
    rom.compare((job.boots.origin, &facts.boots), &|_| {})?;
    Ok(Some(FlashedBoard { agent: page.agent, bytes }))
}
