//! A board's `board.toml`, as the host uses it.

use super::boards_folder::boards_folder;
use super::firmware_crate::{FirmwareConfig, FirmwareCrate};
use crate::provision::uf2::Uf2Image;
use fabswarm_board_file::{ChipReading, ImageFormat, LoraChannel, Radio, Uf2Drive};
use fabswarm_diagnostic::Diagnostic;
use fabswarm_flash::{FlashImage, FlashJob, FlashRegion, PartNumber};
use fabswarm_sim::air::radio::{LoraModulation, RadioKind};
use std::ops::Deref;
use std::path::PathBuf;

/// The two sectors of the boot counter, at the start of the storage.
pub(crate) const BOOTS_BYTES: u64 = 2 * 4096;

/// A board's `board.toml`, with the values that the host computes from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoardFile(fabswarm_board_file::BoardToml);

impl Deref for BoardFile {
    type Target = fabswarm_board_file::BoardToml;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

/// The board for users to copy.
const TEMPLATE: &str = "template";

/// The boards whose sources are there, sorted: the folders with a `board.toml`, except the template.
pub fn names() -> Vec<String> {
    let entries = boards_folder().ok().and_then(|folder| std::fs::read_dir(folder).ok());
    let entries = entries.into_iter().flatten().flatten();
    let boards = entries.filter(|entry| entry.path().join("board.toml").is_file());
    let mut names: Vec<String> = boards
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| name != TEMPLATE)
        .collect();
    names.sort();
    names
}

impl BoardFile {
    /// Reads the file of `board`.
    ///
    /// # Errors
    /// If there is no such board, or its file is wrong.
    pub fn read(board: &str) -> Result<Self, Diagnostic> {
        let path = boards_folder()?.join(board).join("board.toml");
        if !path.is_file() {
            return Err(Diagnostic::new(
                format!("there is no board `{board}` in {}", boards_folder()?.display()),
                format!("the boards are {}; docs/boards.md says how to add one", names().join(", ")),
            ));
        }
        fabswarm_board_file::BoardToml::read(&path).map(Self).map_err(|reason| {
            let what = format!("cannot use {}: {reason}", path.display());
            Diagnostic::new(what, "compare it with boards/template/board.toml; docs/boards.md has its keys")
        })
    }

    /// Where its image may be.
    #[must_use]
    pub fn image_room(&self) -> FlashRegion {
        let origin = self.image_origin();
        FlashRegion { origin, bytes: self.page.origin.saturating_sub(origin) }
    }

    /// The radio that it sends frames with, if it has one.
    fn radio_kind(&self) -> Option<RadioKind> {
        Some(match self.radio? {
            Radio::Ieee802154(_) => RadioKind::Ieee802154,
            Radio::EspNow(_) => RadioKind::EspNow,
            Radio::Lora(LoraChannel { spreading, bandwidth_khz, duty_per_mille, .. }) => {
                RadioKind::Lora(LoraModulation { spreading, bandwidth_khz, duty_per_mille })
            }
        })
    }

    /// Its radio, if slots that were planned for `planned` may be too short for it, or unlawful.
    pub(crate) fn other_radio(&self, planned: RadioKind) -> Option<RadioKind> {
        let has = self.radio_kind()?;
        let is_kept = match (has, planned) {
            (RadioKind::Lora(has), RadioKind::Lora(planned)) => {
                let duty_per_mille = has.duty_per_mille;
                planned.duty_per_mille <= duty_per_mille
                    && LoraModulation { duty_per_mille, ..planned } == has
            }
            (has, planned) => has == planned,
        };
        (!is_kept).then_some(has)
    }

    /// Refuses slots that were planned for another radio than its own.
    pub(crate) fn check_radio(&self, planned: RadioKind) -> Result<(), Diagnostic> {
        let Some(has) = self.other_radio(planned) else { return Ok(()) };
        let board = &self.name;
        Err(Diagnostic::new(
            format!("{board} has {has}, and the slots of the scenario are planned for {planned}"),
            format!(
                "set radio.kind, and for lora spreading, bandwidth_khz and duty_percent, to what [radio] of boards/{board}/board.toml says"
            ),
        ))
    }

    /// The crate of its firmware, with the feature that its way of flashing asks for.
    pub(crate) fn firmware(&self) -> FirmwareCrate<'_> {
        let feature = self.uf2.as_ref().and_then(|uf2| uf2.feature.as_deref());
        FirmwareCrate { board: &self.name, target: Some(&self.target), feature }
    }

    /// Builds its firmware for the default scenario, unless it is up to date, and returns the path of the image.
    ///
    /// # Errors
    /// If it does not build.
    pub fn build(&self) -> Result<PathBuf, Diagnostic> {
        self.firmware().build(&FirmwareConfig::USUAL)
    }

    /// The drive of its boot loader.
    ///
    /// # Errors
    /// If it has none.
    pub fn drive(&self) -> Result<&Uf2Drive, Diagnostic> {
        self.uf2.as_ref().ok_or_else(|| {
            let what = format!("{} takes no UF2 files", self.name);
            Diagnostic::new(what, "its board.toml has no [uf2]; flash it without --out and --drive")
        })
    }

    /// An image without a page, as a file for the board's boot loader or programmer, and the suffix of that file. `None` where the
    /// tools of the board take the ELF file itself.
    ///
    /// # Errors
    /// If the image does not fit the board.
    pub fn image_file(&self, image: &FlashImage) -> Result<Option<(&'static str, Vec<u8>)>, Diagnostic> {
        if self.format == ImageFormat::EspIdf || self.chip.is_none() {
            return Ok(None);
        }
        image.check(self.image_room())?;
        Ok(Some(match &self.uf2 {
            Some(drive) => ("uf2", Uf2Image::from(image).to_bytes(drive.family)),
            None => ("hex", image.to_hex().into_bytes()),
        }))
    }

    /// The job of flashing boards of this kind with this image; `None` where the file names no chip.
    #[must_use]
    pub fn flash_job(&self, image: FlashImage) -> Option<FlashJob> {
        let ChipReading { part_at, part, part_mask, number_at } = self.probe;
        let [page_room, storage] = [self.page, self.storage]
            .map(|region| FlashRegion { origin: region.origin, bytes: region.bytes() });
        Some(FlashJob {
            chip: self.chip.clone()?,
            part: part_at.zip(part).map(|(at, value)| PartNumber {
                at,
                mask: part_mask.unwrap_or(u32::MAX),
                value,
            }),
            number_at,
            image,
            image_room: self.image_room(),
            page_room,
            boots: FlashRegion { bytes: BOOTS_BYTES.min(storage.bytes), ..storage },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_all_boards_are_read() {
        let pico = BoardFile::read("pico").unwrap();
        assert_eq!(pico.image_room(), FlashRegion { origin: 0x1000_0000, bytes: 0x1E_0000 });
        assert_eq!(pico.firmware().feature, Some("usb"));
        let job = |board: &str| BoardFile::read(board).unwrap().flash_job(FlashImage::default()).unwrap();
        let dk = job("nrf52840-dk");
        assert_eq!(dk.page_room, FlashRegion { origin: 0xE_0000, bytes: 64 * 1024 });
        assert_eq!(dk.part, Some(PartNumber { at: 0x1000_0100, mask: u32::MAX, value: 0x52840 }));
        let esp = job("esp32-c3");
        assert_eq!((esp.image_room.origin, esp.image_room.end()), (0, esp.page_room.origin));
        assert!(names().len() >= 3);
        for board in names() {
            let file = BoardFile::read(&board).unwrap();
            assert!(file.ram.stack_kib < file.ram.chip_kib, "{board}");
            assert_eq!(file.name, board);
        }
    }

    /// Regression: the log of a board whose debugger was detached filled up, and the board waited for ever.
    #[test]
    fn no_board_waits_for_a_debugger_to_read_its_log() {
        let lines_of = |board: &str| {
            let text =
                std::fs::read_to_string(boards_folder().unwrap().join(board).join("Cargo.toml")).unwrap();
            let lines = text.lines().filter(|line| line.starts_with("defmt-rtt"));
            lines.map(str::to_owned).collect::<Vec<_>>()
        };
        let lines = lines_of("");
        assert!(lines.len() == 1 && lines[0].contains("\"disable-blocking-mode\""), "{lines:?}");
        let boards = names().into_iter().chain([TEMPLATE.to_owned()]);
        let lines: Vec<String> = boards.flat_map(|board| lines_of(&board)).collect();
        let are_inherited = lines.iter().all(|line| line == "defmt-rtt.workspace = true");
        assert!(lines.len() >= 7 && are_inherited, "{lines:?}");
    }
}
