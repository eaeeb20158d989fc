//! What boards run on: processes of the host, or real boards on serial ports.

pub(crate) mod board_log;
pub(crate) mod board_machine;
pub(crate) mod boot_check;
mod cable;
pub(crate) mod child_process;
pub(crate) mod native;
pub(crate) mod packet_stream;
pub(crate) mod pico;
pub(crate) mod qemu;
pub mod serial;
pub(crate) mod temp_dir;
