//! The USB port as the board's serial port (CDC-ACM).

use crate::board::NAME;
use core::fmt::Write as _;
use embassy_rp::{Peri, bind_interrupts, peripherals::USB, usb};
use embassy_usb::{
    Builder, Config,
    class::cdc_acm::{BufferedReceiver, CdcAcmClass, Sender, State},
};
use embedded_io_async::{ErrorKind, ErrorType, Read, Write};
use static_cell::{ConstStaticCell, StaticCell};

/// Bytes that may arrive while the firmware is busy: as many as the host likes, for the device makes it wait.
pub const WINDOW: u16 = 8192;

/// Bytes of a packet on the bus.
const PACKET: u16 = 64;

/// For devices that are not sold: pid.codes keeps this pair for tests.
const VENDOR: u16 = 0x1209;
const PRODUCT: u16 = 0x0001;

type Driver = usb::Driver<'static, USB>;

bind_interrupts!(struct Interrupts {
    USBCTRL_IRQ => usb::InterruptHandler<USB>;
});

/// Starts the USB port; the future that is returned too keeps it running. Call once.
pub fn start(usb: Peri<'static, USB>, chip: Option<u64>) -> (CdcPort, impl Future<Output = ()>) {
    static CONFIGURATION: ConstStaticCell<[u8; 128]> = ConstStaticCell::new([0; 128]);
    static BOS: ConstStaticCell<[u8; 32]> = ConstStaticCell::new([0; 32]);
    static CONTROL: ConstStaticCell<[u8; PACKET as usize]> = ConstStaticCell::new([0; PACKET as usize]);
    static STATE: StaticCell<State> = StaticCell::new();
    static RECEIVED: ConstStaticCell<[u8; PACKET as usize]> = ConstStaticCell::new([0; PACKET as usize]);
    static SERIAL: StaticCell<heapless::String<16>> = StaticCell::new();

    let serial = SERIAL.init(heapless::String::new());
    // 16 digits fit.
    let _ = write!(serial, "{:016X}", chip.unwrap_or_default());
    let mut config = Config::new(VENDOR, PRODUCT);
    config.manufacturer = Some("fabswarm");
    config.product = Some(NAME);
    config.serial_number = Some(serial);
    let driver = usb::Driver::new(usb, Interrupts);
    let mut builder = Builder::new(driver, config, CONFIGURATION.take(), BOS.take(), &mut [], CONTROL.take());
    let class = CdcAcmClass::new(&mut builder, STATE.init(State::new()), PACKET);
    let mut device = builder.build();
    let (sender, receiver) = class.split();
    let port = CdcPort { receiver: receiver.into_buffered(RECEIVED.take()), sender };
    (port, async move { device.run().await })
}

/// A serial port on the bus.
pub struct CdcPort {
    receiver: BufferedReceiver<'static, Driver>,
    sender: Sender<'static, Driver>,
}

impl ErrorType for CdcPort {
    type Error = ErrorKind;
}

impl Read for CdcPort {
    /// Waits for a host that has configured the device.
    async fn read(&mut self, out: &mut [u8]) -> Result<usize, ErrorKind> {
        self.receiver.wait_connection().await;
        self.receiver.read(out).await.map_err(|_| ErrorKind::NotConnected)
    }
}

impl Write for CdcPort {
    async fn write(&mut self, bytes: &[u8]) -> Result<usize, ErrorKind> {
        // No program has the port open: what is sent is lost at once.
        if !self.sender.dtr() {
            return Ok(bytes.len());
        }
        self.sender.write(bytes).await.map_err(|_| ErrorKind::NotConnected)
    }

    async fn flush(&mut self) -> Result<(), ErrorKind> {
        Ok(())
    }
}
