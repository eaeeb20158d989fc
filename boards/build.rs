//! The build script of most boards: passes the memory budgets to the linker, and the constants of `board.toml` to the firmware.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    fabswarm_board_file::build_script::write("").map(drop)
}
