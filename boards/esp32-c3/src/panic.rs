//! The message of a panic, kept over the reset that follows it in memory that only a loss of power clears.

use core::panic::PanicInfo;
use core::ptr::addr_of_mut;
use esp_hal::{ram, system};
use fabswarm_board_parts::panic::PanicMessage;

const WORDS: usize = size_of::<PanicMessage>() / size_of::<u32>();

#[ram(unstable(rtc_fast, persistent))]
static mut PLACE: [u32; WORDS] = [0; WORDS];

/// The message's place.
///
/// # Safety
/// Only the panic handler, which never returns, and [`take`], once at the start, may call it: there is one reference at a time.
unsafe fn place() -> &'static mut PanicMessage {
    // SAFETY: as above; the message consists of words and takes any bits.
    unsafe { &mut *addr_of_mut!(PLACE).cast() }
}

/// Returns what the panic said that ended the last run, if one did. Call once.
pub fn take() -> Option<&'static str> {
    // SAFETY: called once. A panic later on overwrites the bytes, and nothing reads them after that.
    unsafe { place() }.take()
}

#[panic_handler]
fn panic(info: &PanicInfo) -> ! {
    // SAFETY: nothing returns from here.
    unsafe { place() }.keep(format_args!("{info}"));
    system::software_reset()
}
