//! The message of a panic or the place of a fault, kept in memory over the reset that follows it.

use core::fmt::{self, Write};
use fabswarm_firmware::health::PANIC_BYTES;

#[cfg(feature = "cortex-m")]
pub use ram::{keep, take};

/// Marks a message: RAM holds anything after a power cut.
const MAGIC: u32 = 0x0FAB_DEAD;

/// The message of the last panic. Any bits are a valid one: its fields are checked before they are used.
#[derive(Debug)]
#[repr(C)]
pub struct PanicMessage {
    magic: u32,
    length: u32,
    bytes: [u8; PANIC_BYTES],
}

impl PanicMessage {
    /// Returns what the panic said that ended the last run, if one did. Call once.
    pub fn take(&mut self) -> Option<&str> {
        let is_there = core::mem::take(&mut self.magic) == MAGIC;
        let bytes = self.bytes.get(..self.length as usize).filter(|_| is_there)?;
        Some(core::str::from_utf8(bytes).unwrap_or("its message is damaged"))
    }

    /// Keeps a message.
    pub fn keep(&mut self, text: fmt::Arguments) {
        self.length = 0;
        // The end of a long message is cut off.
        let _ = self.write_fmt(text);
        self.magic = MAGIC;
    }
}

impl Write for PanicMessage {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for character in text.chars() {
            let (from, to) = (self.length as usize, self.length as usize + character.len_utf8());
            let Some(room) = self.bytes.get_mut(from..to) else { return Err(fmt::Error) };
            character.encode_utf8(room);
            self.length = to as u32;
        }
        Ok(())
    }
}

/// In the RAM of a Cortex-M, which outlives a reset.
#[cfg(feature = "cortex-m")]
mod ram {
    use super::{PanicMessage, fmt};
    use core::{mem::MaybeUninit, ptr::addr_of_mut};

    #[unsafe(link_section = ".uninit.PANIC_MESSAGE")]
    static mut PANIC_MESSAGE: MaybeUninit<PanicMessage> = MaybeUninit::uninit();

    /// Returns what the panic said that ended the last run, if one did. Call once.
    pub fn take() -> Option<&'static str> {
        // SAFETY: called once, and any bits are valid. A panic later on overwrites the bytes, and nothing reads them after that.
        unsafe { (*addr_of_mut!(PANIC_MESSAGE)).assume_init_mut() }.take()
    }

    /// Keeps a message and restarts the chip.
    pub fn keep(text: fmt::Arguments, restart: fn() -> !) -> ! {
        cortex_m::interrupt::disable();
        // SAFETY: interrupts are off and nothing returns from here; any bits are valid.
        unsafe { (*addr_of_mut!(PANIC_MESSAGE)).assume_init_mut() }.keep(text);
        restart()
    }
}

/// Makes the handlers of panics, hard faults and interrupts that nobody asked for (-14 is the non-maskable one). They keep what there is to tell and call
/// `$restart`, a `fn() -> !` that restarts the chip.
#[cfg(feature = "cortex-m")]
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
