//! fabswarm on Nordic's nRF52840 DK: frames by 802.15.4, everything else by the UART of the debugger's USB port.
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
mod radio;

use defmt_rtt as _;
use embassy_executor::Spawner;
use embassy_futures::join::join;
use embassy_nrf::{
    bind_interrupts,
    buffered_uarte::{self, BufferedUarte},
    nvmc::Nvmc,
    peripherals,
    radio::{self as nrf_radio, ieee802154::Radio},
    uarte::{self, Baudrate},
};
use fabswarm_board_parts::flash::BoardFlash;
use fabswarm_firmware::{
    Buffers, LINE, PACKET, Parts,
    link::{FragmentedLink, RadioQueue, SerialLink, SplitLink, keep_listening},
    run,
    storage::BoardStorage,
};
use static_cell::ConstStaticCell;

/// Bytes that the UART buffers.
const WINDOW: usize = 256;

const BAUDRATE: Baudrate = match board::BAUD {
    115_200 => Baudrate::Baud115200,
    921_600 => Baudrate::Baud921600,
    _ => panic!("[serial] baud must be 115200 or 921600"),
};

static BUFFERS: ConstStaticCell<Buffers> = ConstStaticCell::new(Buffers::new());

bind_interrupts!(struct Interrupts {
    RADIO => nrf_radio::InterruptHandler<peripherals::RADIO>;
    UARTE0 => buffered_uarte::InterruptHandler<peripherals::UARTE0>;
});

fabswarm_board_parts::keep_faults!(health::restart);

#[embassy_executor::main]
async fn main(_spawner: Spawner) {
    let chip = chip::start();
    let radio = Radio::new(chip.RADIO, Interrupts);
    let (mut radio, radio_queue) =
        (radio::RadioLink::new(radio, chip.TIMER2, chip.PPI_CH2), RadioQueue::new());
    let (mut receiving, mut sending) = ([0; WINDOW], [0; 256]);
    let mut config = uarte::Config::default();
    config.baudrate = BAUDRATE;
    let port = BufferedUarte::new(
        chip.UARTE0,
        chip.TIMER1,
        chip.PPI_CH0,
        chip.PPI_CH1,
        chip.PPI_GROUP0,
        chip.P0_08,
        chip.P0_06,
        Interrupts,
        config,
        &mut receiving,
        &mut sending,
    );
    let agent = run(Parts {
        board: board::NAME,
        chip: Some(chip::id()),
        window: WINDOW as u16,
        page: board::page(),
        buffers: BUFFERS.take(),
        link: SplitLink::<_, _, PACKET>::new(
            FragmentedLink::<_, { radio::MTU }, PACKET, { radio::SLOTS }>::new(radio::BoardEnd::new(
                &radio_queue,
            )),
            SerialLink::<_, LINE>::new(port),
        ),
        storage: BoardStorage::new(BoardFlash::new(Nvmc::new(chip.NVMC), 0, board::PAGE, board::STORAGE)),
        health: health::ChipHealth::start(chip.WDT, chip.P0_13.into()),
    });
    join(keep_listening(&mut radio, &radio_queue), agent).await.1
}
