//! fabswarm on Nordic's nRF52840 Dongle: frames by 802.15.4, everything else by USB. Its radio and watchdog are those of the
//! DK.
#![no_std]
#![no_main]

/// Constants that the build script took from `board.toml`.
mod board {
    include!(concat!(env!("OUT_DIR"), "/board.rs"));
}
#[path = "../../template/src/chip.rs"]
mod chip;
#[path = "../../template/src/health.rs"]
mod health;
#[path = "../../nrf52840-dk/src/radio.rs"]
mod radio;

use defmt_rtt as _;
use embassy_executor::Spawner;
use embassy_futures::join::join3;
use embassy_nrf::{
    bind_interrupts,
    nvmc::Nvmc,
    peripherals,
    radio::{self as nrf_radio, ieee802154::Radio},
    usb::{self, vbus_detect::HardwareVbusDetect},
};
use fabswarm_board_parts::{cdc_port, flash::BoardFlash};
use fabswarm_firmware::{
    Buffers, LINE, PACKET, Parts,
    link::{FragmentedLink, RadioQueue, SerialLink, SplitLink, keep_listening},
    run,
    storage::BoardStorage,
};
use static_cell::ConstStaticCell;

static BUFFERS: ConstStaticCell<Buffers> = ConstStaticCell::new(Buffers::new());

bind_interrupts!(struct Interrupts {
    RADIO => nrf_radio::InterruptHandler<peripherals::RADIO>;
    USBD => usb::InterruptHandler<peripherals::USBD>;
    CLOCK_POWER => usb::vbus_detect::InterruptHandler;
});

fabswarm_board_parts::keep_faults!(health::restart);

#[embassy_executor::main]
async fn main(_spawner: Spawner) {
    let chip = chip::start();
    let id = Some(chip::id());
    let driver = usb::Driver::new(chip.USBD, Interrupts, HardwareVbusDetect::new(Interrupts));
    let (port, device) = cdc_port::start(driver, board::NAME, id);
    let radio = Radio::new(chip.RADIO, Interrupts);
    let (mut radio, radio_queue) =
        (radio::RadioLink::new(radio, chip.TIMER2, chip.PPI_CH2), RadioQueue::new());
    let agent = run(Parts {
        board: board::NAME,
        chip: id,
        window: cdc_port::WINDOW,
        page: board::page(),
        buffers: BUFFERS.take(),
        link: SplitLink::<_, _, PACKET>::new(
            FragmentedLink::<_, { radio::MTU }, PACKET, { radio::SLOTS }>::new(radio::BoardEnd::new(
                &radio_queue,
            )),
            SerialLink::<_, LINE>::new(port),
        ),
        storage: BoardStorage::new(BoardFlash::new(Nvmc::new(chip.NVMC), 0, board::PAGE, board::STORAGE)),
        health: health::ChipHealth::start(chip.WDT, chip.P0_06.into()),
    });
    join3(device, keep_listening(&mut radio, &radio_queue), agent).await.2
}
