//! Passes the memory budgets to the linker.

/// The boot ROM looks for the block that says what the image is in its first 4 KiB.
const IMAGE_BLOCK: &str = "
SECTIONS {
  .start_block : ALIGN(4) {
    KEEP(*(.start_block));
  } > FLASH
} INSERT AFTER .vector_table;
_stext = ADDR(.start_block) + SIZEOF(.start_block);
";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    fabswarm_board_file::build_script::write(IMAGE_BLOCK).map(drop)
}
