//! defmt over UART 1.

use crate::{cmsdk_uart::CmsdkUart, panic::stop};
use core::{
    cell::UnsafeCell,
    sync::atomic::{AtomicBool, Ordering},
};
use critical_section::RestoreState;
use defmt::Encoder;

// SAFETY: address of application note AN386.
const UART1: CmsdkUart = unsafe { CmsdkUart::new(0x4000_5000) };

/// Starts the UART that carries the log.
pub fn start() {
    UART1.start();
}

fn put(bytes: &[u8]) {
    UART1.write(bytes);
}

defmt::timestamp!("{=u64:us}", embassy_time::Instant::now().as_micros());

#[defmt::global_logger]
struct Logger;

static IS_TAKEN: AtomicBool = AtomicBool::new(false);
static STATE_OF_LOG: State =
    State { encoder: UnsafeCell::new(Encoder::new()), restore: UnsafeCell::new(RestoreState::invalid()) };

struct State {
    encoder: UnsafeCell<Encoder>,
    restore: UnsafeCell<RestoreState>,
}

// SAFETY: touched only between `acquire` and `release`, inside a critical section of a single core.
unsafe impl Sync for State {}

// SAFETY: `acquire` opens a critical section and refuses to nest; `release` closes it.
unsafe impl defmt::Logger for Logger {
    fn acquire() {
        // SAFETY: paired with the release below.
        let restore = unsafe { critical_section::acquire() };
        if IS_TAKEN.swap(true, Ordering::Relaxed) {
            stop();
        }
        // SAFETY: the critical section makes this the only access.
        unsafe {
            *STATE_OF_LOG.restore.get() = restore;
            (*STATE_OF_LOG.encoder.get()).start_frame(put);
        }
    }

    unsafe fn flush() {}

    unsafe fn release() {
        // SAFETY: still inside the critical section of `acquire`, which ends last.
        unsafe {
            (*STATE_OF_LOG.encoder.get()).end_frame(put);
            IS_TAKEN.store(false, Ordering::Relaxed);
            critical_section::release(*STATE_OF_LOG.restore.get());
        }
    }

    unsafe fn write(bytes: &[u8]) {
        // SAFETY: called between `acquire` and `release`.
        unsafe { (*STATE_OF_LOG.encoder.get()).write(bytes, put) };
    }
}
