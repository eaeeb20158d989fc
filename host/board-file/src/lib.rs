//! `board.toml`: what a board is, and where its memory is. `docs/boards.md` says what each key means.

pub mod build_script;

use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::{fmt, fs};

const KIB: u64 = 1024;

/// A board's `board.toml`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BoardToml {
    /// The board's name, and that of its folder.
    pub name: String,
    /// Its chip, as probe-rs and espflash name it.
    pub chip: Option<String>,
    /// The compiler's target.
    pub target: String,
    /// The format of its image, which follows from its boot loader.
    #[serde(default, rename = "boot_loader")]
    pub format: ImageFormat,
    /// Flash for its image.
    pub flash: Memory,
    /// RAM for its image.
    pub ram: Memory,
    /// Where its page is.
    pub page: Region,
    /// Where it stores its boots, and the states of its agent.
    pub storage: Region,
    /// Memory that the linker script of the HAL asks for by name.
    #[serde(default)]
    pub regions: BTreeMap<String, NamedRegion>,
    /// Its serial port.
    #[serde(default)]
    pub serial: SerialPort,
    /// The radio that it sends frames with, if it has one.
    pub radio: Option<Radio>,
    /// Where its boot loader takes UF2 files.
    pub uf2: Option<Uf2Drive>,
    /// The wiring of each pin, for its page in the book.
    #[serde(default)]
    pub pins: BTreeMap<String, String>,
    /// A note for the person who flashes it.
    pub flash_note: Option<String>,
    /// Facts of its chip that a debug probe can read.
    #[serde(default)]
    pub probe: ChipReading,
}

/// The format of an image in flash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum ImageFormat {
    /// The bytes of the program, each at its address.
    #[default]
    #[serde(skip)]
    Plain,
    /// The layout of Espressif's boot loader; addresses are offsets in flash.
    #[serde(rename = "esp-idf")]
    EspIdf,
}

/// Sections `[flash]` and `[ram]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    /// Its first address.
    pub origin: u64,
    budget_kib: u64,
    large_swarm_budget_kib: Option<u64>,
    marks_budget_kib: Option<u64>,
    uart_budget_kib: Option<u64>,
    sensor_budget_kib: Option<u64>,
    usb_budget_kib: Option<u64>,
    /// All that the chip has.
    pub chip_kib: u64,
    /// Memory that must be left for the stack; only of RAM.
    #[serde(default)]
    pub stack_kib: u64,
}

impl Memory {
    /// Bytes for an image with these Cargo features.
    pub fn budget<'a>(&self, features: impl IntoIterator<Item = &'a str>) -> u64 {
        let features: BTreeSet<&str> = features.into_iter().collect();
        let of_features = self.budgets().filter(|(feature, _)| features.contains(feature));
        KIB * of_features.map(|(_, kib)| kib).fold(self.budget_kib, u64::max)
    }

    /// The Cargo features with a budget of their own.
    fn budgets(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let of_features = [
            ("large-swarm", self.large_swarm_budget_kib),
            ("marks", self.marks_budget_kib),
            ("uart", self.uart_budget_kib),
            ("sensor", self.sensor_budget_kib),
            ("usb", self.usb_budget_kib),
        ];
        of_features.into_iter().filter_map(|(feature, kib)| Some((feature, kib?)))
    }
}

/// Sections `[page]` and `[storage]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Region {
    /// Its first address.
    pub origin: u64,
    length_kib: u64,
    /// How long the flash erases 4 KiB, while the board does nothing else; only of the storage.
    #[serde(default)]
    pub erase_ms: u32,
    /// How often it can be erased; only of the storage.
    #[serde(default)]
    pub endurance: u32,
}

impl Region {
    /// Its length.
    pub const fn bytes(&self) -> u64 {
        KIB * self.length_kib
    }

    /// The address behind it.
    pub const fn end(&self) -> u64 {
        self.origin + self.bytes()
    }
}

/// Section `[regions.NAME]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamedRegion {
    /// Its first address.
    pub origin: u64,
    /// Its length.
    pub bytes: u64,
}

/// Section `[serial]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SerialPort {
    /// Bits per second, of a UART.
    pub baud: Option<u32>,
    /// Whether the host sets DTR while it has the port open.
    pub dtr: bool,
    /// Whether the host sets RTS while it has the port open.
    pub rts: bool,
}

impl Default for SerialPort {
    fn default() -> Self {
        Self { baud: None, dtr: true, rts: true }
    }
}

/// Section `[radio]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "kind")]
pub enum Radio {
    /// IEEE 802.15.4.
    #[serde(rename = "802.15.4")]
    Ieee802154(RadioChannel),
    /// Espressif's ESP-NOW.
    #[serde(rename = "esp-now")]
    EspNow(RadioChannel),
    /// LoRa.
    #[serde(rename = "lora")]
    Lora(LoraChannel),
}

impl Radio {
    /// By how much its times of arrival can be off.
    pub const fn jitter(&self) -> Jitter {
        match self {
            Self::Ieee802154(RadioChannel { jitter, .. })
            | Self::EspNow(RadioChannel { jitter, .. })
            | Self::Lora(LoraChannel { jitter, .. }) => *jitter,
        }
    }

    /// Refuses what the radio cannot do, or may not do in its region.
    fn check(self) -> Result<(), String> {
        let out_of = |key: &str, value: i64, allowed: &str| {
            Err(format!("[radio] `{key}` is {value}, and must be {allowed}"))
        };
        match self {
            Self::Ieee802154(RadioChannel { channel, .. }) if !(11..=26).contains(&channel) => {
                out_of("channel", channel.into(), "11 to 26")
            }
            Self::Ieee802154(RadioChannel { power_dbm, .. }) if !NRF_POWERS_DBM.contains(&power_dbm) => {
                out_of("power_dbm", power_dbm.into(), &format!("one of {NRF_POWERS_DBM:?}"))
            }
            Self::EspNow(RadioChannel { channel, .. }) if !(1..=13).contains(&channel) => {
                out_of("channel", channel.into(), "1 to 13")
            }
            Self::EspNow(RadioChannel { power_dbm, .. }) if !(2..=20).contains(&power_dbm) => {
                out_of("power_dbm", power_dbm.into(), "2 to 20")
            }
            Self::Lora(LoraChannel { spreading, .. }) if !(7..=12).contains(&spreading) => {
                out_of("spreading", spreading.into(), "7 to 12")
            }
            Self::Lora(LoraChannel { bandwidth_khz, .. }) if ![125, 250, 500].contains(&bandwidth_khz) => {
                out_of("bandwidth_khz", bandwidth_khz.into(), "125, 250 or 500")
            }
            Self::Lora(channel) => channel.check(),
            Self::Ieee802154(_) | Self::EspNow(_) => Ok(()),
        }
    }
}

/// The transmitter's settings, for the person who flashes it.
impl fmt::Display for Radio {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ieee802154(RadioChannel { channel, power_dbm, .. }) => {
                write!(out, "802.15.4 on channel {channel} with {power_dbm} dBm")
            }
            Self::EspNow(RadioChannel { channel, power_dbm, .. }) => {
                write!(out, "ESP-NOW on Wi-Fi channel {channel} with {power_dbm} dBm")
            }
            Self::Lora(LoraChannel { region, frequency_khz, duty_per_mille, power_dbm, .. }) => write!(
                out,
                "LoRa at {} MHz with {power_dbm} dBm, up to {} % of an hour, which is lawful only where the rules of {region:?} hold",
                f64::from(*frequency_khz) / 1000.0,
                f64::from(*duty_per_mille) / 10.0
            ),
        }
    }
}

/// The powers that the nRF52840 has.
const NRF_POWERS_DBM: [i8; 14] = [-40, -20, -16, -12, -8, -4, 0, 2, 3, 4, 5, 6, 7, 8];

/// The channel of a radio in the band of 2.4 GHz, which is free in most of the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RadioChannel {
    /// Its number.
    pub channel: u8,
    /// The power to send with.
    pub power_dbm: i8,
    /// The jitter of its times of arrival.
    pub jitter: Jitter,
}

/// By how much the time that a board takes for the arrival of a packet can be off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Jitter {
    /// By so much.
    pub us: u32,
    /// Whether that was measured on hardware, rather than assumed.
    pub is_measured: bool,
}

/// The region whose rules a LoRa radio keeps to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum LoraRegion {
    /// Europe.
    EU868,
    /// North America.
    US915,
    /// Parts of Asia.
    AS923,
}

impl LoraRegion {
    /// Bands, each with the highest share of an hour in thousandths and the highest power in dBm.
    const fn bands(self) -> &'static [(u32, u32, u16, i32)] {
        match self {
            Self::EU868 => &[(868_000, 868_600, 10, 14), (869_400, 869_650, 100, 27)],
            Self::US915 => &[(902_000, 928_000, 1000, 30)],
            Self::AS923 => &[(923_000, 923_500, 10, 16)],
        }
    }
}

/// The channel of a LoRa radio.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoraChannel {
    /// The region whose rules it keeps to.
    pub region: LoraRegion,
    /// Its centre.
    pub frequency_khz: u32,
    /// The spreading factor.
    pub spreading: u8,
    /// Its width.
    pub bandwidth_khz: u16,
    /// The share of an hour in which the radio may send there.
    pub duty_per_mille: u16,
    /// The power to send with.
    pub power_dbm: i32,
    /// The jitter of its times of arrival.
    pub jitter: Jitter,
}

impl LoraChannel {
    fn check(self) -> Result<(), String> {
        let Self { region, frequency_khz, bandwidth_khz, duty_per_mille, power_dbm, .. } = self;
        if region == LoraRegion::US915 && bandwidth_khz < 500 {
            return Err(format!(
                "[radio] region US915 asks radios of {bandwidth_khz} kHz to hop between channels, which this firmware does not do: set `bandwidth_khz` to 500, and radio.bandwidth_khz of the scenario too"
            ));
        }
        let half = u32::from(bandwidth_khz).div_ceil(2);
        let is_lawful = |&(from, to, duty, power): &(u32, u32, u16, i32)| {
            from + half <= frequency_khz
                && frequency_khz + half <= to
                && duty_per_mille <= duty
                && power_dbm <= power
        };
        if region.bands().iter().any(is_lawful) {
            return Ok(());
        }
        let bands = region.bands().iter().map(|(from, to, duty, power)| {
            format!("{from} to {to} kHz with `duty_per_mille` up to {duty} and `power_dbm` up to {power}")
        });
        Err(format!("[radio] region {region:?} allows {}", bands.collect::<Vec<_>>().join(", or ")))
    }
}

/// Section `[uf2]`: the drive of a boot loader.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Uf2Drive {
    /// The board's name on the drive.
    pub drive: String,
    /// The number of the chip's family.
    pub family: u32,
    /// The Cargo feature of the image that is flashed this way.
    pub feature: Option<String>,
}

/// Section `[probe]`: what a chip tells about itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChipReading {
    /// The address of the word that tells the part.
    pub part_at: Option<u64>,
    /// The value of that word.
    pub part: Option<u32>,
    /// The bits of it that count.
    pub part_mask: Option<u32>,
    /// The address of the chip's number.
    pub number_at: Option<u64>,
}

impl BoardToml {
    /// Reads the file at `path`.
    ///
    /// # Errors
    /// A fault of it: the key and, where it helps, its line.
    pub fn read(path: &Path) -> Result<Self, String> {
        Self::parse(&fs::read_to_string(path).map_err(|error| error.to_string())?)
    }

    /// Reads its text.
    ///
    /// # Errors
    /// As [`BoardToml::read`].
    pub fn parse(text: &str) -> Result<Self, String> {
        let file: Self =
            toml_edit::de::from_str(text).map_err(|error| error.to_string().trim().to_owned())?;
        if file.storage.origin < file.page.end() {
            return Err("[storage] must begin behind [page]".to_owned());
        }
        if file.storage.endurance == 0 || file.page.endurance > 0 {
            return Err("[storage], and not [page], needs a number `endurance` above 0".to_owned());
        }
        if file.ram.stack_kib == 0 || file.flash.stack_kib > 0 {
            return Err("[ram], and not [flash], needs a number `stack_kib` above 0".to_owned());
        }
        file.radio.map_or(Ok(()), Radio::check)?;
        if file.serial.rts && !file.serial.dtr {
            return Err("[serial] `rts` must be false too where `dtr` is: RTS alone resets boards".to_owned());
        }
        Ok(file)
    }

    /// Where its image may begin: at address 0 where its boot loader is part of the image, which the processor sees elsewhere.
    pub fn image_origin(&self) -> u64 {
        match self.format {
            ImageFormat::EspIdf => 0,
            // Regions that the linker script of the HAL puts before the rest are part of the image too.
            ImageFormat::Plain => {
                self.regions.values().map(|region| region.origin).fold(self.flash.origin, u64::min)
            }
        }
    }

    /// Images besides the one that every board has: the Cargo features with a budget of their own.
    pub fn variants(&self) -> BTreeSet<&'static str> {
        self.flash.budgets().chain(self.ram.budgets()).map(|(feature, _)| feature).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "
        name = \"one\"
        target = \"thumbv6m-none-eabi\"
        flash = { origin = 256, budget_kib = 64, usb_budget_kib = 80, chip_kib = 512 }
        ram = { origin = 0x2000_0000, budget_kib = 16, large_swarm_budget_kib = 8, chip_kib = 64, stack_kib = 8 }
        page = { origin = 4096, length_kib = 4 }
        storage = { origin = 8192, length_kib = 64, endurance = 10_000 }
        regions.BOOT2 = { origin = 0, bytes = 256 }
    ";

    #[test]
    fn budgets_follow_the_features() {
        let file = BoardToml::parse(FILE).unwrap();
        assert_eq!(file.variants(), BTreeSet::from(["large-swarm", "usb"]));
        assert_eq!((file.flash.budget([]), file.flash.budget(["usb", "large-swarm"])), (64 * KIB, 80 * KIB));
        assert_eq!(file.ram.budget(["large-swarm"]), 16 * KIB, "never less than without the feature");
        assert_eq!((file.page.bytes(), file.image_origin()), (4096, 0));
    }

    #[test]
    fn errors_name_the_key() {
        let reason = |from: &str, to: &str| {
            assert!(FILE.contains(from));
            BoardToml::parse(&FILE.replace(from, to)).unwrap_err()
        };
        let radio = |keys: &str| {
            format!("radio = {{ kind = {keys}, jitter = {{ us = 9, is_measured = false }} }}\nname")
        };
        let lora = |region: &str, khz: u32, width: u16, duty: u16, dbm: i32| {
            radio(&format!(
                "\"lora\", region = \"{region}\", frequency_khz = {khz}, spreading = 7, bandwidth_khz = {width}, duty_per_mille = {duty}, power_dbm = {dbm}"
            ))
        };
        for lawful in [lora("US915", 915_000, 500, 1000, 22), lora("AS923", 923_200, 125, 10, 14)] {
            BoardToml::parse(&FILE.replace("name", &lawful)).unwrap();
        }
        for (from, to, expected) in [
            ("origin = 4096, length_kib = 4", "origin = 4096", "missing field `length_kib`"),
            ("origin = 4096", "origin = -1", "invalid value: integer `-1`, expected u64"),
            ("origin = 8192", "origin = 4096", "[storage] must begin behind [page]"),
            (", endurance = 10_000", "", "[storage], and not [page], needs a number `endurance`"),
            (", stack_kib = 8", "", "[ram], and not [flash], needs a number `stack_kib`"),
            ("usb_budget_kib", "ubs_budget_kib", "unknown field `ubs_budget_kib`, expected one of "),
            ("regions.BOOT2", "region.BOOT2", "unknown field `region`, expected one of "),
            ("name", "boot_loader = \"grub\"\nname", "unknown variant `grub`, expected `esp-idf`"),
            ("name", "serial.dtr = 1\nname", "invalid type: integer `1`, expected a boolean"),
            ("name", "serial.dtr = false\nname", "[serial] `rts` must be false too"),
            ("name", "radio.kind = \"laser\"\nname", "unknown variant `laser`, expected one of `802.15.4`, "),
            ("name", "radio.kind = \"lora\"\nname", "missing field `region`"),
            (
                "name",
                &radio("\"802.15.4\", channel = 27, power_dbm = 8"),
                "`channel` is 27, and must be 11 to 26",
            ),
            (
                "name",
                &radio("\"802.15.4\", channel = 15, power_dbm = 9"),
                "`power_dbm` is 9, and must be one of",
            ),
            ("name", &radio("\"esp-now\", channel = 11, power_dbm = 80"), "must be 2 to 20"),
            ("name", &lora("EU868", 868_100, 125, 10, 14).replace("= 7", "= 13"), "must be 7 to 12"),
            ("name", &lora("EU868", 868_100, 62, 10, 14), "must be 125, 250 or 500"),
            ("name", &lora("US915", 915_000, 125, 10, 14), "set `bandwidth_khz` to 500"),
            ("name", &lora("EU868", 915_000, 500, 10, 14), "region EU868 allows 868000 to 868600 kHz"),
            ("name", &lora("EU868", 868_100, 125, 100, 14), "`duty_per_mille` up to 10"),
            ("name", &lora("AS923", 923_200, 125, 10, 20), "`power_dbm` up to 16"),
        ] {
            let reason = reason(from, to);
            assert!(reason.contains(expected), "{expected}\n{reason}");
        }
    }
}
