//! Tasks for developers of fabswarm.
//!
//! ```text
//! cargo xtask test            everything a change must pass
//! cargo xtask test all        that, and what needs long compiling or running
//! cargo xtask test STEP…      only the steps named
//! cargo xtask install NAME    an emulator of boards, where it is missing: qemu or rp2040js
//! cargo xtask release         the files of a release, in target/release-VERSION
//! cargo xtask crates          the graph of the crates, as docs/architecture.md shows it
//! ```

mod boards;
mod book;
mod crates;
mod formats;
mod install;
mod licences;
mod names;
mod python;
mod release;
mod step;
mod test;
mod torch;
mod versions;
mod wheel;
mod workspace;

use std::process::ExitCode;

const USAGE: &str = "usage: cargo xtask test [all | STEP…] | cargo xtask install qemu|rp2040js | \
                     cargo xtask release | cargo xtask crates";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let result = match words[..] {
        ["test", ref steps @ ..] => test::run(steps),
        ["install", "qemu"] => install::qemu(),
        ["install", "rp2040js"] => install::rp2040js(),
        ["release"] => release::make(),
        ["crates"] => crates::print(),
        _ => Err(anyhow::anyhow!("{USAGE}")),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
