//! Logs the cause of a panic or fault and ends the emulator.

use core::panic::PanicInfo;
use cortex_m_semihosting::debug;
use fabswarm_board_parts::fault::HardFault;

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

fabswarm_board_parts::report_hard_faults!(report);

fn report(fault: HardFault) -> ! {
    match fault {
        HardFault::At { pc, lr, cfsr } => {
            defmt::error!(
                "hard fault at {=u32:#010x}, called from {=u32:#010x}, CFSR={=u32:#x}",
                pc,
                lr,
                cfsr
            );
        }
        HardFault::StackOverflow { cfsr } => defmt::error!("stack overflow, CFSR={=u32:#x}", cfsr),
    }
    stop()
}

/// Ends the emulator with an error, so that the host sees the board go at once.
pub fn stop() -> ! {
    loop {
        debug::exit(debug::EXIT_FAILURE);
    }
}
