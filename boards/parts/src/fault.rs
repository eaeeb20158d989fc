//! Hard faults of a Cortex-M: bad pointers, bus errors, an overflowing stack.

use core::fmt;

unsafe extern "C" {
    static _stack_start: u32;
    static _stack_end: u32;
}

/// The Configurable Fault Status Register tells what kind of fault it was. A Cortex-M0+ has none.
const CFSR: *const u32 = 0xE000_ED28 as *const u32;

/// A hard fault.
#[derive(Clone, Copy, Debug)]
pub enum HardFault {
    /// At `pc`, in a function that returns to `lr`.
    At { pc: u32, lr: u32, cfsr: u32 },
    /// The stack has outgrown its memory, so that nothing tells where.
    StackOverflow { cfsr: u32 },
}

impl fmt::Display for HardFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::At { pc, lr, cfsr } => {
                write!(out, "hard fault at {pc:#010x}, called from {lr:#010x}, CFSR={cfsr:#x}")
            }
            Self::StackOverflow { cfsr } => write!(out, "stack overflow, CFSR={cfsr:#x}"),
        }
    }
}

impl HardFault {
    /// Reads what the processor pushed on a fault: r0 to r3, r12, LR, PC and the status.
    ///
    /// # Safety
    /// Only the handler of hard faults may call it, with the stack pointer that it found.
    pub unsafe fn read(frame: *const u32) -> Self {
        let stack = &raw const _stack_end..&raw const _stack_start;
        // SAFETY: the register can always be read. A Cortex-M0+ is the one that has no atomic read-modify-write.
        let cfsr = if cfg!(target_has_atomic = "32") { unsafe { CFSR.read_volatile() } } else { 0 };
        if !frame.is_aligned() || !stack.contains(&frame) || !stack.contains(&frame.wrapping_add(7)) {
            return Self::StackOverflow { cfsr };
        }
        // SAFETY: the frame is within the stack, as was just checked.
        let [lr, pc] = [5, 6].map(|word| unsafe { frame.add(word).read_volatile() });
        Self::At { pc, lr, cfsr }
    }
}

/// Makes the handler of hard faults, which passes the [`HardFault`] to `$report`, a `fn(HardFault) -> !`. It begins with an empty stack: after an
/// overflow the next push would lock the processor up.
#[macro_export]
macro_rules! report_hard_faults {
    ($report:path) => {
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        unsafe extern "C" fn HardFault() -> ! {
            unsafe extern "C" {
                static _stack_start: u32;
            }
            unsafe extern "C" fn pass_on(frame: *const u32) -> ! {
                // SAFETY: this is the handler, and its stack pointer.
                $report(unsafe { $crate::fault::HardFault::read(frame) })
            }
            core::arch::naked_asm!(
                "mrs r0, msp",
                "ldr r1, ={top}",
                "mov sp, r1",
                "bl {pass_on}",
                top = sym _stack_start,
                pass_on = sym pass_on,
            )
        }
    };
}
