//! The nRF52840's 802.15.4 radio as a packet link.

use core::ptr::NonNull;
use embassy_nrf::{
    Peri, bind_interrupts, pac,
    peripherals::{PPI_CH2, RADIO, TIMER2},
    ppi::{Event, Ppi},
    radio::{
        self,
        ieee802154::{Packet, Radio},
    },
    timer::Timer,
};
use embassy_time::{Duration, Instant};
use embedded_io_async::{Read, Write};
use embedded_storage::nor_flash::NorFlash;
use fabswarm_board_parts::radio::run_by_radio;
use fabswarm_firmware::{
    Parts,
    health::Health,
    link::{Link, SendDelay, packets_of, received_length},
    packet::RadioState,
    storage::PageFlash,
};

/// The shortest header of IEEE 802.15.4-2015: a data frame without sequence number and addresses. Other networks on the channel
/// see what it is, and ours are told apart by their keys.
const MAC_HEADER: [u8; 2] = 0x2101_u16.to_le_bytes();

/// Bytes of a packet behind its length and before its checksum.
const PAYLOAD: usize = Packet::CAPACITY as usize;

/// Bytes of a packet behind its MAC header.
const MTU: usize = PAYLOAD - MAC_HEADER.len();

/// Packets that wait to be sent: a frame, and news about members in front of it.
const SENT: usize = 2 * packets_of(MTU);

/// The first guess: a receiver that was listening assesses the channel, and the transmitter ramps up.
const SEND_DELAY: SendDelay = SendDelay::new(Duration::from_micros(128 + 140));
/// Time on the air of a byte.
const BYTE_US: u64 = 32;
/// Bytes on the air besides those of a packet: preamble, start of frame and length before it, checksum behind it.
const EXTRA_BYTES: u64 = 6 + 2;

bind_interrupts!(struct Interrupts {
    RADIO => radio::InterruptHandler<RADIO>;
});

/// The radio on one channel.
pub struct RadioLink {
    radio: Radio<'static>,
    channel: u8,
    power_dbm: i8,
    packet: Packet,
    send_delay: SendDelay,
    /// Stamps the ends of packets.
    clock: PacketClock,
    state: RadioState,
}

// Registers of the timer: when the last packet ended, and the present.
const ENDED: usize = 0;
const NOW: usize = 1;

/// Counts microseconds, and captures its count when a packet ends: tasks learn that later, each time by as much as others take.
struct PacketClock {
    timer: Timer<'static>,
    _capture: Ppi<'static, PPI_CH2, 1, 1>,
}

impl PacketClock {
    fn start(timer: Peri<'static, TIMER2>, channel: Peri<'static, PPI_CH2>) -> Self {
        let timer = Timer::new(timer);
        let register = pac::RADIO.events_phyend().as_ptr();
        // SAFETY: it is the register of an event.
        let ended = unsafe { Event::new_unchecked(NonNull::new_unchecked(register)) };
        let mut capture = Ppi::new_one_to_one(channel, ended, timer.cc(ENDED).task_capture());
        capture.enable();
        timer.start();
        Self { timer, _capture: capture }
    }

    /// When the last packet ended that was sent or received.
    fn ended(&self) -> Instant {
        let since_us = self.timer.cc(NOW).capture().wrapping_sub(self.timer.cc(ENDED).read());
        let now = Instant::now();
        now.checked_sub(Duration::from_micros(since_us.into())).unwrap_or(now)
    }
}

impl RadioLink {
    /// Starts the radio on channel `number`.
    pub fn new(
        radio: Peri<'static, RADIO>,
        timer: Peri<'static, TIMER2>,
        channel: Peri<'static, PPI_CH2>,
        number: u8,
        power_dbm: i8,
    ) -> Self {
        Self {
            radio: set_up(radio, number, power_dbm),
            channel: number,
            power_dbm,
            packet: Packet::new(),
            send_delay: SEND_DELAY,
            clock: PacketClock::start(timer, channel),
            state: RadioState { damaged: Some(0), ..RadioState::default() },
        }
    }

    /// Runs an agent whose frames go by this radio, and everything else by the serial port `port`.
    pub async fn run(
        mut self,
        port: impl Read + Write,
        parts: Parts<'_, (), impl NorFlash + PageFlash, impl Health>,
    ) -> ! {
        run_by_radio::<MTU, SENT>(&mut self, port, parts).await
    }
}

/// The radio with its settings.
fn set_up(radio: Peri<'static, RADIO>, channel: u8, power_dbm: i8) -> Radio<'static> {
    let mut radio = Radio::new(radio, Interrupts);
    radio.set_channel(channel);
    radio.set_transmission_power(power_dbm);
    radio
}

/// Time on the air of a packet.
fn airtime(bytes: usize) -> Duration {
    Duration::from_micros(BYTE_US * (bytes as u64 + EXTRA_BYTES))
}

impl Link for RadioLink {
    async fn send(&mut self, packet: &[u8]) {
        self.try_send_at(packet, Instant::MIN).await;
    }

    async fn try_send_at(&mut self, packet: &[u8], at: Instant) -> bool {
        while Instant::now() < at {}
        let mut bytes = [0; PAYLOAD];
        let length = MAC_HEADER.len() + packet.len().min(MTU);
        bytes[..MAC_HEADER.len()].copy_from_slice(&MAC_HEADER);
        bytes[MAC_HEADER.len()..length].copy_from_slice(&packet[..length - MAC_HEADER.len()]);
        self.packet.copy_from_slice(&bytes[..length]);
        let begun = Instant::now();
        let is_sent = self.radio.try_send(&mut self.packet).await.is_ok();
        if is_sent {
            self.send_delay.measure(begun, self.clock.ended(), airtime(length));
        }
        is_sent
    }

    async fn receive(&mut self, packet: &mut [u8]) -> (usize, Instant) {
        loop {
            let received = self.radio.receive(&mut self.packet).await;
            let ended = self.clock.ended();
            if received.is_err() {
                self.state.damaged = self.state.damaged.map(|damaged| damaged.wrapping_add(1));
            }
            // Reading the packet panics if its length is wrong.
            let length = received_length(self.packet.len(), PAYLOAD);
            let (Ok(()), Some(length)) = (received, length) else { continue };
            let Some(payload) = self.packet[..length].strip_prefix(&MAC_HEADER) else { continue };
            let Some(room) = packet.get_mut(..payload.len()) else { continue };
            room.copy_from_slice(payload);
            self.state.lqi = Some(self.packet.lqi());
            return (payload.len(), self.send_delay.sent_at(ended, airtime(length)));
        }
    }

    async fn restart(&mut self) {
        // SAFETY: its only owner is the driver that is replaced here, which does nothing meanwhile.
        let radio = unsafe { RADIO::steal() };
        self.radio = set_up(radio, self.channel, self.power_dbm);
    }

    fn radio_state(&self) -> Option<RadioState> {
        Some(self.state)
    }
}
