//! The radio of the STM32WL: an SX126x behind an internal bus, and the board's antenna switch.

use crate::lora::{RadioBus, TimedPins, note_interrupt};
use cortex_m::peripheral::NVIC;
use embassy_stm32::{
    Peri,
    gpio::{AnyPin, Level, Output, Speed},
    interrupt, mode, pac, peripherals,
    spi::{Spi, mode::Master},
};
use embassy_sync::{blocking_mutex::raw::CriticalSectionRawMutex, signal::Signal};
use embassy_time::{Duration, Instant};
use embedded_hal_async::delay::DelayNs;
use lora_phy::{
    mod_params::RadioError,
    mod_traits::InterfaceVariant,
    sx126x::{Config, Stm32wl, Sx126x, TcxoCtrlVoltage},
};

/// The longest that a radio in order is busy: it calibrates itself in a few milliseconds.
const BUSY_FOR: Duration = Duration::from_millis(50);

static INTERRUPTED: Signal<CriticalSectionRawMutex, ()> = Signal::new();

/// The radio has something to say.
pub struct InterruptHandler;

impl interrupt::typelevel::Handler<interrupt::typelevel::SUBGHZ_RADIO> for InterruptHandler {
    unsafe fn on_interrupt() {
        note_interrupt();
        // It stays raised until the radio was asked: whoever waits next lets it through again.
        NVIC::mask(pac::Interrupt::SUBGHZ_RADIO);
        INTERRUPTED.signal(());
    }
}

/// The radio's registers and the pins of the antenna switch.
pub struct SwitchedRadio {
    receiving: Output<'static>,
    sending: Output<'static>,
}

impl SwitchedRadio {
    fn switch(&mut self, is_receiving: bool, is_sending: bool) -> Result<(), RadioError> {
        self.receiving.set_level(is_receiving.into());
        self.sending.set_level(is_sending.into());
        Ok(())
    }
}

impl InterfaceVariant for SwitchedRadio {
    async fn reset(&mut self, _: &mut impl DelayNs) -> Result<(), RadioError> {
        pac::RCC.csr().modify(|control| control.set_rfrst(true));
        pac::RCC.csr().modify(|control| control.set_rfrst(false));
        Ok(())
    }

    async fn wait_on_busy(&mut self) -> Result<(), RadioError> {
        // Some hundred microseconds; there is no interrupt for it.
        let begun = Instant::now();
        while pac::PWR.sr2().read().rfbusys() {
            if begun.elapsed() > BUSY_FOR {
                return Err(RadioError::Busy);
            }
        }
        Ok(())
    }

    async fn await_irq(&mut self) -> Result<(), RadioError> {
        INTERRUPTED.reset();
        // SAFETY: its handler only masks it again and wakes this task.
        unsafe { NVIC::unmask(pac::Interrupt::SUBGHZ_RADIO) };
        INTERRUPTED.wait().await;
        Ok(())
    }

    async fn enable_rf_switch_rx(&mut self) -> Result<(), RadioError> {
        self.switch(true, false)
    }

    async fn enable_rf_switch_tx(&mut self) -> Result<(), RadioError> {
        self.switch(false, true)
    }

    async fn disable_rf_switch(&mut self) -> Result<(), RadioError> {
        self.switch(false, false)
    }
}

type Bus = RadioBus<Spi<'static, mode::Async, Master>, fn(bool)>;

/// The bus to the radio, which is selected by a register.
pub fn bus(
    spi: Peri<'static, peripherals::SUBGHZSPI>,
    sending: Peri<'static, peripherals::DMA1_CH1>,
    receiving: Peri<'static, peripherals::DMA1_CH2>,
    interrupts: crate::Interrupts,
) -> Bus {
    let select = |is_selected: bool| pac::PWR.subghzspicr().modify(|control| control.set_nss(!is_selected));
    RadioBus { bus: Spi::new_subghz(spi, sending, receiving, interrupts), select }
}

/// The radio behind its bus and an antenna switch with a pin for each direction.
pub fn start(
    bus: Bus,
    receiving: Peri<'static, AnyPin>,
    sending: Peri<'static, AnyPin>,
) -> Sx126x<Bus, TimedPins<SwitchedRadio>, Stm32wl> {
    let config = Config {
        chip: Stm32wl { use_high_power_pa: true },
        tcxo_ctrl: Some(TcxoCtrlVoltage::Ctrl1V7),
        use_dcdc: true,
        rx_boost: false,
    };
    let pins = SwitchedRadio {
        receiving: Output::new(receiving, Level::Low, Speed::Low),
        sending: Output::new(sending, Level::Low, Speed::Low),
    };
    Sx126x::new(bus, TimedPins(pins), config)
}
