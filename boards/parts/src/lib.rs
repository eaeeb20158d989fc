//! Parts of boards that no HAL brings.
#![no_std]

#[cfg(feature = "usb")]
pub mod cdc_port;
#[cfg(feature = "cortex-m")]
pub mod fault;
pub mod flash;
#[cfg(feature = "cortex-m")]
pub mod health;
#[cfg(feature = "lora")]
pub mod lora;
pub mod panic;
pub mod radio;
#[cfg(feature = "cortex-m")]
pub mod stack;

pub use embedded_storage::nor_flash::NorFlash;
use fabswarm_firmware::Buffers;
use static_cell::ConstStaticCell;

/// The firmware's large buffers. Call once.
pub fn buffers() -> &'static mut Buffers {
    static BUFFERS: ConstStaticCell<Buffers> = ConstStaticCell::new(Buffers::new());
    BUFFERS.take()
}

/// Makes the module `board`: the constants that the build script took from `board.toml`, and `parts`, which makes the firmware's `Parts` of
/// them and of what a board adds. Its flash driver counts from address `origin` on. Call `parts` once.
#[macro_export]
macro_rules! board {
    () => {
        mod board {
            use fabswarm_firmware::{Parts, storage::BoardStorage};
            use $crate::flash::BoardFlash;

            include!(concat!(env!("OUT_DIR"), "/board.rs"));

            pub fn parts<L, F: $crate::NorFlash, H>(
                chip: Option<u64>,
                window: u16,
                link: L,
                flash: F,
                origin: usize,
                health: H,
            ) -> Parts<'static, L, BoardFlash<F>, H> {
                let storage = BoardStorage::new(BoardFlash::new(flash, origin, PAGE, STORAGE));
                Parts {
                    board: NAME,
                    chip,
                    window,
                    page: page(),
                    buffers: $crate::buffers(),
                    link,
                    storage,
                    health,
                    marks: None,
                }
            }
        }
    };
}
