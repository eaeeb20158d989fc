//! Passes the memory budgets to the linker, and compiles C kernels for the instruction count.

use std::{env, error::Error, fs, path::Path, process::Command};

fn main() -> Result<(), Box<dyn Error>> {
    let out = fabswarm_board_file::build_script::write("")?;
    // cortex-m-rt's `device` feature asks for the names of the interrupt handlers; ours are in `interrupts.rs`.
    fs::write(out.join("device.x"), "")?;
    if env::var_os("CARGO_FEATURE_INSTRUCTIONS").is_some() {
        compile_peers(&out)?;
    }
    Ok(())
}

/// Compiles the C kernels that the instruction count compares ours with.
fn compile_peers(out: &Path) -> Result<(), Box<dyn Error>> {
    const SOURCE: &str = "../../host/fabswarm/benches/peers/fab.c";
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
