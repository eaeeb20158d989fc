//! Passes the memory budgets to the linker.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rustc-link-arg-tests=-Tembedded-test.x");
    fabswarm_board_file::build_script::write("").map(drop)
}
