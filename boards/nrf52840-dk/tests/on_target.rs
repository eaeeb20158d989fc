//! Tests that run on an nRF52840, through its debug probe: `cargo test --release`.
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
    use embassy_futures::{
        block_on,
        select::{Either, select},
        yield_now,
    };
    use embassy_nrf::{Peripherals, nvmc::Nvmc};
    use embassy_time::{Duration, Instant};
    use fabswarm_board_parts::{flash::BoardFlash, on_target};
    use fabswarm_chip_nrf52840::{chip, radio::RadioLink};
    use fabswarm_firmware::link::Link;

    #[init]
    fn init() -> Peripherals {
        chip::start()
    }

    #[test]
    fn flash_keeps_what_is_written(nrf: Peripherals) {
        on_target::check_flash(&mut BoardFlash::new(Nvmc::new(nrf.NVMC), 0, board::PAGE, board::STORAGE));
    }

    #[test]
    fn the_clock_goes_on(_nrf: Peripherals) {
        on_target::check_clock();
    }

    /// With no other board on the channel.
    #[test]
    fn the_radio_does_not_hear_itself(nrf: Peripherals) {
        let mut radio =
            RadioLink::new(nrf.RADIO, nrf.TIMER2, nrf.PPI_CH2, board::RADIO_CHANNEL, board::RADIO_POWER_DBM);
        block_on(async {
            assert!(radio.try_send_at(&[1, 2, 3], Instant::MIN).await, "the channel is busy");
            let mut packet = [0; 127];
            let until = Instant::now() + Duration::from_millis(200);
            // Timers are those of an executor, and none runs.
            let over = async {
                while Instant::now() < until {
                    yield_now().await;
                }
            };
            let heard = select(radio.receive(&mut packet), over).await;
            assert!(matches!(heard, Either::Second(())), "it heard a packet");
        });
    }
}
