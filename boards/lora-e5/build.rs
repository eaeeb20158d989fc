//! Passes the memory budgets to the linker.

#[path = "../memory.rs"]
mod memory;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    memory::write("").map(drop)
}
