//! The provisioning record in RAM: the processor does not see this part of the flash, which is read by commands to its chip.

use crate::board::PAGE;
use esp_storage::FlashStorage;
use static_cell::ConstStaticCell;

/// Its words are read where they are.
#[repr(align(4))]
struct PageCopy([u8; PAGE.end - PAGE.start]);

static COPY: ConstStaticCell<PageCopy> = ConstStaticCell::new(PageCopy([0; PAGE.end - PAGE.start]));

/// Copies the page to RAM. Call once.
pub fn copy(flash: &mut FlashStorage) -> &'static [u8] {
    let PageCopy(copy) = COPY.take();
    // Bytes that cannot be read are no page, and the board says so.
    let _ = flash.read_nor(PAGE.start as u32, copy);
    copy
}
