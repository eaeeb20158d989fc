//! embassy's clock: the FPGA's microsecond counter is the time, CMSDK timer 0 the alarm.

use crate::{
    interrupts::{self, InterruptLine},
    registers::Registers,
};
use core::{
    cell::{Cell, RefCell},
    task::Waker,
};
use critical_section::{CriticalSection, Mutex};
use embassy_time_driver::Driver;
use embassy_time_queue_utils::Queue;

// SAFETY: addresses of application note AN386.
const TIMER0: Registers = unsafe { Registers::new(0x4000_0000) };
const FPGA_IO: Registers = unsafe { Registers::new(0x4002_8000) };

const COUNTER: usize = 0x18;
const PRESCALE: usize = 0x1C;
const TIMER_CONTROL: usize = 0x0;
const TIMER_VALUE: usize = 0x4;
const TIMER_RELOAD: usize = 0x8;
const TIMER_CLEAR: usize = 0xC;

const CLOCK_MHZ: u32 = 25;
/// Waking at least once a minute sees every wrap of the 32-bit counter, which takes 71 minutes.
const LONGEST_SLEEP_US: u64 = 60_000_000;

struct Clock {
    /// How often the counter wrapped, and its last reading.
    wraps: Mutex<Cell<(u32, u32)>>,
    queue: Mutex<RefCell<Queue>>,
    /// When the alarm is due.
    alarm_at: Mutex<Cell<u64>>,
}

embassy_time_driver::time_driver_impl!(static CLOCK: Clock = Clock {
    wraps: Mutex::new(Cell::new((0, 0))),
    queue: Mutex::new(RefCell::new(Queue::new())),
    alarm_at: Mutex::new(Cell::new(u64::MAX)),
});

impl Clock {
    fn now(&self, section: CriticalSection) -> u64 {
        let cell = self.wraps.borrow(section);
        let (mut wraps, last) = cell.get();
        let counter = FPGA_IO.read(COUNTER);
        if counter < last {
            wraps += 1;
        }
        cell.set((wraps, counter));
        u64::from(wraps) << 32 | u64::from(counter)
    }

    /// Wakes what is due and sets the alarm to what comes next.
    fn run_queue(&self, section: CriticalSection) {
        let mut queue = self.queue.borrow(section).borrow_mut();
        let (now, wait_us) = loop {
            let now = self.now(section);
            let next = queue.next_expiration(now);
            if next > now {
                break (now, (next - now).min(LONGEST_SLEEP_US));
            }
        };
        self.alarm_at.borrow(section).set(now + wait_us);
        TIMER0.write(TIMER_CONTROL, 0);
        TIMER0.write(TIMER_RELOAD, 0);
        TIMER0.write(TIMER_VALUE, wait_us as u32 * CLOCK_MHZ);
        TIMER0.write(TIMER_CONTROL, 1 << 3 | 1); // interrupt, run
    }
}

impl Driver for Clock {
    fn now(&self) -> u64 {
        critical_section::with(|section| self.now(section))
    }

    fn schedule_wake(&self, at: u64, waker: &Waker) {
        critical_section::with(|section| {
            self.queue.borrow(section).borrow_mut().schedule_wake(at, waker);
            // The queue also asks for an alarm that is set already, which wakes the emulator's other thread for nothing.
            if at < self.alarm_at.borrow(section).get() {
                self.run_queue(section);
            }
        });
    }
}

pub unsafe extern "C" fn on_alarm() {
    TIMER0.write(TIMER_CLEAR, 1);
    critical_section::with(|section| CLOCK.run_queue(section));
}

/// Starts the clock at zero.
pub fn start() {
    FPGA_IO.write(PRESCALE, CLOCK_MHZ - 1);
    FPGA_IO.write(COUNTER, 0);
    interrupts::enable(InterruptLine::Timer0);
    critical_section::with(|section| CLOCK.run_queue(section));
}
