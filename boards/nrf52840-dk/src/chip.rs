//! How the chip is set up on boards with Nordic's reference design, and its number.

use embassy_nrf::{
    config::{Config, HfclkSource, LfclkSource},
    pac,
};

/// Both crystals and the DC/DC converter.
pub fn config() -> Config {
    let mut config = Config::default();
    // The radio stays silent on the internal oscillator.
    config.hfclk_source = HfclkSource::ExternalXtal;
    // The clock that rounds are counted by: the internal oscillator is off by 250 ppm and more, the crystal by 20.
    config.lfclk_source = LfclkSource::ExternalXtal;
    // The inductors are there; without them in use the radio takes twice the current.
    config.dcdc.reg1 = true;
    config
}

/// The number that the maker gave this chip.
pub fn id() -> u64 {
    let [low, high] = [0, 1].map(|word| u64::from(pac::FICR.deviceid(word).read()));
    high << 32 | low
}
