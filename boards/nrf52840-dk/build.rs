//! Writes `memory.x` from the budgets in `board.toml`, so that an image over budget does not link.

use std::{env, error::Error, fs, path::PathBuf};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=board.toml");
    let board: toml::Table = fs::read_to_string("board.toml")?.parse()?;
    let region = |name: &str| -> Result<String, Box<dyn Error>> {
        let number = |key: &str| {
            board
                .get(name)
                .and_then(|table| table.get(key))
                .and_then(toml::Value::as_integer)
                .ok_or_else(|| format!("board.toml: [{name}] needs an integer `{key}`"))
        };
        let budget = match env::var_os("CARGO_FEATURE_LARGE_SWARM") {
            Some(_) => number("large_swarm_budget_kib").or_else(|_| number("budget_kib"))?,
            None => number("budget_kib")?,
        };
        Ok(format!("ORIGIN = {:#x}, LENGTH = {budget}K", number("origin")?))
    };
    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(
        out.join("memory.x"),
        format!("MEMORY\n{{\n  FLASH : {}\n  RAM : {}\n}}\n", region("flash")?, region("ram")?),
    )?;
    println!("cargo:rustc-link-search={}", out.display());
    Ok(())
}
