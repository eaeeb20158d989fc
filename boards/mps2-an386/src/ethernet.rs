//! The LAN9118 as a packet radio: one Ethernet frame carries one packet, and whoever is behind the cable is the air.

use crate::{
    interrupts::{self, Interrupt},
    registers::Registers,
};
use core::{future::poll_fn, task::Poll};
use embassy_sync::waitqueue::AtomicWaker;
use fabswarm_firmware::{link::Link, packet::ETHERNET_HEADER as HEADER};

// SAFETY: address of application note AN386.
const LAN9118: Registers = unsafe { Registers::new(0x4020_0000) };

const RX_DATA: usize = 0x00;
const TX_DATA: usize = 0x20;
const RX_STATUS: usize = 0x40;
const TX_STATUS: usize = 0x48;
const IRQ_CFG: usize = 0x54;
const INT_STS: usize = 0x58;
const INT_EN: usize = 0x5C;
const FIFO_INT: usize = 0x68;
const TX_CFG: usize = 0x70;
const RX_FIFO_INF: usize = 0x7C;
const TX_FIFO_INF: usize = 0x80;
const MAC_CSR_CMD: usize = 0xA4;
const MAC_CSR_DATA: usize = 0xA8;

const MAC_CR: u32 = 1;
const MAC_CR_RX_ENABLE: u32 = 1 << 2;
const MAC_CR_TX_ENABLE: u32 = 1 << 3;
const MAC_CR_PROMISCUOUS: u32 = 1 << 18;
const MAC_CR_FULL_DUPLEX: u32 = 1 << 20;
const RX_STATUS_LEVEL: u32 = 1 << 3;

const CHECKSUM_BYTES: usize = 4;

static RECEIVED: AtomicWaker = AtomicWaker::new();

pub unsafe extern "C" fn on_interrupt() {
    // The line stays high while a frame waits: masked until the link has read it.
    LAN9118.write(INT_EN, 0);
    RECEIVED.wake();
}

/// The board's packet link.
pub struct Ethernet(());

impl Ethernet {
    /// Starts the controller. Call once.
    pub fn start() -> Self {
        LAN9118.write(IRQ_CFG, 0x111); // enabled, active high, push-pull
        LAN9118.write(FIFO_INT, 0); // interrupt as soon as one frame waits
        LAN9118.write(INT_STS, u32::MAX);
        write_mac(MAC_CR, MAC_CR_PROMISCUOUS | MAC_CR_FULL_DUPLEX | MAC_CR_TX_ENABLE | MAC_CR_RX_ENABLE);
        LAN9118.write(TX_CFG, 1 << 1); // transmitter on
        interrupts::enable(Interrupt::Ethernet);
        Self(())
    }
}

impl Link for Ethernet {
    async fn send(&mut self, packet: &[u8]) {
        let length = (HEADER.len() + packet.len()) as u32;
        LAN9118.write(TX_DATA, 1 << 13 | 1 << 12 | length); // first and last segment
        LAN9118.write(TX_DATA, length);
        // 14 bytes of header leave the packet two bytes off a word: the first of its words is shared.
        let mut word = [0; 4];
        let mut filled = 0;
        for &byte in HEADER.iter().chain(packet) {
            word[filled] = byte;
            filled += 1;
            if filled == word.len() {
                LAN9118.write(TX_DATA, u32::from_le_bytes(word));
                filled = 0;
            }
        }
        if filled > 0 {
            LAN9118.write(TX_DATA, u32::from_le_bytes(word));
        }
        while waiting(TX_FIFO_INF) > 0 {
            LAN9118.read(TX_STATUS);
        }
    }

    async fn receive(&mut self, packet: &mut [u8]) -> usize {
        poll_fn(|context| {
            RECEIVED.register(context.waker());
            if waiting(RX_FIFO_INF) == 0 {
                LAN9118.write(INT_STS, u32::MAX);
                LAN9118.write(INT_EN, RX_STATUS_LEVEL);
                // A frame that came before the interrupt was let through raises none.
                if waiting(RX_FIFO_INF) == 0 {
                    return Poll::Pending;
                }
            }
            Poll::Ready(read_frame(packet))
        })
        .await
    }
}

/// Frames in a status FIFO, from its information register.
fn waiting(fifo: usize) -> u32 {
    LAN9118.read(fifo) >> 16 & 0xFF
}

/// Reads the waiting frame, without header and checksum; what does not fit `packet` is cut off, and then fails its check further up.
fn read_frame(packet: &mut [u8]) -> usize {
    let length = (LAN9118.read(RX_STATUS) >> 16 & 0x3FFF) as usize;
    let payload = HEADER.len()..length.saturating_sub(CHECKSUM_BYTES);
    let mut taken = 0;
    for first in (0..length).step_by(4) {
        let word = LAN9118.read(RX_DATA).to_le_bytes();
        for (position, byte) in (first..).zip(word) {
            if payload.contains(&position) && taken < packet.len() {
                packet[taken] = byte;
                taken += 1;
            }
        }
    }
    taken
}

fn write_mac(register: u32, value: u32) {
    const BUSY: u32 = 1 << 31;
    LAN9118.write(MAC_CSR_DATA, value);
    LAN9118.write(MAC_CSR_CMD, BUSY | register);
    while LAN9118.read(MAC_CSR_CMD) & BUSY != 0 {}
}
