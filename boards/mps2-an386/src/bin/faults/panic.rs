//! Prints what a board would keep over its reset, and ends the emulator.

use core::{fmt::Display, panic::PanicInfo};
use cortex_m_semihosting::{debug, hprintln};

pub fn hard_fault(pc: u32, _lr: u32, cfsr: u32) -> ! {
    end(format_args!("hard fault at {pc:#010x}, CFSR={cfsr:#x}"))
}

pub fn stack_overflow(cfsr: u32) -> ! {
    end(format_args!("stack overflow, CFSR={cfsr:#x}"))
}

#[panic_handler]
fn panic(info: &PanicInfo) -> ! {
    end(info)
}

fn end(text: impl Display) -> ! {
    hprintln!("{}", text);
    loop {
        debug::exit(debug::EXIT_SUCCESS);
    }
}
