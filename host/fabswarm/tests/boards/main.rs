//! Swarms on boards: emulated, native, and behind pseudo-terminals as real ones are behind serial ports.

mod ether;
mod flights;
mod logs;
mod picos;
mod plugged;
mod real;
mod serial;
#[path = "../support/command.rs"]
mod support;
mod swarms;
