//! What a panic said, or where a fault was, kept in RAM over the reset that follows it. Part of boards with a Cortex-M whose RAM outlives a
//! reset, which `health::restart` makes.

use core::fmt::{self, Write};
use core::mem::MaybeUninit;
use core::panic::PanicInfo;
use core::ptr::addr_of_mut;
use fabswarm_firmware::health::PANIC_BYTES;

/// Marks a message: RAM holds anything after a power cut.
const MAGIC: u32 = 0x0FAB_DEAD;

/// The message of the last panic.
struct PanicMessage {
    magic: u32,
    length: usize,
    bytes: [u8; PANIC_BYTES],
}

#[unsafe(link_section = ".uninit.PANIC_MESSAGE")]
static mut PANIC_MESSAGE: MaybeUninit<PanicMessage> = MaybeUninit::uninit();

/// The message's place.
///
/// # Safety
/// Only the panic handler, which never returns, and [`take`], once at the start, may call it: there is one reference at a time.
unsafe fn place() -> &'static mut PanicMessage {
    // SAFETY: any bits are a valid message; its fields are checked before they are used.
    unsafe { (*addr_of_mut!(PANIC_MESSAGE)).assume_init_mut() }
}

/// Returns what the panic said that ended the last run, if one did. Call once.
pub fn take() -> Option<&'static str> {
    // SAFETY: called once. A panic later on overwrites the bytes, and nothing reads them after that.
    let message = unsafe { place() };
    let is_there = message.magic == MAGIC;
    message.magic = 0;
    let bytes = message.bytes.get(..message.length).filter(|_| is_there)?;
    Some(core::str::from_utf8(bytes).unwrap_or("its message is damaged"))
}

#[panic_handler]
fn panic(info: &PanicInfo) -> ! {
    restart_with(format_args!("{info}"))
}

/// A fault at `pc` in a function that returns to `lr`.
pub fn hard_fault(pc: u32, lr: u32, cfsr: u32) -> ! {
    restart_with(format_args!("hard fault at {pc:#010x}, called from {lr:#010x}, CFSR={cfsr:#x}"))
}

/// The stack has outgrown its memory, so that nothing tells where.
pub fn stack_overflow(cfsr: u32) -> ! {
    restart_with(format_args!("stack overflow, CFSR={cfsr:#x}"))
}

/// Keeps the message and restarts the chip.
fn restart_with(text: fmt::Arguments) -> ! {
    cortex_m::interrupt::disable();
    // SAFETY: interrupts are off and nothing returns from here.
    let message = unsafe { place() };
    message.length = 0;
    // What does not fit is cut off.
    let _ = message.write_fmt(text);
    message.magic = MAGIC;
    crate::health::restart()
}

/// An interrupt that nobody asked for: -14 is the non-maskable one.
#[cortex_m_rt::exception]
unsafe fn DefaultHandler(number: i16) -> ! {
    restart_with(format_args!("interrupt {number} has no handler"))
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
