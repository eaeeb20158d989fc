//! The USB port as the board's serial port.

pub use fabswarm_board_parts::cdc_port::WINDOW;

use embassy_rp::{Peri, bind_interrupts, peripherals::USB, usb};
use fabswarm_board_parts::cdc_port;

bind_interrupts!(struct Interrupts {
    USBCTRL_IRQ => usb::InterruptHandler<USB>;
});

pub type UsbPort = cdc_port::CdcPort<usb::Driver<'static, USB>>;

/// Starts the USB port of a board with this name; the future that is returned too keeps it running. Call once.
pub fn start(
    usb: Peri<'static, USB>,
    board: &'static str,
    chip: Option<u64>,
) -> (UsbPort, impl Future<Output = ()>) {
    cdc_port::start(usb::Driver::new(usb, Interrupts), board, chip)
}
