//! CMSDK UART 0 as a byte stream.

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
const CLEAR: usize = 0xC;
const BAUD_DIVIDER: usize = 0x10;

const TX_FULL: u32 = 1 << 0;
const RX_FULL: u32 = 1 << 1;
const TX_ENABLE: u32 = 1 << 0;
const RX_ENABLE: u32 = 1 << 1;
const TX_INTERRUPT: u32 = 1 << 2;
const RX_INTERRUPT: u32 = 1 << 3;

/// Bytes that may wait while the agent computes: two frames.
const WAITING: usize = 1024;

static BYTES: Mutex<RefCell<Deque<u8, WAITING>>> = Mutex::new(RefCell::new(Deque::new()));
static RECEIVED: AtomicWaker = AtomicWaker::new();
static SENT: AtomicWaker = AtomicWaker::new();

pub unsafe extern "C" fn on_receive() {
    take_waiting_bytes();
    RECEIVED.wake();
}

pub unsafe extern "C" fn on_transmit() {
    UART0.write(CLEAR, 1 << 0);
    UART0.write(CONTROL, UART0.read(CONTROL) & !TX_INTERRUPT);
    SENT.wake();
}

fn take_waiting_bytes() {
    UART0.write(CLEAR, 1 << 1);
    critical_section::with(|section| {
        let mut bytes = BYTES.borrow(section).borrow_mut();
        while UART0.read(STATE) & RX_FULL != 0 {
            if bytes.is_full() {
                // The byte stays in the UART and holds the sender back until `read` has made room.
                UART0.write(CONTROL, UART0.read(CONTROL) & !RX_INTERRUPT);
                break;
            }
            let _ = bytes.push_back(UART0.read(DATA) as u8);
        }
    });
}

/// The board's serial link.
pub struct Uart(());

impl Uart {
    /// Starts the UART. Call once.
    pub fn start() -> Self {
        UART0.write(BAUD_DIVIDER, 16);
        UART0.write(CONTROL, TX_ENABLE | RX_ENABLE | RX_INTERRUPT);
        // QEMU looks again whether the UART can receive only after a read of its data.
        UART0.read(DATA);
        interrupts::enable(Interrupt::Uart0Receive);
        interrupts::enable(Interrupt::Uart0Transmit);
        Self(())
    }
}

impl ErrorType for Uart {
    type Error = Infallible;
}

impl Read for Uart {
    async fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Infallible> {
        poll_fn(|context| {
            RECEIVED.register(context.waker());
            let taken = critical_section::with(|section| {
                let mut bytes = BYTES.borrow(section).borrow_mut();
                let taken = buffer.len().min(bytes.len());
                for slot in &mut buffer[..taken] {
                    *slot = bytes.pop_front().unwrap_or_default();
                }
                taken
            });
            if taken == 0 {
                return Poll::Pending;
            }
            let control = UART0.read(CONTROL);
            if control & RX_INTERRUPT == 0 {
                UART0.write(CONTROL, control | RX_INTERRUPT);
                take_waiting_bytes();
            }
            Poll::Ready(Ok(taken))
        })
        .await
    }
}

impl Write for Uart {
    async fn write(&mut self, buffer: &[u8]) -> Result<usize, Infallible> {
        for &byte in buffer {
            poll_fn(|context| {
                SENT.register(context.waker());
                if UART0.read(STATE) & TX_FULL != 0 {
                    UART0.write(CONTROL, UART0.read(CONTROL) | TX_INTERRUPT);
                    if UART0.read(STATE) & TX_FULL != 0 {
                        return Poll::Pending;
                    }
                }
                Poll::Ready(())
            })
            .await;
            UART0.write(DATA, byte.into());
        }
        Ok(buffer.len())
    }

    async fn flush(&mut self) -> Result<(), Infallible> {
        Ok(())
    }
}
