//! Tests that run on an RP2040, through a debug probe: `cargo test --release`.
#![no_std]
#![no_main]
#![allow(unexpected_cfgs, reason = "of the macro of the tests")]

use defmt_rtt as _;

#[allow(dead_code, reason = "tests need a few of the constants")]
mod board {
    include!(concat!(env!("OUT_DIR"), "/board.rs"));
}

#[embedded_test::tests]
mod tests {
    use super::board;
    use embassy_rp::Peripherals;
    use fabswarm_board_parts::{flash::BoardFlash, on_target};
    use fabswarm_chip_rp::flash::{self, FLASH_ADDRESS, QspiFlash};

    #[init]
    fn init() -> Peripherals {
        embassy_rp::init(Default::default())
    }

    #[test]
    fn flash_keeps_what_is_written(pico: Peripherals) {
        let mut driver = QspiFlash::<{ board::STORAGE.end - FLASH_ADDRESS }>::new_blocking(pico.FLASH);
        assert!(flash::number(&mut driver).is_some(), "the flash chip has no number");
        on_target::check_flash(&mut BoardFlash::new(driver, FLASH_ADDRESS, board::PAGE, board::STORAGE));
    }

    #[test]
    fn the_clock_goes_on(_pico: Peripherals) {
        on_target::check_clock();
    }
}
