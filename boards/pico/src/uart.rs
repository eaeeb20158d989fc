//! UART 0 as the board's serial port.

use crate::board::BAUD;
use embassy_rp::{
    Peri, bind_interrupts, peripherals,
    uart::{BufferedInterruptHandler, BufferedUart, Config},
};
use static_cell::ConstStaticCell;

/// Bytes that may arrive while the firmware is busy: half of the buffer, as escape bytes and headers come on top.
pub const WINDOW: u16 = 1024;

static RECEIVED: ConstStaticCell<[u8; 2 * WINDOW as usize]> = ConstStaticCell::new([0; 2 * WINDOW as usize]);
static SENDING: ConstStaticCell<[u8; 512]> = ConstStaticCell::new([0; 512]);

bind_interrupts!(struct Interrupts {
    UART0_IRQ => BufferedInterruptHandler<peripherals::UART0>;
});

/// Starts UART 0. Call once.
pub fn start(
    uart: Peri<'static, peripherals::UART0>,
    sender: Peri<'static, peripherals::PIN_0>,
    receiver: Peri<'static, peripherals::PIN_1>,
) -> BufferedUart {
    let mut config = Config::default();
    config.baudrate = BAUD;
    BufferedUart::new(uart, sender, receiver, Interrupts, SENDING.take(), RECEIVED.take(), config)
}
