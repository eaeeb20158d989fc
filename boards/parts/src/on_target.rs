//! What a chip must do, for tests that run on it.

use crate::{NorFlash, flash::BoardFlash};
use embassy_time::{Duration, Instant, block_for};
use embedded_storage::nor_flash::ReadNorFlash;

/// Fails unless the last sector of the storage can be erased, written and read. A state that a board has saved there is lost.
pub fn check_flash(flash: &mut BoardFlash<impl NorFlash>) {
    let end = flash.capacity() as u32;
    let at = end - 4096;
    let (mut found, mut written) = ([0; 256], [0; 256]);
    written.iter_mut().enumerate().for_each(|(number, byte)| *byte = number as u8);
    assert!(flash.erase(at, end).is_ok(), "it cannot be erased");
    assert!(flash.read(at, &mut found).is_ok());
    assert_eq!(found, [0xFF; 256], "erased bytes are ones");
    assert!(flash.write(at, &written).is_ok(), "it cannot be written");
    assert!(flash.read(at, &mut found).is_ok());
    assert_eq!(found, written);
    assert!(flash.erase(at, end).is_ok());
}

/// Fails unless the clock goes on, never goes back, and waits as long as it is told to.
pub fn check_clock() {
    let begun = Instant::now();
    let mut last = begun;
    while last < begun + Duration::from_millis(50) {
        let now = Instant::now();
        assert!(now >= last, "the clock went back");
        last = now;
    }
    block_for(Duration::from_millis(20));
    let waited = last.elapsed();
    assert!((20..40).contains(&waited.as_millis()), "it waited {} us", waited.as_micros());
}
