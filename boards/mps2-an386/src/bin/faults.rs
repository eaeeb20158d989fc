//! Faults on purpose, in QEMU: shows that the handler of hard faults knows where they were, and works after the stack has overflowed.
//! The emulator's argument says which fault; the test command compares what is printed.
#![no_std]
#![no_main]

use core::{fmt::Display, hint::black_box, panic::PanicInfo};
use cortex_m_rt::entry;
use cortex_m_semihosting::{debug, hprintln, syscall1};
use fabswarm_board_parts::fault::HardFault;

unsafe extern "C" {
    fn DefaultHandler();
}

#[unsafe(link_section = ".vector_table.interrupts")]
#[unsafe(no_mangle)]
static __INTERRUPTS: [unsafe extern "C" fn(); 1] = [DefaultHandler];

#[entry]
fn main() -> ! {
    let mut name = [0; 32];
    let mut block = [name.as_mut_ptr() as usize, name.len()];
    // SAFETY: the block is a buffer and its length, as the call expects it.
    unsafe { syscall1!(GET_CMDLINE, block.as_mut_ptr()) };
    if name.starts_with(b"instruction") {
        hprintln!("{:#010x}", bad_instruction as *const () as usize & !1);
        bad_instruction();
    }
    hprintln!("{}", overflow(1));
    unreachable!()
}

/// QEMU's machine knows no bus errors.
#[inline(never)]
fn bad_instruction() {
    cortex_m::asm::udf()
}

/// Calls itself until the stack has left its memory.
#[inline(never)]
fn overflow(depth: u32) -> u32 {
    let room = black_box([depth; 64]);
    if room[0] > 0 { overflow(depth + 1) + room[1] } else { 0 }
}

fabswarm_board_parts::report_hard_faults!(report);

fn report(fault: HardFault) -> ! {
    end(fault)
}

#[panic_handler]
fn panic(info: &PanicInfo) -> ! {
    end(info)
}

/// Prints what a board would keep over its reset, and ends the emulator.
fn end(text: impl Display) -> ! {
    hprintln!("{}", text);
    loop {
        debug::exit(debug::EXIT_SUCCESS);
    }
}
