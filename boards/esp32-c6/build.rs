//! Passes what the firmware takes from `board.toml`.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    fabswarm_board_file::build_script::write_constants().map(drop)
}
