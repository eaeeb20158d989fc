//! Writes `memory.x` from the budgets in a board's `board.toml`, so that an image over budget does not link. Part of the build
//! scripts of boards.

use std::{env, error::Error, fs, path::PathBuf};

/// What firmware can be built with that may take more: each has a budget of its own, `<feature>_budget_kib`, where it does.
const FEATURES: [&str; 2] = ["large_swarm", "uart"];

/// Writes the file and answers the folder it is in.
pub fn write() -> Result<PathBuf, Box<dyn Error>> {
    println!("cargo:rerun-if-changed=board.toml");
    println!("cargo:rerun-if-changed=../memory.rs");
    let board: toml::Table = fs::read_to_string("board.toml")?.parse()?;
    let region = |name: &str| -> Result<String, Box<dyn Error>> {
        let number = |key: &str| {
            board
                .get(name)
                .and_then(|table| table.get(key))
                .and_then(toml::Value::as_integer)
                .ok_or_else(|| format!("board.toml: [{name}] needs an integer `{key}`"))
        };
        let chosen = FEATURES
            .iter()
            .filter(|feature| env::var_os(format!("CARGO_FEATURE_{}", feature.to_uppercase())).is_some());
        let budget = chosen
            .filter_map(|feature| number(&format!("{feature}_budget_kib")).ok())
            .fold(number("budget_kib")?, i64::max);
        Ok(format!("ORIGIN = {:#x}, LENGTH = {budget}K", number("origin")?))
    };
    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(
        out.join("memory.x"),
        format!("MEMORY\n{{\n  FLASH : {}\n  RAM : {}\n}}\n", region("flash")?, region("ram")?),
    )?;
    println!("cargo:rustc-link-search={}", out.display());
    Ok(out)
}
