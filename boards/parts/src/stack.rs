//! How deep the stack of a Cortex-M board has been. cortex-m-rt paints it where it has the feature `paint-stack`.

use core::ptr;

unsafe extern "C" {
    static mut _stack_start: u32;
    static mut _stack_end: u32;
}

/// The most stack used since the start, in bytes.
pub fn deepest_bytes() -> u32 {
    let top = &raw const _stack_start;
    let bottom = &raw const _stack_end;
    let mut word = bottom;
    // SAFETY: between both ends lies the stack, which cortex-m-rt painted before `main`; reading it is harmless
    // whatever it holds now.
    while word < top && unsafe { ptr::read_volatile(word) } == cortex_m_rt::STACK_PAINT_VALUE {
        word = word.wrapping_add(1);
    }
    if word == bottom {
        defmt::error!("the stack is full, and what lies below it may be spoiled");
    }
    top as u32 - word as u32
}
