//! UART 0 as a byte stream: for a link of the slow kind that real boards have.

use crate::{
    interrupts::{self, Interrupt},
    registers::Registers,
};
use core::{cell::RefCell, convert::Infallible, future::poll_fn, task::Poll};
use critical_section::Mutex;
use embassy_sync::waitqueue::AtomicWaker;
use embedded_io_async::{ErrorType, Read, Write};
use heapless::Deque;

// SAFETY: address of application note AN386.
const UART0: Registers = unsafe { Registers::new(0x4000_4000) };

const DATA: usize = 0x0;
const STATE: usize = 0x4;
const CONTROL: usize = 0x8;
const INTERRUPT_CLEAR: usize = 0xC;
const BAUD_DIVIDER: usize = 0x10;

const STATE_TX_FULL: u32 = 1 << 0;
const STATE_RX_FULL: u32 = 1 << 1;
const CONTROL_TX_ENABLE: u32 = 1 << 0;
const CONTROL_RX_ENABLE: u32 = 1 << 1;
const CONTROL_RX_INTERRUPT: u32 = 1 << 3;
const RX_INTERRUPT: u32 = 1 << 1;

/// Bytes that may arrive while the firmware is busy: half of the buffer, as escape bytes and headers come on top.
pub const WINDOW: u16 = 1024;
/// Bytes that wait while the agent computes: a few frames. What comes on top of them is lost, as on any wire.
const WAITING: usize = 2 * WINDOW as usize;

static RECEIVED: Mutex<RefCell<Deque<u8, WAITING>>> = Mutex::new(RefCell::new(Deque::new()));
static ARRIVED: AtomicWaker = AtomicWaker::new();

pub unsafe extern "C" fn on_receive() {
    // Cleared first: a byte that comes while the others are read raises it again.
    UART0.write(INTERRUPT_CLEAR, RX_INTERRUPT);
    critical_section::with(|section| {
        let mut received = RECEIVED.borrow(section).borrow_mut();
        while UART0.read(STATE) & STATE_RX_FULL != 0 {
            let _ = received.push_back(UART0.read(DATA) as u8);
        }
    });
    ARRIVED.wake();
}

/// The board's serial port.
pub struct Uart(());

impl Uart {
    /// Starts the port. Call once.
    pub fn start() -> Self {
        UART0.write(BAUD_DIVIDER, 16);
        UART0.write(CONTROL, CONTROL_TX_ENABLE | CONTROL_RX_ENABLE | CONTROL_RX_INTERRUPT);
        // A byte that came before stays in the way of all others.
        UART0.read(DATA);
        interrupts::enable(Interrupt::Uart0Receive);
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
        for &byte in bytes {
            // The emulator takes a byte at once; a real port would have an interrupt here.
            while UART0.read(STATE) & STATE_TX_FULL != 0 {}
            UART0.write(DATA, byte.into());
        }
        Ok(bytes.len())
    }

    async fn flush(&mut self) -> Result<(), Infallible> {
        Ok(())
    }
}
