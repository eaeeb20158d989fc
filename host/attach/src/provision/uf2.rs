//! UF2 images: what a board's boot loader takes as a file on its drive (<https://github.com/microsoft/uf2>).

use fabswarm_diagnostic::Diagnostic;
use fabswarm_flash::FlashImage;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The file by which a boot loader's drive is known.
pub const INFO_FILE: &str = "INFO_UF2.TXT";

const BLOCK_BYTES: usize = 512;
const DATA_BYTES: usize = 256;
const MAGIC: [u32; 2] = [0x0A32_4655, 0x9E5D_5157];
const END_MAGIC: u32 = 0x0AB1_6F30;
const HAS_FAMILY: u32 = 0x2000;

/// The contents of a flash, in pages of 256 bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Uf2Image {
    pages: BTreeMap<u32, [u8; DATA_BYTES]>,
}

impl Uf2Image {
    /// Adds bytes at an address. What shares a page with them and was not added reads as erased.
    pub(crate) fn put(&mut self, address: u32, bytes: &[u8]) {
        for (address, &byte) in (address..).zip(bytes) {
            let within = address as usize % DATA_BYTES;
            let page = self.pages.entry(address - within as u32).or_insert([0xFF; DATA_BYTES]);
            page[within] = byte;
        }
    }

    /// The file, for boards of `family`.
    pub(crate) fn to_bytes(&self, family: u32) -> Vec<u8> {
        let count = self.pages.len() as u32;
        let mut file = Vec::with_capacity(self.pages.len() * BLOCK_BYTES);
        for (number, (&address, data)) in (0..).zip(&self.pages) {
            let start = file.len();
            let header = [MAGIC[0], MAGIC[1], HAS_FAMILY, address, DATA_BYTES as u32, number, count, family];
            header.iter().for_each(|word: &u32| file.extend(word.to_le_bytes()));
            file.extend(data);
            file.resize(start + BLOCK_BYTES - 4, 0);
            file.extend(END_MAGIC.to_le_bytes());
        }
        file
    }
}

impl From<&FlashImage> for Uf2Image {
    fn from(image: &FlashImage) -> Self {
        let mut uf2 = Self::default();
        image.parts().for_each(|(address, bytes)| uf2.put(address as u32, bytes));
        uf2
    }
}

/// The drives of boards in their boot loaders: mounted folders with the file [`INFO_FILE`].
#[must_use]
pub fn drives() -> Vec<PathBuf> {
    let mounts = fs::read_to_string("/proc/mounts").unwrap_or_default();
    let folders = mounts.lines().filter_map(|line| line.split(' ').nth(1));
    // Spaces are written in octal there.
    let folders = folders.map(|folder| PathBuf::from(folder.replace("\\040", " ")));
    folders.filter(|folder| is_drive(folder)).collect()
}

/// Whether a folder is the drive of a boot loader.
#[must_use]
pub fn is_drive(folder: &Path) -> bool {
    folder.join(INFO_FILE).is_file()
}

/// The line `Board-ID` of a drive's information.
#[must_use]
pub fn drive_board(folder: &Path) -> Option<String> {
    let info = fs::read_to_string(folder.join(INFO_FILE)).ok()?;
    let line = info.lines().find_map(|line| line.strip_prefix("Board-ID:"))?;
    Some(line.trim().to_owned())
}

fn refusal(drive: &Path, bytes: usize, error: &io::Error) -> Diagnostic {
    let drive = drive.display();
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            let remedy = "a boot loader's drive has: check that this is one, unplug the board, and hold BOOTSEL while you plug it in";
            Diagnostic::new(format!("{drive} has no room for {bytes} bytes"), remedy)
        }
        io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => Diagnostic::new(
            format!("you may not write to {drive}: {error}"),
            "mount it for you and for writing, e.g. with `udisksctl mount`",
        ),
        // Most often because the board is gone.
        _ => Diagnostic::new(
            format!("{drive} was lost while it was written: {error}"),
            "the board has only part of its image: hold BOOTSEL while you plug it in, and flash it again",
        ),
    }
}

/// Writes a file to a drive and reads it back. Returns whether it could be compared: a real board restarts as soon as it has the
/// whole file, and its drive is gone.
///
/// # Errors
/// If it cannot be written, or other bytes come back.
pub fn write_to_drive(drive: &Path, name: &str, bytes: &[u8]) -> Result<bool, Diagnostic> {
    let path = drive.join(name);
    let write = || {
        // A stick may say that it is a board: its links lead nowhere.
        let flags = rustix::fs::OFlags::NOFOLLOW.bits() as i32;
        let mut file =
            File::options().write(true).create(true).truncate(true).custom_flags(flags).open(&path)?;
        file.write_all(bytes)?;
        io::Result::Ok(file)
    };
    let file = write().map_err(|error| refusal(drive, bytes.len(), &error))?;
    // The board may be gone by now.
    let _ = file.sync_all();
    match fs::read(&path) {
        Ok(back) if back == bytes => Ok(true),
        Ok(_) => Err(Diagnostic::new(
            format!("{} gives other bytes back than were written", drive.display()),
            "flash it again; if that fails too, replace the board",
        )),
        Err(_) => Ok(false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RP2040: u32 = 0xE48B_FF56;

    #[test]
    fn blocks_hold_whole_pages_in_the_order_of_their_addresses() {
        let mut image = Uf2Image::default();
        image.put(0x1000_0200, &[1, 2]);
        image.put(0x1000_00FF, &[3, 4]);
        let bytes = image.to_bytes(RP2040);
        assert_eq!(bytes.len(), 3 * BLOCK_BYTES);
        let word = |block: usize, at: usize| {
            u32::from_le_bytes(bytes[block * BLOCK_BYTES + at..][..4].try_into().unwrap())
        };
        for (block, address) in [0x1000_0000, 0x1000_0100, 0x1000_0200].into_iter().enumerate() {
            assert_eq!([word(block, 0), word(block, 4), word(block, 508)], [MAGIC[0], MAGIC[1], END_MAGIC]);
            assert_eq!([word(block, 12), word(block, 20), word(block, 24)], [address, block as u32, 3]);
            assert_eq!(word(block, 28), RP2040);
        }
        assert_eq!(bytes[32 + 255], 3);
        assert_eq!(bytes[BLOCK_BYTES + 32..][..2], [4, 0xFF]);
        assert_eq!(bytes[2 * BLOCK_BYTES + 32..][..3], [1, 2, 0xFF]);
    }

    #[test]
    fn a_drive_is_known_by_its_information() {
        let folder = tempfile::tempdir().unwrap();
        assert!(!is_drive(folder.path()));
        let info = "UF2 Bootloader v3.0\nModel: Raspberry Pi RP2\nBoard-ID: RPI-RP2\n";
        fs::write(folder.path().join(INFO_FILE), info).unwrap();
        assert!(is_drive(folder.path()));
        assert_eq!(drive_board(folder.path()).as_deref(), Some("RPI-RP2"));
        assert!(write_to_drive(folder.path(), "agent-0.uf2", b"bytes").unwrap());
        let elsewhere = folder.path().join("elsewhere");
        std::os::unix::fs::symlink(&elsewhere, folder.path().join("agent-1.uf2")).unwrap();
        assert!(write_to_drive(folder.path(), "agent-1.uf2", b"bytes").is_err() && !elsewhere.exists());
        // Noise, and a line that is cut off.
        for damaged in [&[0xFF, 0xFE, 0][..], b"UF2 Bootloader v3.0\nBoard"] {
            fs::write(folder.path().join(INFO_FILE), damaged).unwrap();
            assert!(is_drive(folder.path()));
            assert_eq!(drive_board(folder.path()), None);
        }
    }

    #[test]
    fn every_failure_of_a_drive_has_its_remedy() {
        let message = |error: io::Error| refusal(Path::new("/media/RPI-RP2"), 512, &error).to_string();
        for (kind, expected) in [
            (io::ErrorKind::StorageFull, "/media/RPI-RP2 has no room for 512 bytes\nhelp: "),
            (io::ErrorKind::ReadOnlyFilesystem, "you may not write to /media/RPI-RP2: read-only"),
            (io::ErrorKind::PermissionDenied, "you may not write to /media/RPI-RP2: permission denied"),
            (io::ErrorKind::NotFound, "/media/RPI-RP2 was lost while it was written: "),
        ] {
            let message = message(kind.into());
            assert!(message.starts_with(expected) && message.contains("\nhelp: "), "{message}");
        }
        // The kernel's errors for an unplugged device: ENODEV and EIO.
        for number in [19, 5] {
            let message = message(io::Error::from_raw_os_error(number));
            assert!(message.contains("was lost while it was written"), "{message}");
        }
        for (device, expected) in [
            ("full", "/dev has no room for 5 bytes"),
            ("null", "/dev gives other bytes back than were written"),
        ] {
            let error = write_to_drive(Path::new("/dev"), device, b"bytes").unwrap_err();
            assert_eq!(error.what(), expected);
        }
        let gone = write_to_drive(Path::new("/nowhere"), "agent-0.uf2", b"bytes").unwrap_err();
        assert!(gone.what().starts_with("/nowhere was lost while it was written: "), "{gone}");
    }
}
