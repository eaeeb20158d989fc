//! Generates what a board's firmware takes from its `board.toml`: `memory.x` with the budgets, so that an image over budget
//! does not link, and `board.rs` with the board's constants. Part of the build scripts of boards.

use std::{env, error::Error, fs, path::PathBuf};

/// Cargo features that may take more memory: each may have a budget of its own, `<feature>_budget_kib`.
const FEATURES: [&str; 3] = ["large_swarm", "uart", "usb"];

const KIB: i64 = 1024;

/// Keys of a `[radio]` whose `kind` is `lora`, and the types of their constants.
const LORA: [(&str, &str); 5] = [
    ("frequency_khz", "u32"),
    ("spreading", "u8"),
    ("bandwidth_khz", "u16"),
    ("duty_per_mille", "u16"),
    ("power_dbm", "i32"),
];

/// Set where the firmware is built for a problem or swarm of another size than usual: then the image may take all memory of the
/// chip, `chip_kib`.
const SIZES: [&str; 2] = ["FABSWARM_WORDS", "FABSWARM_MEMBERS"];

/// Writes both files and returns the folder they are in. `sections` is what the chip's linker script needs besides the memory.
#[allow(dead_code, reason = "a HAL may bring its own linker script")]
pub fn write(sections: &str) -> Result<PathBuf, Box<dyn Error>> {
    let (board, out) = write_board()?;
    fs::write(
        out.join("memory.x"),
        format!(
            "MEMORY\n{{\n{}  FLASH : {}\n  RAM : {}\n}}\n{}{sections}",
            extra_regions(&board)?,
            region(&board, "flash")?,
            region(&board, "ram")?,
            stack_check(&board)?
        ),
    )?;
    println!("cargo:rustc-link-search={}", out.display());
    Ok(out)
}

/// Writes `board.rs` alone, for chips whose HAL brings the linker script: the test command checks their budgets.
#[allow(dead_code, reason = "most boards write both")]
pub fn write_constants() -> Result<PathBuf, Box<dyn Error>> {
    write_board().map(|(_, out)| out)
}

/// Checks `board.toml` and writes `board.rs`.
fn write_board() -> Result<(toml::Table, PathBuf), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=board.toml");
    println!("cargo:rerun-if-changed=.cargo/config.toml");
    println!("cargo:rerun-if-changed=../memory.rs");
    SIZES.iter().for_each(|name| println!("cargo:rerun-if-env-changed={name}"));
    let board: toml::Table = fs::read_to_string("board.toml")?.parse()?;
    check_keys(&board)?;
    check_target(&board)?;
    check_chip(&board)?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out.join("board.rs"), constants(&board)?)?;
    Ok((board, out))
}

/// The board's constants, as Rust.
fn constants(board: &toml::Table) -> Result<String, Box<dyn Error>> {
    let mut constants =
        format!("/// `name` of `board.toml`.\npub const NAME: &str = {:?};\n", text(board, "name")?);
    for (table, what) in [("page", "the provisioning page"), ("storage", "what the firmware stores")] {
        let (origin, bytes) = (integer(board, table, "origin")?, KIB * integer(board, table, "length_kib")?);
        let name = table.to_uppercase();
        constants += &format!(
            "/// The address of {what}.\npub const {name}_ADDRESS: usize = {origin:#x};\n\
             /// Bytes of flash for {what}.\npub const {name}_BYTES: usize = {bytes:#x};\n"
        );
    }
    // The baud rate is of no use to an image that has no UART.
    let has_baud = board.get("serial").is_some_and(|serial| serial.get("baud").is_some());
    if has_baud && env::var_os("CARGO_FEATURE_USB").is_none() {
        let baud = integer(board, "serial", "baud")?;
        constants += &format!("/// Bits per second of the serial line.\npub const BAUD: u32 = {baud};\n");
    }
    if board.get("radio").is_some_and(|radio| radio.get("kind").and_then(toml::Value::as_str) == Some("lora"))
    {
        for (key, kind) in LORA {
            let (name, value) = (key.to_uppercase(), integer(board, "radio", key)?);
            constants += &format!("/// `{key}` of `[radio]`.\npub const LORA_{name}: {kind} = {value};\n");
        }
    }
    Ok(constants)
}

/// Refuses keys that nothing reads: a misspelt budget would otherwise not count.
fn check_keys(board: &toml::Table) -> Result<(), Box<dyn Error>> {
    let unknown =
        |key: &str| format!("board.toml: unknown key `{key}`\nhelp: see boards/memory.rs for those it reads");
    for (key, value) in board {
        let toml::Value::Table(table) = value else {
            if ["name", "chip", "target", "boot_loader"].contains(&key.as_str()) {
                continue;
            }
            return Err(unknown(key).into());
        };
        for inner in table.keys() {
            let is_budget = inner == "budget_kib"
                || FEATURES.iter().any(|feature| *inner == format!("{feature}_budget_kib"));
            let is_known = match key.as_str() {
                "flash" | "ram" => {
                    ["origin", "chip_kib"].contains(&inner.as_str())
                        || is_budget
                        || key == "ram" && inner == "stack_kib"
                }
                "page" | "storage" => ["origin", "length_kib"].contains(&inner.as_str()),
                // The lines are the host's.
                "serial" => ["baud", "dtr", "rts"].contains(&inner.as_str()),
                "radio" => inner == "kind" || LORA.iter().any(|(key, _)| key == inner),
                // For the host.
                "uf2" => ["drive", "family", "feature"].contains(&inner.as_str()),
                "probe" => ["part_at", "part", "part_mask", "number_at"].contains(&inner.as_str()),
                "regions" => true,
                _ => return Err(unknown(key).into()),
            };
            if !is_known {
                return Err(unknown(&format!("{key}.{inner}")).into());
            }
        }
    }
    Ok(())
}

/// `.cargo/config.toml` chooses the target, `board.toml` names it: both must be the same.
fn check_target(board: &toml::Table) -> Result<(), Box<dyn Error>> {
    let (expected, target) = (text(board, "target")?, env::var("TARGET")?);
    if target != expected {
        return Err(format!(
            "board.toml is for target `{expected}`, this build is for `{target}`\nhelp: build in the board's folder, whose .cargo/config.toml must name the same target"
        )
        .into());
    }
    Ok(())
}

/// A board that a probe flashes names its chip for the runner in `.cargo/config.toml`.
fn check_chip(board: &toml::Table) -> Result<(), Box<dyn Error>> {
    let Some(chip) = board.get("chip").and_then(toml::Value::as_str) else { return Ok(()) };
    if !fs::read_to_string(".cargo/config.toml")?.contains(&format!("--chip {chip}\"")) {
        return Err(
            format!("board.toml: the runner in .cargo/config.toml must end with `--chip {chip}`").into()
        );
    }
    Ok(())
}

/// Memory that the linker script of a chip's HAL asks for by name: `[regions.NAME]`.
fn extra_regions(board: &toml::Table) -> Result<String, Box<dyn Error>> {
    let regions = board.get("regions").and_then(toml::Value::as_table);
    let mut lines = String::new();
    for (name, region) in regions.into_iter().flatten() {
        let number = |key: &str| {
            let value = region.get(key).and_then(toml::Value::as_integer);
            value.ok_or_else(|| format!("board.toml: [regions.{name}] needs an integer `{key}`"))
        };
        lines += &format!("  {name} : ORIGIN = {:#x}, LENGTH = {:#x}\n", number("origin")?, number("bytes")?);
    }
    Ok(lines)
}

/// Lets the linker refuse an image that leaves too little RAM for the stack, which grows down towards it unguarded.
fn stack_check(board: &toml::Table) -> Result<String, Box<dyn Error>> {
    let stack_kib = integer(board, "ram", "stack_kib")?;
    Ok(format!(
        "ASSERT(ORIGIN(RAM) + LENGTH(RAM) - __euninit >= {stack_kib}K, \"\nRAM has no {stack_kib} KiB left for the stack ([ram] stack_kib of board.toml): raise its budget, or build for fewer words or members\");\n"
    ))
}

fn region(board: &toml::Table, name: &str) -> Result<String, Box<dyn Error>> {
    if SIZES.iter().any(|size| env::var_os(size).is_some()) {
        let (origin, chip_kib) = (integer(board, name, "origin")?, integer(board, name, "chip_kib")?);
        return Ok(format!("ORIGIN = {origin:#x}, LENGTH = {chip_kib}K"));
    }
    let chosen = FEATURES
        .iter()
        .filter(|feature| env::var_os(format!("CARGO_FEATURE_{}", feature.to_uppercase())).is_some());
    let budget = chosen
        .filter_map(|feature| integer(board, name, &format!("{feature}_budget_kib")).ok())
        .fold(integer(board, name, "budget_kib")?, i64::max);
    Ok(format!("ORIGIN = {:#x}, LENGTH = {budget}K", integer(board, name, "origin")?))
}

fn integer(board: &toml::Table, table: &str, key: &str) -> Result<i64, Box<dyn Error>> {
    let value = board.get(table).and_then(|table| table.get(key)).and_then(toml::Value::as_integer);
    value.ok_or_else(|| format!("board.toml: [{table}] needs an integer `{key}`").into())
}

fn text<'a>(board: &'a toml::Table, key: &str) -> Result<&'a str, Box<dyn Error>> {
    let value = board.get(key).and_then(toml::Value::as_str);
    value.ok_or_else(|| format!("board.toml: needs a string `{key}`").into())
}
