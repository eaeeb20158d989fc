//! The board's interrupts (ARM application note AN386, "Interrupts").

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

unsafe extern "C" {
    fn DefaultHandler();
}

const LINES: usize = 32;

#[unsafe(link_section = ".vector_table.interrupts")]
#[unsafe(no_mangle)]
static __INTERRUPTS: [unsafe extern "C" fn(); LINES] = {
    let mut vectors: [unsafe extern "C" fn(); LINES] = [DefaultHandler; LINES];
    vectors[InterruptLine::Timer0 as usize] = crate::clock::on_alarm;
    #[cfg(not(feature = "uart"))]
    {
        vectors[InterruptLine::Ethernet as usize] = crate::ethernet::on_interrupt;
    }
    #[cfg(feature = "uart")]
    {
        vectors[InterruptLine::Uart0Receive as usize] = crate::uart::on_receive;
    }
    #[cfg(feature = "sensor")]
    {
        vectors[InterruptLine::Uart2Receive as usize] = crate::sensor::on_receive;
    }
    vectors
};
