//! The interrupt lines of the board.

use cortex_m::{interrupt::InterruptNumber, peripheral::NVIC};

/// An interrupt line this firmware uses.
#[derive(Clone, Copy)]
#[repr(u16)]
pub enum InterruptLine {
    #[cfg(feature = "uart")]
    Uart0Receive = 0,
    #[cfg(feature = "sensor")]
    Uart2Receive = 4,
    Timer0 = 8,
    #[cfg(not(feature = "uart"))]
    Ethernet = 13,
}

// SAFETY: the discriminants are the board's line numbers, below the length of `__INTERRUPTS`.
unsafe impl InterruptNumber for InterruptLine {
    fn number(self) -> u16 {
        self as u16
    }
}

/// Lets `line` through to the processor.
pub fn enable(line: InterruptLine) {
    // SAFETY: no critical section here relies on masking single lines.
    unsafe { NVIC::unmask(line) }
}
