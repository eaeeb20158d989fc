//! fabswarm on Nordic's nRF52840 Dongle: frames by 802.15.4, everything else by USB.
#![no_std]
#![no_main]

use defmt_rtt as _;
use embassy_executor::Spawner;
use embassy_futures::join::join;
use embassy_nrf::{
    bind_interrupts,
    nvmc::Nvmc,
    peripherals,
    usb::{self, vbus_detect::HardwareVbusDetect},
};
use fabswarm_board_parts::{cdc_port, health::restart};
use fabswarm_chip_nrf52840::{chip, health, radio::RadioLink};

bind_interrupts!(struct Interrupts {
    USBD => usb::InterruptHandler<peripherals::USBD>;
    CLOCK_POWER => usb::vbus_detect::InterruptHandler;
});

fabswarm_board_parts::board!();
fabswarm_board_parts::keep_faults!(restart);

#[embassy_executor::main]
async fn main(_spawner: Spawner) {
    let nrf = chip::start();
    let id = Some(chip::id());
    let driver = usb::Driver::new(nrf.USBD, Interrupts, HardwareVbusDetect::new(Interrupts));
    let (port, device) = cdc_port::start(driver, board::NAME, id);
    let radio =
        RadioLink::new(nrf.RADIO, nrf.TIMER2, nrf.PPI_CH2, board::RADIO_CHANNEL, board::RADIO_POWER_DBM);
    let health = health::start(nrf.WDT, nrf.P0_06.into());
    let parts = board::parts(id, cdc_port::WINDOW, (), Nvmc::new(nrf.NVMC), 0, health);
    join(device, radio.run(port, parts)).await.1
}
