//! Commands to the boot ROM of one chip, through espflash. The stub that espflash could load into RAM is not used: less can fail, and
//! USB is fast enough.

use super::EspPort;
use crate::FlashStep;
use crate::checks::{causes, chain, failed, first_difference, not_opened, pieces, unplugged};
use espflash::Error;
use espflash::command::{Command, CommandType};
use espflash::connection::{Connection, ResetAfterOperation, ResetBeforeOperation};
use espflash::flasher::{Flasher, SpiAttachParams};
use espflash::image_format::Segment;
use espflash::target::{Chip, ProgressCallbacks};
use fabswarm_diagnostic::Diagnostic;
use md5::{Digest, Md5};
use serialport::SerialPort;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::time::Duration;

/// The baud rate of a boot ROM; on USB it does not matter.
const BAUD: u32 = 115_200;
/// Timeout of an answer where the library sets none.
const READ_TIMEOUT: Duration = Duration::from_secs(3);
/// Bytes that a ROM reads at once.
const READ_BYTES: usize = 64;
/// Bytes that a chip digests at once; short enough that the progress bar moves.
const DIGEST_BYTES: usize = 64 * 1024;
const SECTOR_BYTES: usize = 4096;

/// Fuses for secure boot and secure downloads, among the flags of a chip's security.
const SECURE: u32 = 1 << 0 | 1 << 2;

pub(super) struct BootRom {
    flasher: Flasher,
    path: PathBuf,
    /// Whether the port has lines that reset the chip.
    can_reset: bool,
}

impl BootRom {
    /// Puts the chip behind a port into its boot ROM.
    pub(super) fn reach(chip: &str, port: &EspPort) -> Result<Self, Diagnostic> {
        let no_rom = |reason: &str| {
            let remedy =
                "check the cable and --board; hold BOOT, press RESET, let both go, and flash it again";
            Diagnostic::new(format!("no boot ROM of an {chip} answers: {reason}"), remedy)
        };
        let kind: Chip = chip.parse().map_err(|_| no_rom("espflash does not know this chip"))?;
        let path = port.path.clone();
        let line = serialport::new(path.to_string_lossy(), BAUD).timeout(READ_TIMEOUT).open_native();
        let mut line = line.map_err(|error| not_opened(&error.to_string()))?;
        // Pseudo-terminals and ports over a network have no such lines: there the user has pressed the buttons.
        let can_reset = line.read_clear_to_send().is_ok();
        let (before, after) = match can_reset {
            true => (ResetBeforeOperation::DefaultReset, ResetAfterOperation::HardReset),
            false => (ResetBeforeOperation::NoReset, ResetAfterOperation::NoReset),
        };
        let connection = Connection::new(line, port.usb.clone(), after, before, BAUD);
        let flasher = Flasher::try_connect(connection, false, false, false, Some(kind), None);
        let flasher = flasher.map_err(|failure| {
            let (error, mut connection) = *failure;
            // It was stopped to be asked, and goes on with what it has. One that did not answer does so only if it is reset.
            let found = match &error {
                Error::ChipMismatch(_, found) => found.parse().ok(),
                _ => can_reset.then_some(kind),
            };
            if let Some(found) = found {
                // The first error counts more.
                let _ = restart(&mut connection, found, can_reset);
            }
            match error {
                Error::ChipMismatch(_, found) => Diagnostic::new(
                    format!("the chip says that it is an {found}, and not an {chip}"),
                    "choose its board with --board",
                ),
                _ if is_unplugged(&error) || !path.exists() => unplugged("answer"),
                _ => no_rom(&causes(&error)),
            }
        })?;
        let mut rom = Self { flasher, path, can_reset };
        match rom.flasher.connection().security_info(false) {
            Ok(info) if info.flags & SECURE != 0 || info.flash_crypt_cnt.count_ones() % 2 == 1 => {
                let _ = rom.restart();
                Err(Diagnostic::new(
                    "fuses of the chip are burnt for secure boot, flash encryption or secure downloads",
                    "use another board: fuses cannot be mended, and the chip would not start this image",
                ))
            }
            // Chips that cannot tell have no such fuses.
            _ => Ok(rom),
        }
    }

    /// The number of the chip, as its firmware tells it: the address that its maker gave it.
    pub(super) fn number(&mut self) -> Result<u64, Diagnostic> {
        const PURPOSE: &str = "tell which chip it is";
        let chip = self.flasher.chip();
        let address = chip.mac_address(self.flasher.connection());
        let address = address.map_err(|error| self.failure(PURPOSE, &error))?;
        u64::from_str_radix(&address.replace(':', ""), 16)
            .map_err(|_| failed(PURPOSE, &format!("its address is {address}")))
    }

    pub(super) fn read(&mut self, address: u64, length: usize) -> Result<Vec<u8>, Diagnostic> {
        const PURPOSE: &str = "be read";
        let mut bytes = Vec::with_capacity(length);
        while bytes.len() < length {
            let size = READ_BYTES.min(length - bytes.len());
            let command = Command::ReadFlashSlow {
                offset: address as u32 + bytes.len() as u32,
                size: size as u32,
                block_size: READ_BYTES as u32,
                max_in_flight: 1,
            };
            let timeout = CommandType::ReadFlashSlow.timeout();
            let answer = self.flasher.connection().with_timeout(timeout, |line| line.command(command));
            let answer: Result<Vec<u8>, Error> = answer.and_then(TryInto::try_into);
            let answer = answer.map_err(|error| self.failure(PURPOSE, &error))?;
            // It sends a whole block, whatever it was asked for.
            let read = answer
                .get(..size)
                .ok_or_else(|| failed(PURPOSE, &format!("it sent {} bytes of {size}", answer.len())))?;
            bytes.extend(read);
        }
        Ok(bytes)
    }

    /// Erases and writes the sectors of `parts`, except those that hold the right bytes already.
    pub(super) fn write<'a>(
        &mut self,
        parts: impl Iterator<Item = (u64, &'a [u8])>,
        report: &dyn Fn(FlashStep),
    ) -> Result<(), Diagnostic> {
        let chip = self.flasher.chip();
        let mut target = chip.flash_target(SpiAttachParams::default(), false, false, true);
        let line = self.flasher.connection();
        let write = || {
            target.begin(line)?;
            for (address, bytes) in parts {
                let block = chip.flash_write_size() as u64;
                let mut progress = PartProgress { left: bytes.len() as u64, block, report };
                target.write_segment(line, Segment::new(address as u32, bytes), &mut progress)?;
            }
            Ok(())
        };
        let outcome: Result<(), Error> = write();
        outcome.map_err(|error| self.failure("be written", &error))
    }

    /// Compares flash with what it should hold, by digests; what differs is read.
    pub(super) fn compare(
        &mut self,
        part: (u64, &[u8]),
        report: &dyn Fn(FlashStep),
    ) -> Result<(), Diagnostic> {
        for (address, expected) in pieces(part, DIGEST_BYTES) {
            if !self.is_equal(address, expected)? {
                return Err(self.difference((address, expected))?);
            }
            report(FlashStep::Done(expected.len() as u64));
        }
        Ok(())
    }

    fn is_equal(&mut self, address: u64, expected: &[u8]) -> Result<bool, Diagnostic> {
        let found = self.flasher.checksum_md5(address as u32, expected.len() as u32);
        let found = found.map_err(|error| self.failure("be read back", &error))?;
        Ok(found.to_be_bytes() == Md5::digest(expected)[..])
    }

    /// Finds the first difference where the digest of flash differs.
    fn difference(&mut self, part: (u64, &[u8])) -> Result<Diagnostic, Diagnostic> {
        for (address, expected) in pieces(part, SECTOR_BYTES) {
            if !self.is_equal(address, expected)? {
                let found = self.read(address, expected.len())?;
                if let Some(difference) = first_difference(address, expected, &found) {
                    return Ok(difference);
                }
            }
        }
        Ok(failed("be read back", &format!("the bytes from {:#x} on were read twice, and differ", part.0)))
    }

    /// Starts what is in flash.
    pub(super) fn restart(&mut self) -> Result<(), Diagnostic> {
        let chip = self.flasher.chip();
        let outcome = restart(self.flasher.connection(), chip, self.can_reset);
        outcome.map_err(|error| self.failure("start", &error))
    }

    /// Translates an error of the library.
    fn failure(&self, purpose: &'static str, error: &Error) -> Diagnostic {
        match is_unplugged(error) || !self.path.exists() {
            true => unplugged(purpose),
            false => failed(purpose, &causes(error)),
        }
    }
}

/// Starts what is in flash: by the lines of the port, or else by a command.
fn restart(line: &mut Connection, chip: Chip, can_reset: bool) -> Result<(), Error> {
    match can_reset {
        true => line.reset_after(false, chip),
        false => line.command(Command::FlashEnd { reboot: true }).map(drop),
    }
}

fn is_unplugged(error: &Error) -> bool {
    chain(error).any(|error| {
        let kind = error.downcast_ref::<serialport::Error>().map(serialport::Error::kind);
        matches!(kind, Some(serialport::ErrorKind::Io(ErrorKind::BrokenPipe)))
    })
}

struct PartProgress<'a> {
    left: u64,
    /// Bytes of each step.
    block: u64,
    report: &'a dyn Fn(FlashStep),
}

impl PartProgress<'_> {
    fn done(&mut self, bytes: u64) {
        let bytes = bytes.min(self.left);
        self.left -= bytes;
        (self.report)(FlashStep::Done(bytes));
    }
}

impl ProgressCallbacks for PartProgress<'_> {
    fn init(&mut self, _: u32, _: usize) {}

    fn update(&mut self, _: usize) {
        self.done(self.block);
    }

    fn verifying(&mut self) {}

    fn finish(&mut self, _: bool) {
        self.done(self.left);
    }
}
