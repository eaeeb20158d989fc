//! A sensor on UART 2, which is asked for each reading, and an autopilot on UART 3.

use crate::{
    cmsdk_uart::CmsdkUart,
    interrupts::{self, InterruptLine},
};
use core::{cell::RefCell, future::poll_fn, task::Poll};
use critical_section::Mutex;
use embassy_sync::waitqueue::AtomicWaker;
use fabswarm_firmware::sensor::{LineReader, Outlet, Sensor, request_line};

// SAFETY: addresses of application note AN386.
const SENSOR: CmsdkUart = unsafe { CmsdkUart::new(0x4000_6000) };
const AUTOPILOT: CmsdkUart = unsafe { CmsdkUart::new(0x4000_7000) };

static LINE: Mutex<RefCell<LineReader>> = Mutex::new(RefCell::new(LineReader::new()));
static ARRIVED: AtomicWaker = AtomicWaker::new();

pub unsafe extern "C" fn on_receive() {
    with_line(|line| SENSOR.take_received(|byte| line.push(byte)));
    ARRIVED.wake();
}

fn with_line<R>(act: impl FnOnce(&mut LineReader) -> R) -> R {
    critical_section::with(|section| act(&mut LINE.borrow(section).borrow_mut()))
}

pub struct UartSensor(());

impl UartSensor {
    /// Starts the port. Call once.
    pub fn start() -> Self {
        SENSOR.start_both_ways();
        interrupts::enable(InterruptLine::Uart2Receive);
        Self(())
    }
}

impl Sensor for UartSensor {
    async fn read(&mut self, round: u32) -> Option<f32> {
        with_line(LineReader::take);
        SENSOR.write(&request_line(round));
        poll_fn(|context| {
            ARRIVED.register(context.waker());
            with_line(LineReader::take).map_or(Poll::Pending, |reading| Poll::Ready(Some(reading)))
        })
        .await
    }

    fn refused(&self) -> u32 {
        with_line(|line| line.refused())
    }
}

pub struct Autopilot(());

impl Autopilot {
    /// Starts the port. Call once.
    pub fn start() -> Self {
        AUTOPILOT.start();
        Self(())
    }
}

impl Outlet for Autopilot {
    fn write(&mut self, message: &[u8]) {
        AUTOPILOT.write(message);
    }
}
