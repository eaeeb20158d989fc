//! What a panic said, kept in RAM over the reset that follows it.

use core::fmt::{self, Write};
use core::mem::MaybeUninit;
use core::panic::PanicInfo;
use core::ptr::addr_of_mut;
use embassy_nrf::pac;

/// Marks a message: RAM holds anything after a power cut.
const MAGIC: u32 = 0x0FAB_DEAD;
const ROOM: usize = 192;

/// The message of the last panic.
struct PanicMessage {
    magic: u32,
    length: usize,
    bytes: [u8; ROOM],
}

#[unsafe(link_section = ".uninit.PANIC_MESSAGE")]
static mut PANIC_MESSAGE: MaybeUninit<PanicMessage> = MaybeUninit::uninit();

/// The message's place.
///
/// # Safety
/// Only the panic handler, which never returns, and [`report`], once at the start, may call it: there is one reference at a time.
unsafe fn place() -> &'static mut PanicMessage {
    // SAFETY: any bits are a valid message; its fields are checked before they are used.
    unsafe { (*addr_of_mut!(PANIC_MESSAGE)).assume_init_mut() }
}

/// Logs why the board was reset and what the panic before that said.
pub fn report() {
    let reason = pac::POWER.resetreas().read();
    // Its bits add up until they are cleared by writing ones.
    pac::POWER.resetreas().write_value(reason);
    defmt::info!(
        "reset: pin {}, watchdog {}, by software {}, lock-up {}",
        reason.resetpin(),
        reason.dog(),
        reason.sreq(),
        reason.lockup()
    );
    // SAFETY: called once, before anything can panic into it.
    let message = unsafe { place() };
    if message.magic == MAGIC {
        message.magic = 0;
        let text = message.bytes.get(..message.length).and_then(|bytes| core::str::from_utf8(bytes).ok());
        defmt::error!("the last run ended in a panic: {=str}", text.unwrap_or("its message is damaged"));
    }
}

#[panic_handler]
fn panic(info: &PanicInfo) -> ! {
    cortex_m::interrupt::disable();
    // SAFETY: interrupts are off and nothing returns from here.
    let message = unsafe { place() };
    message.length = 0;
    // What does not fit is cut off.
    let _ = write!(message, "{info}");
    message.magic = MAGIC;
    cortex_m::peripheral::SCB::sys_reset()
}

impl Write for PanicMessage {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for character in text.chars() {
            let end = self.length + character.len_utf8();
            let Some(room) = self.bytes.get_mut(self.length..end) else { return Err(fmt::Error) };
            character.encode_utf8(room);
            self.length = end;
        }
        Ok(())
    }
}
