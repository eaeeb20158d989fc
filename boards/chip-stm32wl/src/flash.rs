//! The flash of the STM32WL, which corrects errors: two wrong bits in a unit, as a power cut leaves them, raise an NMI.

use core::sync::atomic::{AtomicBool, Ordering};
use cortex_m_rt::exception;
use embassy_stm32::{
    Peri,
    flash::{Blocking, Flash},
    pac,
    peripherals::FLASH,
};
use embedded_storage::nor_flash::{ErrorType, NorFlash, NorFlashError, NorFlashErrorKind, ReadNorFlash};

/// Whether a unit could not be read.
static IS_TORN: AtomicBool = AtomicBool::new(false);

#[exception]
unsafe fn NonMaskableInt() {
    let status = pac::FLASH.eccr().read();
    if !status.eccd() {
        panic!("NMI, and not by the flash");
    }
    // Cleared by writing it back.
    pac::FLASH.eccr().write_value(status);
    IS_TORN.store(true, Ordering::Relaxed);
}

/// A flash driver that returns an error for what cannot be read.
pub struct EccFlash(Flash<'static, Blocking>);

impl EccFlash {
    pub fn new(flash: Peri<'static, FLASH>) -> Self {
        Self(Flash::new_blocking(flash))
    }
}

impl ErrorType for EccFlash {
    type Error = NorFlashErrorKind;
}

impl ReadNorFlash for EccFlash {
    const READ_SIZE: usize = <Flash<'static, Blocking> as ReadNorFlash>::READ_SIZE;

    fn read(&mut self, offset: u32, bytes: &mut [u8]) -> Result<(), NorFlashErrorKind> {
        IS_TORN.store(false, Ordering::Relaxed);
        ReadNorFlash::read(&mut self.0, offset, bytes).map_err(|error| error.kind())?;
        // The NMI comes before the next instruction.
        cortex_m::asm::dsb();
        cortex_m::asm::isb();
        if IS_TORN.load(Ordering::Relaxed) { Err(NorFlashErrorKind::Other) } else { Ok(()) }
    }

    fn capacity(&self) -> usize {
        self.0.capacity()
    }
}

impl NorFlash for EccFlash {
    const WRITE_SIZE: usize = <Flash<'static, Blocking> as NorFlash>::WRITE_SIZE;
    const ERASE_SIZE: usize = <Flash<'static, Blocking> as NorFlash>::ERASE_SIZE;

    fn erase(&mut self, from: u32, to: u32) -> Result<(), NorFlashErrorKind> {
        NorFlash::erase(&mut self.0, from, to).map_err(|error| error.kind())
    }

    fn write(&mut self, offset: u32, bytes: &[u8]) -> Result<(), NorFlashErrorKind> {
        NorFlash::write(&mut self.0, offset, bytes).map_err(|error| error.kind())
    }
}
