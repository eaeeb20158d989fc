//! The message of a panic, kept over the reset that follows it in memory that only a loss of power clears.

use core::fmt::{self, Write};
use core::panic::PanicInfo;
use core::ptr::addr_of_mut;
use esp_hal::{ram, system};
use fabswarm_firmware::health::PANIC_BYTES;

/// Marks a message.
const MAGIC: u32 = 0x0FAB_DEAD;

#[ram(unstable(rtc_fast, persistent))]
static mut MARK: u32 = 0;
#[ram(unstable(rtc_fast, persistent))]
static mut LENGTH: u32 = 0;
#[ram(unstable(rtc_fast, persistent))]
static mut BYTES: [u8; PANIC_BYTES] = [0; PANIC_BYTES];

/// The message's place: its mark, its length and its bytes.
///
/// # Safety
/// Only the panic handler, which never returns, and [`take`], once at the start, may call it: there is one reference at a time.
unsafe fn place() -> (&'static mut u32, SavedPanic) {
    // SAFETY: as above; any bits are valid, and checked before they are used.
    unsafe {
        let (length, bytes) = (&mut *addr_of_mut!(LENGTH), &mut *addr_of_mut!(BYTES));
        (&mut *addr_of_mut!(MARK), SavedPanic { length, bytes })
    }
}

struct SavedPanic {
    length: &'static mut u32,
    bytes: &'static mut [u8; PANIC_BYTES],
}

/// Returns what the panic said that ended the last run, if one did. Call once.
pub fn take() -> Option<&'static str> {
    // SAFETY: called once. A panic later on overwrites the bytes, and nothing reads them after that.
    let (mark, message) = unsafe { place() };
    let is_there = core::mem::take(mark) == MAGIC;
    let bytes = message.bytes.get(..*message.length as usize).filter(|_| is_there)?;
    Some(core::str::from_utf8(bytes).unwrap_or("its message is damaged"))
}

#[panic_handler]
fn panic(info: &PanicInfo) -> ! {
    // SAFETY: nothing returns from here.
    let (mark, mut message) = unsafe { place() };
    *message.length = 0;
    // The end of a long message is cut off.
    let _ = write!(message, "{info}");
    *mark = MAGIC;
    system::software_reset()
}

impl Write for SavedPanic {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for character in text.chars() {
            let (from, to) = (*self.length as usize, *self.length as usize + character.len_utf8());
            let Some(room) = self.bytes.get_mut(from..to) else { return Err(fmt::Error) };
            character.encode_utf8(room);
            *self.length = to as u32;
        }
        Ok(())
    }
}
