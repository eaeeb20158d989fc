//! Generates what a board's firmware takes from its `board.toml`: `memory.x` with the budgets, so that an image over budget
//! does not link, and `board.rs` with the board's constants. Part of the build scripts of boards.

use std::{env, error::Error, fs, path::PathBuf};

/// Cargo features that may take more memory: each may have a budget of its own, `<feature>_budget_kib`.
const FEATURES: [&str; 2] = ["large_swarm", "uart"];

/// Writes both files and returns the folder they are in.
pub fn write() -> Result<PathBuf, Box<dyn Error>> {
    println!("cargo:rerun-if-changed=board.toml");
    println!("cargo:rerun-if-changed=.cargo/config.toml");
    println!("cargo:rerun-if-changed=../memory.rs");
    let board: toml::Table = fs::read_to_string("board.toml")?.parse()?;
    check_keys(&board)?;
    check_target(&board)?;
    check_chip(&board)?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(
        out.join("memory.x"),
        format!(
            "MEMORY\n{{\n  FLASH : {}\n  RAM : {}\n}}\n",
            region(&board, "flash")?,
            region(&board, "ram")?
        ),
    )?;
    fs::write(
        out.join("board.rs"),
        format!(
            "/// `name` of `board.toml`.\npub const NAME: &str = {:?};\n\
             /// `[page] origin` of `board.toml`: the address of the provisioning page.\npub const PAGE_ADDRESS: usize = {:#x};\n",
            text(&board, "name")?,
            integer(&board, "page", "origin")?
        ),
    )?;
    println!("cargo:rustc-link-search={}", out.display());
    Ok(out)
}

/// Refuses keys that nothing reads: a misspelt budget would otherwise not count.
fn check_keys(board: &toml::Table) -> Result<(), Box<dyn Error>> {
    let unknown =
        |key: &str| format!("board.toml: unknown key `{key}`\nhelp: see boards/memory.rs for those it reads");
    for (key, value) in board {
        let known = match (key.as_str(), value) {
            ("name" | "chip" | "target", _) => continue,
            ("flash" | "ram", toml::Value::Table(table)) => (table, true),
            ("page", toml::Value::Table(table)) => (table, false),
            _ => return Err(unknown(key).into()),
        };
        let (table, has_budget) = known;
        for inner in table.keys() {
            let is_budget = inner == "budget_kib"
                || FEATURES.iter().any(|feature| *inner == format!("{feature}_budget_kib"));
            if inner != "origin" && !(has_budget && is_budget) {
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

fn region(board: &toml::Table, name: &str) -> Result<String, Box<dyn Error>> {
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
