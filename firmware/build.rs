//! Chooses the problem that the firmware is built for.

use std::{env, error::Error, fs, path::Path};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=FABSWARM_PROBLEM");
    let module = match env::var("FABSWARM_PROBLEM") {
        Ok(file) => {
            let file = fs::canonicalize(&file)
                .map_err(|error| format!("FABSWARM_PROBLEM = {file:?} names no file: {error}"))?;
            println!("cargo::rerun-if-changed={}", file.display());
            // The crate that the file is part of may name its items from elsewhere.
            format!(
                "#[allow(unreachable_pub)]\n#[path = {file:?}]\nmod own_problem;\npub use own_problem::BoardProblem;\n"
            )
        }
        Err(_) => "/// The problem that the firmware is built for.\n\
             pub type BoardProblem<'a> = fabswarm_shared::problem::AnyProblem<'a, f32>;\n"
            .to_owned(),
    };
    let out = env::var("OUT_DIR")?;
    Ok(fs::write(Path::new(&out).join("board_problem.rs"), module)?)
}
