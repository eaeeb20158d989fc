//! What the host reads of a board's `board.toml`.

use super::{
    Error,
    firmware_crate::{FirmwareCrate, FirmwareNeeds},
    serial::ControlLines,
};
use fabswarm_flash::{FlashImage, FlashJob, FlashRegion, PartNumber};
use fabswarm_shared::provisioning::PAGE_ROOM;
use fabswarm_sim::air::radio::{LoraSettings, RadioKind};
use std::path::{Path, PathBuf};
use toml_edit::{Document, Item};

/// The two sectors of the boot counter, at the start of the storage.
pub(super) const BOOTS_BYTES: u64 = 2 * 4096;

/// A board's `board.toml`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoardFile {
    /// The board's name, and that of its folder.
    pub name: String,
    /// Its chip, as probe-rs and espflash name it.
    pub chip: Option<String>,
    /// The compiler's target.
    pub target: String,
    /// The format of its image.
    pub format: ImageFormat,
    /// Where its image may be.
    pub image: FlashRegion,
    /// Where its page is.
    pub page: FlashRegion,
    /// Where it stores its boots, and the states of its agent.
    pub storage: FlashRegion,
    /// Where its boot loader takes UF2 files.
    pub uf2: Option<Uf2Drive>,
    /// What a debug probe can read of its chip.
    pub probe: ChipReading,
    /// The radio that it sends frames with, if it has one.
    pub radio: Option<RadioKind>,
    /// What it wants of DTR and RTS of its serial port.
    pub lines: ControlLines,
    /// RAM of its chip.
    pub(super) ram_bytes: u64,
    /// RAM that its stack must have.
    pub(super) stack_bytes: u64,
}

/// What an image in flash looks like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ImageFormat {
    /// The bytes of the program, each at its address.
    #[default]
    Plain,
    /// That of Espressif's boot loader; addresses are offsets in flash.
    EspIdf,
}

/// Section `[uf2]`: the drive of a boot loader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uf2Drive {
    /// What the drive calls its board.
    pub drive: String,
    /// The number of the chip's family.
    pub family: u32,
    /// The Cargo feature of the image that is flashed this way.
    pub feature: Option<String>,
}

/// Section `[probe]`: what a chip tells about itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChipReading {
    /// How the part is told from others.
    pub part: Option<PartNumber>,
    /// The address of the chip's number.
    pub number_at: Option<u64>,
}

/// The board that is there to be copied.
const TEMPLATE: &str = "template";

/// The folder of a board's sources.
pub(super) fn folder(board: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../boards").join(board)
}

/// The boards in the source tree, sorted: the folders with a `board.toml`, but for the one to copy.
pub fn names() -> Vec<String> {
    let entries = std::fs::read_dir(folder("")).into_iter().flatten().flatten();
    let boards = entries.filter(|entry| entry.path().join("board.toml").is_file());
    let mut names: Vec<String> = boards
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| name != TEMPLATE)
        .collect();
    names.sort();
    names
}

impl BoardFile {
    /// Reads the file of `board` from the source tree that this crate was built in.
    ///
    /// # Errors
    /// [`Error::NoBoard`] if there is no such board, [`Error::BoardFile`] if its file is wrong.
    pub fn read(board: &str) -> Result<Self, Error> {
        let path = folder(board).join("board.toml");
        if !path.is_file() {
            return Err(Error::NoBoard { board: board.to_owned(), boards: names() });
        }
        let text = std::fs::read_to_string(&path)
            .map_err(|source| Error::BoardFile { path: path.clone(), reason: source.to_string() })?;
        Self::parse(&text).map_err(|reason| Error::BoardFile { path, reason })
    }

    /// Room for the page on `board`, where that is known here.
    pub(super) fn page_bytes(board: &str) -> Option<u64> {
        if board == "native" {
            return Some(PAGE_ROOM as u64);
        }
        Self::read(board).ok().map(|file| file.page.bytes)
    }

    /// Whether slots that were planned for `radio` are long enough for its own, and lawful.
    fn keeps_slots_of(&self, radio: RadioKind) -> bool {
        match (self.radio, radio) {
            (None, _) => true,
            (Some(RadioKind::Lora(has)), RadioKind::Lora(planned)) => {
                let duty_per_mille = has.duty_per_mille;
                planned.duty_per_mille <= duty_per_mille && LoraSettings { duty_per_mille, ..planned } == has
            }
            (Some(has), planned) => has == planned,
        }
    }

    /// Refuses slots that were planned for another radio than its own.
    ///
    /// # Errors
    /// [`Error::OtherRadio`].
    pub(super) fn check_radio(&self, planned: RadioKind) -> Result<(), Error> {
        match self.radio {
            Some(has) if !self.keeps_slots_of(planned) => {
                Err(Error::OtherRadio { board: self.name.clone(), has, planned })
            }
            _ => Ok(()),
        }
    }

    /// The crate of its firmware, with the feature that its way of flashing asks for.
    pub(super) fn firmware(&self) -> FirmwareCrate<'_> {
        let feature = self.uf2.as_ref().and_then(|uf2| uf2.feature.as_deref());
        FirmwareCrate { board: &self.name, target: Some(&self.target), feature }
    }

    /// Builds its firmware for the default scenario, unless it is up to date, and returns the path of the image.
    ///
    /// # Errors
    /// [`Error::Build`] if it does not build.
    pub fn build(&self) -> Result<PathBuf, Error> {
        self.firmware().build(&FirmwareNeeds::USUAL)
    }

    /// What is to be done with boards of this kind and this image; `None` where the file names no chip.
    #[must_use]
    pub fn flash_job(&self, image: FlashImage) -> Option<FlashJob> {
        Some(FlashJob {
            chip: self.chip.clone()?,
            part: self.probe.part,
            number_at: self.probe.number_at,
            image,
            image_room: self.image,
            page_room: self.page,
            boots: FlashRegion { bytes: BOOTS_BYTES.min(self.storage.bytes), ..self.storage },
        })
    }

    fn parse(text: &str) -> Result<Self, String> {
        let file = Document::parse(text).map_err(|error| error.to_string())?;
        let item = |table: &str, key: &str| file.get(table).and_then(|table| table.get(key));
        let optional = |table: &str, key: &str| {
            item(table, key).and_then(Item::as_integer).and_then(|value| u64::try_from(value).ok())
        };
        let integer = |table: &str, key: &str| {
            optional(table, key).ok_or_else(|| format!("[{table}] needs a number `{key}`"))
        };
        let text_of = |key: &str| file.get(key).and_then(Item::as_str).map(str::to_owned);
        let region = |table: &str| -> Result<FlashRegion, String> {
            Ok(FlashRegion { origin: integer(table, "origin")?, bytes: 1024 * integer(table, "length_kib")? })
        };
        let (page, storage) = (region("page")?, region("storage")?);
        if storage.origin < page.end() {
            return Err("[storage] must begin behind [page]".to_owned());
        }
        // What the linker script of the HAL puts before the rest is part of the image too.
        let regions = file.get("regions").and_then(Item::as_table).into_iter().flatten();
        let origins = regions.filter_map(|(_, region)| region.get("origin")?.as_integer()?.try_into().ok());
        let origin = origins.fold(integer("flash", "origin")?, u64::min);
        let part = match (optional("probe", "part_at"), optional("probe", "part")) {
            (Some(at), Some(value)) => Some(PartNumber {
                at,
                mask: optional("probe", "part_mask").unwrap_or(u32::MAX.into()) as u32,
                value: value as u32,
            }),
            _ => None,
        };
        let uf2 = match item("uf2", "drive").and_then(Item::as_str) {
            Some(drive) => Some(Uf2Drive {
                drive: drive.to_owned(),
                family: integer("uf2", "family")? as u32,
                feature: item("uf2", "feature").and_then(Item::as_str).map(str::to_owned),
            }),
            None => None,
        };
        let radio = match item("radio", "kind").and_then(Item::as_str) {
            None => None,
            Some("802.15.4") => Some(RadioKind::Ieee802154),
            Some("esp-now") => Some(RadioKind::EspNow),
            Some("lora") => Some(RadioKind::Lora(LoraSettings {
                spreading: integer("radio", "spreading")? as u8,
                bandwidth_khz: integer("radio", "bandwidth_khz")? as u16,
                duty_per_mille: integer("radio", "duty_per_mille")? as u16,
            })),
            Some(other) => {
                return Err(format!(
                    "[radio] kind `{other}` is unknown: there are `802.15.4`, `esp-now` and `lora`"
                ));
            }
        };
        let line = |key: &str, usual: bool| match item("serial", key) {
            None => Ok(usual),
            Some(set) => set.as_bool().ok_or_else(|| format!("[serial] `{key}` must be true or false")),
        };
        let usual = ControlLines::default();
        let lines = ControlLines { dtr: line("dtr", usual.dtr)?, rts: line("rts", usual.rts)? };
        if lines.rts && !lines.dtr {
            return Err("[serial] `rts` must be false too where `dtr` is: RTS alone resets boards".to_owned());
        }
        let format = match text_of("boot_loader").as_deref() {
            None => ImageFormat::Plain,
            Some("esp-idf") => ImageFormat::EspIdf,
            Some(other) => return Err(format!("boot_loader `{other}` is unknown: there is `esp-idf`")),
        };
        // Its boot loader is part of the image, which the processor sees elsewhere.
        let origin = if format == ImageFormat::EspIdf { 0 } else { origin };
        Ok(Self {
            name: text_of("name").ok_or("it needs a `name`")?,
            chip: text_of("chip"),
            format,
            target: text_of("target").ok_or("it needs a `target`")?,
            image: FlashRegion { origin, bytes: page.origin.saturating_sub(origin) },
            page,
            storage,
            uf2,
            probe: ChipReading { part, number_at: optional("probe", "number_at") },
            radio,
            lines,
            ram_bytes: 1024 * integer("ram", "chip_kib")?,
            stack_bytes: 1024 * integer("ram", "stack_kib")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_all_boards_are_read() {
        let pico = BoardFile::read("pico").unwrap();
        assert_eq!(pico.page, FlashRegion { origin: 0x101E_0000, bytes: 64 * 1024 });
        assert_eq!(pico.image, FlashRegion { origin: 0x1000_0000, bytes: 0x1E_0000 });
        assert_eq!(pico.uf2.unwrap().feature.as_deref(), Some("usb"));
        let dk = BoardFile::read("nrf52840-dk").unwrap();
        assert_eq!(dk.probe.part, Some(PartNumber { at: 0x1000_0100, mask: u32::MAX, value: 0x52840 }));
        let esp = BoardFile::read("esp32-c3").unwrap();
        assert_eq!(
            (esp.format, esp.image.origin, esp.image.end()),
            (ImageFormat::EspIdf, 0, esp.page.origin)
        );
        assert!(names().len() >= 3);
        for board in names() {
            let file = BoardFile::read(&board).unwrap();
            assert!(file.stack_bytes < file.ram_bytes, "{board}");
            assert_eq!(file.name, board);
        }
    }

    /// Regression: the log of a board whose debugger was detached filled up, and the board waited for ever.
    #[test]
    fn no_board_waits_for_a_debugger_to_read_its_log() {
        let lines_of = |board: &str| {
            let text = std::fs::read_to_string(folder(board).join("Cargo.toml")).unwrap();
            let lines = text.lines().filter(|line| line.starts_with("defmt-rtt"));
            lines.map(str::to_owned).collect::<Vec<_>>()
        };
        let lines = lines_of("");
        assert!(lines.len() == 1 && lines[0].contains("\"disable-blocking-mode\""), "{lines:?}");
        let boards = names().into_iter().chain([TEMPLATE.to_owned()]);
        let lines: Vec<String> = boards.flat_map(|board| lines_of(&board)).collect();
        assert!(lines.len() >= 7 && lines.iter().all(|line| line == "defmt-rtt.workspace = true"), "{lines:?}");
    }

    #[test]
    fn errors_name_the_key() {
        let reason = |text: &str| BoardFile::parse(text).unwrap_err();
        assert_eq!(reason("[page]\norigin = 0"), "[page] needs a number `length_kib`");
        assert_eq!(reason("[page]\norigin = -1\nlength_kib = 4"), "[page] needs a number `origin`");
        let overlapping = "[page]\norigin = 0\nlength_kib = 4\n[storage]\norigin = 0\nlength_kib = 4";
        assert_eq!(reason(overlapping), "[storage] must begin behind [page]");
        let other = "boot_loader = \"grub\"\n[flash]\norigin = 0\n[page]\norigin = 0\nlength_kib = 4\n[storage]\norigin = 4096\nlength_kib = 4";
        assert_eq!(reason(other), "boot_loader `grub` is unknown: there is `esp-idf`");
        let serial = |lines: &str| reason(&format!("{other}\n[serial]\n{lines}"));
        assert_eq!(serial("dtr = 1"), "[serial] `dtr` must be true or false");
        assert!(serial("dtr = false").starts_with("[serial] `rts` must be false too"));
        let message = BoardFile::read("nothing").unwrap_err().to_string();
        assert!(message.contains("no board `nothing`") && message.contains("\nhelp: "), "{message}");
    }
}
