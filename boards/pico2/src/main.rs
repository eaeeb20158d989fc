//! fabswarm on the Raspberry Pi Pico 2: everything by USB. Its drivers are those of the Pico.
#![no_std]
#![no_main]

/// Constants that the build script took from `board.toml`.
mod board {
    include!(concat!(env!("OUT_DIR"), "/board.rs"));
}
#[path = "../../pico/src/health.rs"]
mod health;
#[path = "../../pico/src/qspi.rs"]
mod qspi;
#[path = "../../pico/src/usb.rs"]
mod usb;

use defmt_rtt as _;
use embassy_executor::Spawner;
use embassy_futures::join::join;
use embassy_rp::otp;
use fabswarm_firmware::{Buffers, LINE, Parts, link::SerialLink, run, storage::BoardStorage};
use static_cell::ConstStaticCell;

static BUFFERS: ConstStaticCell<Buffers> = ConstStaticCell::new(Buffers::new());

defmt::timestamp!("{=u64:us}", embassy_time::Instant::now().as_micros());

fabswarm_board_parts::keep_faults!(health::restart);

#[embassy_executor::main]
async fn main(_spawner: Spawner) {
    let pico = embassy_rp::init(Default::default());
    // The number that the maker wrote into the chip.
    let chip = otp::get_chipid().ok();
    let (port, device) = usb::start(pico.USB, chip);
    let agent = run(Parts {
        board: board::NAME,
        chip,
        window: usb::WINDOW,
        page: board::page(),
        buffers: BUFFERS.take(),
        link: SerialLink::<_, LINE>::new(port),
        storage: BoardStorage::new(qspi::flash(pico.FLASH)),
        health: health::PicoHealth::start(pico.WATCHDOG, pico.PIN_25),
    });
    join(device, agent).await.1
}
