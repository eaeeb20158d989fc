//! Writes `memory.x` from the budgets in `board.toml`, so that an image over budget does not link.

use std::{
    env,
    error::Error,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

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
    // cortex-m-rt's `device` feature asks for the names of the interrupt handlers; ours are in `interrupts.rs`.
    fs::write(out.join("device.x"), "")?;
    println!("cargo:rustc-link-search={}", out.display());
    if env::var_os("CARGO_FEATURE_INSTRUCTIONS").is_some() {
        compile_peers(&out)?;
    }
    Ok(())
}

/// Compiles the C kernels that the instruction count compares ours with.
fn compile_peers(out: &Path) -> Result<(), Box<dyn Error>> {
    const SOURCE: &str = "../../host/benches/peers/fab.c";
    println!("cargo:rerun-if-changed={SOURCE}");
    let object = out.join("fab.o");
    // No fused operations: ours must give the same bits on processors that have none.
    let flags =
        "-O3 -mcpu=cortex-m4 -mthumb -mfloat-abi=hard -mfpu=fpv4-sp-d16 -ffp-contract=off -ffreestanding -c";
    let mut compile = Command::new("arm-none-eabi-gcc");
    compile.args(flags.split(' ')).arg(SOURCE).arg("-o").arg(&object);
    let mut archive = Command::new("arm-none-eabi-ar");
    archive.arg("crs").arg(out.join("libfab_in_c.a")).arg(&object);
    for mut command in [compile, archive] {
        let status = command.status().map_err(|error| {
            format!(
                "{:?}: {error}; install it with `apt-get install gcc-arm-none-eabi`",
                command.get_program()
            )
        })?;
        if !status.success() {
            return Err(format!("{command:?} ended with {status}").into());
        }
    }
    println!("cargo:rustc-link-lib=static=fab_in_c");
    Ok(())
}
