//! ESP-NOW as a packet link: broadcasts on one channel of Wi-Fi, without a network.

use crate::board::{RADIO_CHANNEL, RADIO_POWER_DBM};
use embassy_time::{Duration, Instant};
use esp_radio::esp_now::{BROADCAST_ADDRESS, ESP_NOW_MAX_DATA_LEN_V2, EspNow};
use esp_radio::wifi::WifiController;
use fabswarm_firmware::{
    link::{Link, StampClock},
    packet::RadioState,
};

/// Bytes of a packet: with the second version of ESP-NOW, most frames are one.
pub const MTU: usize = ESP_NOW_MAX_DATA_LEN_V2;

/// Longer frames on their way in at once.
pub const SLOTS: usize = 4;

/// Broadcasts are sent with 1 Mbit/s.
const BYTE_US: u64 = 8;
/// Preamble and header of the radio.
const PREAMBLE_US: u64 = 192;
/// Header of Wi-Fi, header of ESP-NOW and checksum.
const EXTRA_BYTES: u64 = 24 + 15 + 4;

/// The radio on one channel.
pub struct EspNowLink {
    radio: EspNow,
    /// The radio stamps packets when they are in: a task sees them after the driver, whenever it runs.
    clock: StampClock,
    state: RadioState,
}

impl EspNowLink {
    pub fn new(wifi: &mut WifiController<'_>) -> Self {
        // In quarters of a dBm; the driver starts with 5 dBm, and goes on with that if it refuses.
        let _ = wifi.set_max_tx_power(4 * RADIO_POWER_DBM);
        let radio = wifi.esp_now();
        // On another channel it hears nobody, which its telemetry shows.
        let _ = radio.set_channel(RADIO_CHANNEL);
        Self { radio, clock: StampClock::default(), state: RadioState::default() }
    }
}

impl Link for EspNowLink {
    async fn send(&mut self, packet: &[u8]) {
        // A lost frame, as any other.
        let _ = self.radio.send_async(&BROADCAST_ADDRESS, packet).await;
    }

    async fn receive(&mut self, packet: &mut [u8]) -> (usize, Instant) {
        loop {
            let received = self.radio.receive_async().await;
            let stamp = received.info.rx_control.timestamp.duration_since_epoch().as_micros();
            let ended = self.clock.stamped_at(Instant::now(), stamp as u32);
            let bytes = received.data();
            let Some(room) = packet.get_mut(..bytes.len()) else { continue };
            room.copy_from_slice(bytes);
            let on_air_us = PREAMBLE_US + BYTE_US * (bytes.len() as u64 + EXTRA_BYTES);
            self.state.rssi_dbm = i16::try_from(received.info.rx_control.rssi).ok();
            let begun = ended.checked_sub(Duration::from_micros(on_air_us)).unwrap_or(ended);
            return (bytes.len(), begun);
        }
    }

    fn radio_state(&self) -> Option<RadioState> {
        Some(self.state)
    }
}
