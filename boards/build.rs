//! The build script of most boards: passes the memory budgets to the linker, and the constants of `board.toml` to the firmware.

use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    if Path::new("tests").is_dir() {
        println!("cargo:rustc-link-arg-tests=-Tembedded-test.x");
    }
    fabswarm_board_file::build_script::write("").map(drop)
}
