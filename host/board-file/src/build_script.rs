//! Generates what a board's firmware takes from its `board.toml`: `memory.x` with the budgets, so that an image over budget
//! does not link, and `board.rs` with the board's constants. For the build scripts of boards.

use super::{BoardToml, ImageFormat, LoraChannel, Memory, Radio, RadioChannel};
use std::{env, error::Error, fs, path::Path, path::PathBuf};

/// Set where the firmware is built for a problem or swarm of another size than usual: then the image may take all memory of the
/// chip, `chip_kib`.
const SIZES: [&str; 2] = ["FABSWARM_WORDS", "FABSWARM_MEMBERS"];

/// Writes both files and returns the folder they are in. `sections` is what the chip's linker script needs besides the memory.
/// Where the HAL brings the linker script there is no `memory.x`, and the test command checks the budgets.
///
/// # Errors
/// A fault in `board.toml` or `.cargo/config.toml`, or a file that cannot be written.
pub fn write(sections: &str) -> Result<PathBuf, Box<dyn Error>> {
    let (board, out) = write_board()?;
    if board.format == ImageFormat::EspIdf {
        return Ok(out);
    }
    // Memory that the linker script of the HAL asks for by name.
    let regions: String = board
        .regions
        .iter()
        .map(|(name, region)| {
            format!("  {name} : ORIGIN = {:#x}, LENGTH = {:#x}\n", region.origin, region.bytes)
        })
        .collect();
    // The stack lies below everything else, and grows down: beyond its end there is no memory, and an overflow is a fault.
    let stack = 1024 * board.ram.stack_kib;
    let [flash, ram] =
        [(&board.flash, 0), (&board.ram, stack)].map(|(memory, skipped)| region(&board, memory, skipped));
    let memory = format!(
        "MEMORY\n{{\n{regions}  FLASH : {flash}\n  RAM : {ram}\n}}\n\
         _stack_start = ORIGIN(RAM);\n_stack_end = ORIGIN(RAM) - {stack};\n{sections}"
    );
    fs::write(out.join("memory.x"), memory)?;
    println!("cargo:rustc-link-search={}", out.display());
    Ok(out)
}

/// Checks `board.toml` and writes `board.rs`.
fn write_board() -> Result<(BoardToml, PathBuf), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=board.toml");
    println!("cargo:rerun-if-changed=.cargo/config.toml");
    SIZES.iter().for_each(|name| println!("cargo:rerun-if-env-changed={name}"));
    let board = BoardToml::read(Path::new("board.toml"))
        .map_err(|reason| format!("board.toml: {reason}\nhelp: docs/boards.md says what each key means"))?;
    check_cargo(&board)?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out.join("board.rs"), constants(&board))?;
    Ok((board, out))
}

/// `.cargo/config.toml` chooses the target, and the chip for the runner that flashes it: `board.toml` must name the same.
fn check_cargo(board: &BoardToml) -> Result<(), Box<dyn Error>> {
    let (expected, target) = (&board.target, env::var("TARGET")?);
    if target != *expected {
        return Err(format!(
            "board.toml is for target `{expected}`, this build is for `{target}`\nhelp: build in the board's folder, whose .cargo/config.toml must name the same target"
        )
        .into());
    }
    let Some(chip) = &board.chip else { return Ok(()) };
    if !fs::read_to_string(".cargo/config.toml")?.contains(&format!("--chip {chip}\"")) {
        return Err(
            format!("board.toml: the runner in .cargo/config.toml must end with `--chip {chip}`").into()
        );
    }
    Ok(())
}

/// How a processor that sees its flash reads the page.
const PAGE_READER: &str = "\
/// Where the flasher has put the provisioning record.
#[allow(dead_code, reason = \"not every processor sees its flash\")]
pub fn page() -> &'static [u8] {
    // SAFETY: flash is always readable, and this part is written only in service, when nothing reads it any more.
    unsafe { core::slice::from_raw_parts(PAGE.start as *const u8, PAGE.end - PAGE.start) }
}
";

/// The board's constants, as Rust.
fn constants(board: &BoardToml) -> String {
    let BoardToml { name, page, storage, serial, radio, .. } = board;
    let mut constants = format!("pub const NAME: &str = {name:?};\n");
    for (name, region) in [("PAGE", page), ("STORAGE", storage)] {
        let (from, to) = (region.origin, region.end());
        constants += &format!("pub const {name}: core::ops::Range<usize> = {from:#x}..{to:#x};\n");
    }
    constants += PAGE_READER;
    // The baud rate is of no use to an image that has no UART.
    if let Some(baud) = serial.baud.filter(|_| !has_feature("usb")) {
        constants += &format!("pub const BAUD: u32 = {baud};\n");
    }
    if let Some(Radio::Ieee802154(channel) | Radio::EspNow(channel)) = radio {
        let RadioChannel { channel, power_dbm, .. } = channel;
        constants += &format!(
            "pub const RADIO_CHANNEL: u8 = {channel};\npub const RADIO_POWER_DBM: i8 = {power_dbm};\n"
        );
    }
    if let Some(Radio::Lora(channel)) = radio {
        let LoraChannel { frequency_khz, spreading, bandwidth_khz, duty_per_mille, power_dbm, .. } = channel;
        constants += &format!(
            "use fabswarm_board_parts::lora::{{Bandwidth, BaseBandModulationParams, CodingRate, LoraConfig, SpreadingFactor}};\n\
             pub const LORA: LoraConfig = LoraConfig {{\n    \
             chirps: BaseBandModulationParams::new(SpreadingFactor::_{spreading}, Bandwidth::_{bandwidth_khz}KHz, CodingRate::_4_5),\n    \
             frequency_khz: {frequency_khz},\n    duty_per_mille: {duty_per_mille},\n    power_dbm: {power_dbm},\n}};\n"
        );
    }
    constants
}

fn region(board: &BoardToml, memory: &Memory, skipped: u64) -> String {
    let bytes = if SIZES.iter().any(|size| env::var_os(size).is_some()) {
        1024 * memory.chip_kib
    } else {
        memory.budget(board.variants().into_iter().filter(|feature| has_feature(feature)))
    };
    format!("ORIGIN = {:#x}, LENGTH = {}", memory.origin + skipped, bytes.saturating_sub(skipped))
}

/// Whether the board is built with this Cargo feature.
fn has_feature(name: &str) -> bool {
    env::var_os(format!("CARGO_FEATURE_{}", name.to_uppercase().replace('-', "_"))).is_some()
}
