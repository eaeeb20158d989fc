//! Memory-mapped registers of the board, by address.

#[cfg(not(feature = "uart"))]
use core::{arch::asm, mem::transmute};

/// Bytes of a burst: eight registers.
#[cfg(not(feature = "uart"))]
pub const BURST: usize = 32;

/// A peripheral's registers, by byte offset from `base`.
#[derive(Clone, Copy)]
pub struct Registers {
    base: usize,
}

impl Registers {
    /// # Safety
    /// `base` must be the address of a peripheral of this board, and every offset used with it one of its registers.
    pub const unsafe fn new(base: usize) -> Self {
        Self { base }
    }

    #[inline(always)]
    pub fn read(self, offset: usize) -> u32 {
        // SAFETY: `new` was promised that this is a register.
        unsafe { core::ptr::read_volatile((self.base + offset) as *const u32) }
    }

    #[inline(always)]
    pub fn write(self, offset: usize, value: u32) {
        // SAFETY: as in `read`.
        unsafe { core::ptr::write_volatile((self.base + offset) as *mut u32, value) }
    }
}

#[cfg(not(feature = "uart"))]
impl Registers {
    /// Reads eight registers from `offset` on with one instruction: for the emulator every instruction that touches a
    /// peripheral is a detour, however much it moves.
    #[inline(always)]
    pub fn read_burst(self, offset: usize) -> [u8; BURST] {
        let from = self.base + offset;
        let (w0, w1, w2, w3, w4, w5, w6, w7): (u32, u32, u32, u32, u32, u32, u32, u32);
        // SAFETY: as in `read`, for all eight.
        unsafe {
            asm!("ldm {from}, {{r0, r1, r2, r3, r4, r5, r8, r12}}", from = in(reg) from,
                 out("r0") w0, out("r1") w1, out("r2") w2, out("r3") w3,
                 out("r4") w4, out("r5") w5, out("r8") w6, out("r12") w7, options(nostack));
            transmute([w0, w1, w2, w3, w4, w5, w6, w7])
        }
    }

    /// Writes eight registers from `offset` on with one instruction.
    #[inline(always)]
    pub fn write_burst(self, offset: usize, bytes: &[u8; BURST]) {
        let to = self.base + offset;
        // SAFETY: as in `read`, for all eight; bytes of any value make words.
        unsafe {
            let [w0, w1, w2, w3, w4, w5, w6, w7]: [u32; 8] = transmute(*bytes);
            asm!("stm {to}, {{r0, r1, r2, r3, r4, r5, r8, r12}}", to = in(reg) to,
                 in("r0") w0, in("r1") w1, in("r2") w2, in("r3") w3,
                 in("r4") w4, in("r5") w5, in("r8") w6, in("r12") w7, options(nostack));
        }
    }
}
