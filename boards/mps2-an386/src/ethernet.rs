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

// Each FIFO answers at eight addresses, so that one instruction can move eight words.
const RX_DATA: usize = 0x00;
const TX_DATA: usize = 0x20;
const RX_STATUS: usize = 0x40;
const TX_STATUS: usize = 0x48;
const IRQ_CFG: usize = 0x54;
const INT_STS: usize = 0x58;
const INT_EN: usize = 0x5C;
const FIFO_INT: usize = 0x68;
const RX_CFG: usize = 0x6C;
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

const TX_FIRST_SEGMENT: u32 = 1 << 13;
const TX_LAST_SEGMENT: u32 = 1 << 12;

const CHECKSUM_BYTES: usize = 4;
const WORD: usize = 4;
/// Bytes the controller puts in front of a frame, so that what follows its header begins with a word.
const RX_OFFSET: usize = 2;

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
        LAN9118.write(RX_CFG, (RX_OFFSET as u32) << 8);
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
        // Header and packet are segments of one frame, so that both begin with a word.
        LAN9118.write(TX_DATA, TX_FIRST_SEGMENT | HEADER.len() as u32);
        LAN9118.write(TX_DATA, length);
        write_bytes(&HEADER);
        LAN9118.write(TX_DATA, TX_LAST_SEGMENT | packet.len() as u32);
        LAN9118.write(TX_DATA, length);
        write_bytes(packet);
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
    let fits = length.saturating_sub(HEADER.len() + CHECKSUM_BYTES).min(packet.len());
    let (bursts, rest) = packet[..fits].as_chunks_mut();
    // Behind the offset the header is a whole number of words.
    skip_words((RX_OFFSET + HEADER.len()) / WORD);
    for burst in &mut *bursts {
        *burst = LAN9118.read_burst(RX_DATA);
    }
    for word in rest.chunks_mut(WORD) {
        word.copy_from_slice(&LAN9118.read(RX_DATA).to_le_bytes()[..word.len()]);
    }
    // The checksum, and what did not fit.
    skip_words((RX_OFFSET + length).div_ceil(WORD) - (RX_OFFSET + HEADER.len() + fits).div_ceil(WORD));
    fits
}

/// Fills the transmitter with bytes, the last word padded.
fn write_bytes(bytes: &[u8]) {
    let (bursts, rest) = bytes.as_chunks();
    for burst in bursts {
        LAN9118.write_burst(TX_DATA, burst);
    }
    for part in rest.chunks(WORD) {
        let mut word = [0; WORD];
        word[..part.len()].copy_from_slice(part);
        LAN9118.write(TX_DATA, u32::from_le_bytes(word));
    }
}

fn skip_words(count: usize) {
    for _ in 0..count {
        LAN9118.read(RX_DATA);
    }
}

fn write_mac(register: u32, value: u32) {
    const BUSY: u32 = 1 << 31;
    LAN9118.write(MAC_CSR_DATA, value);
    LAN9118.write(MAC_CSR_CMD, BUSY | register);
    while LAN9118.read(MAC_CSR_CMD) & BUSY != 0 {}
}
