//! How the chip is set up on boards with Nordic's reference design, and its number.

use embassy_nrf::{
    Peripherals,
    config::{Config, HfclkSource, LfclkSource},
    pac::{self, power::vals::Threshold},
};

/// Starts both crystals and the DC/DC converter, and keeps the flash from being written when the power fails.
pub fn start() -> Peripherals {
    let mut config = Config::default();
    // The radio stays silent on the internal oscillator.
    config.hfclk_source = HfclkSource::ExternalXtal;
    // The clock that rounds are counted by: the internal oscillator is off by 250 ppm and more, the crystal by 20.
    config.lfclk_source = LfclkSource::ExternalXtal;
    // The inductors are there; without them in use the radio takes twice the current.
    config.dcdc.reg1 = true;
    // Below this voltage the chip refuses to write its flash: half-written words would look like whole ones. The lowest above the
    // brown-out reset, as some boards run on 1.8 V.
    pac::POWER.pofcon().write(|power_fail| {
        power_fail.set_threshold(Threshold::V17);
        power_fail.set_pof(true);
    });
    embassy_nrf::init(config)
}

/// The number that the maker gave this chip.
pub fn id() -> u64 {
    let [low, high] = [0, 1].map(|word| u64::from(pac::FICR.deviceid(word).read()));
    high << 32 | low
}
