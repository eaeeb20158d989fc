//! The machine's UARTs.

use crate::registers::Registers;

const DATA: usize = 0x0;
const STATE: usize = 0x4;
const CONTROL: usize = 0x8;
const BAUD_DIVIDER: usize = 0x10;

const STATE_TX_FULL: u32 = 1 << 0;
const CONTROL_TX_ENABLE: u32 = 1 << 0;

#[derive(Clone, Copy)]
pub struct CmsdkUart(Registers);

impl CmsdkUart {
    /// # Safety
    /// `base` must be the address of a UART of this board.
    pub const unsafe fn new(base: usize) -> Self {
        // SAFETY: the caller promises it.
        Self(unsafe { Registers::new(base) })
    }

    pub fn start(self) {
        self.0.write(BAUD_DIVIDER, 16);
        self.0.write(CONTROL, CONTROL_TX_ENABLE);
    }

    pub fn write(self, bytes: &[u8]) {
        for &byte in bytes {
            // The emulator takes a byte at once; a real port would have an interrupt here.
            while self.0.read(STATE) & STATE_TX_FULL != 0 {}
            self.0.write(DATA, byte.into());
        }
    }
}

#[cfg(any(feature = "uart", feature = "sensor"))]
impl CmsdkUart {
    /// Starts to send, and to interrupt for each byte that arrives.
    pub fn start_both_ways(self) {
        const RX_ENABLE: u32 = 1 << 1;
        const RX_INTERRUPT_ENABLE: u32 = 1 << 3;
        self.start();
        self.0.write(CONTROL, CONTROL_TX_ENABLE | RX_ENABLE | RX_INTERRUPT_ENABLE);
        // A byte that came before stays in the way of all others.
        self.0.read(DATA);
    }

    /// Passes on what has arrived, in the interrupt for it.
    pub fn take_received(self, mut take: impl FnMut(u8)) {
        const INTERRUPT_CLEAR: usize = 0xC;
        const RX_INTERRUPT: u32 = 1 << 1;
        const STATE_RX_FULL: u32 = 1 << 1;
        // Cleared first: a byte that comes while the others are read raises it again.
        self.0.write(INTERRUPT_CLEAR, RX_INTERRUPT);
        while self.0.read(STATE) & STATE_RX_FULL != 0 {
            take(self.0.read(DATA) as u8);
        }
    }
}
