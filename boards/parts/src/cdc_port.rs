//! A USB port as a board's serial port (CDC-ACM).

use core::fmt::Write as _;
use embassy_usb::{
    Builder, Config,
    class::cdc_acm::{BufferedReceiver, CdcAcmClass, Sender, State},
    driver::Driver,
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

/// Starts the USB port behind `driver`; the future that is returned too keeps it running. Call once.
pub fn start<D: Driver<'static> + 'static>(
    driver: D,
    board: &'static str,
    chip: Option<u64>,
) -> (CdcPort<D>, impl Future<Output = ()>) {
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
    config.product = Some(board);
    config.serial_number = Some(serial);
    let mut builder = Builder::new(driver, config, CONFIGURATION.take(), BOS.take(), &mut [], CONTROL.take());
    let class = CdcAcmClass::new(&mut builder, STATE.init(State::new()), PACKET);
    let mut device = builder.build();
    let (sender, receiver) = class.split();
    let port = CdcPort { receiver: receiver.into_buffered(RECEIVED.take()), sender, is_open_ended: false };
    (port, async move { device.run().await })
}

/// A serial port on the bus.
pub struct CdcPort<D: Driver<'static>> {
    receiver: BufferedReceiver<'static, D>,
    sender: Sender<'static, D>,
    /// Whether the last packet was full, so that the host waits for more.
    is_open_ended: bool,
}

impl<D: Driver<'static>> ErrorType for CdcPort<D> {
    type Error = ErrorKind;
}

impl<D: Driver<'static>> Read for CdcPort<D> {
    /// Waits for a host that has configured the device.
    async fn read(&mut self, out: &mut [u8]) -> Result<usize, ErrorKind> {
        self.receiver.wait_connection().await;
        self.receiver.read(out).await.map_err(|_| ErrorKind::NotConnected)
    }
}

impl<D: Driver<'static>> Write for CdcPort<D> {
    async fn write(&mut self, bytes: &[u8]) -> Result<usize, ErrorKind> {
        // No program has the port open: what is sent is lost at once.
        if !self.sender.dtr() {
            return Ok(bytes.len());
        }
        let count = self.sender.write(bytes).await.map_err(|_| ErrorKind::NotConnected)?;
        self.is_open_ended = count == usize::from(PACKET);
        Ok(count)
    }

    /// Ends the transfer, by an empty packet if need be.
    async fn flush(&mut self) -> Result<(), ErrorKind> {
        if core::mem::take(&mut self.is_open_ended) {
            self.sender.write_packet(&[]).await.map_err(|_| ErrorKind::NotConnected)?;
        }
        Ok(())
    }
}
