//! The `fabswarm` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    fabswarm::cli::main(std::env::args_os())
}
