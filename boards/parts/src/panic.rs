//! The message of a panic or the place of a fault, kept in RAM over the reset that follows it. For boards with a Cortex-M whose RAM outlives a reset.

use core::fmt::{self, Write};
use core::mem::MaybeUninit;
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
/// Only [`keep`], after which nothing reads the message, and [`take`], once at the start, may call it: there is one reference at a time.
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

/// Keeps a message and restarts the chip.
pub fn keep(text: fmt::Arguments, restart: fn() -> !) -> ! {
    cortex_m::interrupt::disable();
    // SAFETY: interrupts are off and nothing returns from here.
    let message = unsafe { place() };
    message.length = 0;
    // The end of a long message is cut off.
    let _ = message.write_fmt(text);
    message.magic = MAGIC;
    restart()
}

/// Makes the handlers of panics, hard faults and interrupts that nobody asked for (-14 is the non-maskable one). They keep what there is to tell and call
/// `$restart`, a `fn() -> !` that restarts the chip.
#[macro_export]
macro_rules! keep_faults {
    ($restart:path) => {
        #[panic_handler]
        fn panic(info: &core::panic::PanicInfo) -> ! {
            $crate::panic::keep(format_args!("{info}"), $restart)
        }

        fn keep_hard_fault(fault: $crate::fault::HardFault) -> ! {
            $crate::panic::keep(format_args!("{fault}"), $restart)
        }
        $crate::report_hard_faults!(keep_hard_fault);

        #[cortex_m_rt::exception]
        unsafe fn DefaultHandler(number: i16) -> ! {
            $crate::panic::keep(format_args!("interrupt {number} has no handler"), $restart)
        }
    };
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
