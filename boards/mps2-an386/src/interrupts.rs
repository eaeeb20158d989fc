//! The board's interrupt vectors (ARM application note AN386, "Interrupts").

use crate::interrupt_line::InterruptLine;

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
