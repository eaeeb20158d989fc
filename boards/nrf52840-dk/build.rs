//! Tells the linker what memory the firmware may take.

#[path = "../memory.rs"]
mod memory;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    memory::write().map(drop)
}
