//! The LAN9118 as a packet radio: one Ethernet frame carries one packet, and the host at the other end of the cable is the air.

use crate::{
    interrupts::{self, InterruptLine},
    registers::{BURST, Registers},
};
use core::{
    future::poll_fn,
    sync::atomic::{AtomicBool, Ordering},
    task::Poll,
};
use embassy_sync::waitqueue::AtomicWaker;
use embassy_time::Instant;
use fabswarm_firmware::{link::Link, packet::ETHERNET_HEADER as HEADER};

/// Bytes that may arrive while the firmware is busy: the receiver has room for 10,560 bytes of packets and padding.
pub const WINDOW: u16 = 8 * 1024;

// SAFETY: address of application note AN386.
const LAN9118: Registers = unsafe { Registers::new(0x4020_0000) };

// Each FIFO is mapped to eight addresses, so that one instruction can move eight words.
const RX_DATA: usize = 0x00;
const TX_DATA: usize = 0x20;
const RX_STATUS: usize = 0x40;
const IRQ_CFG: usize = 0x54;
const INT_STS: usize = 0x58;
const INT_EN: usize = 0x5C;
const FIFO_INT: usize = 0x68;
const RX_CFG: usize = 0x6C;
const TX_CFG: usize = 0x70;
const RX_FIFO_INF: usize = 0x7C;
const MAC_CSR_CMD: usize = 0xA4;
const MAC_CSR_DATA: usize = 0xA8;

const MAC_CR: u32 = 1;
const MAC_CR_RX_ENABLE: u32 = 1 << 2;
const MAC_CR_TX_ENABLE: u32 = 1 << 3;
const MAC_CR_PROMISCUOUS: u32 = 1 << 18;
const MAC_CR_FULL_DUPLEX: u32 = 1 << 20;
const RX_STATUS_LEVEL: u32 = 1 << 3;
const RX_END_IN_BURSTS: u32 = 2 << 30;
const TX_ON: u32 = 1 << 1;
/// Nobody reads what became of frames that were sent.
const TX_STATUS_MAY_OVERRUN: u32 = 1 << 2;

const TX_ONLY_SEGMENT: u32 = 1 << 13 | 1 << 12;
/// Bytes of the two words in front of a frame that is sent.
const TX_COMMANDS: usize = 8;

const CHECKSUM_BYTES: usize = 4;
/// Bytes the controller puts in front of a frame, so that what follows its header begins with a word.
const RX_OFFSET: usize = 2;

static ARRIVED: AtomicBool = AtomicBool::new(false);
static RECEIVED: AtomicWaker = AtomicWaker::new();

pub unsafe extern "C" fn on_interrupt() {
    // Raised again by the next frame, whether or not this one was read.
    LAN9118.write(INT_STS, RX_STATUS_LEVEL);
    ARRIVED.store(true, Ordering::Release);
    RECEIVED.wake();
}

/// The board's packet link.
pub struct Ethernet {
    /// Frames that are known to wait.
    waiting: u32,
}

impl Ethernet {
    /// Starts the controller. Call once.
    pub fn start() -> Self {
        LAN9118.write(IRQ_CFG, 0x111); // enabled, active high, push-pull
        LAN9118.write(FIFO_INT, 0); // interrupt as soon as one frame waits
        LAN9118.write(RX_CFG, RX_END_IN_BURSTS | (RX_OFFSET as u32) << 8);
        LAN9118.write(INT_STS, u32::MAX);
        LAN9118.write(INT_EN, RX_STATUS_LEVEL);
        write_mac(MAC_CR, MAC_CR_PROMISCUOUS | MAC_CR_FULL_DUPLEX | MAC_CR_TX_ENABLE | MAC_CR_RX_ENABLE);
        LAN9118.write(TX_CFG, TX_ON | TX_STATUS_MAY_OVERRUN);
        interrupts::enable(InterruptLine::Ethernet);
        Self { waiting: 0 }
    }
}

impl Link for Ethernet {
    async fn send(&mut self, packet: &[u8]) {
        write_frame(packet);
    }

    async fn receive(&mut self, packet: &mut [u8]) -> (usize, Instant) {
        poll_fn(|context| {
            RECEIVED.register(context.waker());
            // The controller is asked only after it has called.
            if self.waiting == 0 && ARRIVED.swap(false, Ordering::AcqRel) {
                self.waiting = LAN9118.read(RX_FIFO_INF) >> 16 & 0xFF;
            }
            if self.waiting == 0 {
                return Poll::Pending;
            }
            self.waiting -= 1;
            Poll::Ready((read_frame(packet), Instant::now()))
        })
        .await
    }
}

/// Writes a packet to the transmitter, which sends it with the last word. Out of line: there are two who send.
#[inline(never)]
fn write_frame(packet: &[u8]) {
    let length = HEADER.len() + packet.len();
    // Bytes for the controller to skip, with which commands, header and packet are whole bursts.
    let skipped = (TX_COMMANDS + length).next_multiple_of(BURST) - TX_COMMANDS - length;
    let header_end = TX_COMMANDS + skipped + HEADER.len();
    let front_end = header_end.next_multiple_of(BURST);
    let (start, rest) = packet.split_at(front_end - header_end);

    let mut front = [0; 2 * BURST];
    front[..4].copy_from_slice(&(TX_ONLY_SEGMENT | (skipped << 16 | length) as u32).to_le_bytes());
    front[4..TX_COMMANDS].copy_from_slice(&(length as u32).to_le_bytes());
    front[TX_COMMANDS + skipped..header_end].copy_from_slice(&HEADER);
    front[header_end..front_end].copy_from_slice(start);
    for bytes in [&front[..front_end], rest] {
        bytes.as_chunks().0.iter().for_each(|burst| LAN9118.write_burst(TX_DATA, burst));
    }
}

/// Reads the waiting frame, without header and checksum; what does not fit `packet` is cut off, and then fails its check further up.
fn read_frame(packet: &mut [u8]) -> usize {
    const FRONT: usize = RX_OFFSET + HEADER.len();
    let length = (LAN9118.read(RX_STATUS) >> 16 & 0x3FFF) as usize;
    let fits = length.saturating_sub(HEADER.len() + CHECKSUM_BYTES).min(packet.len());
    let (start, rest) = packet[..fits].split_at_mut(fits.min(BURST - FRONT));
    let first: [u8; BURST] = LAN9118.read_burst(RX_DATA);
    start.copy_from_slice(&first[FRONT..][..start.len()]);
    let (bursts, mut rest) = rest.as_chunks_mut();
    for burst in &mut *bursts {
        *burst = LAN9118.read_burst(RX_DATA);
    }
    // The rest, the checksum, and what did not fit.
    for _ in 1 + bursts.len()..(RX_OFFSET + length).div_ceil(BURST) {
        let burst: [u8; BURST] = LAN9118.read_burst(RX_DATA);
        let last = core::mem::take(&mut rest);
        last.copy_from_slice(&burst[..last.len()]);
    }
    fits
}

fn write_mac(register: u32, value: u32) {
    const BUSY: u32 = 1 << 31;
    LAN9118.write(MAC_CSR_DATA, value);
    LAN9118.write(MAC_CSR_CMD, BUSY | register);
    while LAN9118.read(MAC_CSR_CMD) & BUSY != 0 {}
}
