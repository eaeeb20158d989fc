//! fabswarm on the Raspberry Pi Pico: everything by UART 0 (GPIO 0 and 1), or by USB with the feature `usb`.
#![no_std]
#![no_main]

#[cfg(not(feature = "usb"))]
mod uart;

use defmt_rtt as _;
use embassy_executor::Spawner;
#[cfg(feature = "usb")]
use fabswarm_chip_rp::usb;
use fabswarm_chip_rp::{
    flash::{self, FLASH_ADDRESS, QspiFlash},
    health,
};
use fabswarm_firmware::{link::SerialLink, run};
#[cfg(feature = "marks")]
use {
    core::cell::RefCell,
    embassy_rp::{
        Peri,
        gpio::{AnyPin, Level, Output},
    },
    fabswarm_firmware::{
        Parts,
        marks::{Mark, MarkedLink},
    },
};

fabswarm_board_parts::board!();
fabswarm_board_parts::keep_faults!(health::restart);

#[embassy_executor::main]
async fn main(_spawner: Spawner) {
    let pico = embassy_rp::init(Default::default());
    let mut flash = QspiFlash::<{ board::STORAGE.end - FLASH_ADDRESS }>::new_blocking(pico.FLASH);
    let chip = flash::number(&mut flash);
    #[cfg(not(feature = "usb"))]
    let (port, window) = (uart::start(pico.UART0, pico.PIN_0, pico.PIN_1), uart::WINDOW);
    #[cfg(feature = "usb")]
    let ((port, device), window) = (usb::start(pico.USB, board::NAME, chip), usb::WINDOW);
    let health = health::start(pico.WATCHDOG, pico.PIN_25);
    let link = SerialLink::new(port);
    #[cfg(feature = "marks")]
    let marks = {
        let pins: [Peri<'static, AnyPin>; 4] =
            [pico.PIN_2.into(), pico.PIN_3.into(), pico.PIN_4.into(), pico.PIN_5.into()];
        let pins = RefCell::new(pins.map(|pin| Output::new(pin, Level::Low)));
        move |mark: Mark| pins.borrow_mut()[mark as usize].toggle()
    };
    #[cfg(feature = "marks")]
    let mut link = link;
    #[cfg(feature = "marks")]
    let link = MarkedLink::new(&mut link, Some(&marks));
    let parts = board::parts(chip, window, link, flash, FLASH_ADDRESS, health);
    #[cfg(feature = "marks")]
    let parts = Parts { marks: Some(&marks), ..parts };
    let agent = run(parts);
    #[cfg(not(feature = "usb"))]
    agent.await;
    #[cfg(feature = "usb")]
    embassy_futures::join::join(device, agent).await;
}
