//! Memory-mapped registers of the board, by address.

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
