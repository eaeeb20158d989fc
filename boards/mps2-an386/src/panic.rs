//! Logs the cause of a panic or fault and ends the emulator.

use core::panic::PanicInfo;
use cortex_m_semihosting::debug;

unsafe extern "C" {
    static _stack_start: u32;
    static __etext: u32;
}

/// The innermost return addresses on the stack. The names of files and lines would take 4 KiB of flash, and the host, which has
/// the image, finds them by address.
fn calls() -> [u32; 6] {
    let mut calls = [0; 6];
    let mut place = cortex_m::register::msp::read() as *const u32;
    let top = &raw const _stack_start;
    for call in &mut calls {
        while place < top && *call == 0 {
            // SAFETY: between the stack pointer and the stack's start.
            let word = unsafe { place.read_volatile() };
            place = place.wrapping_add(1);
            // Thumb code has odd addresses.
            if word & 1 == 1 && (64..&raw const __etext as u32).contains(&word) {
                *call = word - 1;
            }
        }
    }
    calls
}

#[panic_handler]
fn panic(_: &PanicInfo) -> ! {
    defmt::error!("panic, called from {:#x}", calls());
    stop()
}

#[defmt::panic_handler]
fn defmt_panic() -> ! {
    stop()
}

/// A fault at `pc` in a function that returns to `lr`.
pub fn hard_fault(pc: u32, lr: u32, cfsr: u32) -> ! {
    defmt::error!("hard fault at {=u32:#010x}, called from {=u32:#010x}, CFSR={=u32:#x}", pc, lr, cfsr);
    stop()
}

/// The stack has outgrown its memory, so that nothing tells where.
pub fn stack_overflow(cfsr: u32) -> ! {
    defmt::error!("stack overflow, CFSR={=u32:#x}", cfsr);
    stop()
}

/// Ends the emulator with an error, so that the host sees the board go at once.
pub fn stop() -> ! {
    loop {
        debug::exit(debug::EXIT_FAILURE);
    }
}
