//! LoRa as a packet link, by the chips of Semtech's SX126x family.

use crate::radio::run_by_radio;
use core::{cell::Cell, mem::MaybeUninit, ptr::addr_of_mut};
use embassy_sync::blocking_mutex::{Mutex, raw::CriticalSectionRawMutex};
use embassy_time::{Delay, Duration, Instant, Timer, with_timeout};
use embedded_hal_async::delay::DelayNs;
use embedded_hal_async::spi::{ErrorType, Operation, SpiBus, SpiDevice};
use embedded_io_async::{Read, Write};
use embedded_storage::nor_flash::NorFlash;
use fabswarm_firmware::{
    Parts,
    health::Health,
    link::{AirtimeLimit, Link, SendDelay, packets_of},
    packet::RadioState,
    storage::PageFlash,
};
pub use lora_modulation::{Bandwidth, BaseBandModulationParams, CodingRate, SpreadingFactor};
use lora_phy::{
    LoRa, RxMode,
    mod_params::{ModulationParams, PacketParams, RadioError},
    mod_traits::{InterfaceVariant, RadioKind},
};

/// Bytes of a packet.
const MTU: usize = 255;
/// Packets that wait to be sent: a frame, and news about members in front of it.
const SENT: usize = 2 * packets_of(MTU);

/// Symbols before a packet, as `fabswarm boards plan` counts them.
const PREAMBLE: u8 = 8;
/// How long a command may take, and a packet beyond its airtime.
const RADIO_TIMEOUT: Duration = Duration::from_secs(1);

/// The channel of a board, from its `board.toml`.
#[derive(Clone, Copy, Debug)]
pub struct LoraConfig {
    /// Spreading factor, bandwidth and code.
    pub chirps: BaseBandModulationParams,
    pub frequency_khz: u32,
    /// The share of an hour in which the radio may send.
    pub duty_per_mille: u16,
    pub power_dbm: i32,
}

impl LoraConfig {
    /// Time on the air of a packet.
    fn airtime(&self, bytes: usize) -> Duration {
        Duration::from_micros(self.chirps.time_on_air_us(Some(PREAMBLE), true, bytes as u8).into())
    }
}

/// Runs an agent whose frames go by LoRa, and everything else by the serial port `port`. Call once.
pub async fn run(
    radio: impl RadioKind,
    config: LoraConfig,
    port: impl Read + Write,
    parts: Parts<'_, (), impl NorFlash + PageFlash, impl Health>,
) -> ! {
    // Without its radio the board is of no use: it says so and starts again.
    let mut radio = LoraLink::start(radio, config).await.expect("the radio does not start");
    run_by_radio::<MTU, SENT>(&mut radio, port, parts).await
}

/// When the radio last had something to say, and whether somebody waits for that.
static INTERRUPT: Mutex<CriticalSectionRawMutex, Cell<(Instant, bool)>> =
    Mutex::new(Cell::new((Instant::MIN, false)));

/// The airtime of the last hour. A reset must not refill it.
#[unsafe(link_section = ".uninit.AIRTIME")]
static mut AIRTIME: MaybeUninit<AirtimeLimit> = MaybeUninit::uninit();

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
        note_interrupt();
        INTERRUPT.lock(|interrupt| interrupt.set((interrupt.get().0, false)));
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
struct LoraLink<R: RadioKind> {
    config: LoraConfig,
    lora: LoRa<R, Delay>,
    modulation: ModulationParams,
    sent: PacketParams,
    received: PacketParams,
    /// Whether the last command did not end: it failed, took too long, or was dropped.
    is_unsettled: bool,
    limit: &'static mut AirtimeLimit,
    send_delay: SendDelay,
    state: RadioState,
}

impl<R: RadioKind> LoraLink<R> {
    /// Starts the radio. Call once.
    async fn start(radio: R, config: LoraConfig) -> Result<Self, RadioError> {
        let LoraConfig { chirps, frequency_khz, duty_per_mille, .. } = config;
        let mut lora = in_time(RADIO_TIMEOUT, LoRa::new(radio, false, Delay)).await?;
        let modulation =
            lora.create_modulation_params(chirps.sf, chirps.bw, chirps.cr, 1000 * frequency_khz)?;
        let sent = lora.create_tx_packet_params(PREAMBLE.into(), false, true, false, &modulation)?;
        let received =
            lora.create_rx_packet_params(PREAMBLE.into(), false, MTU as u8, true, false, &modulation)?;
        // SAFETY: called once. Any bits are a valid limit, which checks them.
        let limit = unsafe { (*addr_of_mut!(AIRTIME)).assume_init_mut() };
        limit.resume(duty_per_mille);
        Ok(Self {
            config,
            lora,
            modulation,
            sent,
            received,
            is_unsettled: false,
            limit,
            send_delay: SendDelay::new(Duration::from_millis(2)),
            state: RadioState::default(),
        })
    }

    /// Sets the radio up again where its last command did not end: it may hang, or have lost its settings with its power. One that is
    /// only waited for is not disturbed.
    async fn settle(&mut self) -> Result<(), RadioError> {
        let was_waiting = forget_interrupt();
        if core::mem::replace(&mut self.is_unsettled, true) && !was_waiting {
            in_time(RADIO_TIMEOUT, self.lora.init()).await?;
        }
        Ok(())
    }

    async fn transmit(&mut self, packet: &[u8]) -> Result<(), RadioError> {
        let airtime = self.config.airtime(packet.len());
        let begun = Instant::now();
        self.settle().await?;
        let power_dbm = self.config.power_dbm;
        let prepared = self.lora.prepare_for_tx(&self.modulation, &mut self.sent, power_dbm, packet);
        in_time(RADIO_TIMEOUT, prepared).await?;
        in_time(airtime + RADIO_TIMEOUT, self.lora.tx()).await?;
        self.is_unsettled = false;
        let ended = INTERRUPT.lock(|interrupt| interrupt.get().0);
        self.send_delay.measure(begun, ended, airtime);
        Ok(())
    }

    async fn listen(&mut self, packet: &mut [u8]) -> Result<usize, RadioError> {
        self.settle().await?;
        let prepared = self.lora.prepare_for_rx(RxMode::Continuous, &self.modulation, &self.received);
        in_time(RADIO_TIMEOUT, prepared).await?;
        let outcome = self.lora.rx(&self.received, packet).await;
        // A damaged packet is no fault of the radio.
        self.is_unsettled = matches!(outcome, Err(RadioError::SPI | RadioError::Busy));
        let (length, status) = outcome?;
        self.state.rssi_dbm = Some(status.rssi);
        Ok(length.into())
    }
}

/// Notes that the radio has something to say now, unless that was noted before. Interrupts are earlier than tasks.
pub fn note_interrupt() {
    INTERRUPT.lock(|interrupt| {
        if let (Instant::MIN, is_awaited) = interrupt.get() {
            interrupt.set((Instant::now(), is_awaited));
        }
    });
}

/// Forgets what the radio said last. Returns whether that is still being waited for.
fn forget_interrupt() -> bool {
    INTERRUPT.lock(|interrupt| interrupt.replace((Instant::MIN, false)).1)
}

/// Waits for a command: a radio without power is busy for ever.
async fn in_time<T>(
    limit: Duration,
    command: impl Future<Output = Result<T, RadioError>>,
) -> Result<T, RadioError> {
    with_timeout(limit, command).await.unwrap_or_else(|_| {
        forget_interrupt();
        Err(RadioError::Busy)
    })
}

impl<R: RadioKind> Link for LoraLink<R> {
    async fn send(&mut self, packet: &[u8]) {
        if packet.len() > MTU || !self.limit.take(Instant::now(), self.config.airtime(packet.len())) {
            defmt::warn!("a packet is dropped: the law allows no more airtime in this hour");
            return;
        }
        if let Err(error) = self.transmit(packet).await {
            // A lost frame, as any other.
            defmt::warn!("the radio failed to send: {}", error);
        }
    }

    async fn receive(&mut self, packet: &mut [u8]) -> (usize, Instant) {
        loop {
            match self.listen(packet).await {
                Ok(length) => {
                    let ended = INTERRUPT.lock(|interrupt| interrupt.get().0);
                    return (length, self.send_delay.sent_at(ended, self.config.airtime(length)));
                }
                Err(error) => {
                    defmt::debug!("the radio failed to receive: {}", error);
                    Timer::after_millis(10).await;
                }
            }
        }
    }

    async fn restart(&mut self) {
        forget_interrupt();
        self.is_unsettled = true;
    }

    fn radio_state(&self) -> Option<RadioState> {
        Some(self.state)
    }
}
