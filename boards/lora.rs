//! LoRa as a packet link, by the chips of Semtech's SX126x family. Part of boards whose `[radio]` is of the kind `lora`.

use crate::board::{
    LORA_BANDWIDTH_KHZ, LORA_DUTY_PER_MILLE, LORA_FREQUENCY_KHZ, LORA_POWER_DBM, LORA_SPREADING,
};
use core::cell::Cell;
use embassy_sync::blocking_mutex::{Mutex, raw::CriticalSectionRawMutex};
use embassy_time::{Delay, Duration, Instant, Timer, with_timeout};
use embedded_hal_async::delay::DelayNs;
use embedded_hal_async::spi::{ErrorType, Operation, SpiBus, SpiDevice};
use fabswarm_firmware::{
    PACKET,
    link::{AirtimeLimit, Link, ListeningLink, packets_of},
};
use lora_modulation::BaseBandModulationParams;
use lora_phy::{
    LoRa, RxMode,
    mod_params::{Bandwidth, CodingRate, ModulationParams, PacketParams, RadioError, SpreadingFactor},
    mod_traits::{InterfaceVariant, RadioKind},
};

/// Bytes of a packet.
pub const MTU: usize = 255;
/// Frames on their way in at once: four for each of two neighbours that send at the same time.
pub const SLOTS: usize = 8;
/// Packets that wait to be sent: a frame, and news about members in front of it.
const SENT: usize = 2 * packets_of(PACKET, MTU);

/// What the board has of the radio, which listens meanwhile.
pub type BoardEnd<'a> = ListeningLink<'a, MTU, SENT>;

/// Symbols before a packet, as `fabswarm boards plan` counts them.
const PREAMBLE: u8 = 8;
/// How long a packet may take beyond its airtime.
const PATIENCE: Duration = Duration::from_secs(1);

const CHIRPS: BaseBandModulationParams = BaseBandModulationParams::new(
    match LORA_SPREADING {
        7 => SpreadingFactor::_7,
        8 => SpreadingFactor::_8,
        9 => SpreadingFactor::_9,
        10 => SpreadingFactor::_10,
        11 => SpreadingFactor::_11,
        12 => SpreadingFactor::_12,
        _ => panic!("[radio] spreading must be 7 to 12"),
    },
    match LORA_BANDWIDTH_KHZ {
        125 => Bandwidth::_125KHz,
        250 => Bandwidth::_250KHz,
        500 => Bandwidth::_500KHz,
        _ => panic!("[radio] bandwidth_khz must be 125, 250 or 500"),
    },
    CodingRate::_4_5,
);

/// When the radio last had something to say, and whether somebody waits for that.
static INTERRUPT: Mutex<CriticalSectionRawMutex, Cell<(Instant, bool)>> =
    Mutex::new(Cell::new((Instant::MIN, false)));

/// The pins of a radio. Notes when it interrupts: reading a packet takes longer than its time may be off.
pub struct TimedPins<P>(pub P);

impl<P: InterfaceVariant> InterfaceVariant for TimedPins<P> {
    async fn reset(&mut self, delay: &mut impl DelayNs) -> Result<(), RadioError> {
        self.0.reset(delay).await
    }

    async fn wait_on_busy(&mut self) -> Result<(), RadioError> {
        self.0.wait_on_busy().await
    }

    async fn await_irq(&mut self) -> Result<(), RadioError> {
        INTERRUPT.lock(|interrupt| interrupt.set((Instant::MIN, true)));
        self.0.await_irq().await?;
        INTERRUPT.lock(|interrupt| interrupt.set((Instant::now(), false)));
        Ok(())
    }

    async fn enable_rf_switch_rx(&mut self) -> Result<(), RadioError> {
        self.0.enable_rf_switch_rx().await
    }

    async fn enable_rf_switch_tx(&mut self) -> Result<(), RadioError> {
        self.0.enable_rf_switch_tx().await
    }

    async fn disable_rf_switch(&mut self) -> Result<(), RadioError> {
        self.0.disable_rf_switch().await
    }
}

/// The bus to the radio alone. `select` lowers the line that selects it, or raises it.
pub struct RadioBus<B, S> {
    pub bus: B,
    pub select: S,
}

impl<B: SpiBus, S> ErrorType for RadioBus<B, S> {
    type Error = B::Error;
}

impl<B: SpiBus, S: FnMut(bool)> SpiDevice for RadioBus<B, S> {
    async fn transaction(&mut self, operations: &mut [Operation<'_, u8>]) -> Result<(), B::Error> {
        // One that was dropped has left the radio selected.
        (self.select)(false);
        (self.select)(true);
        let outcome = async {
            for operation in operations {
                match operation {
                    Operation::Read(bytes) => self.bus.read(bytes).await?,
                    Operation::Write(bytes) => self.bus.write(bytes).await?,
                    Operation::Transfer(read, write) => self.bus.transfer(read, write).await?,
                    Operation::TransferInPlace(bytes) => self.bus.transfer_in_place(bytes).await?,
                    Operation::DelayNs(ns) => Timer::after_nanos((*ns).into()).await,
                }
            }
            self.bus.flush().await
        };
        let outcome = outcome.await;
        (self.select)(false);
        outcome
    }
}

/// The radio on one channel.
pub struct LoraLink<R: RadioKind> {
    lora: LoRa<R, Delay>,
    modulation: ModulationParams,
    sent: PacketParams,
    received: PacketParams,
    /// Whether a packet was being waited for, or read.
    is_receiving: bool,
    limit: AirtimeLimit,
    /// When the last packet was to be sent, by its sender's clock.
    arrived: Instant,
    /// From the call that sends a packet to its first bit: measured on our own packets, as all boards of a kind take the same time.
    send_delay: Duration,
}

impl<R: RadioKind> LoraLink<R> {
    /// Starts the radio.
    pub async fn start(radio: R) -> Result<Self, RadioError> {
        let mut lora = LoRa::new(radio, false, Delay).await?;
        let modulation =
            lora.create_modulation_params(CHIRPS.sf, CHIRPS.bw, CHIRPS.cr, 1000 * LORA_FREQUENCY_KHZ)?;
        let sent = lora.create_tx_packet_params(PREAMBLE.into(), false, true, false, &modulation)?;
        let received =
            lora.create_rx_packet_params(PREAMBLE.into(), false, MTU as u8, true, false, &modulation)?;
        Ok(Self {
            lora,
            modulation,
            sent,
            received,
            is_receiving: false,
            limit: AirtimeLimit::new(LORA_DUTY_PER_MILLE),
            arrived: Instant::MIN,
            send_delay: Duration::from_millis(2),
        })
    }

    /// Leaves what was going on. A radio that is interrupted while it is read may hang; one that is waited for is not disturbed.
    async fn settle(&mut self) -> Result<(), RadioError> {
        let is_waiting = INTERRUPT.lock(|interrupt| interrupt.get().1);
        if core::mem::take(&mut self.is_receiving) && !is_waiting {
            self.lora.init().await?;
        }
        Ok(())
    }

    async fn transmit(&mut self, packet: &[u8]) -> Result<(), RadioError> {
        let airtime = airtime(packet.len());
        let begun = Instant::now();
        self.settle().await?;
        self.lora.prepare_for_tx(&self.modulation, &mut self.sent, LORA_POWER_DBM, packet).await?;
        let Ok(outcome) = with_timeout(airtime + PATIENCE, self.lora.tx()).await else {
            return self.lora.init().await;
        };
        outcome?;
        let ended = INTERRUPT.lock(|interrupt| interrupt.get().0);
        self.send_delay = ended.checked_duration_since(begun + airtime).unwrap_or(self.send_delay);
        Ok(())
    }

    async fn listen(&mut self, packet: &mut [u8]) -> Result<usize, RadioError> {
        self.settle().await?;
        self.lora.prepare_for_rx(RxMode::Continuous, &self.modulation, &self.received).await?;
        self.is_receiving = true;
        let outcome = self.lora.rx(&self.received, packet).await;
        self.is_receiving = false;
        Ok(outcome?.0.into())
    }
}

/// Time on the air of a packet.
fn airtime(bytes: usize) -> Duration {
    Duration::from_micros(CHIRPS.time_on_air_us(Some(PREAMBLE), true, bytes as u8).into())
}

impl<R: RadioKind> Link for LoraLink<R> {
    async fn send(&mut self, packet: &[u8]) {
        if packet.len() > MTU || !self.limit.take(Instant::now(), airtime(packet.len())) {
            defmt::warn!("a packet is dropped: the law allows no more airtime in this hour");
            return;
        }
        if let Err(error) = self.transmit(packet).await {
            // A lost frame, as any other.
            defmt::warn!("the radio failed to send: {}", error);
        }
    }

    async fn receive(&mut self, packet: &mut [u8]) -> usize {
        loop {
            match self.listen(packet).await {
                Ok(length) => {
                    let ended = INTERRUPT.lock(|interrupt| interrupt.get().0);
                    let took = airtime(length) + self.send_delay;
                    self.arrived = ended.checked_sub(took).unwrap_or(ended);
                    return length;
                }
                Err(error) => {
                    defmt::debug!("the radio failed to receive: {}", error);
                    Timer::after_millis(10).await;
                }
            }
        }
    }

    fn arrived(&self) -> Option<Instant> {
        Some(self.arrived)
    }
}
