//! An agent on boards with an STM32WL: frames by its radio, everything else by a UART.

use crate::{board, chip, ecc_flash::EccFlash, health::WlHealth, lora};
use embassy_futures::join::join;
use embassy_stm32::{
    Peri,
    flash::{FLASH_BASE, Flash},
    peripherals,
    usart::{self, BufferedUart},
};
use fabswarm_board_parts::flash::BoardFlash;
use fabswarm_firmware::{
    Buffers, LINE, PACKET, Parts,
    link::{FragmentedLink, RadioQueue, SerialLink, SplitLink, keep_listening},
    storage::BoardStorage,
};
use lora_phy::mod_traits::RadioKind;
use static_cell::ConstStaticCell;

/// Bytes that the UART buffers.
pub const WINDOW: usize = 256;

static BUFFERS: ConstStaticCell<Buffers> = ConstStaticCell::new(Buffers::new());

/// The settings of the UART.
pub fn uart_config() -> usart::Config {
    let mut config = usart::Config::default();
    config.baudrate = board::BAUD;
    config
}

/// Runs the agent of the board's page. Call once.
pub async fn run(
    health: WlHealth,
    port: Result<BufferedUart<'_>, usart::ConfigError>,
    radio: impl RadioKind,
    flash: Peri<'static, peripherals::FLASH>,
) -> ! {
    let port = port.expect("the baud rate is one of this clock");
    // Without its radio the board is of no use: it says so and starts again.
    let mut radio = lora::LoraLink::start(radio).await.expect("the radio does not start");
    let radio_queue = RadioQueue::new();
    let agent = fabswarm_firmware::run(Parts {
        board: board::NAME,
        chip: Some(chip::id()),
        window: WINDOW as u16,
        page: board::page(),
        buffers: BUFFERS.take(),
        link: SplitLink::<_, _, PACKET>::new(
            FragmentedLink::<_, { lora::MTU }, PACKET, { lora::SLOTS }>::new(lora::LoraEnd::new(
                &radio_queue,
            )),
            SerialLink::<_, LINE>::new(port),
        ),
        storage: BoardStorage::new(BoardFlash::new(
            EccFlash(Flash::new_blocking(flash)),
            FLASH_BASE,
            board::PAGE,
            board::STORAGE,
        )),
        health,
    });
    join(keep_listening(&mut radio, &radio_queue), agent).await.1
}
