//! The radio of the STM32WL: an SX126x behind an internal bus, and the board's antenna switch.

use cortex_m::peripheral::NVIC;
use embassy_stm32::{
    Peri, bind_interrupts, dma,
    gpio::{AnyPin, Level, Output, Speed},
    interrupt, pac,
    peripherals::{DMA1_CH1, DMA1_CH2, SUBGHZSPI},
    spi::Spi,
};
use embassy_sync::{blocking_mutex::raw::CriticalSectionRawMutex, signal::Signal};
use embassy_time::{Duration, Instant};
use embedded_hal_async::delay::DelayNs;
use fabswarm_board_parts::lora::{RadioBus, TimedPins, note_interrupt};
use lora_phy::{
    mod_params::RadioError,
    mod_traits::{InterfaceVariant, RadioKind},
    sx126x::{Config, Stm32wl, Sx126x, TcxoCtrlVoltage},
};

/// The longest that a radio in order is busy: it calibrates itself in a few milliseconds.
const BUSY_FOR: Duration = Duration::from_millis(50);

bind_interrupts!(struct Interrupts {
    DMA1_CHANNEL1 => dma::InterruptHandler<DMA1_CH1>;
    DMA1_CHANNEL2 => dma::InterruptHandler<DMA1_CH2>;
    SUBGHZ_RADIO => InterruptHandler;
});

static INTERRUPTED: Signal<CriticalSectionRawMutex, ()> = Signal::new();

/// The radio has something to say.
struct InterruptHandler;

impl interrupt::typelevel::Handler<interrupt::typelevel::SUBGHZ_RADIO> for InterruptHandler {
    unsafe fn on_interrupt() {
        note_interrupt();
        // It stays raised until the radio was asked: the next wait lets it through again.
        NVIC::mask(pac::Interrupt::SUBGHZ_RADIO);
        INTERRUPTED.signal(());
    }
}

/// The radio's registers and the pins of the antenna switch.
struct SwitchedRadio {
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

/// The radio behind its bus, and an antenna switch with a pin for each direction.
pub fn start(
    spi: Peri<'static, SUBGHZSPI>,
    to_radio: Peri<'static, DMA1_CH1>,
    from_radio: Peri<'static, DMA1_CH2>,
    receiving: Peri<'static, AnyPin>,
    sending: Peri<'static, AnyPin>,
) -> impl RadioKind {
    // A register selects the radio.
    let select = |is_selected: bool| pac::PWR.subghzspicr().modify(|control| control.set_nss(!is_selected));
    let bus = RadioBus { bus: Spi::new_subghz(spi, to_radio, from_radio, Interrupts), select };
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
