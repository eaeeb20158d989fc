//! Faults on purpose, in QEMU: shows that the handler of hard faults knows where they were, and works after the stack has overflowed.
//! The emulator's argument says which fault; the test command compares what is printed.
#![no_std]
#![no_main]

#[path = "../../../../fault.rs"]
mod fault;
mod panic;

use core::hint::black_box;
use cortex_m_rt::entry;
use cortex_m_semihosting::{hprintln, syscall1};

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
    match &name {
        name if name.starts_with(b"instruction") => {
            hprintln!("{:#010x}", bad_instruction as *const () as usize & !1);
            bad_instruction();
        }
        _ => hprintln!("{}", overflow(1)),
    }
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
