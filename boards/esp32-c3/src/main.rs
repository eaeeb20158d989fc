//! fabswarm on Espressif's ESP32-C3 and ESP32-C6: frames by ESP-NOW, everything else by the USB port of the chip.
#![no_std]
#![no_main]

/// Constants that the build script took from `board.toml`.
mod board {
    include!(concat!(env!("OUT_DIR"), "/board.rs"));
}
mod health;
mod page;
mod panic;
mod radio;

use embassy_executor::Spawner;
use esp_hal::{
    clock::CpuClock, efuse, rtc_cntl::Rtc, timer::timg::TimerGroup, usb::usb_serial_jtag::UsbSerialJtag,
};
use esp_radio::wifi::WifiController;
use esp_storage::FlashStorage;
use fabswarm_board_parts::{buffers, flash::BoardFlash};
use fabswarm_firmware::{
    Parts,
    link::{FragmentedLink, SerialLink, SplitLink},
    run,
    storage::BoardStorage,
};

/// The radio's driver takes its memory from here.
const HEAP_BYTES: usize = 72 * 1024;

/// Bytes that a host may send ahead: the port tells it to wait.
const WINDOW: u16 = 512;

esp_bootloader_esp_idf::esp_app_desc!();

#[esp_rtos::main]
async fn main(_spawner: Spawner) {
    let chip = esp_hal::init(esp_hal::Config::default().with_cpu_clock(CpuClock::max()));
    esp_alloc::heap_allocator!(size: HEAP_BYTES);
    esp_rtos::start(TimerGroup::new(chip.TIMG0).timer0, chip.FROM_CPU_INTR0);
    // Without its radio the board is of no use: it says so and starts again.
    let mut wifi = WifiController::new(chip.WIFI, Default::default()).expect("the radio does not start");
    let port = UsbSerialJtag::new(chip.USB_DEVICE).into_async();
    let mut flash = FlashStorage::new(chip.FLASH);
    let page = page::copy(&mut flash);
    run(Parts {
        board: board::NAME,
        chip: Some(number()),
        window: WINDOW,
        page,
        buffers: buffers(),
        link: SplitLink::new(
            FragmentedLink::<_, { radio::MTU }, { radio::SLOTS }>::new(radio::EspNowLink::new(&mut wifi)),
            SerialLink::new(port),
        ),
        storage: BoardStorage::new(BoardFlash::new(flash, 0, board::PAGE, board::STORAGE)),
        health: health::EspHealth::start(Rtc::new(chip.RTC_TIMER).rwdt),
        marks: None,
    })
    .await
}

/// The number of the chip: the address that its maker gave it.
fn number() -> u64 {
    efuse::base_mac_address().as_bytes().iter().fold(0, |number, &byte| number << 8 | u64::from(byte))
}
