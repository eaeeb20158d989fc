//! UART 0 as a byte stream: for a link of the slow kind that real boards have.

use crate::{
    cmsdk_uart::CmsdkUart,
    interrupts::{self, InterruptLine},
};
use core::{cell::RefCell, convert::Infallible, future::poll_fn, task::Poll};
use critical_section::Mutex;
use embassy_sync::waitqueue::AtomicWaker;
use embedded_io_async::{ErrorType, Read, Write};
use heapless::Deque;

// SAFETY: address of application note AN386.
const UART0: CmsdkUart = unsafe { CmsdkUart::new(0x4000_4000) };

/// Bytes that may arrive while the firmware is busy: half of the buffer, as escape bytes and headers come on top.
pub const WINDOW: u16 = 1024;
/// Bytes that wait while the agent computes: a few frames. What comes on top of them is lost, as on any wire.
const WAITING: usize = 2 * WINDOW as usize;

static RECEIVED: Mutex<RefCell<Deque<u8, WAITING>>> = Mutex::new(RefCell::new(Deque::new()));
static ARRIVED: AtomicWaker = AtomicWaker::new();

pub unsafe extern "C" fn on_receive() {
    critical_section::with(|section| {
        let mut received = RECEIVED.borrow(section).borrow_mut();
        UART0.take_received(|byte| _ = received.push_back(byte));
    });
    ARRIVED.wake();
}

/// The board's serial port.
pub struct Uart(());

impl Uart {
    /// Starts the port. Call once.
    pub fn start() -> Self {
        UART0.start_both_ways();
        interrupts::enable(InterruptLine::Uart0Receive);
        Self(())
    }
}

impl ErrorType for Uart {
    type Error = Infallible;
}

impl Read for Uart {
    async fn read(&mut self, bytes: &mut [u8]) -> Result<usize, Infallible> {
        poll_fn(|context| {
            ARRIVED.register(context.waker());
            let count = critical_section::with(|section| {
                let mut received = RECEIVED.borrow(section).borrow_mut();
                let waiting = bytes.iter_mut().map_while(|byte| {
                    *byte = received.pop_front()?;
                    Some(())
                });
                waiting.count()
            });
            if count > 0 { Poll::Ready(Ok(count)) } else { Poll::Pending }
        })
        .await
    }
}

impl Write for Uart {
    async fn write(&mut self, bytes: &[u8]) -> Result<usize, Infallible> {
        UART0.write(bytes);
        Ok(bytes.len())
    }

    async fn flush(&mut self) -> Result<(), Infallible> {
        Ok(())
    }
}
