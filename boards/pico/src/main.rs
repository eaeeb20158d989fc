//! fabswarm on the Raspberry Pi Pico: everything by UART 0 (GPIO 0 and 1), or by USB with the feature `usb`.
#![no_std]
#![no_main]

/// Constants that the build script took from `board.toml`.
mod board {
    include!(concat!(env!("OUT_DIR"), "/board.rs"));
}
mod chip;
mod health;
mod qspi;
#[cfg(not(feature = "usb"))]
mod uart;
#[cfg(feature = "usb")]
mod usb;

use defmt_rtt as _;
use embassy_executor::Spawner;
use fabswarm_firmware::{Buffers, LINE, Parts, link::SerialLink, run, storage::BoardStorage};
use static_cell::ConstStaticCell;

static BUFFERS: ConstStaticCell<Buffers> = ConstStaticCell::new(Buffers::new());

defmt::timestamp!("{=u64:us}", embassy_time::Instant::now().as_micros());

fabswarm_board_parts::keep_faults!(health::restart);

#[embassy_executor::main]
async fn main(_spawner: Spawner) {
    let pico = embassy_rp::init(Default::default());
    let mut flash = qspi::flash(pico.FLASH);
    let chip = chip::id(&mut flash);
    #[cfg(not(feature = "usb"))]
    let port = uart::start(pico.UART0, pico.PIN_0, pico.PIN_1);
    #[cfg(feature = "usb")]
    let (port, device) = usb::start(pico.USB, chip);
    let agent = run(Parts {
        board: board::NAME,
        chip,
        #[cfg(not(feature = "usb"))]
        window: uart::WINDOW,
        #[cfg(feature = "usb")]
        window: usb::WINDOW,
        page: board::page(),
        buffers: BUFFERS.take(),
        link: SerialLink::<_, LINE>::new(port),
        storage: BoardStorage::new(flash),
        health: health::PicoHealth::start(pico.WATCHDOG, pico.PIN_25),
    });
    #[cfg(not(feature = "usb"))]
    agent.await;
    #[cfg(feature = "usb")]
    embassy_futures::join::join(device, agent).await.1;
}
