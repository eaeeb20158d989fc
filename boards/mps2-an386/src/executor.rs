//! An executor that sleeps with WFI.
//!
//! embassy's own Cortex-M executor sleeps with WFE, which QEMU takes for a no-op: an idle board would keep a whole core of the host busy.

use core::sync::atomic::{AtomicBool, Ordering};
use embassy_executor::{Spawner, raw};

static WORK_IS_PENDING: AtomicBool = AtomicBool::new(false);

#[unsafe(export_name = "__pender")]
fn pend(_context: *mut ()) {
    WORK_IS_PENDING.store(true, Ordering::Release);
}

pub struct Executor {
    inner: raw::Executor,
}

impl Executor {
    pub fn new() -> Self {
        Self { inner: raw::Executor::new(core::ptr::null_mut()) }
    }

    pub fn run(&'static mut self, start: impl FnOnce(Spawner)) -> ! {
        start(self.inner.spawner());
        loop {
            // SAFETY: only this loop polls, and it does not re-enter itself.
            unsafe { self.inner.poll() };
            // With interrupts masked no work can arrive between the look and the sleep; WFI wakes on a masked interrupt all the same.
            cortex_m::interrupt::disable();
            if !WORK_IS_PENDING.swap(false, Ordering::AcqRel) {
                cortex_m::asm::wfi();
            }
            // SAFETY: no critical section is open here.
            unsafe { cortex_m::interrupt::enable() };
        }
    }
}
