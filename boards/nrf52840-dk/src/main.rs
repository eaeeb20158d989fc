//! fabswarm on Nordic's nRF52840 DK: frames by 802.15.4, everything else by the UART of the debugger's USB port.
#![no_std]
#![no_main]

use defmt_rtt as _;
use embassy_executor::Spawner;
use embassy_nrf::{
    bind_interrupts,
    buffered_uarte::{self, BufferedUarte},
    nvmc::Nvmc,
    peripherals,
    uarte::{self, Baudrate},
};
use fabswarm_board_parts::health::restart;
use fabswarm_chip_nrf52840::{chip, health, radio::RadioLink};
#[cfg(feature = "marks")]
use {
    core::cell::RefCell,
    embassy_nrf::{
        Peri,
        gpio::{AnyPin, Level, Output, OutputDrive},
    },
    fabswarm_firmware::{Parts, marks::Mark},
};

/// Bytes that the UART buffers.
const WINDOW: usize = 256;

const BAUDRATE: Baudrate = match board::BAUD {
    115_200 => Baudrate::Baud115200,
    921_600 => Baudrate::Baud921600,
    _ => panic!("[serial] baud must be 115200 or 921600"),
};

bind_interrupts!(struct Interrupts {
    UARTE0 => buffered_uarte::InterruptHandler<peripherals::UARTE0>;
});

fabswarm_board_parts::board!();
fabswarm_board_parts::keep_faults!(restart);

#[embassy_executor::main]
async fn main(_spawner: Spawner) {
    let nrf = chip::start();
    let radio =
        RadioLink::new(nrf.RADIO, nrf.TIMER2, nrf.PPI_CH2, board::RADIO_CHANNEL, board::RADIO_POWER_DBM);
    let (mut receiving, mut sending) = ([0; WINDOW], [0; 256]);
    let mut config = uarte::Config::default();
    config.baudrate = BAUDRATE;
    let port = BufferedUarte::new(
        nrf.UARTE0,
        nrf.TIMER1,
        nrf.PPI_CH0,
        nrf.PPI_CH1,
        nrf.PPI_GROUP0,
        nrf.P0_08,
        nrf.P0_06,
        Interrupts,
        config,
        &mut receiving,
        &mut sending,
    );
    let health = health::start(nrf.WDT, nrf.P0_13.into());
    let parts = board::parts(Some(chip::id()), WINDOW as u16, (), Nvmc::new(nrf.NVMC), 0, health);
    #[cfg(feature = "marks")]
    let marks = {
        let pins: [Peri<'static, AnyPin>; 4] =
            [nrf.P1_01.into(), nrf.P1_02.into(), nrf.P1_03.into(), nrf.P1_04.into()];
        let pins = RefCell::new(pins.map(|pin| Output::new(pin, Level::Low, OutputDrive::Standard)));
        move |mark: Mark| pins.borrow_mut()[mark as usize].toggle()
    };
    #[cfg(feature = "marks")]
    let parts = Parts { marks: Some(&marks), ..parts };
    radio.run(port, parts).await
}
