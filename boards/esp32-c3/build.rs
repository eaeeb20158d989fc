//! Passes what the firmware takes from `board.toml`.

#[path = "../memory.rs"]
mod memory;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    memory::write_constants().map(drop)
}
