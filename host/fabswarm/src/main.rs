//! The `fabswarm` command.

use rayon::ThreadPoolBuilder;
use std::process::ExitCode;

fn main() -> ExitCode {
    // All parallel work begins on this thread. In the pool it takes its part; outside it would sleep, and a round of a thousand
    // agents is too short to be woken for. Where this fails, rayon makes a pool without it.
    let _ = ThreadPoolBuilder::new().use_current_thread().build_global();
    fabswarm::cli::main(std::env::args_os())
}
