//! Hard faults of a Cortex-M: bad pointers, bus errors, an overflowing stack. Part of boards with one.

use crate::panic;
use core::arch::naked_asm;

unsafe extern "C" {
    static _stack_start: u32;
    static _stack_end: u32;
}

/// The Configurable Fault Status Register tells what kind of fault it was. A Cortex-M0+ has none.
const CFSR: *const u32 = 0xE000_ED28 as *const u32;

/// Passes the old stack pointer on, on an empty stack: after an overflow the next push would lock the processor up.
#[unsafe(naked)]
#[unsafe(no_mangle)]
unsafe extern "C" fn HardFault() -> ! {
    naked_asm!(
        "mrs r0, msp",
        "ldr r1, ={top}",
        "mov sp, r1",
        "bl {report}",
        top = sym _stack_start,
        report = sym report,
    )
}

/// `frame` is what the processor pushed: r0 to r3, r12, LR, PC and the status.
unsafe extern "C" fn report(frame: *const u32) -> ! {
    let stack = &raw const _stack_end..&raw const _stack_start;
    // SAFETY: the register can always be read. A Cortex-M0+ is the one that has no atomic read-modify-write.
    let cfsr = if cfg!(target_has_atomic = "32") { unsafe { CFSR.read_volatile() } } else { 0 };
    if !frame.is_aligned() || !stack.contains(&frame) || !stack.contains(&frame.wrapping_add(7)) {
        panic::stack_overflow(cfsr);
    }
    // SAFETY: the frame is within the stack, as was just checked.
    let [lr, pc] = [5, 6].map(|word| unsafe { frame.add(word).read_volatile() });
    panic::hard_fault(pc, lr, cfsr)
}
