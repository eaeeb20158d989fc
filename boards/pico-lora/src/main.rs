//! fabswarm on the Raspberry Pi Pico with an SX1262: frames by LoRa, everything else by USB. Its drivers are those of the Pico.
#![no_std]
#![no_main]

/// Constants that the build script took from `board.toml`.
mod board {
    include!(concat!(env!("OUT_DIR"), "/board.rs"));
}
#[path = "../../pico/src/chip.rs"]
mod chip;
#[path = "../../pico/src/health.rs"]
mod health;
#[path = "../../lora.rs"]
mod lora;
#[path = "../../pico/src/qspi.rs"]
mod qspi;
mod radio;
#[path = "../../pico/src/usb.rs"]
mod usb;

use defmt_rtt as _;
use embassy_executor::Spawner;
use embassy_futures::join::join3;
use fabswarm_firmware::{
    Buffers, LINE, PACKET, Parts,
    link::{FragmentedLink, RadioQueue, SerialLink, SplitLink, keep_listening},
    run,
    storage::BoardStorage,
};
use static_cell::ConstStaticCell;

static BUFFERS: ConstStaticCell<Buffers> = ConstStaticCell::new(Buffers::new());

defmt::timestamp!("{=u64:us}", embassy_time::Instant::now().as_micros());

fabswarm_board_parts::keep_faults!(health::restart);

#[embassy_executor::main]
async fn main(_spawner: Spawner) {
    let pico = embassy_rp::init(Default::default());
    // Before the radio, which may not answer.
    let health = health::PicoHealth::start(pico.WATCHDOG, pico.PIN_25);
    let mut flash = qspi::flash(pico.FLASH);
    let chip = chip::id(&mut flash);
    let (port, device) = usb::start(pico.USB, chip);
    let radio = radio::RadioPins {
        spi: pico.SPI1,
        clock: pico.PIN_10,
        to_radio: pico.PIN_11,
        from_radio: pico.PIN_12,
        sending: pico.DMA_CH0,
        receiving: pico.DMA_CH1,
        select: pico.PIN_3,
        reset: pico.PIN_15,
        interrupt: pico.PIN_20,
        busy: pico.PIN_2,
    };
    let radio = lora::LoraLink::start(radio.start()).await;
    // Without its radio the board is of no use: it says so and starts again.
    let (mut radio, radio_queue) = (radio.expect("the radio does not start"), RadioQueue::new());
    let agent = run(Parts {
        board: board::NAME,
        chip,
        window: usb::WINDOW,
        page: board::page(),
        buffers: BUFFERS.take(),
        link: SplitLink::<_, _, PACKET>::new(
            FragmentedLink::<_, { lora::MTU }, PACKET, { lora::SLOTS }>::new(lora::LoraEnd::new(
                &radio_queue,
            )),
            SerialLink::<_, LINE>::new(port),
        ),
        storage: BoardStorage::new(flash),
        health,
    });
    join3(device, keep_listening(&mut radio, &radio_queue), agent).await.2
}
